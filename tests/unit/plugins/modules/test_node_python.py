# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every file that runs on a node is importable with the Python of the oldest node."""

from __future__ import annotations

import importlib
from pathlib import Path

PLUGINS = Path(__file__).parents[4] / "plugins"
FILES = [
    ".".join(path.relative_to(PLUGINS).with_suffix("").parts)
    for folder in ("module_utils", "modules")
    for path in sorted((PLUGINS / folder).rglob("*.py"))
]


def test_every_file_is_importable():
    assert len(FILES) > 100, "the files are looked for in the wrong folder"
    for name in FILES:
        importlib.import_module(f"ansible_collections.kubegpu.nodes.plugins.{name}")
