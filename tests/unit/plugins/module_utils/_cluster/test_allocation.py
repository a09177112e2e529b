# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.allocation import (
    allocations,
    is_gpu_resource,
    node_states,
    pod_use,
)
from tests.unit.fixtures.cluster_objects import GPU, container, node, pod


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (GPU, True), ("nvidia.com/gpu.shared", True), ("nvidia.com/mig-1g.5gb", True),
        ("amd.com/gpu", True), ("gpu.intel.com/i915", True), ("cpu", False),
        ("nvidia.com/hostdev", False), ("nvidia.com/rdma_shared", False), ("example.com/x", False),
        ("gpu.intel.com/monitoring", False), ("gpu.intel.com/i915_monitoring", False),
    ],
)  # fmt: skip
def test_which_resources_are_gpus(name, is_one):
    assert is_gpu_resource(name) is is_one


@pytest.mark.parametrize(
    ("containers", "init", "count"),
    [
        ([2], [], 2),
        ([2, 1], [], 3),
        ([1], [4], 4),  # an init container ends before the others begin
        ([1], [1, 1], 1),
    ],
)
def test_what_a_pod_takes(containers, init, count):
    made = pod(
        containers=[container(str(n), {GPU: c}) for n, c in enumerate(containers)],
        init=[container(f"i{n}", {GPU: c}) for n, c in enumerate(init)],
    )
    assert pod_use(made) == {GPU: count}


def test_a_sidecar_keeps_what_it_has():
    sidecar = container("s", {GPU: 1}, restartPolicy="Always")
    made = pod(containers=[container(limits={GPU: 2})], init=[sidecar, container("i", {GPU: 3})])
    assert pod_use(made) == {GPU: 4}
    assert pod_use(pod(containers=[container(limits={GPU: 2})], init=[sidecar])) == {GPU: 3}


def test_only_pods_that_have_a_node_and_have_not_ended_hold_gpus():
    pods = [
        pod("b", gpus=1), pod("a", gpus=2), pod("ended", gpus=1, phase="Succeeded"),
        pod("waits", node_name="", gpus=1, phase="Pending"), pod("none"),
        pod("starts", gpus=1, phase="Pending"),
    ]  # fmt: skip
    held = allocations(pods)
    assert [str(use) for use in held["n1"][GPU]] == ["default/a (2)", "default/b", "default/starts"]


def test_a_node_with_who_has_its_gpus():
    state = node_states([node(gpus=3, capacity=4, machine_id="m")], [pod("a", gpus=2)])["n1"]
    resource = state.resource(GPU)
    assert (resource.capacity, resource.allocatable, resource.allocated, resource.free) == (
        4, 3, 2, 1,
    )  # fmt: skip
    assert state.ready and state.machine_id == "m"
    assert state.to_json()["resources"][GPU]["pods"][0]["name"] == "a"
    assert "cpu" not in state.resources


def test_a_resource_under_another_name_counts_where_it_is_named():
    made = node(gpus=2, resource="example.com/fast")
    assert node_states([made], [])["n1"].resources == {}
    state = node_states([made], [], ["example.com/fast"])["n1"]
    assert state.resource("example.com/fast").free == 2


def test_more_was_given_out_than_there_is_now():
    state = node_states([node(gpus=0, capacity=2)], [pod("a", gpus=2)])["n1"]
    assert state.resource(GPU).free == 0


def test_a_node_that_is_not_ready_says_why():
    state = node_states([node(ready=False, message="container runtime is down")], [])["n1"]
    assert (state.ready, state.ready_message) == (False, "container runtime is down")
