# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of the driver's configuration files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..._core.errors import InputError
from ..._hardware.kernel_drivers import KERNEL_DRIVERS

_HEADER = "# Written by kubegpu.nodes.nvidia_driver.\n"
_OPTION = re.compile(r"(?:(?P<module>[a-z][a-z0-9_-]*)\.)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\Z")
_VALUE = re.compile(r'[^\s"#]+\Z')
_WORD = re.compile(r"[^\s]+\Z")
# Debian's packages give the module another name and an install line for the usual one.
_DEBIAN_NAMES = {"nvidia": ("nvidia-current", "nvidia-current-open")}


def nouveau() -> str:
    """Return the settings that keep the kernel's own drivers from being loaded."""
    lines = "".join(f"blacklist {name}\n" for name in KERNEL_DRIVERS[1:])
    return f"{_HEADER}blacklist nouveau\noptions nouveau modeset=0\n{lines}"


def options(wanted: Mapping[str, Any], *, debian: bool) -> str:
    """Return the options of the kernel modules.

    :param wanted: value by option, which is ``module.option`` or an option of the module nvidia.
    :param debian: whether the driver is Debian's own package, which renames the module.
    :raises InputError: a name or a value is not one that modprobe could read.
    """
    lines: list[str] = []
    for key in sorted(wanted, key=str):
        match = _OPTION.match(str(key))
        value = _plain(wanted[key])
        if match is None or not _VALUE.match(value):
            raise InputError(
                "nvidia_driver_module_options has an entry that modprobe cannot read.",
                evidence=f"{key}: {wanted[key]!r}",
                next_step="Write it as OPTION: value or MODULE.OPTION: value, without spaces.",
            )
        module = match["module"] or "nvidia"
        names = (module, *(_DEBIAN_NAMES.get(module, ()) if debian else ()))
        lines.extend(f"options {name} {match['name']}={value}\n" for name in names)
    return _HEADER + "".join(lines)


def modules(*more: str) -> str:
    """Return the modules loaded at boot; CUDA needs nvidia-uvm, which nothing else loads."""
    return _HEADER + "".join(f"{name}\n" for name in ("nvidia", "nvidia-uvm", *more))


def udev() -> str:
    """Return the rule that creates the device files as soon as a module is loaded."""
    return (
        f"{_HEADER}"
        'ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia", '
        'RUN+="/usr/bin/nvidia-modprobe -c 0"\n'
        'ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia_uvm", '
        'RUN+="/usr/bin/nvidia-modprobe -c 0 -u"\n'
    )


def unattended() -> str:
    """Return the blacklist for unattended-upgrades (patterns are Python regular expressions)."""
    patterns = (
        "nvidia-(?!container|docker)",
        "libnvidia-(?!container)",
        "linux-(?:modules|objects|signatures)-nvidia-",
        "libcuda1",
        "libcudadebugger1",
        "libnvcuvid1",
        "libnvoptix1",
        "libnvsdm",
        "nvlsm",
        "cuda-drivers",
        "firmware-nvidia-",
        "xserver-xorg-video-nvidia",
    )
    lines = "".join(f'  "{pattern}";\n' for pattern in patterns)
    return (
        "// Written by kubegpu.nodes.nvidia_driver.\n"
        f"Unattended-Upgrade::Package-Blacklist {{\n{lines}}};\n"
    )


def persistenced() -> str:
    """Return the unit of the persistence daemon, which the runfile does not contain."""
    return (
        f"{_HEADER}"
        "[Unit]\n"
        "Description=NVIDIA Persistence Daemon\n"
        "After=syslog.target\n\n"
        "[Service]\n"
        "Type=forking\n"
        "ExecStart=/usr/bin/nvidia-persistenced --verbose\n"
        "ExecStopPost=/bin/rm -rf /var/run/nvidia-persistenced\n"
        "Restart=on-failure\n\n"
        "[Install]\n"
        "WantedBy=multi-user.target\n"
    )


def imex_nodes(addresses: Iterable[str]) -> str:
    """Return the nodes of an IMEX domain; the list has to be the same on each of them."""
    return _HEADER + "".join(f"{address}\n" for address in addresses)


def gridd(licence: Mapping[str, Any]) -> str:
    """Return the licence configuration of a vGPU guest.

    :raises InputError: an option of ``nvidia_driver_licence`` cannot be written.
    """
    lines = []
    for key, name in (
        ("server", "ServerAddress"),
        ("port", "ServerPort"),
        ("feature_type", "FeatureType"),
    ):
        value = licence.get(key)
        if value is None or value == "":
            continue
        if not _WORD.match(str(value)):
            raise InputError(
                f"nvidia_driver_licence: {key} holds white space.", evidence=repr(value)
            )
        lines.append(f"{name}={value}\n")
    return _HEADER + "".join(lines)


def _plain(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
