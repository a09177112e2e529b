# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_node_acceptance runs a test detached, and is told while it runs."""

from __future__ import annotations

import time
import types

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.action import gpu_node_acceptance
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _progress

HOST = {"inventory_hostname": "gpu1"}


@pytest.fixture
def lines(monkeypatch):
    shown = []
    monkeypatch.setattr(_progress, "_FIRST", 0.0)
    monkeypatch.setattr(_progress.display, "display", lambda text, stderr: shown.append(text))
    return shown


@pytest.fixture
def run(monkeypatch, lines):
    """Return a function that runs the action; its module goes on until a line is shown."""
    monkeypatch.setattr(ActionBase, "run", lambda plugin, tmp, task_vars: {})

    def execute(module_name, module_args, task_vars):
        deadline = time.monotonic() + 20
        while not lines and time.monotonic() < deadline:
            time.sleep(0.01)
        return {"changed": False, "module": module_name, "options": module_args}

    def start(check_mode=False, **options):
        plugin = object.__new__(gpu_node_acceptance.ActionModule)
        plugin._task = types.SimpleNamespace(no_log=False, check_mode=check_mode, args=options)
        plugin._execute_module = execute
        return plugin.run(None, HOST)

    return start


def test_a_look_at_the_node_is_told(run, lines):
    answer = run(step="look")
    assert lines == ["gpu1: running gpu_node_acceptance, for 0:00"]
    assert (answer["module"], answer["options"]) == (gpu_node_acceptance._MODULE, {"step": "look"})


def test_check_mode_starts_no_job_and_is_told(run, lines):
    answer = run(check_mode=True, step="test", test="dcgm", timeout=600)
    assert lines == ["gpu1: the test dcgm: running, for 0:00"]
    assert answer["options"]["test"] == "dcgm"


def test_a_test_is_a_job_that_is_told_by_its_name(run, lines, monkeypatch):
    seen = {}

    def job(action, name, arguments, task_vars, *, limit, what):
        seen.update(name=name, limit=limit, what=what)
        return {"changed": True}

    monkeypatch.setattr(gpu_node_acceptance, "run_in_background", job)
    assert run(step="test", test="gpu_burn", timeout=3600)["changed"]
    around = gpu_node_acceptance._AROUND
    assert seen == {
        "name": gpu_node_acceptance._MODULE,
        "limit": 3600 + around,
        "what": "the test gpu_burn",
    }
    # What is wrong with an option, the module says.
    assert run(step="test", test="gpu_burn", timeout="long")["options"]["timeout"] == "long"
    assert lines == ["gpu1: running gpu_node_acceptance, for 0:00"]
