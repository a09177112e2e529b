# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How CRI-O is probed."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.options import ProbeOptions
from tests.unit.fixtures.crio import configured, packaged
from tests.unit.fixtures.probed_node import collector, crictl_info, facts, runtimes


@pytest.mark.parametrize(
    ("crio", "answers", "listed", "code"),
    [
        (configured(), {}, True, None),
        (packaged(), {}, False, None),
        (configured(active=False), {}, None, "crio_not_running"),
        (configured(restart_required=True), {}, True, "restart_required"),
        (configured({"path": "/usr/bin/crun"}), {}, True, "wrong_program"),
        (configured(runtimes=None), {}, False, None),
        # crictl knows what the running one has: that counts, not the files.
        (configured(restart_required=True), {"crictl.*crio.sock": crictl_info("nvidia")}, True,
         None),
        (configured(), {"crictl.*crio.sock": crictl_info("crun")}, False, None),
        # One that names no handlers, as before CRI-O 1.31.
        (configured(), {"crictl.*crio.sock": crictl_info()}, True, None),
        (configured(), {"crictl.*crio.sock": Result(1, "", "connection refused")}, True,
         "cri_not_ready"),
    ],
)  # fmt: skip
def test_crio_is_looked_up_and_starts_nothing(tmp_path, crio, answers, listed, code):
    probe, run = collector(tmp_path, answers=answers)
    only = facts(runtimes__containerd=None, runtimes__docker=None, runtimes__crio=crio)
    runtime = runtimes(probe, only)["crio"]
    assert runtime.listed is listed
    assert (runtime.fault.code if runtime.fault else None) == code
    assert runtime.containers == ()
    assert not run.matching(" run ")


def test_crio_can_be_left_out(tmp_path):
    probe, _run = collector(tmp_path, ProbeOptions(engines=("containerd",)))
    assert runtimes(probe, facts(runtimes__crio=configured()))["crio"].idle
