# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The actions run their module in slices, and show in between what is waited for."""

from __future__ import annotations

import time
import types

import pytest
from ansible.errors import AnsibleError

from ansible_collections.kubegpu.nodes.plugins.action import (
    gpu_host_maintenance,
    gpu_node_maintenance,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _progress
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _slices as action


@pytest.fixture
def shown(monkeypatch):
    lines = []
    monkeypatch.setattr(_progress.display, "display", lambda text, stderr: lines.append(text))
    return lines


@pytest.fixture(params=[gpu_node_maintenance, gpu_host_maintenance])
def run(monkeypatch, request):
    """Run the action with these answers of the module; return its result and the calls."""

    def go(*answers, passes=lambda: None, **options):
        plugin = object.__new__(request.param.ActionModule)
        plugin._task = types.SimpleNamespace(
            args={"state": "drained", **options}, async_val=0, check_mode=False, diff=False,
            no_log=False,
        )  # fmt: skip
        plugin._task.get = lambda *_given: None
        plugin._supports_check_mode = True
        calls, left = [], list(answers)

        def execute(module_name, module_args, task_vars):
            assert module_name == request.param.__name__.partition("ansible_collections.")[
                2
            ].replace(".plugins.action", "")
            calls.append(module_args)
            passes()
            return left.pop(0)

        monkeypatch.setattr(plugin, "_execute_module", execute, raising=False)
        monkeypatch.setattr(action.ActionBase, "run", lambda *_given: {})
        result = plugin.run(None, {"inventory_hostname": "localhost"})
        assert not left
        return result, calls

    return go


def test_one_call_if_nothing_is_left(run, shown):
    result, calls = run({"changed": True, "nodes": {}, "invocation": {}, "warnings": ["w"]})
    assert result == {"changed": True, "nodes": {}, "warnings": ["w"]}
    assert calls == [{"state": "drained", "_internal": {"_slice": 30}}]
    assert shown == []


def test_slices_carry_and_show_what_is_waited_for(run, shown, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.Progress.__init__, "__defaults__", (lambda: now[0],))
    pending = {"changed": True, "_progress": ["n1: waiting for ml/a"], "warnings": ["w"]}
    result, calls = run(
        {**pending, "_carry": {"pending": {"n1": 1}}, "requests": {"list": 3, "patch": 1}},
        {**pending, "_carry": {"pending": {"n1": 2}}, "requests": {"list": 9}},
        {**pending, "_carry": {"pending": {"n1": 3}}},
        {"changed": True, "ok": True, "warnings": ["w"], "requests": {"list": 5, "create": 2}},
        passes=lambda: now.append(now.pop() + 31),
        # What only the action may set.
        _slice=1,
        _carry={"x": 1},
    )
    assert result == {
        "changed": True, "ok": True, "warnings": ["w"],
        "requests": {"list": 17, "patch": 1, "create": 2},
    }  # fmt: skip
    assert [call["_internal"].get("_carry") for call in calls] == [
        None, {"pending": {"n1": 1}}, {"pending": {"n1": 2}}, {"pending": {"n1": 3}},
    ]  # fmt: skip
    assert all(call["_internal"]["_slice"] == 30 for call in calls)
    assert shown == ["n1: waiting for ml/a, for 0:31", "n1: waiting for ml/a, for 1:33"]


def test_a_slice_that_lasts_long_is_told(run, shown, monkeypatch):
    monkeypatch.setattr(_progress, "_FIRST", 0.05)
    monkeypatch.setattr(_progress, "_NEXT", 0.05)
    monkeypatch.setattr(action, "_LATE", 0.01)

    def until_told():
        before, deadline = len(shown), time.monotonic() + 20
        while len(shown) == before and time.monotonic() < deadline:
            time.sleep(0.01)

    for state, doing in (
        ("cordoned", "cordoning the nodes"),
        ("released", "releasing the nodes"),
        ("drained", "draining the nodes"),
    ):
        shown.clear()
        run({"changed": True}, state=state, passes=until_told)
        assert shown and all(line.startswith(f"localhost: {doing}, for 0:") for line in shown)
    shown.clear()
    first = {"changed": True, "_progress": ["n1: waiting for ml/a"], "_carry": {"waited": 30}}
    run(first, {"changed": True}, passes=until_told)
    assert shown[0].startswith("localhost: draining the nodes, for 0:")
    assert shown[-1].startswith("n1: waiting for ml/a, for 0:")


def test_a_slice_without_lines_is_told_too(run, shown, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.Progress.__init__, "__defaults__", (lambda: now[0],))
    run(
        {"changed": True, "_progress": [], "_carry": {"waited": 30}},
        {"changed": True},
        passes=lambda: now.append(now.pop() + 31),
    )
    assert shown == ["localhost: draining the nodes, for 0:31"]


def test_a_failure_keeps_the_results(run, shown):
    failed = {"failed": True, "msg": "no", "nodes": {"n1": {}}, "code": "pdb_blocks"}
    result, _calls = run(failed)
    assert result == failed


def test_the_lease_of_a_process_that_has_ended_is_taken_over(run, shown, monkeypatch):
    monkeypatch.setattr(action, "parent_identity", lambda: "here 1 a")
    held = {"failed": True, "lease_process": "here 7 b", "nodes": {}}
    lease = {"name": "up"}
    monkeypatch.setattr(action, "is_alive", {"here 7 b": False}.get)
    done = {"changed": True, "lease_process": ""}
    result, calls = run(held, done, lease=lease)
    assert result == done
    mine = {"_slice": 30, "_process": "here 1 a"}
    assert [call["_internal"] for call in calls] == [mine, {**mine, "_ended": "here 7 b"}]
    assert [call["lease"] for call in calls] == [lease, lease]
    # That of another machine, or one that lives, is not; nor is one asked for without end.
    other = {**held, "lease_process": "there 7 b"}
    assert run(other, lease=lease)[0] == other
    assert run(held, held, lease=lease)[0] == held


def test_what_an_earlier_slice_changed_counts(run, shown):
    result, _calls = run(
        {"changed": True, "_progress": [], "_carry": {"waited": 30}}, {"changed": False, "ok": True}
    )
    assert result == {"changed": True, "ok": True}


def test_a_worker_whose_playbook_was_killed_begins_no_further_slice(run, shown, monkeypatch):
    parents = iter(["here 1 a", "here 1 a", "here 0"])
    monkeypatch.setattr(action, "parent_identity", lambda: next(parents))
    with pytest.raises(AnsibleError, match="has ended"):
        run({"changed": True, "_progress": [], "_carry": {"waited": 30}})
