# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A proxy's password on its way to a module of Ansible's: who else can read it while that runs.

With the real ansible-playbook and a local connection. The module looks at the command lines of all
processes, as ps would.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.integration import ansible_process
from tests.tools.environments import collections

PASSWORD = "Pr0xy'PW$x"
PROXY = f"http://svc:{PASSWORD}@proxy.example.com:3128"

LOOK = """
import glob, json, os, sys
found = []
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        with open(path, "rb") as handle:
            words = handle.read()
    except OSError:
        continue
    # In two parts: this program's own command line could have it.
    if b"Pr0" + b"xy" in words:
        found.append(words.decode("utf-8", "replace"))
names = ("http_proxy", "https_proxy", "no_proxy")
print(json.dumps({
    "environment": {name: os.environ.get(name) for name in names},
    "command lines": found,
    "files": glob.glob(sys.argv[1] + "/**/environment-*", recursive=True),
}))
"""

# It runs a module of Ansible's as the collection's own actions do.
ACTION = """
import json
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _background
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._proxies import ProxiedAction


class ActionModule(ProxiedAction):
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        commands = []
        execute = self._connection.exec_command

        def record(command, *arguments, **more):
            commands.append(command)
            return execute(command, *arguments, **more)

        self._connection.exec_command = record
        given = {"argv": self._task.args["argv"]}
        name = "ansible.builtin.command"
        answers = [
            self._execute_module(module_name=name, module_args=given, task_vars=task_vars),
            _background.run_in_background(
                self, name, given, task_vars, limit=60, what="The job"
            ),
        ]
        # One that needs no proxy gets none.
        stat = {"path": "/"}
        before = len(commands)
        self._execute_module(
            module_name="ansible.builtin.stat", module_args=stat, task_vars=task_vars
        )
        with open(self._task.args["answer"], "w") as handle:
            json.dump(
                {"answers": answers, "commands": commands, "stat": commands[before:]}, handle
            )
        self._remove_tmp_path(self._connection._shell.tmpdir)
        return result
"""


@pytest.fixture
def play(tmp_path):
    """Run the action with these keywords of its task; return what the module and Ansible saw."""
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins" / "standin_proxied.py").write_text(ACTION)
    (tmp_path / "look.py").write_text(LOOK)

    def run(options, pipelining, **keywords):
        answer = tmp_path / "answer.json"
        answer.unlink(missing_ok=True)
        argv = [sys.executable, str(tmp_path / "look.py"), str(tmp_path / "tmp")]
        task = {"standin_proxied": {**options, "argv": argv, "answer": str(answer)}, **keywords}
        variables = {
            "ansible_python_interpreter": sys.executable,
            "ansible_async_dir": str(tmp_path / "jobs"),
            "ansible_remote_tmp": str(tmp_path / "tmp"),
            "ansible_pipelining": pipelining,
        }
        play = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": [task]}
        (tmp_path / "play.json").write_text(json.dumps([play]))
        place = collections()
        done = ansible_process.run(
            [str(Path(sys.executable).parent / "ansible-playbook"), "-vvv", "--inventory",
             "localhost,", "--connection", "local", str(tmp_path / "play.json")],
            env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(place)}, cwd=place, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0 and answer.exists(), done.stdout + done.stderr
        found = json.loads(answer.read_text())
        found["seen"] = [json.loads(one["stdout"]) for one in found["answers"]]
        found["screen"] = done.stdout + done.stderr
        return found

    return run


PIPELINING = [pytest.param(False, marks=pytest.mark.full(why="without pipelining")), True]


@pytest.mark.parametrize("pipelining", PIPELINING)
def test_nobody_else_reads_the_password(play, pipelining):
    options = {"http_proxy": PROXY, "https_proxy": PROXY, "no_proxy": "localhost,.example.com"}
    found = play(options, pipelining)
    assert len(found["seen"]) == 2
    for seen in found["seen"]:
        assert seen["environment"] == options
        assert seen["command lines"] == []
        # The module runs, and the file is gone.
        assert seen["files"] == []
    told = json.dumps(found["commands"]) + found["screen"]
    assert "Pr0xy" not in told and "proxy.example.com" not in told
    assert "environment-" in json.dumps(found["commands"])
    assert "environment-" not in json.dumps(found["stat"])


@pytest.mark.full(why="what Ansible does without our way")
def test_a_task_s_environment_would_show_it(play):
    """What the roles did before: the same look finds it, so that it would be seen above, too."""
    found = play({}, True, environment={"https_proxy": PROXY})
    assert all(seen["environment"]["https_proxy"] == PROXY for seen in found["seen"])
    assert "Pr0xy" in json.dumps(found["commands"]) and "Pr0xy" in found["screen"]
    assert any(seen["command lines"] for seen in found["seen"])


def test_without_a_proxy_nothing_is_written(play):
    found = play({"no_proxy": ""}, True)
    assert "environment-" not in json.dumps(found["commands"])
    assert "https_proxy" not in json.dumps(found["commands"])
