# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node is: Python, kernels, Secure Boot, PCI functions, units, apt's archive."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from .._core.redact import addresses
from .._hardware.kernel_drivers import KERNEL_DRIVERS
from .._hardware.pci import PciFunction, hex_id
from .._hardware.pci_ids import VENDORS
from .._nvidia.fabric import BRIDGED_BOARDS
from .._repository.apt_sources import AptEntry
from .._repository.apt_sources import parse as parse_apt

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_PCI = "/sys/bus/pci/devices"
# Where systemd looks for units (systemd.unit(5)); generator.late has those of /etc/init.d.
_UNIT_FOLDERS = (
    *("/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient"),
    *("/run/systemd/generator.early", "/etc/systemd/system", "/run/systemd/system"),
    *("/run/systemd/generator", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"),
    *("/lib/systemd/system", "/run/systemd/generator.late"),
)
# Microseconds since the machine was started.
_STARTED = "ExecMainStartTimestampMonotonic"
# Mellanox, InfiniBand controller; and how much of its product data is read.
_BRIDGE_KIND = ("15b3", "0207")
_VPD = 1024
_CONFIG_SPACE = 256
_EFI = "/sys/firmware/efi"
_MODPROBE = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")

_APT_LIST = "/etc/apt/sources.list"
_APT_FOLDER = "/etc/apt/sources.list.d"
_OUR_FILE = re.compile(r"/kubegpu-[^/]*\Z")
_ARCHIVE_FILE = re.compile(r"/(?:sources\.list|(?:debian|ubuntu|system)\.sources)\Z")
# Mirrors and cloud images keep the last part; mirror+file names a list of mirrors.
_ARCHIVE_URI = re.compile(r"/(?:debian|ubuntu|ubuntu-ports)/?\Z|\Amirror\+file:")


def read_functions(reader: NodeReader) -> list[PciFunction]:
    """Return the PCI functions of the vendors that make GPUs."""
    functions = []
    for address in reader.list_dir(_PCI):
        folder = f"{_PCI}/{address}"
        vendor = hex_id(reader.read_line(f"{folder}/vendor"))
        if vendor not in VENDORS:
            continue
        device = hex_id(reader.read_line(f"{folder}/device"))
        pci_class = hex_id(reader.read_line(f"{folder}/class"))
        if vendor is None or device is None or pci_class is None:
            continue
        # Of the rest, hundreds of bridges and network functions, nothing more is needed.
        shown = pci_class[:2] in ("03", "12")
        functions.append(
            PciFunction(
                address=address,
                vendor_id=vendor,
                device_id=device,
                pci_class=pci_class,
                subsystem_vendor_id=(
                    hex_id(reader.read_line(f"{folder}/subsystem_vendor")) if shown else None
                ),
                subsystem_device_id=(
                    hex_id(reader.read_line(f"{folder}/subsystem_device")) if shown else None
                ),
                driver=reader.link_name(f"{folder}/driver") if shown else None,
                virtual_function=shown and reader.link_name(f"{folder}/physfn") is not None,
                config=reader.read_bytes(f"{folder}/config", _CONFIG_SPACE) if shown else None,
            )
        )
    return functions


def read_bridges(reader: NodeReader, gpus: Sequence[Mapping[str, Any]]) -> int | None:
    """Return how many bridges to NVSwitches there are, where the GPUs are of a board with such.

    They are network functions like any other but for a word in their vital product data, which
    root alone may read: None where that is so.
    """
    if not any(gpu["vendor"] == "nvidia" and gpu["device_id"] in BRIDGED_BOARDS for gpu in gpus):
        return 0
    found = 0
    for address in reader.list_dir(_PCI):
        folder = f"{_PCI}/{address}"
        kinds = (hex_id(reader.read_line(f"{folder}/{name}")) for name in ("vendor", "class"))
        if tuple(kinds) != _BRIDGE_KIND:
            continue
        data = reader.read_bytes(f"{folder}/vpd", _VPD)
        if data is None:
            return None
        found += b"SW_MNG" in data
    return found


def read_archive(reader: NodeReader, codename: str | None) -> dict[str, Any] | None:
    """Return apt's entry for the distribution's own archive, or None."""
    if codename is None:
        return None
    names = [name for name in reader.list_dir(_APT_FOLDER) if name.endswith((".list", ".sources"))]
    entries: list[AptEntry] = []
    for path in (_APT_LIST, *(f"{_APT_FOLDER}/{name}" for name in names)):
        entries.extend(parse_apt(path, reader.read_text(path) or ""))
    return find_archive(entries, codename)


def find_archive(entries: Iterable[AptEntry], codename: str) -> dict[str, Any] | None:
    """Return the archive's entry, with the suites and components of all entries for its address.

    Other people's repositories use the release's name as a suite too: the distribution's own
    files and addresses come first, and without a component main it is no archive.
    """
    live = [
        entry
        for entry in entries
        if entry.enabled and "deb" in entry.types and not _OUR_FILE.search(entry.file)
    ]
    found = [entry for entry in live if codename in entry.suites and "main" in entry.components]
    if not found:
        return None
    first = min(found, key=_rank)
    same = [entry for entry in live if first.uris[0] in entry.uris]
    signed_by = (first.signed_by or "").split()
    return {
        "file": first.file,
        "uri": addresses(first.uris[0], True),
        "suites": _union(entry.suites for entry in same),
        "components": _union(entry.components for entry in same if codename in entry.suites),
        "signed_by": next((word for word in signed_by if word.startswith("/")), None),
    }


def _rank(entry: AptEntry) -> int:
    if _ARCHIVE_FILE.search(entry.file):
        return 0
    return 1 if _ARCHIVE_URI.search(entry.uris[0]) else 2


def _union(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(word for words in lists for word in words))


def read_python(reader: NodeReader) -> dict[str, Any]:
    if not reader.live:
        return {"version": None, "tomlkit": None, "pynvml": None}
    return {
        "version": ".".join(str(part) for part in sys.version_info[:3]),
        "tomlkit": reader.python_package("tomlkit", "tomlkit"),
        "pynvml": reader.python_package("pynvml", "nvidia-ml-py"),
    }


def read_secure_boot(reader: NodeReader) -> bool | None:
    """Return whether Secure Boot is on; a machine without EFI has none."""
    for name in reader.list_dir(f"{_EFI}/efivars"):
        if name.startswith("SecureBoot-"):
            content = reader.read_bytes(f"{_EFI}/efivars/{name}")
            # Four bytes of attributes, then the value.
            return None if not content else content[-1] == 1
    # In a container /sys/firmware is hidden: that tells nothing.
    if reader.exists(_EFI) or not reader.list_dir("/sys/firmware"):
        return None
    return False


def read_nouveau(reader: NodeReader) -> dict[str, Any]:
    """Return whether one of the kernel's own drivers is loaded, and whether it is kept away."""
    texts: dict[str, str] = {}
    for folder in _MODPROBE:
        for name in reader.list_dir(folder):
            # A file hides those of the same name in the folders after it.
            if name.endswith(".conf") and name not in texts:
                texts[name] = reader.read_text(f"{folder}/{name}") or ""
    command_line = reader.read_line("/proc/cmdline") or ""
    loaded = [name for name in KERNEL_DRIVERS if reader.exists(f"/sys/module/{name}")]
    settings = "\n".join(texts.values())
    return {
        "loaded": bool(loaded),
        "blocked": all(is_blocked(name, settings, command_line) for name in loaded or ["nouveau"]),
        "modules": loaded,
    }


def is_blocked(module: str, modprobe: str, command_line: str) -> bool:
    """Return whether modprobe's settings or the kernel's command line keep a module away."""
    # A dash and an underscore are the same to modprobe.
    name = re.escape(module).replace("_", "[-_]")
    settings = (
        rf"^\s*(?:blacklist\s+{name}(?!\S)|install\s+{name}\s+\S*/(?:false|true)\b"
        rf"|alias\s+{name}\s+off)"
    )
    words = (
        r"\b(?:modprobe\.blacklist|module_blacklist|rd\.driver\.blacklist)="
        rf"(?:\S*,)?{name}(?:,|\s|$)"
    )
    return bool(re.search(settings, modprobe, re.M) or re.search(words, command_line))


def read_kernels(reader: NodeReader, running: str | None) -> list[dict[str, Any]]:
    """Return the kernels that have modules, and the one that runs."""
    found = {name for name in reader.list_dir("/lib/modules") if name[:1].isdigit()}
    if running:
        found.add(running)
    return [
        {
            "version": name,
            "running": name == running,
            # A container runs on its host's kernel, which is not on its own disk.
            "on_disk": reader.is_dir(f"/lib/modules/{name}"),
            # The link is there without headers too, but points to nothing then.
            "headers": reader.is_dir(f"/lib/modules/{name}/build"),
        }
        for name in sorted(found)
    ]


def read_units(
    reader: NodeReader, names: tuple[str, ...]
) -> tuple[dict[str, str | None] | None, dict[str, str]]:
    """Return the states of systemd's units and when they were started.

    A unit that is not there has the state None; without systemd there are no states.
    """
    if not reader.exists("/run/systemd/system"):
        return None, {}
    # systemd looks through all its folders for each unit that it does not know.
    files = {name for folder in _UNIT_FOLDERS for name in reader.list_dir(folder)}
    there = tuple(name for name in names if f"{name}.service" in files)
    states: dict[str, str | None] = dict.fromkeys(names)
    argv = ["systemctl", "show", f"--property=Id,LoadState,ActiveState,{_STARTED}"]
    # Without a name systemctl would show systemd itself; that none is there has to be its word too.
    answer = reader.run([*argv, *(f"{name}.service" for name in there or names[:1])])
    if not answer or not answer.ok:
        return None, {}
    states.update(read_unit_states(answer.stdout, there))
    boot = _read_boot(reader)
    return states, {} if boot is None else read_unit_starts(answer.stdout, there, boot)


def _read_boot(reader: NodeReader) -> float | None:
    """Return when the machine was started, as Unix time.

    btime of /proc/stat is cut to seconds: with it, a file that was written just before a start
    looks newer than that start.
    """
    uptime = re.match(r"\d+\.\d+", reader.read_text("/proc/uptime") or "")
    return time.time() - float(uptime[0]) if uptime else None


def read_unit_starts(text: str, names: tuple[str, ...], boot: float) -> dict[str, str]:
    """Return when the main processes of units that run were started, as UTC to the second.

    :param boot: when the machine was started, as Unix time; systemd counts from there, and writes
        dates in the node's own time zone.
    """
    found = {}
    for name, fields in _unit_fields(text, names):
        after = fields.get(_STARTED, "0")
        if fields.get("ActiveState") in ("active", "reloading") and int(after or 0) > 0:
            # Rounded up: what was made in the same second counts as older.
            seconds = math.ceil(boot + int(after) / 1_000_000)
            moment = datetime.fromtimestamp(seconds, timezone.utc)
            found[name] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return found


def _unit_fields(text: str, names: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    # systemd answers in the order of the question; a name may be an alias of another unit.
    for name, paragraph in zip(names, text.strip().split("\n\n")):
        yield name, dict(line.split("=", 1) for line in paragraph.splitlines() if "=" in line)


def read_unit_states(text: str, names: tuple[str, ...]) -> dict[str, str | None]:
    """Return the states from what ``systemctl show`` printed: a paragraph for each unit."""
    states: dict[str, str | None] = dict.fromkeys(names)
    for name, fields in _unit_fields(text, names):
        if fields.get("LoadState", "not-found") != "not-found":
            states[name] = fields.get("ActiveState")
    return states
