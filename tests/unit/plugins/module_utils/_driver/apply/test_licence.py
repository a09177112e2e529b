# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.licence import (
    await_licence,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result

SMI = """<?xml version="1.0" ?><nvidia_smi_log><gpu id="00000002:00:00.0">
<gpu_virtualization_mode><virtualization_mode>VGPU</virtualization_mode></gpu_virtualization_mode>
<vgpu_software_licensed_product><license_status>{}</license_status></vgpu_software_licensed_product>
</gpu></nvidia_smi_log>"""
TOKEN = {"token_path": "/srv/a.tok"}


class Node:
    def __init__(self, *answers, units=("nvidia-persistenced", "nvidia-gridd"), licence=None):
        self.answers = list(answers)
        self.asked = 0
        self.now = 0.0
        self.plan = types.SimpleNamespace(services=dict.fromkeys(units, "enabled"))
        self.request = types.SimpleNamespace(licence=TOKEN if licence is None else licence)

    def run(self, argv, timeout=60):
        if argv == ["nvidia-smi", "-q", "-x"]:
            self.asked += 1
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            return Result(124, "", "") if answer is None else Result(0, answer, "")
        if argv[0] == "systemctl":
            return Result(3, "inactive\n", "")
        return Result(0, "Failed to acquire license from dls.example.com\n", "")

    def sleep(self, seconds):
        self.now += seconds

    def wait(self):
        await_licence(self, lambda: self.now, self.sleep)


def test_it_waits_until_there_is_one():
    node = Node(SMI.format("Unlicensed (Unrestricted)"), SMI.format("Licensed (Expiry: N/A)"))
    node.wait()
    assert (node.asked, node.now) == (2, 3)


def test_none_in_time_is_an_error():
    node = Node(SMI.format("Unlicensed"), licence={**TOKEN, "timeout": 9})
    with pytest.raises(KubegpuError) as caught:
        node.wait()
    error = caught.value
    assert error.code == "vgpu_unlicensed" and node.now == 9
    assert "gridd.conf and the token are kept as requested" in error.cause
    assert "License Status: Unlicensed" in error.evidence and "says inactive" in error.evidence
    assert "Failed to acquire license" in error.evidence
    assert "nvidia_driver_licence.timeout is 9 seconds" in error.next_step


@pytest.mark.parametrize(
    "options",
    [
        {"units": ("nvidia-persistenced",)},
        {"licence": {}},
        {"licence": {"timeout": 60}},
        {"licence": {**TOKEN, "timeout": 0}},
    ],
)
def test_nothing_is_waited_for(options):
    node = Node(SMI.format("Unlicensed"), **options)
    node.wait()
    assert node.asked == 0


@pytest.mark.parametrize("answer", [None, "no document", SMI.format("N/A")])
def test_a_driver_that_does_not_tell_it_is_left_to_the_verification(answer):
    node = Node(answer)
    node.wait()
    assert node.asked == 1
