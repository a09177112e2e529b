# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the collection's playbooks on the fleet and read what each task did on each host."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration import ansible_process
from tests.testbed.fleet import Node, chosen
from tests.testbed.nodes import execute
from tests.testbed.paths import INVENTORY, REPOSITORY

BIN = Path(sys.executable).parent
COLLECTIONS = REPOSITORY / "build" / "collections"
TIMEOUT = 900
# Not for benchmarks.
PATIENT = {"ANSIBLE_CONFIG": str(Path(__file__).with_name("ansible.cfg"))}


# Everything in /etc with content, mode and owner. Left out: the loader's cache and the markers of
# package management, which every package installation rewrites.
ETC = (
    "cd / && find etc -xdev ! -name ld.so.cache ! -path 'etc/apt/sources.list.d/.*' "
    "! -path 'etc/.pwd.lock' -printf '%M %u:%g %p %l\\n' | LC_ALL=C sort && "
    "find etc -xdev -type f ! -name ld.so.cache -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"
)


@dataclass(frozen=True)
class Run:
    """A playbook's run: exit status, all that was printed, and the answers by task and host.

    Standard output is one JSON object; the tables are on the screen, which is standard error.
    """

    status: int
    output: str
    answers: dict[tuple[str, str], dict[str, Any]]
    stats: dict[str, dict[str, int]]
    screen: str = ""

    def changed(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the diffs of the tasks that changed something, by (task, host)."""
        return {
            where: _diffs(answer) for where, answer in self.answers.items() if answer.get("changed")
        }

    def messages(self) -> str:
        """Return what the failed tasks said."""
        return "\n".join(
            str(answer.get("msg", "")) for answer in self.answers.values() if answer.get("failed")
        )


def _diffs(answer: dict[str, Any]) -> list[dict[str, Any]]:
    diff = answer.get("diff") or []
    return [
        {key: part.get(key) for key in ("before", "after")}
        for part in (diff if isinstance(diff, list) else [diff])
        if part
    ]


def environment() -> dict[str, str]:
    """Return the environment of an Ansible run: this checkout is the collection."""
    link = COLLECTIONS / "ansible_collections" / "kubegpu" / "nodes"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(REPOSITORY, target_is_directory=True)
    return {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_HOST_KEY_CHECKING": "false",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_FORKS": "20",
        "ANSIBLE_NOCOLOR": "true",
    }


def play(
    name: str, *arguments: str, variables: dict[str, Any] | None = None, timeout: int = TIMEOUT
) -> Run:
    """Run ``kubegpu.nodes.<name>`` or a file on the fleet; never raises for a play that failed."""
    playbook = name if name.endswith(".yml") else f"kubegpu.nodes.{name}"
    argv = [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), playbook, *arguments]
    if variables:
        argv += ["--extra-vars", json.dumps(variables)]
    done = ansible_process.run(
        argv,
        env={**environment(), **PATIENT, "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"},
        cwd=REPOSITORY,
        timeout=timeout,
    )
    # With -v Ansible itself names its configuration before the object.
    text = done.stdout[done.stdout.find("{\n") :] if "{\n" in done.stdout else "{}"
    data = json.loads(text)
    answers = {
        (task["task"]["name"], host): answer
        for one in data.get("plays", [])
        for task in one["tasks"]
        for host, answer in task["hosts"].items()
    }
    return Run(
        done.returncode, done.stdout + done.stderr, answers, data.get("stats", {}), done.stderr
    )


def run_module(
    pattern: str, name: str, arguments: str | dict[str, Any], *options: str
) -> dict[str, dict[str, Any]]:
    """Run one module as root on the nodes and return each one's answer."""
    words = arguments if isinstance(arguments, str) else json.dumps(arguments)
    argv = [
        str(BIN / "ansible"), "-i", str(INVENTORY), pattern, "--become", "-m", name, "-a", words,
        *options,
    ]  # fmt: skip
    done = ansible_process.run(
        argv,
        env={
            **environment(),
            **PATIENT,
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
        },
        cwd=REPOSITORY,
        timeout=TIMEOUT,
    )
    data, _end = json.JSONDecoder().raw_decode(done.stdout[done.stdout.find("{\n") :])
    return {
        host: answer
        for one in data["plays"]
        for task in one["tasks"]
        for host, answer in task["hosts"].items()
    }


def on_nodes(command: str, pattern: str = "all") -> dict[str, str]:
    """Run a shell command as root on the nodes and return what each printed.

    Not by Ansible, whose start alone takes more than a second of the processor: tests look at
    their nodes hundreds of times.

    What it exits with is the command's own affair; a node that does not run is an error.

    :param pattern: names of nodes with colons between them, or ``all``.
    """
    wanted = pattern.split(":")
    nodes = [node for node in chosen() if pattern == "all" or node.name in wanted]
    assert pattern == "all" or len(nodes) == len(wanted), pattern

    def look(node: Node) -> str:
        return execute(node, "/bin/sh", "-c", f"(\n{command}\n)\ntrue").rstrip("\r\n")

    with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
        return dict(zip((node.name for node in nodes), pool.map(look, nodes), strict=True))
