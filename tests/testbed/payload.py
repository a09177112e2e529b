# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a node as one tar stream: everything belongs to root, whoever has the checkout."""

from __future__ import annotations

import io
import os
import tarfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.testbed import drm, elf, pci, ssh
from tests.testbed.fleet import Node
from tests.testbed.paths import HERE

_MODES = {"etc/sudoers.d/ops": 0o440, "etc/sudoers.d/environment": 0o440}
_UNIT = "kubegpu-standin-pci.service"
_LIB = "usr/lib/x86_64-linux-gnu"


def payload(node: Node) -> bytes:
    """What is laid over the image before the node first starts."""
    files: dict[str, tuple[bytes, int]] = {}
    for top in (HERE / "files" / name for name in ("common", *node.files, node.name)):
        for path in sorted(top.rglob("*")):
            if path.is_file():
                name = path.relative_to(top).as_posix()
                mode = _MODES.get(name, 0o755 if path.stat().st_mode & 0o100 else 0o644)
                files[name] = (path.read_bytes(), mode)
    for name, content in pci.tree(node.devices).items():
        files[f"opt/standin/pci/{name}"] = (content, 0o444)
    files.update(drm.files(node))
    if node.driver and not node.kernel and any(gpu.vendor == pci.NVIDIA for gpu in node.gpus):
        # What NVIDIA's unit for CDI looks for, by the release of the machine's own kernel.
        dependencies = f"usr/lib/modules/{os.uname().release}/modules.dep"
        files[dependencies] = (b"updates/dkms/nvidia.ko.xz:\n", 0o644)
    if node.driver_version:
        files.update(_driver(node.driver_version))
    if node.kernel:
        files["opt/standin/kernel"] = (f"{node.kernel}\n".encode(), 0o644)
    files["opt/testbed/authorized_keys"] = (ssh.public_key().read_bytes(), 0o644)
    files["etc/machine-id"] = (f"{uuid.uuid4().hex}\n".encode(), 0o444)
    links = {f"etc/systemd/system/sysinit.target.wants/{_UNIT}": f"../{_UNIT}"}
    if node.kernel:
        # A stand-in loads modules.
        links["etc/systemd/system/systemd-modules-load.service"] = "/dev/null"
    if node.driver_version:
        links[f"{_LIB}/libnvidia-ml.so.1"] = f"libnvidia-ml.so.{node.driver_version}"
    for gpu in node.gpus if node.driver else ():
        driver = f"../../../bus/pci/drivers/{pci.DRIVERS[gpu.vendor]}"
        links[f"opt/standin/pci/{gpu.address}/driver"] = driver
    links.update(drm.links(node))
    return tar(files, links)


def _driver(version: str) -> dict[str, tuple[bytes, int]]:
    """What a loaded driver of this version shows, and its program."""
    module = f"NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Apr  8 12:41:17 UTC 2025"
    return {
        "opt/standin/proc-driver/nvidia/version": (f"NVRM version: {module}\n".encode(), 0o444),
        f"{_LIB}/libnvidia-ml.so.{version}": (elf.library("libnvidia-ml", version), 0o644),
        "usr/bin/nvidia-smi": ((HERE / "files" / "standins" / "nvidia-smi").read_bytes(), 0o755),
    }


def tar(
    files: Mapping[str, tuple[bytes, int]], links: Mapping[str, str], empty: Sequence[str] = ()
) -> bytes:
    """Files with their modes, symbolic links and empty folders as a tar stream, all root's own."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        parents = {str(parent) for name in (*files, *links) for parent in Path(name).parents}
        for folder in sorted({*parents, *empty} - {"."}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return stream.getvalue()
