# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.fingerprint import file_signature
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.converged import (
    key,
    note,
    said,
    settled,
    stands,
    wish_name,
    without_words,
)

WISH = "5d1be7e9dda1ee8896be5b7e34a85ee1"


def birth(pid: int) -> str | None:
    return {12: "777"}.get(pid)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text("version = 2\n")
    (tmp_path / "conf.d").mkdir()
    return tmp_path


@pytest.fixture
def left(folder: Path) -> dict[str, Any]:
    paths = [str(folder / name) for name in ("config.toml", "conf.d", "not-there")]
    return note(WISH, "k3s", "12@777", {path: file_signature(path) for path in paths})


def test_nothing_was_touched(left: dict[str, Any]) -> None:
    assert stands(left, "k3s", file_signature, birth) == WISH


def rewritten(folder: Path) -> None:
    """The same bytes at the same time, as an archive unpacks them."""
    path = folder / "config.toml"
    before = path.stat()
    time.sleep(0.02)
    path.write_text("version = 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(folder: Path) -> None:
    (folder / "other").write_text("version = 2\n")
    (folder / "other").rename(folder / "config.toml")


@pytest.mark.parametrize(
    "touch",
    [
        rewritten,
        replaced,
        lambda folder: (folder / "config.toml").unlink(),
        lambda folder: (folder / "config.toml").chmod(0o600),
        lambda folder: (folder / "conf.d" / "50-other.toml").write_text(""),
        lambda folder: (folder / "not-there").write_text(""),
    ],
    ids=["rewritten", "replaced", "gone", "mode", "file added to a folder", "file that was not"],
)
def test_a_touched_file(folder: Path, left: dict[str, Any], touch: Any) -> None:
    touch(folder)
    assert stands(left, "k3s", file_signature, birth) is None


@pytest.mark.parametrize("process", ["12@778", "13@777", None, "", "x"])
def test_another_daemon(left: dict[str, Any], process: str | None) -> None:
    assert stands({**left, "process": process}, "k3s", file_signature, birth) is None


@pytest.mark.parametrize(
    "found",
    [
        *(None, [], {}, {"owner": "k3s", "wish": 3}),
        {"owner": "k3s", "wish": WISH, "process": "12@777", "files": {}},
    ],
)
def test_no_note(found: Any) -> None:
    assert stands(found, "k3s", file_signature, birth) is None


def test_another_distribution(left: dict[str, Any]) -> None:
    assert stands(left, "containerd", file_signature, birth) is None


def test_by_engine_and_name(left: dict[str, Any]) -> None:
    record = {
        "values": {
            key("containerd", "nvidia"): left,
            key("containerd", "gpu"): {**left, "process": "1@1"},
            key("docker", "nvidia"): {**left, "wish": "other", "owner": "docker"},
            "nvidia_driver": {},
        }
    }
    assert settled(record, "containerd", "k3s", file_signature, birth) == {"nvidia": WISH}
    assert settled(record, "docker", "docker", file_signature, birth) == {"nvidia": "other"}
    assert settled({}, "docker", "docker", file_signature, birth) == {}
    assert settled(None, "docker", "docker", file_signature, birth) is None


def test_a_wish_is_its_values() -> None:
    assert wish_name({"a": 1, "b": {"c": None}}) == wish_name({"b": {"c": None}, "a": 1})
    assert len({wish_name(values) for values in ({}, {"a": 1}, {"a": "1"}, {"a": True})}) == 4


WORDS = {"version": "containerd x 2.1.9", "cri_enabled": True, "handlers": {}}


def words(folder: Path, found: dict[str, Any], *names: str, owner: str = "k3s") -> Any:
    record = {"values": {key("containerd", "nvidia"): found}}
    paths = [str(folder / name) for name in names]
    return said(record, "containerd", owner, paths, mark=file_signature, birth=birth)


def test_words_as_long_as_nothing_is_touched(folder: Path, left: dict[str, Any]) -> None:
    spoken = note(WISH, "k3s", "12@777", left["files"], WORDS)
    assert without_words(spoken) == left == without_words(left)
    assert words(folder, spoken, "config.toml") == WORDS
    # Nothing was kept, or not of this file, or of somebody else.
    assert words(folder, left, "config.toml") is None
    assert words(folder, spoken, "config.toml", "another") is None
    assert words(folder, spoken, "config.toml", owner="containerd") is None
    assert said(None, "containerd", "k3s", [], mark=file_signature, birth=birth) is None
    rewritten(folder)
    assert words(folder, spoken, "config.toml") is None


def test_words_of_another_release(folder: Path, left: dict[str, Any]) -> None:
    for strange in (["0.0.1", WORDS], [], None, ["0.0.1"]):
        found = {**left, "words": strange}
        assert words(folder, found, "config.toml") is None
        # It is written anew where the module runs again.
        assert without_words(found) != left
