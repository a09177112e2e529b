# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter import hosts_to_verify
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import (
    gpu_groups,
    gpu_vendor,
    hosts_with,
)


@pytest.mark.parametrize(
    ("vendors", "group"),
    [([], "none"), (["amd"], "amd"), (["intel", "nvidia"], "nvidia"), (["intel"], "intel")],
)
def test_group_of_a_node(vendors, group):
    assert gpu_vendor([{"vendor": vendor} for vendor in vendors]) == group


def test_hosts_with():
    hostvars = {
        "a": {"ansible_facts": {"gpu_node": {}}, "work": True},
        "b": {"ansible_facts": {"gpu_node": {}}, "work": False},
        "failed while it was planned": {"ansible_facts": {"gpu_node": {}}},
        "unreachable": {"ansible_facts": {}},
        "never asked": {},
    }
    assert hosts_with([*hostvars], hostvars) == ["a", "b", "failed while it was planned"]
    assert hosts_with([*hostvars], hostvars, "work") == ["a"]
    assert hosts_with(["a"], {}) == hosts_with(["a"], {}, "work") == []


def host(*vendors, loaded="580.126.09", **variables):
    gpus = [{"vendor": vendor} for vendor in vendors]
    return {
        "ansible_facts": {"gpu_node": {"gpus": gpus, "driver": {"loaded": loaded}}},
        **variables,
    }


def test_groups_of_hosts():
    hostvars = {
        "gpu1": host("nvidia", kubegpu_kube={"kubeconfig": "/root/kubeconfig"}),
        "gpu2": host("amd", kubegpu_kube={"kubeconfig": ""}),
        "cpu1": host(kubegpu_kube={"host": "https://127.0.0.1:6443"}),
        "unreachable": {},
    }
    assert gpu_groups([*hostvars], hostvars) == [
        {"host": "gpu1", "groups": ["kubegpu_nvidia", "kubegpu_cluster"]},
        {"host": "gpu2", "groups": ["kubegpu_amd"]},
        {"host": "cpu1", "groups": ["kubegpu_none", "kubegpu_cluster"]},
    ]


def test_a_host_with_a_wrong_value_is_refused_where_it_counts():
    driver = {"part": "driver", "cluster": False}
    labels = {"part": "labels", "cluster": True}
    kept = {
        "wrong": {"gpu1": [driver], "gpu2": [labels], "cpu1": [driver], "cpu2": [driver, labels]}
    }
    cluster = {"kubegpu_kube": {"kubeconfig": "/root/kubeconfig"}}
    hostvars = {
        "gpu1": host("nvidia", __kubegpu_variables=kept, **cluster),
        "gpu2": host("nvidia", __kubegpu_variables=kept),
        "gpu3": host("nvidia", __kubegpu_variables=kept),
        "cpu1": host(__kubegpu_variables=kept, **cluster),
        "cpu2": host(__kubegpu_variables=kept, **cluster),
    }
    assert {one["host"]: one["groups"] for one in gpu_groups([*hostvars], hostvars)} == {
        "gpu1": ["kubegpu_refused"],
        "gpu2": ["kubegpu_nvidia"],
        "gpu3": ["kubegpu_nvidia"],
        "cpu1": ["kubegpu_none", "kubegpu_cluster"],
        "cpu2": ["kubegpu_refused"],
    }


def to_verify(hostvars, **options):
    (found,) = hosts_to_verify.FilterModule().filters().values()
    return found([*hostvars], hostvars, **options)


def test_what_a_run_changed_is_verified():
    hostvars = {
        "changed": host("nvidia", kubegpu_changed=True),
        "labelled": host(
            "nvidia", __gpu_node_labels_result={"nodes": {"labelled": {"changed": True}}}
        ),
        "beside a labelled one": host(
            "nvidia",
            __gpu_node_labels_result={"nodes": {"labelled": {"changed": True}}},
            kubegpu_changed=False,
        ),
        "plugin": host("nvidia", __nvidia_device_plugin_result={"changed": True}),
        "asked for": host("nvidia", gpu_verify_all="yes"),
        "skipped": host(
            "nvidia",
            __gpu_node_labels_result={"skipped": True},
            __nvidia_device_plugin_result={"skipped": True, "changed": False},
        ),
        "no driver yet": host("nvidia", loaded=None, kubegpu_changed=True),
        "switched off": host("nvidia", kubegpu_changed=True, gpu_verify_enabled="false"),
        "failed": {"kubegpu_changed": True},
        "kept as failed": host("nvidia", kubegpu_changed=True, kubegpu_failed=True),
    }
    assert to_verify(hostvars) == ["changed", "labelled", "plugin", "asked for"]
    all_of_them = [*hostvars][:6]
    assert to_verify(hostvars, every=True) == all_of_them
