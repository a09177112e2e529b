# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module that takes long is told while it runs, with Ansible's own parts; the module and its
action are stand-ins, and the lines come sooner than usual."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tools.environments import collections

pytestmark = pytest.mark.full(why="another part of Ansible than the unit tests of the lines")

STANDIN_ACTION = """
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _progress
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import ModuleAction

_progress._FIRST = 1.0
_progress._NEXT = 1.0


class ActionModule(ModuleAction):
    def waits_for(self, options):
        return f"waiting for {options['path']}"
"""

STANDIN_MODULE = """
import os
import time

from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"path": {"type": "path"}}, supports_check_mode=True)
end = time.monotonic() + 60
while not os.path.exists(module.params["path"]) and time.monotonic() < end:
    time.sleep(0.1)
module.exit_json(changed=False, found=os.path.exists(module.params["path"]))
"""


def run(folder: Path, *arguments: str, **keywords: object) -> tuple[str, str, dict[str, object]]:
    """Run the stand-in until its line is there; return the line, the log and the answer.

    Neither stream is a terminal.
    """
    for name, text in (("action_plugins", STANDIN_ACTION), ("library", STANDIN_MODULE)):
        (folder / name).mkdir()
        (folder / name / "standin_wait.py").write_text(text)
    goes_on = folder / "goes-on"
    task = {"standin_wait": {"path": str(goes_on)}, "register": "answer", **keywords}
    copy = {"content": "{{ answer }}", "dest": str(folder / "answer")}
    tasks = [task, {"ansible.builtin.copy": copy, "check_mode": False}]
    play = folder / "play.json"
    play.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    errors, log = folder / "stderr", folder / "log"
    variables = {"ansible_python_interpreter": sys.executable}
    with errors.open("wb") as stream, subprocess.Popen(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--inventory", "localhost,", "--connection", "local", str(play),
            "--extra-vars", json.dumps(variables), *arguments,
        ],
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
            "ANSIBLE_COLLECTIONS_PATH": str(collections()),
            "ANSIBLE_LOG_PATH": str(log),
            "ANSIBLE_NOCOLOR": "true",
        },
        cwd=collections(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 50
        while "localhost: " not in errors.read_text():
            assert process.poll() is None and time.monotonic() < deadline, errors.read_text()
            time.sleep(0.1)
        # The task still runs: it waits for this file.
        goes_on.touch()
        assert process.wait(timeout=60) == 0, errors.read_text()
    lines = [line for line in errors.read_text().splitlines() if line.startswith("localhost: ")]
    return lines[0], log.read_text(), json.loads((folder / "answer").read_text())


def test_a_line_is_there_while_the_task_runs_and_in_the_log(tmp_path: Path) -> None:
    line, log, answer = run(tmp_path)
    waiting = re.escape(f"localhost: waiting for {tmp_path / 'goes-on'}")
    assert re.fullmatch(rf"{waiting}, for 0:\d\d", line)
    assert line in log
    assert answer["found"] is True and answer["changed"] is False


def test_check_mode_waits_in_the_same_way(tmp_path: Path) -> None:
    line, _log, answer = run(tmp_path, "--check")
    waiting = re.escape(f"localhost: waiting for {tmp_path / 'goes-on'}")
    assert re.fullmatch(rf"{waiting}, for 0:\d\d", line)
    assert answer["found"] is True


def test_with_no_log_no_option_is_told(tmp_path: Path) -> None:
    line, log, _answer = run(tmp_path, no_log=True)
    assert re.fullmatch(r"localhost: running, for 0:\d\d", line)
    assert f"waiting for {tmp_path}" not in log
