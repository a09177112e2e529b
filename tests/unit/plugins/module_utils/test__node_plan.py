# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._node_plan import (
    describe_gpus,
    fleet_rows,
    gpu_vendor,
    node_plan,
    node_result,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit import (
    ToolkitWish,
    plan_toolkit,
)
from tests.unit.fixtures.node_facts import P4, installed, node


def plan(facts, **wish):
    return plan_toolkit(facts, ToolkitWish(**wish)).to_json()


@pytest.mark.parametrize(
    ("vendors", "group"),
    [([], "none"), (["amd"], "amd"), (["intel", "nvidia"], "nvidia"), (["intel"], "intel")],
)
def test_group_of_a_node(vendors, group):
    assert gpu_vendor([{"vendor": vendor} for vendor in vendors]) == group


def test_gpus_are_counted_by_model():
    guest = {**P4, "vgpu": {"guest": True}}
    unknown = {**P4, "product": None, "generation": None, "device_id": "ffff"}
    assert describe_gpus([P4, P4, guest, unknown]) == [
        "2x Tesla P4 (pascal)",
        "1x Tesla P4 (pascal, vGPU guest)",
        "1x nvidia ffff (unknown)",
    ]


def test_row_says_what_is_there_and_what_would_change():
    facts = node()
    row = node_plan("web-1", facts, plan(facts))
    assert row["action"] == "change"
    assert row["present"] == ["containerd 1.6.20", "docker 20.10.24"]
    assert row["changes"][0].startswith("repository: add")
    assert len(row["why"]) == len(row["changes"])


def test_row_of_a_finished_node():
    facts = installed()
    row = node_plan("web-1", facts, plan(facts))
    assert (row["action"], row["changes"], row["why"]) == ("none", [], ["all is as wished"])


def test_row_of_a_node_without_gpu_or_of_another_vendor():
    assert "no GPU" in node_plan("cpu-1", node(gpus=[]))["why"][0]
    amd = node(gpus=[{**P4, "vendor": "amd"}])
    assert "no NVIDIA GPU" in node_plan("amd-1", amd)["why"][0]


def test_row_of_a_refusal():
    facts = node(os__package_manager="dnf")
    row = node_plan("el9", facts, plan(facts))
    assert row["action"] == "refuse" and "dnf" in row["why"][0]


def test_modules_in_check_mode_know_better_than_the_facts():
    facts = installed()
    results = {
        "docker": {
            "changed": False,
            "restart_required": True,
            "restart_reason": "--gpus needs a restart",
        },
        "containerd": {"changed": True, "reasons": ["options differ"]},
    }
    row = node_plan("web-1", facts, plan(facts), results)
    assert row["changes"] == ["docker: wait for a restart", "containerd: configure"]
    assert row["why"] == ["--gpus needs a restart", "options differ"]


def test_a_module_that_failed_is_shown():
    facts = installed()
    row = node_plan("web-1", facts, plan(facts), {"docker": {"failed": True, "msg": "bad\nmore"}})
    assert row["why"] == ["bad"]


def test_result_names_what_is_still_to_do():
    row = node_result(
        "web-1",
        plan(installed()),
        {
            "containerd": {
                "changed": True,
                "handlers": ["nvidia", "runc"],
                "default_runtime": "runc",
            },
            "docker": {
                "changed": False,
                "restart_required": True,
                "restart_reason": "hook is newer",
            },
        },
    )
    assert row["containerd"] == ["nvidia, runc (default)", "changed"]
    assert row["open"][0] == "restart docker: hook is newer"


def test_rows_of_hosts_that_failed_early():
    rows = fleet_rows(["a", "b"], {"a": {"row": {"node": "a"}}, "b": {}}, "row")
    assert rows[0] == {"node": "a"}
    assert rows[1]["action"] == "unknown" and "not be read" in rows[1]["why"][0]


def test_restarts_and_reloads_that_will_happen_are_named():
    facts = node()
    toolkit = plan(facts)
    results = {
        "containerd": {"changed": True, "restarted": True, "restart_required": False},
        "docker": {"changed": True, "reloaded": True, "restart_required": False},
    }
    row = node_plan("web-1", facts, toolkit, results)
    assert row["changes"][-5:] == [
        "containerd: configure",
        "containerd: restart",
        "docker: configure",
        "docker: reload",
        "docker: restart where no container would be stopped",
    ]
