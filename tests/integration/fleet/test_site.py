# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole life of a fleet: plan, check, site, again, verify, upgrade, teardown.

One story (conftest.py) for all tests that look at converged nodes; the teardown is the last of it.
"""

from __future__ import annotations

import json

import pytest
import yaml

from tests.integration.fleet.playbooks import ETC, on_nodes, play
from tests.testbed.paths import INVENTORY

# The facts, and for each of the two runtimes a call before the plan is shown and one after.
GPU_CALLS, OTHER_CALLS = 5, 1
# Once the modules of the runtimes have said that nothing is left to do.
CONVERGED_CALLS = 1

DAEMONS = "systemctl show containerd docker --property=MainPID 2>/dev/null"
LEFT = (
    "ls -A /var/lib/kubegpu /run/cdi 2>/dev/null; "
    "dpkg-query -W -f '${Package} ${Status}\n' '*nvidia*'"
)


@pytest.fixture
def etc_before(story):
    return story.etc_before


def test_plan_changes_nothing_and_says_why(fleet, etc_before, gpu_nodes, tmp_path):
    path = tmp_path / "plan.json"
    daemons = on_nodes(DAEMONS)
    run = play("plan", variables={"kubegpu_plan_file": str(path)})
    assert run.status == 0, run.output
    rows = {row["node"]: row for row in json.loads(path.read_text(encoding="utf-8"))}
    assert set(rows) == set(etc_before)
    for node, row in rows.items():
        assert row["why"]
        assert row["action"] == ("change" if node in gpu_nodes else "none")
    assert on_nodes(ETC) == etc_before
    assert on_nodes(DAEMONS) == daemons


def test_check_mode_on_bare_nodes_changes_nothing(story, etc_before):
    assert story.predicted
    assert story.etc_after_check == etc_before


def test_check_mode_predicts_tasks_and_diffs_of_the_run(story):
    predicted, first = story.predicted.changed(), story.first.changed()
    # Check mode does not verify, and does not know whether the node passes.
    after = "Keep in the node's record whether it has to be verified again"
    first = {where: diffs for where, diffs in first.items() if not where[0].endswith(after)}
    assert predicted.keys() == first.keys()
    for where, diffs in first.items():
        assert predicted[where] == diffs, where


def test_s21_other_nodes_are_left_alone(converged, cpu_nodes, etc_before):
    assert cpu_nodes and all(converged.stats[node]["changed"] == 0 for node in cpu_nodes)
    after = on_nodes(ETC)
    assert all(after[node] == etc_before[node] for node in cpu_nodes)


def test_second_run_changes_and_restarts_nothing_within_the_budget(
    converged, gpu_nodes, cpu_nodes, count_calls
):
    daemons = on_nodes(DAEMONS)
    with count_calls() as calls:
        run = play("site")
    assert run.status == 0, run.output
    assert {node: stats["changed"] for node, stats in run.stats.items()} == dict.fromkeys(
        (*gpu_nodes, *cpu_nodes), 0
    )
    assert on_nodes(DAEMONS) == daemons
    assert all(calls[node] <= GPU_CALLS for node in gpu_nodes), calls
    assert all(calls[node] <= OTHER_CALLS for node in cpu_nodes), calls
    print("module calls on the nodes:", calls)


@pytest.mark.full(why="test_second_run_... again and again, with files touched in between")
def test_converged_runtimes_need_no_call_until_something_is_touched(
    converged, gpu_nodes, count_calls
):
    with count_calls() as calls:
        run = play("site")
    assert run.status == 0, run.output
    assert all(calls[node] <= CONVERGED_CALLS for node in gpu_nodes), calls
    touched = {
        gpu_nodes[0]: "touch -c /etc/docker/daemon.json",
        gpu_nodes[1]: "systemctl restart containerd",
    }
    for node, command in touched.items():
        on_nodes(command, node)
    with count_calls() as calls:
        run = play("site")
    assert run.status == 0, run.output
    assert {stats["changed"] for stats in run.stats.values()} == {0}, run.changed()
    for node in gpu_nodes:
        assert (calls[node] > CONVERGED_CALLS) == (node in touched), calls
    with count_calls() as calls:
        run = play("site")
    assert all(calls[node] <= CONVERGED_CALLS for node in gpu_nodes), calls


@pytest.mark.full(why="test_rollout.py has the plan, with a stand-in of Docker")
def test_a_pending_restart_of_docker_is_in_the_plan_of_the_run_that_does_it(converged, gpu_nodes):
    node = gpu_nodes[0]
    on_nodes("systemctl restart docker && touch -c /usr/bin/nvidia-container-runtime-hook", node)
    run = play("site", "--limit", node)
    assert run.status == 0, run.output
    plan = "\n".join(run.answers["Show what would be done, and why", node]["table"])
    assert "docker: restart" in plan and "docker: change its configuration" not in plan, plan
    changed = [name for name, _node in run.changed()]
    assert [name for name in changed if "Mark" not in name and "record" not in name], changed
    again = play("site", "--limit", node)
    assert again.stats[node]["changed"] == 0, again.changed()


def test_toolkit_is_one_held_set(converged, gpu_nodes):
    held = on_nodes("apt-mark showhold")
    versions = on_nodes("dpkg-query -W -f '${Version}\\n' '*nvidia-container*' | sort -u")
    for node in gpu_nodes:
        assert len(held[node].split()) == 4
        assert versions[node].split() == ["1.20.1-1"]


@pytest.mark.full(why="test_second_run_... for one node by --limit")
def test_nothing_may_be_lost_by_limit(converged, gpu_nodes):
    run = play("site", "--limit", gpu_nodes[0])
    assert run.status == 0, run.output
    assert set(run.stats) == {gpu_nodes[0]}
    assert run.stats[gpu_nodes[0]]["changed"] == 0


@pytest.mark.full(why="another fault of the key that the stage packages shows with the real apt")
def test_wrong_key_stops_and_adds_nothing(converged, gpu_nodes):
    before = on_nodes(ETC)
    everywhere = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))["all"]["vars"]
    repository = everywhere["nvidia_container_toolkit_repository"]
    run = play(
        "site",
        variables={
            "nvidia_container_toolkit_repository": {
                **repository,
                "url": "http://mirror.example/another/deb",
                "key_fingerprints": ["0" * 40],
            },
        },
    )
    assert run.status != 0
    assert "0" * 40 in run.messages()
    assert on_nodes(ETC) == before


@pytest.mark.full(why="test_check_mode_predicts_... and test_second_run_... for other versions")
@pytest.mark.parametrize("version", ["1.19.0", "1.20.1"])
def test_other_version_and_back(converged, gpu_nodes, version):
    request = {"nvidia_container_toolkit_version": version}
    check = play("site", "--check", "--diff", variables=request)
    run = play("site", "--diff", variables=request)
    assert run.status == 0, run.output
    assert check.changed() == run.changed()
    assert all(run.stats[node]["changed"] >= 1 for node in gpu_nodes)
    again = play("site", variables=request)
    assert all(stats["changed"] == 0 for stats in again.stats.values()), again.changed()


def test_verify_proves_each_layer_and_names_what_is_missing(converged, tmp_path):
    """A container by each way; without a driver its own layers fail, and no other."""
    dest = tmp_path / "verify.json"
    before = on_nodes(ETC), on_nodes(DAEMONS)
    run = play("verify", variables={"kubegpu_verify_file": str(dest)})
    assert run.status != 0
    assert not any(stats["changed"] for stats in run.stats.values()), run.changed()
    assert (on_nodes(ETC), on_nodes(DAEMONS)) == before
    rows = {row["node"]: row for row in json.loads(dest.read_text(encoding="utf-8"))}
    layers = {
        node: {one["subject"] or one["layer"]: one for one in row["layers"]}
        for node, row in rows.items()
    }
    bare = {name: one["code"] for name, one in layers["gpu1"].items() if one["ok"] is False}
    assert bare == {"pci": "gpu_not_bound", "module": "driver_not_loaded"}
    assert layers["gpu1"]["nvml"]["ok"] is None and rows["gpu1"]["failed"]
    assert rows["gpu3"]["failed"] is False and rows["gpu3"]["causes"] == []
    for engine, ways in (("containerd", 1), ("docker", 2)):
        assert layers["gpu1"][engine]["proof"].count("ran '/bin/true'") == ways
        assert layers["gpu3"][engine]["proof"].count("ran 'nvidia-smi -L'") == ways
        assert layers["gpu3"][engine]["proof"].count(": 1 GPU") == ways
    assert layers["gpu3"]["nvml"]["proof"].endswith("1 GPU, driver 580.95.05, CUDA 13.0")


def test_verify_passes_where_nothing_is_missing(converged, tmp_path):
    dest = {"kubegpu_verify_file": str(tmp_path / "verify.json")}
    run = play("verify", "--limit", "gpu3,cpu1", variables=dest)
    assert run.status == 0, run.output


def test_teardown_gives_the_nodes_back(converged, nodes, etc_before, gpu_nodes):
    run = play("teardown")
    assert run.status == 0, run.output
    nodes.converged = False
    after = on_nodes(ETC)
    for node, text in etc_before.items():
        assert after[node].splitlines() == text.splitlines(), node
    left = on_nodes(LEFT)
    assert all("ok installed" not in left[node] for node in gpu_nodes), left
    # The packages leave it, with hooks that are gone with them.
    assert all("nvidia.yaml" not in left[node] for node in gpu_nodes), left


@pytest.mark.full(why="teardown again, where test_teardown_gives_... has left nothing")
def test_teardown_of_bare_nodes_changes_nothing(fleet):
    again = play("teardown")
    assert again.status == 0, again.output
    assert all(stats["changed"] == 0 for stats in again.stats.values()), again.changed()
