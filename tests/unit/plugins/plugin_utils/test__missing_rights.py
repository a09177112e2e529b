# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the API server is asked for the other rights, and what a task then says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible import context

from ansible_collections.kubegpu.nodes.plugins.action.gpu_cluster_info import ActionModule
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._missing_rights import (
    with_all_rights,
)

USER = "system:serviceaccount:kubegpu:kubegpu-ansible"
REFUSED = {
    "failed": True,
    "msg": "The right 'patch' on 'nodes' is missing",
    "cause": "The right 'patch' on 'nodes' is missing",
    "evidence": f'nodes "a" is forbidden: User "{USER}" cannot patch resource "nodes" in API group '
    '"" at the cluster scope',
    "next_step": "Add a rule",
    "exception": "the first message",
}
VARIABLES = {
    "inventory_hostname": "a",
    "groups": {"kubegpu_cluster": ["a"], "kubegpu_nvidia": ["a"]},
    "hostvars": {"a": {}},
}


def action(answer, name="kubegpu.nodes.node_gpu_label", **options):
    asked = []

    def execute(**call):
        asked.append(call)
        return answer(call) if callable(answer) else answer

    given = {"kubeconfig": "/k", "nodes": {}, **options}
    task = SimpleNamespace(args=given, action=name, failed_when=[])
    return SimpleNamespace(_task=task, _execute_module=execute), asked


@pytest.fixture(autouse=True)
def site(monkeypatch):
    monkeypatch.setattr(context, "CLIARGS", {"args": ("/x/playbooks/site.yml",)})


@pytest.mark.parametrize(
    "result",
    [
        {"changed": True},
        {"failed": True, "msg": "The API server cannot be reached", "evidence": "timeout"},
        # Quota and other admission.
        {"failed": True, "msg": 'pods "x" is forbidden: exceeded quota'},
        # No part has it.
        {
            **REFUSED,
            "evidence": str(REFUSED["evidence"]).replace("patch resource", "delete resource"),
        },
    ],
)
def test_nothing_is_asked_without_a_missing_right(result):
    one, asked = action({})
    assert with_all_rights(one, result, VARIABLES) == result and asked == []


def test_all_rights_of_the_run_are_asked_for_and_those_missing_named():
    one, asked = action(lambda call: {
        "server": "https://api",
        "lacking": [
            number for number, right in enumerate(call["module_args"]["_internal"]["_rights"])
            if right["resource"] in ("nodes", "daemonsets") and right["verb"] == "patch"
        ],
    })  # fmt: skip
    found = with_all_rights(one, REFUSED, VARIABLES)
    (call,) = asked
    assert call["module_name"] == "kubegpu.nodes.gpu_cluster_info"
    assert {name for name in call["module_args"] if name != "_internal"} == {"kubeconfig"}
    assert "parts nodes, nvidia of rbac.yml" in found["cause"]
    assert "part nvidia: patch on daemonsets" in found["evidence"]
    assert "(nodes, nvidia)" in found["next_step"] and found["next_step"] in found["msg"]
    # Ansible would print the text in it first.
    assert "exception" not in found


@pytest.mark.parametrize(
    "answer", [{"failed": True, "msg": "404"}, {"lacking": [], "server": "https://api"}, {}]
)
def test_without_an_answer_the_message_is_that_of_the_one_right(answer):
    one, asked = action(answer)
    assert with_all_rights(one, REFUSED, VARIABLES) == REFUSED and len(asked) == 1


def test_a_failed_read_of_the_cluster_has_no_layers_unless_a_task_reads_them(monkeypatch):
    answer = {"lacking": [0], "server": "https://api"}
    result = {**REFUSED, "layers": [{"node": "a", "code": "cluster_not_asked"}, {"node": "b"}]}
    one, _asked = action(answer)
    assert "layers" not in ActionModule.ended(one, dict(result), VARIABLES)
    one._task.failed_when = ["false"]
    found = ActionModule.ended(one, dict(result), VARIABLES)
    first, second = found["layers"]
    assert first["cause"] == found["cause"] != REFUSED["cause"] and second == {"node": "b"}
