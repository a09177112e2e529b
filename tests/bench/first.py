# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a bare node to one that is ready: where the time goes, and what the run disturbs."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.bench.measure import Sample, run, tell
from tests.testbed.engine import docker_argv
from tests.testbed.fleet import Node
from tests.testbed.nodes import execute
from tests.testbed.paths import HERE
from tests.testbed.proof import IMAGE

_WATCH = 3600
_STOP = "/run/bench-stop"


def timed(argv: list[str], **more: str) -> tuple[Sample, list[dict[str, Any]]]:
    """Run a playbook; return its tasks in their order as well, with the time that each took.

    :param more: further variables of its environment.
    """
    sample = run(argv, ANSIBLE_STDOUT_CALLBACK="ansible.posix.json", **more)
    data, _end = json.JSONDecoder().raw_decode(sample.output[sample.output.find("{\n") :])
    tasks = []
    for play in data["plays"]:
        for task in play["tasks"]:
            begin, end = (
                datetime.fromisoformat(task["task"]["duration"][key]) for key in ("start", "end")
            )
            answers = task["hosts"].values()
            tasks.append(
                {
                    "play": play["play"]["name"],
                    "task": task["task"]["name"],
                    "seconds": (end - begin).total_seconds(),
                    "run": any(not answer.get("skipped") for answer in answers),
                    "changed": any(answer.get("changed") for answer in answers),
                }
            )
    return sample, tasks


def phases(tasks: list[dict[str, Any]], total: float) -> dict[str, float]:
    """Return the seconds of each phase: a role of a play, or the play itself."""
    found: dict[str, float] = {}
    for task in tasks:
        role, colon, _rest = task["task"].partition(" : ")
        name = f"{task['play']}: {role}" if colon else task["play"]
        found[name] = found.get(name, 0.0) + task["seconds"]
    found["starting, and between the tasks"] = total - sum(found.values())
    return {name: round(seconds, 2) for name, seconds in found.items()}


@contextmanager
def disturbed(node: Node) -> Iterator[dict[str, Any]]:
    """Fill a dictionary with what happens to a node's containers and runtimes meanwhile."""
    found: dict[str, Any] = {}
    before = _containers(node)
    since = execute(node, "date", "+%s").strip()
    # A second, so that the journal tells what was before from what comes.
    time.sleep(1.1)
    execute(node, "rm", "-f", _STOP)
    script = (HERE / "cri.py").read_text().partition("if __name__")[0]
    more = (Path(__file__).parent / "cri_gaps.py").read_text().partition("import annotations")[2]
    script += more.replace("from tests.testbed.cri import call\n", "")
    watcher = subprocess.Popen(
        docker_argv("exec", "--interactive", node.container, "python3", "-", str(_WATCH)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdin is not None
    watcher.stdin.write(script)
    watcher.stdin.close()
    watcher.stdin = None
    try:
        yield found
    finally:
        execute(node, "touch", _STOP)
        output, _errors = watcher.communicate(timeout=60)
    gaps, lost = output.split()
    found["without_cri"] = {"times": int(gaps), "seconds": round(float(lost), 2)}
    after = _containers(node)
    found["containers"] = len(before)
    found["containers_stopped"] = sum(after.get(name) != pid for name, pid in before.items())
    for unit in ("containerd", "docker"):
        lines = execute(
            node, "journalctl", "--output=cat", "--since", f"@{int(since) + 1}", "--unit", unit
        )
        found[f"{unit}_restarts"] = sum(line.startswith("Started ") for line in lines.splitlines())


def give_containers(node: Node) -> None:
    """Start two of Docker's and two of containerd's own, as work that goes on."""
    for number in range(2):
        execute(node, "docker", "run", "--detach", "--name", f"bench{number}", IMAGE)
        execute(
            node, "ctr", "-n", "k8s.io", "run", "--detach", IMAGE, f"bench{number}",
            *("/bin/sleep", "1000000"),
        )  # fmt: skip
    if len(_containers(node)) != 4:
        raise SystemExit(f"{node.name}: the containers do not run: {_containers(node)}")


def take_containers(node: Node) -> None:
    """Remove them: a Docker that had to wait for them can be restarted now."""
    for number in range(2):
        execute(node, "docker", "rm", "--force", f"bench{number}")
        execute(node, "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "KILL", f"bench{number}")
        execute(node, "ctr", "-n", "k8s.io", "containers", "rm", f"bench{number}", check=False)


def _containers(node: Node) -> dict[str, str]:
    """Return the process of each container that runs."""
    found = {}
    template = "{{.Name}} {{.State.Pid}}"
    names = execute(node, "docker", "ps", "--quiet").split()
    if names:
        lines = execute(node, "docker", "inspect", "--format", template, *names).splitlines()
        found.update(dict(map(str.split, lines)))
    for line in execute(node, "ctr", "-n", "k8s.io", "tasks", "ls").splitlines()[1:]:
        name, pid, state = line.split()
        if state == "RUNNING":
            found[f"containerd/{name}"] = pid
    return found


def measure(node: Node, argv: list[str]) -> dict[str, Any]:
    """Run it twice: the first time on bare nodes."""
    give_containers(node)
    found = {}
    for which in ("first", "second"):
        with disturbed(node) as disruption:
            sample, tasks = timed(argv)
        tell(f"{which} run: {sample.seconds:.1f} s; {disruption}")
        found[which] = {
            "seconds": round(sample.seconds, 2),
            "cpu": round(sample.cpu, 2),
            "tasks": sum(task["run"] for task in tasks),
            "changed": sum(task["changed"] for task in tasks),
            "phases": phases(tasks, sample.seconds),
            "disruption": disruption,
        }
    take_containers(node)
    return found
