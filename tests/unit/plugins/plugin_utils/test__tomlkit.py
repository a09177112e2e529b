# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An action plugin sends tomlkit exactly where nothing says that a parser is there."""

from __future__ import annotations

import base64
import io
import zipfile

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._tomlkit import (
    needs_parser,
    tomlkit_archive,
)


def facts(version, tomlkit):
    return {"ansible_facts": {"gpu_node": {"python": {"version": version, "tomlkit": tomlkit}}}}


@pytest.mark.parametrize(
    ("task_vars", "needed"),
    [
        ({}, True),
        ({"ansible_facts": {}}, True),
        ({"ansible_facts": {"gpu_node": None}}, True),
        (facts("3.9.2", None), True),
        (facts("3.9.2", "0.13.2"), False),
        (facts("3.10.0", False), True),
        (facts("3.11.2", None), False),
        (facts("3.13.0", None), False),
        (facts(None, None), True),
    ],
)
def test_needs_parser(task_vars, needed):
    assert needs_parser(task_vars) is needed


def test_archive_is_small_and_complete():
    archive = tomlkit_archive()
    assert len(archive) < 80_000
    names = zipfile.ZipFile(io.BytesIO(base64.b64decode(archive))).namelist()
    assert {"tomlkit/__init__.py", "tomlkit/parser.py"} <= set(names)
    assert all(name.startswith("tomlkit/") for name in names)
