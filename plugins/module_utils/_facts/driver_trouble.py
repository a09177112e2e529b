# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read why NVIDIA's driver cannot be used although it is loaded: files that it lacks, and upgrades.

Read only while the driver is loaded; the log of packages only while its versions differ.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._core.finding import Finding

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_PROC = "/proc/driver/nvidia"
_MINOR = re.compile(r"^Device Minor:[ \t]*(\d{1,3})[ \t]*$", re.M)
_CAPABILITY = re.compile(r"^DeviceFileMinor:[ \t]*(\d{1,4})[ \t]*$", re.M)
_INSTANCE = re.compile(r"gi\d{1,2}\Z")
# apt's log of changes, the newest last; each entry has lines of these names.
_APT_LOG = "/var/log/apt/history.log"
_UNATTENDED = re.compile(r"^Commandline:[ \t]*(?:\S*/)?unattended-upgrade\b", re.M)
_START = re.compile(r"^Start-Date:[ \t]*(\d{4}-\d\d-\d\d)[ \t]+(\d\d:\d\d:\d\d)", re.M)
_UPGRADED = re.compile(r"^Upgrade:[ \t]*(.*)$", re.M)
_APT_PACKAGE = re.compile(r"(?P<name>[a-z0-9][\w.+-]*):\w+ \((?P<old>[^\s,)]+), (?P<new>[^\s,)]+)")
# dnf's log of transactions, and the timers that start one by themselves.
_RPM_LOG = "/var/log/dnf.rpm.log"
_RPM_LINE = re.compile(
    r"^(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<zone>[+-]\d{4}|Z)\s.*?"
    r"\bUpgrade:\s+(?P<package>[\w.+-]+?-(?:\d+:)?\d[\w.~+^-]*)",
    re.M,
)
_TIMERS = "/etc/systemd/system/timers.target.wants"
_TIMER = re.compile(r"(?:dnf-automatic(?:-install)?|dnf5-automatic)\.timer\Z")
_DRIVER = re.compile(r"(?:lib)?nvidia-|kmod-nvidia|cuda-drivers|xserver-xorg-video-nvidia")
_TOOLKIT = re.compile(r"(?:lib)?nvidia-container")
# Of a log, the end; and of packages, so many are named.
_MOST_LOG = 4 * 1024 * 1024
_MOST_NAMED = 3


def find_driver_trouble(reader: NodeReader, driver: Mapping[str, Any]) -> list[Finding]:
    """Return what is missing of a loaded driver, and who upgraded it under its module.

    :param driver: the fact ``gpu_node.driver``.
    """
    if not driver["loaded"]:
        return []
    found = [_missing_nodes(reader)]
    if any(driver[name] not in (None, driver["loaded"]) for name in ("installed", "userland")):
        found.append(_upgrade(reader, driver["loaded"]))
    return [one for one in found if one is not None]


def _missing_nodes(reader: NodeReader) -> Finding | None:
    """Return the finding for device files that the driver serves and /dev does not have.

    The driver lists its GPUs; where it lists none, none is missed. The file for memory shared with
    the processor (uvm) is made when its module is loaded.
    """
    minors = [
        match[1]
        for gpu in reader.list_dir(f"{_PROC}/gpus")
        for match in _MINOR.finditer(reader.read_text(f"{_PROC}/gpus/{gpu}/information") or "")
    ]
    if not minors:
        return None
    wanted = ["/dev/nvidiactl", *(f"/dev/nvidia{minor}" for minor in minors)]
    if reader.is_dir("/sys/module/nvidia_uvm"):
        wanted.append("/dev/nvidia-uvm")
    wanted += [f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in _capabilities(reader)]
    # One that cannot be looked at is not missed.
    missing = [path for path in wanted if reader.absent(path)]
    if not missing:
        return None
    return Finding(
        "device_nodes_missing",
        f"The driver is loaded, and {len(missing)} of its {len(wanted)} device files "
        f"{'is' if len(missing) == 1 else 'are'} not there: programs and containers cannot open "
        "the GPUs.",
        f"not in /dev: {', '.join(missing[:8])}{', ...' if len(missing) > 8 else ''}",
        "As root: nvidia-modprobe -c 0 -u, with -c once for each GPU; nvidia-smi makes them, too. "
        "To have them after each boot: systemctl enable --now nvidia-persistenced, or udev rules.",
    )


def _capabilities(reader: NodeReader) -> Iterator[str]:
    """Yield the minor numbers of the files for instances of MIG."""
    folder = f"{_PROC}/capabilities"
    for gpu in reader.list_dir(folder):
        for name in reader.list_dir(f"{folder}/{gpu}/mig"):
            if _INSTANCE.match(name):
                text = reader.read_text(f"{folder}/{gpu}/mig/{name}/access") or ""
                yield from (match[1] for match in _CAPABILITY.finditer(text))


def _upgrade(reader: NodeReader, loaded: str) -> Finding | None:
    """Return the finding for packages that were upgraded since boot without anybody."""
    booted = re.search(r"^btime (\d{1,12})$", reader.read_text("/proc/stat") or "", re.M)
    if booted is None:
        return None
    evidence = _by_apt(reader, float(booted[1])) or _by_dnf(reader, float(booted[1]))
    if not evidence:
        return None
    return Finding(
        "upgraded_unattended",
        f"Automatic updates have replaced the driver's packages while its module {loaded} was "
        "loaded.",
        evidence,
        "Reboot the node. Then hold the driver's packages (nvidia_driver_hold: true, the default "
        "of the role), or leave them out of automatic updates.",
    )


def _tail(reader: NodeReader, path: str) -> str:
    status = reader.status(path)
    begin = max(0, status.st_size - _MOST_LOG) if status else 0
    content = reader.read_bytes(path, _MOST_LOG, begin) or b""
    return content.decode("utf-8", "replace")


def _by_apt(reader: NodeReader, booted: float) -> str:
    for entry in reversed(_tail(reader, _APT_LOG).split("\n\n")):
        start, upgraded = _START.search(entry), _UPGRADED.search(entry)
        if start is None or upgraded is None or _UNATTENDED.search(entry) is None:
            continue
        # apt writes the node's local time.
        moment = _local(f"{start[1]} {start[2]}")
        if moment is None or moment < booted:
            continue
        named = [
            f"{one['name']} {one['old']} -> {one['new']}"
            for one in _APT_PACKAGE.finditer(upgraded[1])
            if _is_driver(one["name"])
        ]
        if named:
            return (
                f"{_APT_LOG}: unattended-upgrade, {start[1]} {start[2]}, after the boot: "
                f"{_some(named)}"
            )
    return ""


def _local(text: str) -> float | None:
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return None


def _by_dnf(reader: NodeReader, booted: float) -> str:
    """Return the evidence of dnf, whose log does not say who began a transaction."""
    timer = next((name for name in reader.list_dir(_TIMERS) if _TIMER.match(name)), None)
    if timer is None:
        return ""
    named = [
        one["package"]
        for one in _RPM_LINE.finditer(_tail(reader, _RPM_LOG))
        if _is_driver(one["package"]) and _after(one, booted)
    ]
    return f"{_RPM_LOG}, after the boot: {_some(named)}; {timer} is enabled" if named else ""


def _after(line: re.Match[str], booted: float) -> bool:
    text = line["time"] + line["zone"].replace("Z", "+0000")
    try:
        parsed = time.strptime(text, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return False
    return calendar.timegm(parsed) - (parsed.tm_gmtoff or 0) >= booted


def _is_driver(package: str) -> bool:
    return bool(_DRIVER.match(package)) and not _TOOLKIT.match(package)


def _some(named: list[str]) -> str:
    names = list(dict.fromkeys(named))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
