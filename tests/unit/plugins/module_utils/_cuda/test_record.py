# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.link import ALTERNATIVES, Link
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.record import Record


def test_memory_survives_the_record():
    memory = Record(Link(ALTERNATIVES, "/a", True, ("/a", "/b")), "/b", ("/b",), ("/c",), ("/d",))
    assert Record.from_json(memory.to_json()) == memory
    assert Record.from_json(None) is None
