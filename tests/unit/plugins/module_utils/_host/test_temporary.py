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
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.access import Barrier
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.temporary import (
    clear_shared,
    clear_unpacked,
    make_shared,
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


def shared(monkeypatch, tmp_path, **change):
    """Make the folder for programs; return what it is, and its path."""
    monkeypatch.setattr(temporary, "_SELINUX", change.get("selinux", "/none"))
    monkeypatch.setattr(temporary, "barrier", lambda _run, _path: change.get("barrier"))
    if "flags" in change:
        flags = types.SimpleNamespace(f_flag=change["flags"])
        monkeypatch.setattr(temporary.os, "statvfs", lambda _path: flags)
    folder = tmp_path / "cache/kubegpu/packages-x"
    return make_shared(lambda *_a, **_k: Result(0, "", ""), str(folder)), folder


def test_a_folder_for_programs_is_as_tmp_is_and_empty(monkeypatch, tmp_path):
    (tmp_path / "cache/kubegpu/packages-x/apt-dpkg-install-1").mkdir(parents=True)
    umask = os.umask(0o077)
    try:
        made, folder = shared(monkeypatch, tmp_path)
    finally:
        os.umask(umask)
    assert made == str(folder) and not list(folder.iterdir())
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert folder.parent.stat().st_mode & 0o7777 == 0o755
    clear_shared(made)
    assert list(tmp_path.iterdir()) == [tmp_path / "cache"] and not folder.parent.exists()


@pytest.mark.parametrize(
    "change",
    [{"flags": os.ST_NOEXEC}, {"selinux": "/"}, {"barrier": Barrier("/var/cache", True, 0o700)}],
    ids=["noexec", "SELinux", "only root enters"],
)
def test_tmp_serves_where_a_folder_cannot(monkeypatch, tmp_path, change):
    made, folder = shared(monkeypatch, tmp_path, **change)
    assert made == "" and not folder.exists()


def test_a_link_in_it_is_not_followed(monkeypatch, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    made, folder = shared(monkeypatch, tmp_path)
    (folder / "link").symlink_to(other)
    clear_shared(made)
    assert (other / "file").exists() and not folder.exists()


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
