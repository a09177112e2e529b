# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole life of a fleet: plan, check, site, again, upgrade, teardown.

The tests run in this order on one fleet; each leaves it for the next.
"""

from __future__ import annotations

import json

import pytest

from tests.integration.fleet.playbooks import REPOSITORY, on_nodes, play

GPU_CALLS, OTHER_CALLS = 3, 1
# Once the modules of the runtimes have said that nothing is left to do.
SETTLED_CALLS = 1

# Everything in /etc with content, mode and owner. Left out: the loader's cache and the markers of
# package management, which every package installation rewrites.
ETC = (
    "cd / && find etc -xdev ! -name ld.so.cache ! -path 'etc/apt/sources.list.d/.*' "
    "! -path 'etc/.pwd.lock' -printf '%M %u:%g %p %l\\n' | LC_ALL=C sort && "
    "find etc -xdev -type f ! -name ld.so.cache -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"
)
DAEMONS = "systemctl show containerd docker --property=MainPID 2>/dev/null"
LEFT = "ls -A /var/lib/kubegpu 2>/dev/null; dpkg-query -W -f '${Package} ${Status}\\n' '*nvidia*'"
CALLS = "cat /var/lib/testbed/module-calls 2>/dev/null | wc -l"


@pytest.fixture(scope="module")
def etc_before(fleet):
    return on_nodes(ETC)


@pytest.fixture(scope="module")
def predicted(etc_before):
    """What check mode says of the bare fleet."""
    run = play("site", "--check", "--diff")
    assert run.status == 0, run.output
    return run


@pytest.fixture(scope="module")
def first(predicted):
    run = play("site", "--diff")
    assert run.status == 0, run.output
    return run


def test_plan_changes_nothing_and_says_why(etc_before, gpu_nodes):
    path = REPOSITORY / "build" / "test-plan.json"
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


def test_check_mode_on_bare_nodes_changes_nothing(predicted, etc_before):
    assert on_nodes(ETC) == etc_before


def test_check_mode_predicts_tasks_and_diffs_of_the_run(predicted, first):
    assert predicted.changed().keys() == first.changed().keys()
    for where, diffs in first.changed().items():
        assert predicted.changed()[where] == diffs, where


def test_s21_other_nodes_are_left_alone(first, cpu_nodes, etc_before):
    assert cpu_nodes and all(first.stats[node]["changed"] == 0 for node in cpu_nodes)
    after = on_nodes(ETC)
    assert all(after[node] == etc_before[node] for node in cpu_nodes)


def test_second_run_changes_and_restarts_nothing_within_the_budget(
    first, gpu_nodes, cpu_nodes, count_calls
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


def test_settled_runtimes_need_no_call_until_something_is_touched(first, gpu_nodes, count_calls):
    with count_calls() as calls:
        run = play("site")
    assert run.status == 0, run.output
    assert all(calls[node] <= SETTLED_CALLS for node in gpu_nodes), calls
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
        assert (calls[node] > SETTLED_CALLS) == (node in touched), calls
    with count_calls() as calls:
        run = play("site")
    assert all(calls[node] <= SETTLED_CALLS for node in gpu_nodes), calls


def test_toolkit_is_one_held_set(first, gpu_nodes):
    held = on_nodes("apt-mark showhold")
    versions = on_nodes("dpkg-query -W -f '${Version}\\n' '*nvidia-container*' | sort -u")
    for node in gpu_nodes:
        assert len(held[node].split()) == 4
        assert versions[node].split() == ["1.20.0-1"]


def test_nothing_may_be_lost_by_limit(first, gpu_nodes):
    run = play("site", "--limit", gpu_nodes[0])
    assert run.status == 0, run.output
    assert set(run.stats) == {gpu_nodes[0]}
    assert run.stats[gpu_nodes[0]]["changed"] == 0


def test_wrong_key_stops_and_adds_nothing(first, gpu_nodes):
    before = on_nodes(ETC)
    run = play(
        "site",
        variables={
            "nvidia_container_toolkit_repository_url": "http://mirror.example/another/deb",
            "nvidia_container_toolkit_key_fingerprints": ["0" * 40],
        },
    )
    assert run.status != 0
    assert "0" * 40 in run.messages()
    assert on_nodes(ETC) == before


@pytest.mark.parametrize("version", ["1.19.0", "1.20.0"])
def test_other_version_and_back(first, gpu_nodes, version):
    wish = {"nvidia_container_toolkit_version": version}
    check = play("site", "--check", "--diff", variables=wish)
    run = play("site", "--diff", variables=wish)
    assert run.status == 0, run.output
    assert check.changed() == run.changed()
    assert all(run.stats[node]["changed"] >= 1 for node in gpu_nodes)
    again = play("site", variables=wish)
    assert all(stats["changed"] == 0 for stats in again.stats.values()), again.changed()


def test_teardown_gives_the_nodes_back(first, etc_before, gpu_nodes):
    run = play("teardown")
    assert run.status == 0, run.output
    after = on_nodes(ETC)
    for node, text in etc_before.items():
        assert after[node].splitlines() == text.splitlines(), node
    left = on_nodes(LEFT)
    assert all("ok installed" not in left[node] for node in gpu_nodes), left
    again = play("teardown")
    assert again.status == 0, again.output
    assert all(stats["changed"] == 0 for stats in again.stats.values()), again.changed()
