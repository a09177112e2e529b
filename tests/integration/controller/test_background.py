# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module that runs detached from its connection: with Ansible's own parts, then with a stand-in
action whose connection breaks."""

from __future__ import annotations

import json
import os
import re
import sys
import time as time_of_day
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _background
from tests.integration import ansible_process
from tests.tools.environments import collections

STANDIN_ACTION = """
from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _background, _progress


class ActionModule(ActionBase):
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _progress._FIRST = 2.0
        arguments = dict(self._task.args)
        limit = arguments.pop("limit")
        told = arguments.pop("told", None)
        if told:
            # A job that waits for this file ends after its progress was on the screen.
            show = _progress.Progress.show

            def show_and_mark(progress, *given):
                show(progress, *given)
                Path(told).touch()

            _progress.Progress.show = show_and_mark
        result.update(
            _background.run_in_background(
                self, "ansible.builtin.command", arguments, task_vars, limit=limit, what="The job"
            )
        )
        # The connection is as usable as it was.
        self._execute_module(module_name="ansible.builtin.ping", task_vars=task_vars)
        return result
"""


def play(
    folder: Path, *arguments: str, limit: int = 60, pipelining: bool = False, **options: object
) -> dict[str, object]:
    """Run the stand-in action on this machine, and return its result and what was on the screen."""
    (folder / "action_plugins").mkdir()
    (folder / "action_plugins" / "standin_job.py").write_text(STANDIN_ACTION)
    place = collections()
    task = {"standin_job": {**options, "limit": limit}, "register": "job", "failed_when": False}
    answer = {"ansible.builtin.copy": {"content": "{{ job }}", "dest": str(folder / "answer")}}
    (folder / "play.json").write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task, answer]}])
    )
    done = ansible_process.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--inventory", "localhost,", "--connection", "local", str(folder / "play.json"),
            "--extra-vars", json.dumps({
                "ansible_python_interpreter": sys.executable,
                "ansible_async_dir": str(folder / "jobs"),
                "ansible_remote_tmp": str(folder / "tmp"),
                "ansible_pipelining": pipelining,
            }),
            *arguments,
        ],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(place)},
        # The same for all, so that one process forks all of these runs.
        cwd=place, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, object] = {"screen": done.stdout, "told": done.stderr}
    if (folder / "answer").exists():
        result.update(json.loads((folder / "answer").read_text()))
        # Neither job file nor uploaded module is left.
        assert not (folder / "jobs").exists()
        for _attempt in range(10):
            uploaded = [path for path in (folder / "tmp").iterdir() if "ansible-tmp" in path.name]
            if not uploaded:
                break
            # Ansible's supervisor looks every five seconds whether the job is still there.
            time_of_day.sleep(1)
        assert uploaded == []
    return result


@pytest.mark.parametrize(
    "pipelining",
    [pytest.param(False, marks=pytest.mark.full(why="without pipelining")), True],
)
def test_a_job_is_waited_for(tmp_path: Path, pipelining: bool) -> None:
    told = tmp_path / "told"
    # Only its name is DKMS's.
    job = tmp_path / "dkms"
    job.write_text(f"#!/bin/sh\nuntil [ -e {told} ]; do sleep 0.2; done; echo done\n")
    job.chmod(0o755)
    answer = play(tmp_path, pipelining=pipelining, cmd=str(job), told=str(told))
    assert (answer["changed"], answer["rc"], answer["stdout"]) == (True, 0, "done")
    line = (
        r"^localhost: The job: DKMS builds kernel modules \(0:\d\d\), for 0:\d\d of at most 1:00$"
    )
    assert re.search(line, str(answer["told"]), re.M), answer["told"]
    assert not {"ansible_job_id", "started", "finished", "results_file"} & set(answer)


def test_a_job_that_fails_says_its_own_words(tmp_path: Path) -> None:
    answer = play(tmp_path, cmd="sh -c 'echo no >&2; exit 3'")
    assert (answer["rc"], answer["stderr"]) == (3, "no")


@pytest.mark.full(why="another end than test_a_job_that_fails_says_its_own_words")
def test_a_job_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    answer = play(tmp_path, cmd="sleep 60", limit=2)
    assert answer["msg"] == "The job: not finished after 2 seconds, and stopped."


def test_check_mode_starts_no_job(tmp_path: Path) -> None:
    assert "failed=0" in str(play(tmp_path, "--check", cmd=f"touch {tmp_path}/made")["screen"])
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "jobs").exists()


class StandinAction:
    """An action whose calls answer from a list: a dict is an answer, None a lost connection."""

    def __init__(self, *answers: dict[str, object] | None, alive: bool = True) -> None:
        self._task = SimpleNamespace(check_mode=False, async_val=0, no_log=False)
        self._connection = SimpleNamespace(
            reset=self.reset, _shell=SimpleNamespace(tmpdir="/tmp/uploaded")
        )
        self.answers = list(answers)
        self.alive = alive
        self.calls: list[str] = []
        self.limit = 0

    def reset(self) -> None:
        self.calls.append("reset")
        raise OSError("there is nothing to be closed")

    def get_shell_option(self, option: str, default: str) -> str:
        return default

    def _execute_module(
        self, module_name: str, module_args: dict[str, object], **options: object
    ) -> dict[str, object]:
        if options.get("wrap_async"):
            self.limit = self._task.async_val
            return {"ansible_job_id": "j12.34", "started": True, "finished": False}
        self.calls.append(str(module_args["mode"]))
        if module_args["mode"] == "cleanup":
            return {"erased": "x"}
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise AnsibleConnectionFailure("lost")
        return answer

    def _low_level_execute_command(self, command: str) -> dict[str, object]:
        self.calls.append(command.split(maxsplit=1)[0])
        found = "/proc/34/cmdline\n" if self.alive else ""
        return {"stdout": f"{found}120.50 230.00\n34 1 100 python3\n"}


RUNS = {"ansible_job_id": "j12.34", "started": 1, "finished": 0}
ENDED = {"ansible_job_id": "j12.34", "finished": 1, "changed": True}


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the clock run by what is slept."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(_background._Waiter.__init__, "__defaults__", (sleep, lambda: now[0]))
    return now


def run(action: StandinAction, limit: int = 3600) -> dict[str, object]:
    return _background.run_in_background(
        action,
        "module",
        {},
        {"inventory_hostname": "node"},
        limit=limit,
        what="The job",
    )


def test_a_lost_connection_is_reset_and_the_job_waited_for(time: list[float]) -> None:
    action = StandinAction(RUNS, None, None, RUNS, ENDED)
    assert run(action) == {"changed": True}
    assert action.calls.count("reset") == 2
    # What stood on the node before may be gone with a restart.
    assert action._connection._shell.tmpdir is None
    # After the loss it is seen whether the job still runs.
    assert "grep" in action.calls
    assert (action.limit, action._task.async_val) == (3600, 0)
    assert action.calls[-2:] == ["cleanup", "rmdir"]


def test_a_node_that_stays_away_is_given_up(time: list[float]) -> None:
    with pytest.raises(
        AnsibleConnectionFailure, match="The job: the node has not answered for 600"
    ):
        run(StandinAction(RUNS, None))
    assert 600 < time[0] < 700


def test_no_answer_of_any_module_is_a_loss_too(time: list[float]) -> None:
    action = StandinAction({"failed": True, "msg": "MODULE FAILURE"}, ENDED)
    assert run(action) == {"changed": True}


def test_a_job_that_died_is_noticed(time: list[float]) -> None:
    answer = run(StandinAction(RUNS, alive=False))
    assert answer["failed"]
    assert "The job: it ended without an answer" in str(answer["msg"])
    assert 30 <= time[0] < 40


def test_a_job_that_ends_between_two_looks(time: list[float]) -> None:
    # Six looks until half a minute has passed; the last one says that it ended.
    action = StandinAction(*[RUNS] * 8, ENDED, alive=False)
    assert run(action) == {"changed": True}


def test_a_job_that_does_not_start(time: list[float]) -> None:
    class Broken(StandinAction):
        def _execute_module(self, **options: object) -> dict[str, object]:  # type: ignore[override]
            return {"failed": True, "msg": "could not create directory"}

    answer = run(Broken(RUNS))
    assert (answer["failed"], answer["msg"]) == (True, "could not create directory")
