# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the users of the NVIDIA driver: processes with its devices open, and other modules.

A process is described by its ID, its name in the kernel (comm), and its systemd unit or container.
Its command line is never read, as it can contain secrets. Any user may set the name of a process,
to arbitrary bytes (PR_SET_NAME in prctl(2)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._core.printable import printable
from .._nvidia.toolkit_paths import CDI_REFRESH_UNIT
from .evidence_types import DeviceUser

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_DEVICE = re.compile(r"^/dev/(nvidia\d+|nvidiactl|nvidia-[\w-]+|nvidia-caps[\w-]*/[\w-]+)$")
_MAPPED = re.compile(rb"(/dev/nvidia[\w/-]+)(?: \(deleted\))?$", re.M)
_MOST_MAPS = 4 * 1024 * 1024
_MOST_FILES = 4096
_UNIT = re.compile(r"([^/]+\.(?:service|scope))$")
_CONTAINER = re.compile(r"([0-9a-f]{64})")
# In the order of unloading: the last one is needed by the others.
MODULES = ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia")


def find_users(reader: NodeReader) -> tuple[DeviceUser, ...]:
    """Return the processes with a device of the driver open or mapped.

    Without root, only processes of the same user are found. Those of nvidia-cdi-refresh are left
    out: it ends after seconds, and is stopped before a module is unloaded or MIG is changed.
    """
    return tuple(user for user in _users(reader) if user.unit != CDI_REFRESH_UNIT)


def _users(reader: NodeReader) -> Iterator[DeviceUser]:
    numbers = sorted(int(name) for name in reader.list_dir("/proc") if name.isdigit())
    for pid in numbers:
        folder = f"/proc/{pid}"
        devices = set()
        for name in reader.list_dir(f"{folder}/fd")[:_MOST_FILES]:
            target = reader.link_target(f"{folder}/fd/{name}") or ""
            if _DEVICE.match(target):
                devices.add(target)
        if not devices:
            # A device can be closed while its memory remains mapped.
            maps = reader.read_bytes(f"{folder}/maps", _MOST_MAPS) or b""
            found = (match.decode("ascii", "replace") for match in _MAPPED.findall(maps))
            devices.update(path for path in found if _DEVICE.match(path))
        if devices:
            name = printable(reader.read_line(f"{folder}/comm") or "?")
            yield DeviceUser(
                pid, name, tuple(sorted(devices)), unit_of(reader.read_text(f"{folder}/cgroup"))
            )


def unit_of(cgroup: str | None) -> str | None:
    """Return the systemd unit, or the container, in the text of ``/proc/<pid>/cgroup``."""
    for line in (cgroup or "").splitlines():
        path = line.rpartition(":")[2]
        last = path.rpartition("/")[2]
        if last.endswith(".service") and not _CONTAINER.search(last):
            # A service of this machine, which can run in a container itself.
            return last
        container = _CONTAINER.search(path)
        if container:
            return container_unit(container[1])
        match = _UNIT.search(path)
        if match:
            return match[1]
    return None


def container_unit(container: str) -> str:
    """Return how the users in a container name it, from its ID."""
    return f"container {container[:12]}"


def find_holders(reader: NodeReader) -> tuple[str, ...]:
    """Return third-party modules that use the driver's modules, such as nvidia_fs and gdrdrv."""
    holders = {
        name for module in MODULES for name in reader.list_dir(f"/sys/module/{module}/holders")
    }
    return tuple(sorted(holders - set(MODULES)))


def loaded_modules(reader: NodeReader) -> tuple[str, ...]:
    """Return the loaded modules of the driver, in the order of unloading."""
    return tuple(name for name in MODULES if reader.exists(f"/sys/module/{name}/refcnt"))
