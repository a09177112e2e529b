# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins of the programs that the playbook accept runs on a node."""

from __future__ import annotations

import json
from typing import Any

from tests.testbed.fleet import Node
from tests.testbed.nodes import execute
from tests.testbed.paths import REPOSITORY

SCENARIO = "/etc/standin-acceptance.json"
_PROGRAMS = tuple(f"/usr/local/bin/{name}" for name in ("dcgmi", "nvbandwidth", "gpu_burn"))
_STANDIN = REPOSITORY / "tests" / "testbed" / "files" / "acceptance" / "standin-gpu-tests"


def install(machine: Node) -> None:
    """Put the programs on a node; all tests pass there."""
    for path in _PROGRAMS:
        execute(machine, "tee", path, stdin=_STANDIN.read_text(encoding="utf-8"))
        execute(machine, "chmod", "755", path)
    scenario(machine)


def scenario(machine: Node, **how: Any) -> None:
    """Say what the programs of a node do."""
    given = {"gpus": len(machine.gpus), **how}
    execute(machine, "tee", SCENARIO, stdin=json.dumps(given))


def remove(machine: Node) -> None:
    """Remove the programs and what they wrote."""
    execute(machine, "sh", "-c", f"rm -f {' '.join(_PROGRAMS)} {SCENARIO}*")
