# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of a container of our own, made and removed for real below a temporary folder."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.rootfs import (
    TemporaryRoot,
    image_names,
    interpreter,
)


@pytest.fixture
def temporary_root(tmp_path):
    return TemporaryRoot(str(tmp_path / "verify"))


def archive(path, files, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return str(path)


def test_folders_are_laid_out_as_the_nodes(temporary_root, tmp_path):
    temporary_root.make()
    temporary_root.copy(["/bin/true", "/nowhere/at/all", "/etc/passwd"])
    root = tmp_path / "verify" / "rootfs"
    assert (root / "bin" / "true").read_bytes()
    # Where /bin is a link into usr, it is one here too: the loader finds what it looks for.
    assert (root / "bin").is_symlink() == (tmp_path / "/bin").is_symlink()
    assert (root / "etc" / "passwd").exists() and not (root / "nowhere").exists()
    assert (tmp_path / "verify").stat().st_mode & 0o777 == 0o700


def test_what_a_container_left_is_not_in_the_next_one(temporary_root, tmp_path):
    temporary_root.make()
    (tmp_path / "verify" / "rootfs" / "usr" / "bin" / "nvidia-smi").write_text("x")
    temporary_root.make()
    assert not (tmp_path / "verify" / "rootfs" / "usr" / "bin" / "nvidia-smi").exists()


def test_all_of_it_goes(temporary_root, tmp_path):
    assert not temporary_root.exists()
    temporary_root.remove()
    temporary_root.record("one")
    temporary_root.record("two")
    temporary_root.make()
    assert temporary_root.exists() and temporary_root.recorded() == ["one", "two"]
    temporary_root.remove()
    assert not temporary_root.exists() and temporary_root.recorded() == []
    assert list(tmp_path.iterdir()) == []


def test_a_root_file_system_as_a_tar(temporary_root):
    temporary_root.make()
    temporary_root.copy(["/etc/passwd"])
    names = subprocess.run(
        ["tar", "-tf", temporary_root.pack("rootfs.tar")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "./etc/passwd" in names


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KubegpuError, match="cannot be made"):
        TemporaryRoot(str(tmp_path / "file" / "verify")).make()
    with pytest.raises(KubegpuError, match="cannot be made"):
        TemporaryRoot(str(tmp_path / "file" / "verify")).record("x")


@pytest.mark.parametrize(
    ("head", "program"),
    [
        (b"#!/bin/sh\necho\n", "/bin/sh"),
        (b"#! /usr/bin/env python3\n", "/usr/bin/env"),
        (b"\x7fELF\x02", None),
        (b"#!", None),
        (b"", None),
    ],
)
def test_what_runs_a_script(tmp_path, head, program):
    (tmp_path / "script").write_bytes(head)
    assert interpreter(str(tmp_path / "script")) == program
    assert interpreter(str(tmp_path / "nothing")) is None


DOCKER = [{"Config": "x.json", "RepoTags": ["cuda:12", "cuda:latest"]}, {"RepoTags": None}]
OCI = {
    "manifests": [
        {"annotations": {"io.containerd.image.name": "docker.io/library/cuda:12"}},
        {"annotations": {"org.opencontainers.image.ref.name": "12"}},
        {},
    ]
}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_names_in_an_archive(tmp_path, mode):
    path = tmp_path / "image.tar"
    assert image_names(archive(path, {"manifest.json": DOCKER}, mode)) == ["cuda:12", "cuda:latest"]
    assert image_names(archive(path, {"index.json": OCI}, mode)) == ["docker.io/library/cuda:12"]
    # What docker save writes today has both.
    both = {"index.json": OCI, "./manifest.json": DOCKER}
    assert image_names(archive(path, both, mode)) == ["cuda:12", "cuda:latest"]


@pytest.mark.parametrize(
    "content", [b"no tar", {"rootfs/bin/sh": b""}, {"manifest.json": b"[1]"}, {"index.json": b"{"}]
)
def test_what_is_no_archive_of_an_image(tmp_path, content):
    path = tmp_path / "image.tar"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        archive(path, content)
    with pytest.raises(KubegpuError) as caught:
        image_names(str(path))
    assert str(path) in str(caught.value) and "docker save" in caught.value.next_step


@pytest.mark.parametrize("mode", [0o777, 0o770])
@pytest.mark.parametrize("call", ["make", "record"])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path, mode, call):
    """Root runs programs from it."""
    base = tmp_path / "base"
    base.mkdir()
    base.chmod(mode)
    root = TemporaryRoot(str(base))
    with pytest.raises(KubegpuError, match="cannot be written") as caught:
        root.make() if call == "make" else root.record("x")
    assert "others can write to it" in caught.value.evidence and not list(base.iterdir())


def test_a_link_in_the_place_of_the_folder_or_of_the_root_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").write_text("x")
    (tmp_path / "base").symlink_to(other)
    with pytest.raises(KubegpuError, match="cannot be written"):
        TemporaryRoot(str(tmp_path / "base")).make()
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "own" / "rootfs").symlink_to(other)
    TemporaryRoot(str(tmp_path / "own")).make()
    assert sorted(one.name for one in other.iterdir()) == ["kept"]
    assert not (tmp_path / "own" / "rootfs").is_symlink()
