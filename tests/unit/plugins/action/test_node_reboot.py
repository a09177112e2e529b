# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""node_reboot is Ansible's own reboot, with its options and its result."""

from __future__ import annotations

import time
import types

import pytest
import yaml
from ansible.errors import AnsibleConnectionFailure
from ansible.modules import reboot
from ansible.plugins.action.reboot import ActionModule as RebootAction

from ansible_collections.kubegpu.nodes.plugins.action.node_reboot import ActionModule
from ansible_collections.kubegpu.nodes.plugins.modules import node_reboot
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _progress
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import VARIABLE

HOST = {"inventory_hostname": "gpu1"}


@pytest.fixture
def action():
    plugin = object.__new__(ActionModule)
    plugin._task = types.SimpleNamespace(no_log=False)
    return plugin


def options_of(module):
    """Return the options with what is checked of each; a default in brackets is only words."""
    return {
        name: {
            key: value
            for key, value in one.items()
            if key in ("type", "elements", "default") and not str(value).startswith("[d")
        }
        for name, one in yaml.safe_load(module.DOCUMENTATION)["options"].items()
    }


def test_its_options_are_those_of_ansible():
    assert options_of(node_reboot) == options_of(reboot)
    assert set(options_of(node_reboot)) == set(ActionModule._VALID_ARGS)


def test_its_result_is_that_of_ansible_and_the_wait_is_told(action, monkeypatch):
    lines = []
    monkeypatch.setattr(_progress, "_FIRST", 0.0)
    monkeypatch.setattr(_progress.display, "display", lambda text, stderr: lines.append(text))

    def run(plugin, tmp, task_vars):
        deadline = time.monotonic() + 20
        while not lines and time.monotonic() < deadline:
            time.sleep(0.01)
        return {"changed": True, "rebooted": True, "elapsed": 93}

    monkeypatch.setattr(RebootAction, "run", run)
    assert action.run(None, HOST) == {"changed": True, "rebooted": True, "elapsed": 93}
    assert lines == ["gpu1: waiting until the node has rebooted, for 0:00"]


def test_a_connection_that_is_lost_fails_where_the_play_says_so(action, monkeypatch):
    def lost(plugin, tmp, task_vars):
        raise AnsibleConnectionFailure("No route to host")

    monkeypatch.setattr(RebootAction, "run", lost)
    assert action.run(None, {**HOST, VARIABLE: True})["lost_connection"]
    with pytest.raises(AnsibleConnectionFailure):
        action.run(None, HOST)


def test_a_node_on_which_ansible_runs_is_rebooted_by_its_user(action):
    """With Ansible's own reboot: the connection is local, which it refuses."""
    action._task.action = "kubegpu.nodes.node_reboot"
    action._connection = types.SimpleNamespace(transport="local")
    result = action.run(task_vars=HOST)
    assert result["failed"] and not result["rebooted"]
    assert "Next step: reboot the node yourself" in result["msg"]
