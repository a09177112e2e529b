# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many modules Ansible started on each node, counted on the node."""

from __future__ import annotations

from collections.abc import Sequence

from tests.testbed.fleet import Node
from tests.testbed.nodes import execute

_FILE = "/var/lib/testbed/module-calls"


def count(nodes: Sequence[Node]) -> dict[str, int]:
    """Module starts by node since the last reset."""
    return {node.name: len(execute(node, "cat", _FILE).splitlines()) for node in nodes}


def reset(nodes: Sequence[Node]) -> None:
    """Begin to count from zero."""
    for node in nodes:
        execute(node, "sh", "-c", f": > {_FILE}")
