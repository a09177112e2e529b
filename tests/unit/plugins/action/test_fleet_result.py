# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What fleet_result computes of the variables of several hosts, and how it fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml
from ansible.errors import AnsibleActionFail, AnsibleError

from ansible_collections.kubegpu.nodes.plugins.action.fleet_result import ActionModule
from ansible_collections.kubegpu.nodes.plugins.modules import fleet_result
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _results, _stage_results

KUBE = {"kubegpu_kube": {"kubeconfig": "/k", "token": "of one host"}}


def result(of, hostvars, **given):
    task = SimpleNamespace(
        args={"of": of, "hosts": [*hostvars], "given": given},
        async_val=0, check_mode=False, diff=False,
    )  # fmt: skip
    shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    action = ActionModule(task, shell, None, None, None, None)
    return action.run(task_vars={"hostvars": hostvars})


def test_the_choices_are_those_of_the_tables():
    choices = yaml.safe_load(fleet_result.DOCUMENTATION)["options"]["of"]["choices"]
    assert {*choices} == {*_results.RESULTS, *_stage_results.RESULTS}
    assert choices == sorted(ActionModule.spec["of"]["choices"])


def test_the_cluster_of_all_hosts_without_its_secret():
    found = result("cluster", {"a": KUBE, "b": {"kubegpu_kube": {"kubeconfig": "/k"}}}, gpu=["b"])
    assert found["changed"] is False and "of one host" not in str(found)
    assert found["result"]["variables"]["kubegpu_kube.kubeconfig"] == "/k"
    assert (found["result"]["gpu_hosts"], found["result"]["nvidia_hosts"]) == (["b"], ["a", "b"])


@pytest.mark.parametrize(
    ("hostvars", "cause"),
    [
        ({"a": KUBE, "b": {}}, "a and b are not of one cluster"),
        ({"a": {"gpu_monitoring_enabled": True}, "b": {}}, "gpu_monitoring_enabled differs"),
    ],
)
def test_two_clusters_fail_with_the_parts_of_the_error(hostvars, cause):
    with pytest.raises(AnsibleActionFail) as caught:
        result("cluster", hostvars, deployed=True)
    told = caught.value.result
    assert cause in told["cause"] and told["msg"]


def test_the_layers_of_hosts_and_of_their_cluster():
    layer = {"layer": "nvml", "ok": True, "cause": "", "node": "as it calls itself"}
    offered = {"layer": "allocatable", "ok": False, "cause": "Too few.", "node": "a"}
    hostvars = {"a": {"seen": [layer]}, "b": {"gpu_verify_enabled": False}}
    (row,) = result("verification", hostvars, key="seen", layers=[offered])["result"]
    assert (row["node"], row["nvml"], row["allocatable"]) == ("a", "ok", "failed")


def test_an_unknown_result_is_refused():
    with pytest.raises(AnsibleError, match="colour"):
        result("colour", {})
