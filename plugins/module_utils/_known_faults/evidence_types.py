# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence of why a driver does not work on a node. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\]\s?(?:\S+ kernel: )?")


@dataclass(frozen=True)
class Gpu:
    """A GPU of the facts; ``vgpu`` is None if it is unknown."""

    address: str
    name: str = "NVIDIA GPU"
    generation: str = "unknown"
    vgpu: bool | None = None
    host_version: str | None = None
    host_branch: str | None = None


@dataclass(frozen=True)
class DkmsBuild:
    """A module in the tree of DKMS; ``state`` is added, built, installed or failed."""

    version: str
    kernel: str | None
    state: str
    name: str = "nvidia"
    log_path: str = ""
    log: str = ""


@dataclass(frozen=True)
class DeviceUser:
    """A process with a device of the driver open, without its command line."""

    pid: int
    name: str
    devices: tuple[str, ...] = ()
    unit: str | None = None

    def __str__(self) -> str:
        place = f", {self.unit}" if self.unit else ""
        return f"{self.name} (pid {self.pid}{place})"


@dataclass(frozen=True)
class Evidence:
    """What is known about a node. Each field is optional: None and empty values are unknown.

    :param family: the package family of the distribution: debian, rhel or suse.
    :param wanted: the version to load.
    :param kernel_module: the type of the modules to load: open or proprietary.
    :param grid: whether the driver is a GRID driver for vGPU guests.
    :param blocked: the fact ``gpu_node.blocked_modules``.
    :param mok_key: the certificate of DKMS's signing key.
    :param mok_enrolled: whether the firmware trusts that key.
    :param headers: whether the running kernel's headers exist.
    :param headers_packages: the installed packages of missing headers.
    :param modprobe: the output of modprobe or rmmod.
    :param output: the output of the package manager or the runfile's installer.
    :param installer_log: the log of the runfile's installer, if that failed.
    :param nvml: the output of nvidia-smi.
    :param on_disk: whether a module of the driver is on the disk for the running kernel.
    :param dmesg: the lines of the kernel's log since the attempt began.
    :param holders: modules that use the driver's module: {module: [users of it]}.
    :param container: the type of container; None for a machine.
    :param may_load: whether this environment may load modules.
    """

    kernel: str | None = None
    os_id: str = ""
    family: str = ""
    arch: str = ""
    wanted: str | None = None
    kernel_module: str | None = None
    grid: bool | None = None
    loaded: str | None = None
    installed: str | None = None
    userland: str | None = None
    secure_boot: bool | None = None
    mok_key: str | None = None
    mok_enrolled: bool | None = None
    nouveau_loaded: bool = False
    nouveau_blocked: bool = False
    kernel_driver: str = "nouveau"
    blocked: Mapping[str, Any] = field(default_factory=dict)
    headers: bool | None = None
    headers_packages: tuple[str, ...] = ()
    dkms: tuple[DkmsBuild, ...] = ()
    modprobe: str = ""
    output: str = ""
    installer_log: str = ""
    nvml: str = ""
    on_disk: bool | None = None
    dmesg: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    users: tuple[DeviceUser, ...] = ()
    holders: tuple[str, ...] = ()
    container: str | None = None
    may_load: bool | None = None

    @property
    def kernel_log(self) -> str:
        """The lines of the kernel's log without their time stamps."""
        return "\n".join(plain_line(line) for line in self.dmesg)

    def describe_users(self, most: int = 10) -> str:
        """Return the processes that use the driver, the first of them by name."""
        names = [str(user) for user in self.users[:most]]
        if len(self.users) > most:
            names.append(f"and {len(self.users) - most} more")
        return ", ".join(names)


def plain_line(line: str) -> str:
    """Return a line of the kernel's log without time stamp and surrounding white space."""
    return _STAMP.sub("", line.strip()).strip()


def find_line(text: str, pattern: str | re.Pattern[str]) -> str:
    """Return the first matching line of the text, or an empty string."""
    for line in text.splitlines():
        if re.search(pattern, line):
            return re.sub(r"\s+", " ", plain_line(line))
    return ""
