# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a node as one tar stream: everything belongs to root, whoever has the checkout."""

from __future__ import annotations

import io
import tarfile
import uuid
from pathlib import Path

from tests.testbed import pci, ssh
from tests.testbed.fleet import Node
from tests.testbed.paths import HERE

_MODES = {"etc/sudoers.d/ops": 0o440, "etc/sudoers.d/environment": 0o440}
_UNIT = "kubegpu-standin-pci.service"


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
    if node.kernel:
        files["opt/standin/kernel"] = (f"{node.kernel}\n".encode(), 0o644)
    files["opt/testbed/authorized_keys"] = (ssh.public_key().read_bytes(), 0o644)
    files["etc/machine-id"] = (f"{uuid.uuid4().hex}\n".encode(), 0o444)
    links = {f"etc/systemd/system/sysinit.target.wants/{_UNIT}": f"../{_UNIT}"}
    if node.kernel:
        # A stand-in loads modules.
        links["etc/systemd/system/systemd-modules-load.service"] = "/dev/null"
    for gpu in node.gpus if node.driver else ():
        links[f"opt/standin/pci/{gpu.address}/driver"] = "../../../bus/pci/drivers/nvidia"
    return _tar(files, links)


def _tar(files: dict[str, tuple[bytes, int]], links: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for folder in sorted(
            {str(parent) for name in (*files, *links) for parent in Path(name).parents} - {"."}
        ):
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
