# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the findings that the facts and the diagnosis of a failed driver share."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.problems import (
    find_problems,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.common import (
    build_failed,
    evidence_of_node,
    library_mismatch,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    Evidence,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.on_node import diagnose
from tests.unit.plugins.module_utils._facts.test_gather import MISMATCH, node_with

VGPU = {"guest": True, "host_driver_version": None, "host_driver_branch": "r550_00"}


@pytest.mark.parametrize(
    ("changes", "nvml"),
    [
        ({"driver__loaded": None, "nouveau__loaded": True}, ""),
        ({"driver__loaded": None, "nouveau__loaded": True, "nouveau__blocked": True}, ""),
        ({"driver__userland": "580.105.08"}, ""),
        ({}, MISMATCH),
        ({"driver__loaded": None, "vgpu": VGPU}, ""),
    ],
)
def test_facts_and_diagnosis_report_the_same(changes: dict[str, Any], nvml: str) -> None:
    vgpu = changes.pop("vgpu", None)
    node = node_with(**changes)
    if vgpu:
        node["gpus"][0]["vgpu"] = vgpu
    grid = node["driver"]["loaded"] is not None
    assert find_problems(node, nvml) == [diagnose(evidence_of_node(node, grid=grid, nvml=nvml))]


def test_a_mismatch_of_equal_versions_names_one_of_them() -> None:
    version = "580.95.05"
    finding = library_mismatch(Evidence(loaded=version, userland=version, nvml=MISMATCH))
    assert finding is not None
    assert finding.cause.startswith(
        f"The module that is loaded is {version}, but the libraries are"
    )
    assert finding.cause.count(version) == 1


def test_a_build_of_an_unknown_version() -> None:
    finding = build_failed("The installer", "", "6.1.0", "log", fix=("a file is full", "step"))
    expected = "The installer could not build driver modules for kernel 6.1.0: a file is full."
    assert (finding.cause, finding.next_step) == (expected, "step")
