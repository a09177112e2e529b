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
    build_entry,
    cached_report,
    converged_fingerprints,
    record_key,
    settings_fingerprint,
    valid_fingerprint,
    without_report,
)

FINGERPRINT = "5d1be7e9dda1ee8896be5b7e34a85ee1"


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
    return build_entry(FINGERPRINT, "k3s", "12@777", {path: file_signature(path) for path in paths})


def test_nothing_was_touched(left: dict[str, Any]) -> None:
    assert valid_fingerprint(left, "k3s", file_signature, birth) == FINGERPRINT


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
    assert valid_fingerprint(left, "k3s", file_signature, birth) is None


@pytest.mark.parametrize("process", ["12@778", "13@777", None, "", "x"])
def test_another_daemon(left: dict[str, Any], process: str | None) -> None:
    assert valid_fingerprint({**left, "process": process}, "k3s", file_signature, birth) is None


@pytest.mark.parametrize(
    "found",
    [
        *(None, [], {}, {"owner": "k3s", "fingerprint": 3}),
        {"owner": "k3s", "fingerprint": FINGERPRINT, "process": "12@777", "files": {}},
    ],
)
def test_no_note(found: Any) -> None:
    assert valid_fingerprint(found, "k3s", file_signature, birth) is None


def test_another_distribution(left: dict[str, Any]) -> None:
    assert valid_fingerprint(left, "containerd", file_signature, birth) is None


def test_by_engine_and_name(left: dict[str, Any]) -> None:
    record = {
        "values": {
            record_key("containerd", "nvidia"): left,
            record_key("containerd", "gpu"): {**left, "process": "1@1"},
            record_key("docker", "nvidia"): {**left, "fingerprint": "other", "owner": "docker"},
            "nvidia_driver": {},
        }
    }
    assert converged_fingerprints(record, "containerd", "k3s", file_signature, birth) == {
        "nvidia": FINGERPRINT
    }
    assert converged_fingerprints(record, "docker", "docker", file_signature, birth) == {
        "nvidia": "other"
    }
    assert converged_fingerprints({}, "docker", "docker", file_signature, birth) == {}
    assert converged_fingerprints(None, "docker", "docker", file_signature, birth) is None


def test_a_fingerprint_depends_on_the_values() -> None:
    assert settings_fingerprint({"a": 1, "b": {"c": None}}) == settings_fingerprint(
        {"b": {"c": None}, "a": 1}
    )
    assert (
        len({settings_fingerprint(values) for values in ({}, {"a": 1}, {"a": "1"}, {"a": True})})
        == 4
    )


REPORT = {"version": "containerd x 2.1.9", "cri_enabled": True, "handlers": {}}


def report(folder: Path, found: dict[str, Any], *names: str, owner: str = "k3s") -> Any:
    record = {"values": {record_key("containerd", "nvidia"): found}}
    paths = [str(folder / name) for name in names]
    return cached_report(
        record, "containerd", owner, paths, signature=file_signature, process_start=birth
    )


def test_report_as_long_as_nothing_is_touched(folder: Path, left: dict[str, Any]) -> None:
    spoken = build_entry(FINGERPRINT, "k3s", "12@777", left["files"], REPORT)
    assert without_report(spoken) == left == without_report(left)
    assert report(folder, spoken, "config.toml") == REPORT
    # Nothing was kept, or not of this file, or of somebody else.
    assert report(folder, left, "config.toml") is None
    assert report(folder, spoken, "config.toml", "another") is None
    assert report(folder, spoken, "config.toml", owner="containerd") is None
    assert (
        cached_report(None, "containerd", "k3s", [], signature=file_signature, process_start=birth)
        is None
    )
    rewritten(folder)
    assert report(folder, spoken, "config.toml") is None


def test_report_of_another_release(folder: Path, left: dict[str, Any]) -> None:
    for strange in (["0.0.1", REPORT], [], None, ["0.0.1"]):
        found = {**left, "report": strange}
        assert report(folder, found, "config.toml") is None
        # It is written anew where the module runs again.
        assert without_report(found) != left
