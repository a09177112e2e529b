# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses the NVIDIA driver of a node: processes with its devices open, and other modules.

A process is told by number, by the name that the kernel has for it (comm), and by its systemd
unit or container. Its command line is never read: it can hold secrets. Any user may choose the name
of a process, of whatever bytes (PR_SET_NAME in prctl(2)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._core.printable import printable
from .evidence_types import DeviceUser

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_DEVICE = re.compile(r"^/dev/(nvidia\d+|nvidiactl|nvidia-[\w-]+|nvidia-caps[\w-]*/[\w-]+)$")
_MAPPED = re.compile(rb"(/dev/nvidia[\w/-]+)(?: \(deleted\))?$", re.M)
_MOST_MAPS = 4 * 1024 * 1024
_MOST_FILES = 4096
_UNIT = re.compile(r"([^/]+\.(?:service|scope))$")
_CONTAINER = re.compile(r"([0-9a-f]{64})")
# From the one that is unloaded first to the one that the others need.
MODULES = ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia")


def find_users(reader: NodeReader) -> tuple[DeviceUser, ...]:
    """Return the processes that have a device of the driver open or mapped.

    Without root only one's own processes are seen.
    """
    return tuple(_users(reader))


def _users(reader: NodeReader) -> Iterator[DeviceUser]:
    numbers = sorted(int(name) for name in reader.list_dir("/proc") if name.isdigit())
    for pid in numbers:
        place = f"/proc/{pid}"
        devices = set()
        for name in reader.list_dir(f"{place}/fd")[:_MOST_FILES]:
            target = reader.link_target(f"{place}/fd/{name}") or ""
            if _DEVICE.match(target):
                devices.add(target)
        if not devices:
            # A device can be closed while its memory stays mapped.
            maps = reader.read_bytes(f"{place}/maps", _MOST_MAPS) or b""
            found = (match.decode("ascii", "replace") for match in _MAPPED.findall(maps))
            devices.update(path for path in found if _DEVICE.match(path))
        if devices:
            name = printable(reader.read_line(f"{place}/comm") or "?")
            yield DeviceUser(
                pid, name, tuple(sorted(devices)), unit_of(reader.read_text(f"{place}/cgroup"))
            )


def unit_of(cgroup: str | None) -> str | None:
    """Return the systemd unit, or the container, in the text of ``/proc/<pid>/cgroup``."""
    for line in (cgroup or "").splitlines():
        path = line.rpartition(":")[2]
        last = path.rpartition("/")[2]
        if last.endswith(".service") and not _CONTAINER.search(last):
            # A service of this machine, which can be a container itself.
            return last
        container = _CONTAINER.search(path)
        if container:
            return f"container {container[1][:12]}"
        match = _UNIT.search(path)
        if match:
            return match[1]
    return None


def find_holders(reader: NodeReader) -> tuple[str, ...]:
    """Return the modules of others that use the driver's modules: nvidia_fs, gdrdrv, ..."""
    holders = {
        name for module in MODULES for name in reader.list_dir(f"/sys/module/{module}/holders")
    }
    return tuple(sorted(holders - set(MODULES)))


def loaded_modules(reader: NodeReader) -> tuple[str, ...]:
    """Return the driver's modules that are loaded, in the order in which they can be unloaded."""
    return tuple(name for name in MODULES if reader.exists(f"/sys/module/{name}/refcnt"))
