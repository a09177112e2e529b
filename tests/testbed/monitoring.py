# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's Prometheus and node_exporter for nodes."""

from __future__ import annotations

from pathlib import Path

from tests.testbed import debs
from tests.testbed.fleet import Node

PROMETHEUS = "prometheus"
NODE_EXPORTER = "prometheus-node-exporter"


def install(node: Node, name: str) -> None:
    """Install one of the two with what it depends on: node_exporter needs nothing more."""
    debs.install(node, _of(node, name))


def purge(node: Node, name: str) -> None:
    """Remove it with all that it wrote, and what came with it."""
    debs.purge(node, _of(node, name))


def _of(node: Node, name: str) -> list[Path]:
    found = debs.downloaded("monitoring", node.release, PROMETHEUS, NODE_EXPORTER)
    return [deb for deb in found if _belongs(deb, name)]


def _belongs(deb: Path, name: str) -> bool:
    return deb.name.startswith(f"{NODE_EXPORTER}_") == (name == NODE_EXPORTER)
