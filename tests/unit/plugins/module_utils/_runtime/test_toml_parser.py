# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the TOML parser comes from, and that all of them read the same."""

from __future__ import annotations

import base64
import subprocess
import sys

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime import (
    toml_parser as parser_module,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.toml_parser import toml_parser
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._tomlkit import tomlkit_archive

TEXT = 'version = 2\n[a]\n"b.c" = [1, 0x2]\nd = { e = 1.5, f = true }\n'
DATA = {"version": 2, "a": {"b.c": [1, 2], "d": {"e": 1.5, "f": True}}}


def missing():
    raise ImportError("not here")


@pytest.fixture
def no_parser(monkeypatch):
    monkeypatch.setattr(parser_module, "_builtin", missing)
    monkeypatch.setattr(parser_module, "_tomlkit", missing)


def test_builtin_and_tomlkit_read_the_same(tmp_path, monkeypatch):
    assert toml_parser(None, str(tmp_path))(TEXT) == DATA
    monkeypatch.setattr(parser_module, "_builtin", missing)
    assert toml_parser(None, str(tmp_path))(TEXT) == DATA


def test_no_parser_at_all_is_said_with_the_next_step(tmp_path, no_parser):
    with pytest.raises(KubegpuError, match="Install tomlkit on the controller"):
        toml_parser(None, str(tmp_path))


def test_archive_that_was_sent_is_used(tmp_path):
    """In a process of its own, whose Python sees no other tomlkit."""
    archive = tomlkit_archive()
    path = tmp_path / "kubegpu-tomlkit.zip"
    path.write_bytes(base64.b64decode(archive))
    program = (
        "import sys; sys.path.append(sys.argv[1]); import tomlkit; "
        "assert sys.argv[1] in tomlkit.__file__; print(tomlkit.parse('a = 1').unwrap())"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "{'a': 1}\n"


def test_archive_is_put_below_the_modules_own_folder(tmp_path, no_parser, monkeypatch):
    calls = []

    def second_time():
        calls.append(1)
        if len(calls) == 1:
            raise ImportError("not here")
        return dict

    monkeypatch.setattr(parser_module, "_tomlkit", second_time)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert toml_parser("UEs=", str(tmp_path))({"a": 1}) == {"a": 1}
    assert (tmp_path / "kubegpu-tomlkit.zip").read_bytes() == b"PK"
    assert str(tmp_path / "kubegpu-tomlkit.zip") in sys.path
