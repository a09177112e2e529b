# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a line of a long task is told, and what is in it."""

from __future__ import annotations

import time
import types

import pytest

from ansible_collections.kubegpu.nodes.plugins.action import (
    gpu_cluster_info,
    gpu_node_facts,
    gpu_test_pods,
    node_pause,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _progress

HOST = {"inventory_hostname": "gpu1"}


@pytest.fixture
def told(monkeypatch):
    lines = []

    def display(text, stderr):
        # Ansible does not flush the other stream while a task runs.
        assert stderr
        lines.append(text)

    monkeypatch.setattr(_progress.display, "display", display)
    return lines


def action(no_log=False):
    return types.SimpleNamespace(_task=types.SimpleNamespace(no_log=no_log))


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def lines_of(seconds, told, **options):
    """Return the seconds at which a task that lasts this long tells."""
    clock, found = Clock(), []
    progress = _progress.Progress(action(**options), HOST, clock)
    for second in range(seconds + 1):
        clock.now = 1000.0 + second
        if not progress.pause:
            found.append(second)
            progress.show("waiting", limit=600)
    return found


def test_the_first_line_comes_after_half_a_minute_then_one_each_minute(told):
    assert lines_of(29, told) == [] and told == []
    assert lines_of(200, told) == [30, 90, 150]
    assert told[0] == "gpu1: waiting, for 0:30 of at most 10:00"
    assert told[2] == "gpu1: waiting, for 2:30 of at most 10:00"


def test_lines_that_come_late_are_told_once():
    clock = Clock()
    progress = _progress.Progress(action(), HOST, clock)
    clock.now += 600
    assert progress.pause == 0
    progress.show("waiting")
    assert progress.pause == 60


def test_with_no_log_only_the_time_is_told(told):
    lines_of(30, told, no_log=True)
    assert told == ["gpu1: running, for 0:30 of at most 10:00"]


def test_what_would_move_the_cursor_is_escaped(told):
    progress = _progress.Progress(action(), HOST, Clock())
    progress.show_all(["n1: waiting for a\rb\x1b[2J"])
    assert told == ["n1: waiting for a\\rb\\x1b[2J, for 0:00"]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(_progress, "_FIRST", 0.05)
    monkeypatch.setattr(_progress, "_NEXT", 0.05)


def test_a_block_that_tells_nothing_itself_is_told(told, quick):
    with _progress.show_progress(action(), HOST, "waiting for it"):
        deadline = time.monotonic() + 20
        while len(told) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(told) >= 2 and all(line.startswith("gpu1: waiting for it, for 0:") for line in told)


def test_a_machine_without_a_thread_left_runs_the_block(told, monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_progress.threading.Thread, "start", start)
    done = []
    with _progress.show_progress(action(), HOST, "waiting"):
        done.append(1)
    assert done and told == []


def test_a_module_is_told_while_it_runs(told, quick):
    def execute(**given):
        deadline = time.monotonic() + 20
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
        return given

    plugin = types.SimpleNamespace(_task=action()._task, _execute_module=execute)
    name = "kubegpu.nodes.package_set"
    assert _progress.run_with_progress(plugin, name, {"a": 1}, HOST, "running") == {
        "module_name": "kubegpu.nodes.package_set", "module_args": {"a": 1}, "task_vars": HOST
    }  # fmt: skip
    assert told[0].startswith("gpu1: running, for 0:")


def test_a_short_block_is_not_told_and_an_error_ends_the_lines(told):
    with pytest.raises(OSError), _progress.show_progress(action(), HOST, "waiting"):
        raise OSError
    names = [thread.name for thread in _progress.threading.enumerate()]
    assert told == [] and "kubegpu-progress" not in names


def test_of_many_names_the_first_are_shown():
    assert _progress.some_names({f"gpu{number}": {} for number in range(1, 8)}) == (
        "gpu1, gpu2, gpu3, gpu4, gpu5 and 2 more"
    )
    # Options are not validated yet.
    assert _progress.some_names("{{ none }}") == _progress.some_names(None) == "no node"


def waits_for(module, check=False, **options):
    plugin = object.__new__(module.ActionModule)
    plugin._task = types.SimpleNamespace(action="kubegpu.nodes.gpu_node_facts", check_mode=check)
    return plugin.waits_for(options)


def test_actions_name_what_they_wait_for():
    nodes = {"gpu1": {}, "gpu2": {}}
    assert waits_for(gpu_cluster_info, expected=nodes, wait_timeout=600) == (
        "waiting until gpu1, gpu2 offer their GPUs (limit 600 s)"
    )
    assert waits_for(gpu_cluster_info, expected={"gpu1": {}}, wait_timeout=600) == (
        "waiting until gpu1 offers its GPUs (limit 600 s)"
    )
    for none in ({}, None):
        assert waits_for(gpu_cluster_info, expected=none, wait_timeout=600) == (
            "waiting until the pods of the DaemonSets run (limit 600 s)"
        )
    assert waits_for(gpu_cluster_info, expected=nodes) == "reading the cluster"
    assert waits_for(gpu_test_pods, nodes=nodes) == "waiting for test pods on gpu1, gpu2"
    assert waits_for(gpu_test_pods, state="absent") == "waiting until the test pods are gone"
    assert waits_for(node_pause, nodes=nodes).endswith("have left gpu1, gpu2")
    assert waits_for(node_pause, nodes=nodes, state="absent") == "ending the pause of gpu1, gpu2"
    assert waits_for(node_pause, check=True, nodes=nodes) == "looking at the pods of gpu1, gpu2"
    assert waits_for(gpu_node_facts) == "running gpu_node_facts"
