# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit of the boot: what waits for it, and that it waits for nothing that waits for it."""

from __future__ import annotations

import configparser

import pytest

from plugins.module_utils._containerd.distributions import DISTRIBUTIONS
from plugins.module_utils._mig.boot import SCRIPT_PATH, UNIT_PATH, boot_files
from plugins.module_utils._mig.layout import Instance, Layout
from plugins.module_utils._mig.services import CDI_UNIT
from plugins.module_utils._mig.types import EXPORTER, METRICS

LAYOUT = Layout(True, (Instance(4, 4, "3g.40gb"), Instance(0, 1, "1g.10gb-me")))


def texts(layouts):
    return {one.path: one.text for one in boot_files(layouts)}


@pytest.fixture
def unit():
    parser = configparser.ConfigParser(strict=False)
    parser.optionxform = str
    parser.read_string(texts({"GPU-0": LAYOUT})[UNIT_PATH])
    return parser


def test_all_that_uses_gpus_waits_for_the_layout(unit):
    waits = set(unit["Unit"]["Before"].split())
    runtimes = {"containerd", "docker", "crio", "kubelet"}
    distributions = {name for one in DISTRIBUTIONS for name in one.units}
    exporters = {EXPORTER, METRICS, "nvidia-dcgm", "nvidia-dcgm-exporter", "dcgm-exporter"}
    for name in (*runtimes, *distributions, *exporters, CDI_UNIT):
        assert f"{name}.service" in waits, name
    assert not waits & set(unit["Unit"]["After"].split())


def test_the_unit_starts_no_other_one(unit):
    """A unit that others wait for must not wait for them (mig-parted 0.14.4)."""
    assert set(unit["Unit"]) == {"Description", "ConditionPathExists", "After", "Before"}
    assert unit["Service"]["ExecStart"] == f"/bin/sh {SCRIPT_PATH}"
    script = texts({"GPU-0": LAYOUT})[SCRIPT_PATH]
    for program in ("systemctl", "docker", "ctr", "crictl", "kubectl"):
        assert program not in script.split(), program


def test_large_instances_come_first_and_names_are_kept():
    script = texts({"GPU-0": LAYOUT})[SCRIPT_PATH]
    assert "\nlayout GPU-0 3g.40gb:4 1g.10gb-me:0\n" in script


def test_without_a_layout_there_is_no_unit():
    assert set(texts({"GPU-0": Layout(False)}).values()) == {None}
