# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where installers unpack themselves: never in /tmp, and nothing stays."""

from __future__ import annotations

import os
import types
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.installer import (
    execute_runfile,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host import temporary
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.temporary import (
    clear_unpacked,
    unpacking,
)


def test_nothing_stays_and_what_a_killed_run_left_is_removed(tmp_path):
    left = tmp_path / "var/cache/kubegpu/unpacked/driver/NVIDIA-Linux/kernel"
    left.mkdir(parents=True)
    with unpacking(str(tmp_path), "driver") as folder:
        assert folder == f"{tmp_path}/var/cache/kubegpu/unpacked/driver"
        assert os.listdir(folder) == [] and os.stat(folder).st_mode & 0o777 == 0o700
        Path(folder, "nvidia-installer").write_text("unpacked")
    assert not (tmp_path / "var/cache/kubegpu/unpacked/driver").exists()


def test_the_folders_that_were_made_for_it_go_with_it(tmp_path):
    (tmp_path / "var").mkdir()
    with pytest.raises(ValueError, match="failed"), unpacking(str(tmp_path), "driver"):
        raise ValueError("failed")
    assert list(tmp_path.iterdir()) == [tmp_path / "var"] and not list((tmp_path / "var").iterdir())


def test_what_an_installer_left_that_never_runs_again_is_cleared(tmp_path):
    (tmp_path / "var/cache/kubegpu/unpacked/driver/x").mkdir(parents=True)
    clear_unpacked(str(tmp_path), "driver")
    assert not list((tmp_path / "var/cache").iterdir())
    # What somebody else has there stays.
    (tmp_path / "var/cache/kubegpu/unpacked/cuda-12.2").mkdir(parents=True)
    clear_unpacked(str(tmp_path), "driver")
    assert (tmp_path / "var/cache/kubegpu/unpacked/cuda-12.2").exists()


def test_a_place_where_nothing_may_be_run_is_named(tmp_path, monkeypatch):
    flags = types.SimpleNamespace(f_flag=os.ST_NOEXEC)
    monkeypatch.setattr(temporary.os, "statvfs", lambda _path: flags)
    with pytest.raises(KubegpuError, match="mounted noexec"), unpacking(str(tmp_path), "driver"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rc", [0, 1])
def test_the_installer_of_a_driver_unpacks_itself_beside_the_cached_file(tmp_path, rc):
    """stackhpc/ansible-collection-linux#4: /tmp is mounted with noexec."""
    seen = []

    def run(argv, timeout=60, environment=None):
        folder = environment["TMPDIR"]
        seen.append((argv, folder))
        Path(folder, "unpacked").write_text("x")
        return Result(rc, "", "ERROR: failed")

    file = "/var/cache/kubegpu/NVIDIA-Linux-x86_64-580.95.05.run"
    runfile = {"file": file, "version": "580.95.05", "arguments": ["--silent"]}
    reader = NodeReader(str(tmp_path))
    if rc:
        with pytest.raises(KubegpuError, match="failed"):
            execute_runfile(run, reader, runfile, 10)
    else:
        execute_runfile(run, reader, runfile, 10)
    ((argv, folder),) = seen
    assert folder == f"{tmp_path}/var/cache/kubegpu/unpacked/driver"
    assert argv == ["sh", file, "--silent", f"--tmpdir={folder}"]
    assert not list(tmp_path.iterdir())
