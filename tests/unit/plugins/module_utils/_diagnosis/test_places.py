# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each row of the table of causes has one place where it is shown, and is there."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.data import CAUSES
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.codes import UNKNOWN
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    Evidence,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.on_node import diagnose
from tests.integration.fleet.fault_cases import FAULTS, MACHINE, UNLOADED
from tests.integration.fleet.faults import files
from tests.testbed.paths import REPOSITORY
from tests.unit.fixtures import catalogue
from tests.unit.plugins.module_utils._diagnosis.test_catalogue import NODE
from tests.unit.plugins.module_utils._diagnosis.test_catalogue_cluster import CLUSTER, PODS


def codes_of(file):
    """Return the texts of a test, or the codes that a report expects."""
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    if file in catalogue.REPORTS:
        return set(yaml.safe_load(text)["expect"]["codes"])
    return {
        one.value
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


CODES = {file: codes_of(file) for file in (*catalogue.LIVE, *catalogue.UNIT, *catalogue.REPORTS)}


def test_each_row_has_one_place():
    places = Counter(row for row, _place in catalogue.places())
    differing = set(places) ^ set(CAUSES)
    assert not differing, f"{differing}. Next step: a place in tests/unit/fixtures/catalogue.py"
    assert {row for row, count in places.items() if count > 1} == set()


@pytest.mark.parametrize(("row", "place"), catalogue.places())
def test_the_row_is_in_its_place(row, place):
    if row in catalogue.RECORDED:
        assert (NODE | CLUSTER | PODS)[place][1] == row
    elif row in catalogue.FAULTS:
        assert row in {fault.row for fault in FAULTS.values()}
    else:
        assert row in CODES[place], f"{place} does not name {row}. Next step: it is shown there"


def test_no_fault_is_of_another_row():
    assert {fault.row for fault in FAULTS.values()} == set(catalogue.FAULTS)


def test_the_files_of_faults_are_those_of_their_hosts():
    found = files(FAULTS)
    for name in FAULTS:
        assert f"opt/faults/{name}/python" in found and f"opt/faults/{name}/fault" in found
        assert found[f"opt/faults/{name}/bin/journalctl"][1] == 0o755


@pytest.mark.parametrize(
    "name", [name for name, fault in FAULTS.items() if UNLOADED in fault.script and fault.kernel]
)
def test_a_module_that_is_not_loaded_has_one_reason_in_a_container(name):
    """The nodes are containers without the right to load modules, unless the fault hides it."""
    fault = FAULTS[name]
    found = diagnose(
        Evidence(
            dmesg=fault.kernel,
            nouveau_loaded="nouveau" in fault.script,
            may_load=MACHINE in fault.script,
            container=None if MACHINE in fault.script else "docker",
        )
    )
    assert found.code == fault.row or (MACHINE in fault.script and found.code == UNKNOWN)
