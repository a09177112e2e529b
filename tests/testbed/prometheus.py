# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's Prometheus and promtool, unpacked in the user's cache, not installed."""

from __future__ import annotations

from pathlib import Path

from tests.testbed.paths import cache, locked
from tests.testbed.tools import need
from tests.testbed.validators import unpacked, wrap

# 2.42: what it takes, newer ones take too.
SUITE = "bookworm"
PROGRAMS = ("prometheus", "promtool")


def programs() -> Path:
    """The folder with ``prometheus`` and ``promtool``."""
    with locked("prometheus"):
        home = cache() / "prometheus"
        if not any(home.glob(f"{SUITE}-*")):
            need(["mmdebstrap"])
        tree = unpacked(SUITE, "prometheus,libc6", home, SUITE, "prometheus")
        for program in PROGRAMS:
            wrap(tree, home, program)
        return home / "bin"
