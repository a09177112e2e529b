# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes whose root user answers what it likes, and the controller that asks them.

The interpreter of each host is a program that keeps what it was sent and prints the JSON of a file
with the module's name.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration import ansible_process
from tests.tools.environments import collections
from tests.unit.fixtures.node_facts import node

BIN = Path(sys.executable).parent
TIMEOUT = 300
# The name of the file is AnsiballZ_MODULE.py, in a folder of its own.
PROGRAM = """#!/bin/sh
name="$(basename "$1" .py)"
name="${{name#AnsiballZ_}}"
cat "$1" >>"{folder}/sent-$name"
test -e "{folder}/$name.json" && exec cat "{folder}/$name.json"
echo '{{"failed": true, "msg": "no answer"}}'
"""
# The wrapper has the module's arguments as they are, or in base64.
_CODED = re.compile(rb"[A-Za-z0-9+/=]{40,}")


@dataclass(frozen=True)
class Run:
    """A run: exit status and screen."""

    status: int
    screen: str

    def words(self) -> str:
        """Return the screen as one line, so that wrapped texts can be found."""
        return " ".join(self.screen.split())


class Hostile:
    """An inventory with nodes of an attacker, below a folder that is the current one."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.hosts: dict[str, dict[str, Any]] = {}

    def add(self, name: str, answers: Mapping[str, Any] | None = None, **variables: Any) -> None:
        """Add a host.

        :param answers: by module; by default only the facts of a node with a GPU.
        """
        place = self.folder / "nodes" / name
        place.mkdir(parents=True)
        facts = {"changed": False, "ansible_facts": {"gpu_node": node()}}
        names = ("containerd_runtime", "docker_runtime")
        runtimes: dict[str, Any] = {one: {"changed": False} for one in names}
        for module, answer in {"gpu_node_facts": facts, **runtimes, **(answers or {})}.items():
            (place / f"{module}.json").write_text(json.dumps(answer))
        program = place / "python"
        program.write_text(PROGRAM.format(folder=place))
        program.chmod(0o755)
        self.hosts[name] = {"ansible_python_interpreter": str(program), **variables}

    def sent(self, name: str) -> bytes:
        """Return all that a node was sent, also what was coded in it."""
        whole = b"".join(path.read_bytes() for path in self._place(name).glob("sent-*"))
        found = [whole]
        for coded in _CODED.findall(whole):
            try:
                found.append(base64.b64decode(coded, validate=True))
            except ValueError:
                continue
        return b"\n".join(found)

    def asked(self, name: str) -> set[str]:
        """Return the modules that a node was sent."""
        return {path.name.partition("-")[2] for path in self._place(name).glob("sent-*")}

    def _place(self, name: str) -> Path:
        return self.folder / "nodes" / name

    def play(self, playbook: str, *arguments: str, inject: bool = True, **variables: Any) -> Run:
        """Run a playbook with extra variables in the folder."""
        inventory = self.folder / "inventory" / "hosts.json"
        inventory.parent.mkdir(exist_ok=True)
        every = {"ansible_connection": "local", "kubegpu_become": False}
        inventory.write_text(json.dumps({"all": {"hosts": self.hosts, "vars": every}}))
        argv = [str(BIN / "ansible-playbook"), "-i", str(inventory), playbook, *arguments]
        argv += ["--extra-vars", json.dumps(variables)] if variables else []
        done = ansible_process.run(
            argv,
            env={
                **os.environ,
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "ANSIBLE_COLLECTIONS_PATH": str(collections()),
                "ANSIBLE_INJECT_FACT_VARS": str(inject),
                "ANSIBLE_NOCOLOR": "true",
                "COLUMNS": "160",
            },
            cwd=self.folder,
            timeout=TIMEOUT,
        )
        return Run(done.returncode, done.stdout + done.stderr)
