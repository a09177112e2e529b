# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run ``kubegpu.nodes.plan`` on trees and return its rows and what a person sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration import ansible_process
from tests.tools.environments import collections

BIN = Path(sys.executable).parent
TIMEOUT = 600


@dataclass(frozen=True)
class Plan:
    """A run: exit status, the screen, and the row of each machine."""

    status: int
    screen: str
    rows: dict[str, dict[str, Any]]

    def table(self, title: str = "Planned changes") -> list[str]:
        """Return the lines of the table and of the notes below it."""
        lines = self.screen.splitlines()
        start = lines.index(title)
        end = next(at for at in range(start, len(lines)) if lines[at].startswith("ok: ["))
        return lines[start:end]


def run(
    inventory: Path,
    name: str = "kubegpu.nodes.plan",
    *arguments: str,
    width: int = 100,
    **variables: Any,
) -> Plan:
    """Run a playbook as on a screen of ``width`` characters; a failure is the caller's."""
    dest = inventory.parent / "plan.json"
    dest.unlink(missing_ok=True)
    requests = json.dumps({"kubegpu_plan_file": str(dest), **variables})
    done = ansible(
        "ansible-playbook", "-i", str(inventory), name, "--extra-vars", requests, *arguments,
        width=width,
    )  # fmt: skip
    rows = json.loads(dest.read_text(encoding="utf-8")) if dest.exists() else []
    return Plan(done.returncode, done.stdout + done.stderr, {row["node"]: row for row in rows})


def ansible(program: str, *arguments: str, width: int = 100) -> subprocess.CompletedProcess[str]:
    """Run a program of Ansible's that finds this checkout as the collection."""
    place = collections()
    return ansible_process.run(
        [str(BIN / program), *arguments],
        env={
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(place),
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_FORKS": "4",
            "ANSIBLE_PIPELINING": "true",
            "COLUMNS": str(width),
        },
        # The same for all, so that one process forks all of these runs.
        cwd=place,
        timeout=TIMEOUT,
    )
