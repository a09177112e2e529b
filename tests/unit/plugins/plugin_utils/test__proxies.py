# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in front of a module's command where a proxy is given, and what a shell makes of it.

With the real ansible-playbook: tests/integration/controller/test_proxies.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.plugins.action import ActionBase
from ansible.plugins.shell.sh import ShellModule

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._proxies import ProxiedAction

PROXY = "http://svc:Pr0xy'PW$x `id`\"@proxy.example.com:3128"
LOOK = (
    "import json, os, sys; "
    "print(json.dumps({n: os.environ.get(n) for n in ('http_proxy', 'https_proxy', 'no_proxy')}))"
)


class Shell(ShellModule):
    """Ansible's, without its options; the temporary folder is that of the test."""

    def __init__(self, folder):
        self.tmpdir = folder


class StandinAction(ProxiedAction):
    """An action on this machine, with files for the node's."""

    def __init__(self, options, folder):
        self._task = SimpleNamespace(args=options, environment=[])
        self._connection = SimpleNamespace(_shell=Shell(folder))
        self._templar = SimpleNamespace(template=lambda value: value)
        self.folder = str(folder or "")
        self.readable = []

    def run(self, tmp=None, task_vars=None):
        # Abstract in ActionBase, and called by no test.
        raise NotImplementedError

    def _make_tmp_path(self, remote_user=None):
        self._connection._shell.tmpdir = self.folder

    def _transfer_data(self, remote_path, data):
        Path(remote_path).write_text(data, encoding="utf-8")
        return remote_path

    def _fixup_perms2(self, remote_paths, remote_user=None, execute=True):
        assert not execute
        self.readable = list(remote_paths)


@pytest.fixture
def command(monkeypatch):
    """Return the command that Ansible would send: it asks for the environment twice."""

    def execute(action, module_name=None, **_more):
        raw = {}
        action._compute_environment_string(raw)
        return {"command": f"{action._compute_environment_string()} {sys.executable} -c".strip()}

    monkeypatch.setattr(ActionBase, "_execute_module", execute)
    return lambda action, name: action._execute_module(module_name=name)["command"]


@pytest.mark.parametrize(
    "name", ["ansible.builtin.apt", "ansible.builtin.dnf5", "community.general.zypper"]
)
def test_a_module_of_ansible_s_gets_them_by_a_file_that_goes(command, tmp_path, name):
    options = {"http_proxy": PROXY, "https_proxy": PROXY, "no_proxy": "localhost,.x", "name": "y"}
    action = StandinAction(options, str(tmp_path))
    words = command(action, name)
    assert "Pr0xy" not in words and "proxy.example.com" not in words
    (path,) = tmp_path.iterdir()
    assert action.readable == [str(tmp_path), str(path)]
    done = subprocess.run(
        ["/bin/sh", "-c", f'{words} "$0"', LOOK], capture_output=True, text=True, check=True
    )
    del options["name"]
    assert json.loads(done.stdout) == options
    # It is gone before the module could fail, or run for an hour.
    assert list(tmp_path.iterdir()) == []


def test_a_second_module_has_a_file_of_its_own(command, tmp_path):
    action = StandinAction({"https_proxy": PROXY}, str(tmp_path))
    first, second = (command(action, "ansible.builtin.apt") for _number in range(2))
    assert first != second and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("options", "name"),
    [
        # They have the options.
        ({"https_proxy": PROXY}, "kubegpu.nodes.package_set"),
        ({"https_proxy": PROXY}, "kubegpu.nodes.nvidia_driver"),
        ({"https_proxy": PROXY}, "kubegpu.nodes.cuda_toolkit"),
        # Asked every few seconds.
        ({"https_proxy": PROXY}, "ansible.builtin.async_status"),
        ({"https_proxy": ""}, "ansible.builtin.apt"),
        ({}, "ansible.builtin.apt"),
    ],
)
def test_nothing_is_written_where_nothing_is_needed(command, tmp_path, options, name):
    assert command(StandinAction(options, str(tmp_path)), name) == f"{sys.executable} -c"
    assert list(tmp_path.iterdir()) == []


def test_where_modules_are_piped_the_folder_is_made_first(command, tmp_path):
    action = StandinAction({"https_proxy": PROXY}, None)
    action.folder = str(tmp_path)
    command(action, "ansible.builtin.apt")
    assert action._connection._shell.tmpdir == str(tmp_path) and len(list(tmp_path.iterdir())) == 1


def test_the_task_s_own_environment_stays(command, tmp_path):
    """Of a play that is not ours."""
    action = StandinAction({"https_proxy": PROXY}, str(tmp_path))
    action._task.environment = [{"LANG": "C"}]
    words = command(action, "ansible.builtin.apt")
    assert "LANG=C" in words and "Pr0xy" not in words
