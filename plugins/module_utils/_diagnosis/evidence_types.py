# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was seen on a node that shows why a driver does not work. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\]\s?(?:\S+ kernel: )?")


@dataclass(frozen=True)
class Gpu:
    """A GPU as the facts have it; ``vgpu`` is None where that cannot be told."""

    address: str
    name: str = "NVIDIA GPU"
    generation: str = "unknown"
    vgpu: bool | None = None
    host_version: str | None = None
    host_branch: str | None = None


@dataclass(frozen=True)
class DkmsBuild:
    """A module in DKMS's tree: ``state`` is added, built, installed or failed."""

    version: str
    kernel: str | None
    state: str
    name: str = "nvidia"
    log_path: str = ""
    log: str = ""


@dataclass(frozen=True)
class DeviceUser:
    """A process that has a device of the driver open; never its command line."""

    pid: int
    name: str
    devices: tuple[str, ...] = ()
    unit: str | None = None

    def __str__(self) -> str:
        place = f", {self.unit}" if self.unit else ""
        return f"{self.name} (pid {self.pid}{place})"


@dataclass(frozen=True)
class Evidence:
    """What was seen on a node. Every field may be left out: None and empty are 'not known'.

    :param wanted: version that was to be loaded.
    :param kernel_module: kind of the modules that were to be loaded: open or proprietary.
    :param grid: whether the driver is a GRID driver for vGPU guests.
    :param mok_key: the certificate of the key that DKMS signs with.
    :param mok_enrolled: whether the firmware trusts that key.
    :param headers: whether the running kernel's headers are there.
    :param headers_packages: the packages that shall have brought them and are installed, where
        they are not there.
    :param modprobe: what modprobe (or rmmod) said.
    :param words: what the package manager or the runfile's installer said.
    :param installer_log: the log of the runfile's installer, where that was what failed.
    :param nvml: what nvidia-smi said.
    :param dmesg: the kernel's lines since the attempt began.
    :param holders: modules that use the driver's module: {module: [users of it]}.
    :param container: which kind of container this is; None for a machine.
    :param may_load: whether this environment may load modules at all.
    """

    kernel: str | None = None
    os_id: str = ""
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
    headers: bool | None = None
    headers_packages: tuple[str, ...] = ()
    dkms: tuple[DkmsBuild, ...] = ()
    modprobe: str = ""
    words: str = ""
    installer_log: str = ""
    nvml: str = ""
    dmesg: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    users: tuple[DeviceUser, ...] = ()
    holders: tuple[str, ...] = ()
    container: str | None = None
    may_load: bool | None = None

    @property
    def kernel_log(self) -> str:
        """The kernel's lines without their stamps."""
        return "\n".join(plain_line(line) for line in self.dmesg)

    @property
    def everything(self) -> str:
        return "\n".join((self.modprobe, self.words, self.nvml, self.kernel_log))


def plain_line(line: str) -> str:
    """Return a line of the kernel's log without its stamp and the white space around it."""
    return _STAMP.sub("", line.strip()).strip()


def find_line(text: str, pattern: str | re.Pattern[str]) -> str:
    """Return the first line of the text that matches, or an empty string."""
    for line in text.splitlines():
        if re.search(pattern, line):
            return re.sub(r"\s+", " ", plain_line(line))
    return ""
