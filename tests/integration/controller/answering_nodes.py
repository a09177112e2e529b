# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that answer each module with the text of a file.

Their Python (``ansible_python_interpreter``) is a program that reads no module: actions, playbooks
and roles are the collection's own, and an answer can be anything that a hostile node would say.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.integration import ansible_process
from tests.tools.environments import collections
from tests.unit.fixtures import fleet

TIMEOUT = 600
PROGRAM = """#!{python}
import pathlib, re, sys
place = pathlib.Path({place!r})
text = sys.stdin.read()
name = re.search(r"ansible_collections\\.kubegpu\\.nodes\\.plugins\\.modules\\.(\\w+)", text)
file = place / (name[1] if name else "other")
print(file.read_text() if file.exists() else '{{"changed": false}}')
"""


def good(number: int) -> dict[str, Any]:
    """Return the answers of a node with a driver by module."""
    facts = fleet.facts(number, gpus=2)
    return {
        "gpu_node_facts": {"changed": False, "ansible_facts": {"gpu_node": facts}},
        "gpu_node_verify": {
            "changed": False, "ok": True, "failed_layers": [],
            "layers": fleet.layers(f"gpu{number}")[:5],
        },
        "gpu_node_health": {"changed": False, **fleet.health(facts)},
        "gpu_node_texts": {
            "changed": False, "unseen": [],
            "texts": [{"name": "config/x.json", "source": "/etc/x.json", "text": "{}",
                       "cut": False}],
        },
    }  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A run: exit status, screen, and the folder with what it wrote."""

    status: int
    screen: str
    folder: Path

    def table(self, title: str) -> str:
        """Return what is below the title of a table, up to the next task."""
        return self.screen.partition(f"\n{title}\n")[2].partition("\nTASK [")[0]

    def recap(self) -> dict[str, dict[str, int]]:
        """Return Ansible's numbers by host."""
        found = {}
        for line in self.screen.partition("PLAY RECAP")[2].splitlines():
            host, colon, numbers = line.partition(" : ")
            if colon:
                pairs = (one.split("=") for one in numbers.split())
                found[host.strip()] = {name: int(value) for name, value in pairs}
        return found


def play(
    folder: Path,
    name: str,
    answers: Mapping[str, Mapping[str, Any]],
    *arguments: str,
    **variables: Any,
) -> Done:
    """Run ``kubegpu.nodes.<name>`` on hosts that answer.

    :param answers: by host and module; a text is printed as it is.
    :param variables: extra variables.
    """
    hosts = {}
    for host, own in answers.items():
        place = folder / "nodes" / host
        place.mkdir(parents=True)
        for module, answer in own.items():
            text = answer if isinstance(answer, str) else json.dumps(answer)
            (place / module).write_text(text, encoding="utf-8")
        program = place / "python"
        program.write_text(PROGRAM.format(python=sys.executable, place=str(place)))
        program.chmod(0o755)
        hosts[host] = {"ansible_connection": "local", "ansible_python_interpreter": str(program)}
    inventory = folder / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    given = {
        "kubegpu_become": False,
        "kubegpu_plan_file": str(folder / "plan.json"),
        "kubegpu_verify_file": str(folder / "verify.json"),
        "gpu_diagnose_file": str(folder / "diagnosis.json"),
        **variables,
    }
    program = Path(sys.executable).parent / "ansible-playbook"
    argv = [str(program), "-i", str(inventory), f"kubegpu.nodes.{name}", *arguments]
    done = ansible_process.run(
        [*argv, "--extra-vars", json.dumps(given)],
        env={
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(collections()),
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_FORKS": "4",
            "ANSIBLE_PIPELINING": "true",
            "COLUMNS": "160",
        },
        cwd=folder,
        timeout=TIMEOUT,
    )
    return Done(done.returncode, done.stdout + done.stderr, folder)
