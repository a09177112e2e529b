# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people did by hand, as far as it goes without a GPU chip: scenarios S1 to S11.

S7 (Docker before 19.03) and the rest of S4 (NVML, nvidia-smi) have no real thing here: their tests
are unit tests of the same name. S21 is in test_site.py.
"""

from __future__ import annotations

import json

import pytest

from tests.integration.fleet.playbooks import on_nodes, play
from tests.testbed.nodes import execute
from tests.testbed.proof import HOOK_MARK, IMAGE, RUNTIME_MARK, prove

PODS_GET_GPUS = {"nvidia_container_toolkit_containerd_set_default": True}


@pytest.fixture
def admins_keys(story):
    """The admin's daemon.json of the first node, before us."""
    return json.loads(story.admins_file)


@pytest.fixture
def ready(converged):
    return converged


def facts(run, node):
    return run.answers["Read the node", node]["ansible_facts"]["gpu_node"]


def test_s1_gpus_are_found_without_lspci_and_without_a_driver(ready, started):
    assert not any(on_nodes("command -v lspci || true").values())
    found = {
        node.name: [
            (gpu["vendor"], gpu["generation"], gpu["device_id"])
            for gpu in facts(ready, node.name)["gpus"]
        ]
        for node in started
    }
    there = {
        "gpu1": [("nvidia", "pascal", "1bb3")],
        "gpu2": [("nvidia", "volta", "1db1")] * 4,
        "gpu3": [("nvidia", "ampere", "2236")],
        "cpu1": [],
    }
    assert found == {node.name: there[node.name] for node in started}
    assert {"gpu1", "gpu3", "cpu1"} <= found.keys()


def test_s4_without_a_driver_it_is_null_and_no_error(ready, started):
    for node in started:
        if node.gpus and not node.driver:
            assert facts(ready, node.name)["nvml"] is None
            assert facts(ready, node.name)["driver"]["loaded"] is None


def test_s4_standin_driver_is_read_and_its_cdi_specification_kept(ready, started):
    for node in started:
        if node.driver:
            found = facts(ready, node.name)
            assert found["driver"]["loaded"]
            assert found["nvml"]["driver_version"] == found["driver"]["loaded"]
            specification = execute(node, "cat", "/var/run/cdi/nvidia.yaml")
            assert f"libcuda.so.{found['driver']['loaded']}" in specification


def test_s6_docker_run_gpus_all_works_on_every_generation(ready, started):
    for node in started:
        if node.gpus:
            shown = {proof.way: proof.mark for proof in prove(node)}
            assert shown["--gpus all"] == HOOK_MARK, node.name
            assert shown["--runtime nvidia"] == RUNTIME_MARK, node.name


def test_s8_the_admins_keys_stay_in_daemon_json(ready, started, admins_keys):
    text = execute(started[0], "cat", "/etc/docker/daemon.json")
    now = json.loads(text)
    assert now.pop("runtimes") == {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}
    assert now == admins_keys
    assert list(json.loads(text))[: len(admins_keys)] == list(admins_keys)


@pytest.mark.parametrize("choice", ["1", "device=0"])
def test_s10_one_gpu_or_a_chosen_one(ready, started, choice):
    for node in started:
        if node.gpus:
            command = ["docker", "run", "--rm", "--gpus", choice, IMAGE, "/bin/env"]
            words = execute(node, *command).split()
            wanted = "0" if choice.startswith("device") else None
            devices = [word for word in words if word.startswith("NVIDIA_VISIBLE_DEVICES=")]
            assert devices and wanted in (None, devices[0].partition("=")[2]), node.name


def test_s11_handler_by_name(ready, started):
    for node in started:
        if node.gpus:
            by_name = {proof.way: proof.mark for proof in prove(node)}
            assert by_name["CRI"] == RUNTIME_MARK, node.name
            # Without a handler's name a pod still gets runc.
            plain = {proof.way: proof.mark for proof in prove(node, "")}
            assert plain["CRI"] is None, node.name


@pytest.mark.full(why="the default handler, which the engines judge, next to test_s11_...")
def test_s11_handler_as_the_default(ready, started, nodes):
    check = play("site", "--check", "--diff", variables=PODS_GET_GPUS)
    run = play("site", "--diff", variables=PODS_GET_GPUS)
    assert run.status == 0, run.output
    assert check.changed() == run.changed() != {}
    for node in started:
        if node.gpus:
            proofs = {proof.way: proof.mark for proof in prove(node, "")}
            assert proofs["CRI"] == RUNTIME_MARK, node.name
    again = play("site", variables=PODS_GET_GPUS)
    assert all(stats["changed"] == 0 for stats in again.stats.values()), again.changed()
    nodes.bare()
