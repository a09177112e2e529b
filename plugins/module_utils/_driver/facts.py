# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts about the NVIDIA driver of a node, from files: loaded, installed, built, source."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._nvidia.fabric import is_component
from .._nvidia.package_names import driver_source, is_driver, kernel_module_type
from .._packages.installed import Package, held, unheld, versions
from .plan.config_files import CONTAINER, CONTAINER_STATE, FILES, PATHS, RECORD

if TYPE_CHECKING:
    from .._host.reader import NodeReader

SERVICES = (
    "nvidia-persistenced",
    "nvidia-fabricmanager",
    "nvidia-imex",
    "nvidia-gridd",
    "nvidia-cdi-refresh",
)
# Folders of libraries; Debian keeps the driver's apart and links to them.
_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)
_LIBRARY_NAMES = ("libnvidia-ml.so", "libcuda.so")
_VERSION = r"\d{3,}\.\d+(?:\.\d+)?"
_LOADED = re.compile(rf"^NVRM version:.*?\b({_VERSION})\b", re.M)
_MODULE = re.compile(r"^(\S*/nvidia(?:-current(?:-open)?)?\.ko(?:\.\w+)?):", re.M)
_PACKAGE_VERSION = re.compile(rf"(?:^|:)({_VERSION})")
_MEMORY = re.compile(r'^CoherentGPUMemoryMode: "(?P<mode>[a-z]*)"', re.M)
_MAKE_LOG = re.compile(r"for kernel (\S+)")
# A module exists, but is compressed, so that its version cannot be read.
UNKNOWN = "unknown"
_PREVIOUS = ("version", "branch", "source", "kernel_module")
# What shows a driver container, the surest sign first: its root file system, bound into the host's
# (NVIDIA/gpu-driver-container, ubuntu22.04/nvidia-driver and precompiled/nvidia-driver: RUN_DIR,
# PID_FILE; newer ones keep a state for their next start).
_CONTAINER_SIGNS = (
    f"{CONTAINER}/usr/bin/nvidia-smi",
    f"{CONTAINER}/usr/lib64/libnvidia-ml.so.1",
    "/run/nvidia/nvidia-driver.pid",
    CONTAINER_STATE,
    CONTAINER,
)
_UNINSTALLERS = ("/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer")


def read_driver(
    reader: NodeReader,
    packages: Sequence[Package],
    units: Mapping[str, str | None] | None,
    module: str | None,
    dkms: Sequence[Mapping[str, Any]],
    record: Mapping[str, Any] | None,
    manager: str | None = None,
) -> dict[str, Any]:
    """Return the fact ``driver``.

    :param manager: the node's package manager; dnf 4 alone has streams.
    :param module: the version of the module on disk for the running kernel (:func:`read_modules`).
    """
    text = reader.read_text("/proc/driver/nvidia/version")
    loaded = loaded_version(text) or reader.read_line("/sys/module/nvidia/version")
    ours = [package for package in packages if is_driver(package.name)]
    userland = _userland(reader)
    installed = _installed(module, dkms, ours, userland)
    source = driver_source(ours)
    uninstaller = reader.first(_UNINSTALLERS)
    if source is None and installed and uninstaller:
        source = "runfile"
    names = versions(ours)
    return {
        "loaded": loaded,
        "installed": installed,
        "userland": userland,
        "kernel_module": loaded_kernel_module(text)
        or kernel_module_type(names)
        or _dkms_kernel_module(reader, dkms),
        "coherent_memory": read_coherent_memory(reader),
        "source": source,
        "packages": names,
        "dkms": list(dkms),
        "held": held(ours),
        "unheld": unheld(ours),
        "streams": read_streams(reader) if manager == "dnf" else {},
        "pending_reboot": bool(loaded and installed and loaded != installed),
        "services": {name: None if units is None else units.get(name) for name in SERVICES},
        "configuration": read_checksums(reader, PATHS),
        **read_record(record),
        "uninstaller": uninstaller,
        # With a driver of the host itself, a container brings none.
        "container": None if installed else reader.first(_CONTAINER_SIGNS),
    }


def read_state(reader: NodeReader, path: str) -> dict[str, Any] | None:
    """Return the node's record of changes by this collection; None if it cannot be read."""
    text = reader.read_text(path)
    if text is None:
        return {} if reader.absent(path) else None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        # The modules that write the record report the error.
        return None
    values = record.get("values") if isinstance(record, dict) else None
    return record if isinstance(values, dict) else None


def read_record(record: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts about driver and files that come from the node's record."""
    unknown = {"managed": None, "pending": None, "previous": None, "recorded_files": None}
    if record is None:
        return unknown
    try:
        value = record.get("values", {}).get(RECORD) or {}
        managed, previous = bool(value.get("managed")), value.get("previous")
        files = [key[len(FILES) :] for key in record.get("files", {}) if key.startswith(FILES)]
        return {
            "managed": managed,
            "pending": _pending(value.get("pending")),
            "previous": {name: previous.get(name) for name in _PREVIOUS} if previous else None,
            "recorded_files": sorted(files),
        }
    except (TypeError, AttributeError):
        return unknown


def _pending(change: Mapping[str, Any] | None) -> str:
    if change is None:
        return ""
    action = str(change.get("action", "none"))
    # The driver itself remains; its files, services or hold change.
    return "configure" if action == "none" else action


def read_streams(reader: NodeReader) -> dict[str, str] | None:
    """Return the streams that dnf has enabled, by module; None if they cannot be read."""
    # Only dnf 4 has them, and a node compiles each file that is imported.
    from .._packages import module_files  # noqa: PLC0415

    found = {}
    for name in reader.list_dir(module_files.FOLDER):
        module, _dot, kind = name.rpartition(".")
        if kind != "module":
            continue
        text = reader.read_text(f"{module_files.FOLDER}/{name}")
        if text is None:
            return None
        stream = module_files.parse_module_file(module, text)
        if stream not in (module_files.NONE, module_files.DISABLED):
            found[module] = stream
    return found


def read_checksums(reader: NodeReader, paths: Iterable[str]) -> dict[str, str | None]:
    """Return the SHA-256 of each file that exists; None for one that cannot be read."""
    found: dict[str, str | None] = {}
    for path in paths:
        content = reader.read_bytes(path)
        if content is not None:
            found[path] = hashlib.sha256(content).hexdigest()
        elif not reader.absent(path):
            found[path] = None
    return found


def read_modules(
    reader: NodeReader, kernels: Iterable[str], dkms: Sequence[Mapping[str, Any]]
) -> dict[str, str | None]:
    """Return the version of the installed module by kernel; None where there is none."""
    found: dict[str, str | None] = {}
    for kernel in kernels:
        built = [
            str(entry["version"])
            for entry in dkms
            if (entry["kernel"], entry["state"]) == (kernel, "installed")
        ]
        folder = f"/lib/modules/{kernel}"
        module = None if built else module_file(reader.read_text(f"{folder}/modules.dep"))
        if module:
            built = [module_version(reader, f"{folder}/{module}") or UNKNOWN]
        found[kernel] = built[-1] if built else None
    return found


def loaded_version(text: str | None) -> str | None:
    """Return the version in ``/proc/driver/nvidia/version``."""
    match = _LOADED.search(text or "")
    return match.group(1) if match else None


def loaded_kernel_module(text: str | None) -> str | None:
    """Return the kind of kernel modules in ``/proc/driver/nvidia/version``: open or proprietary."""
    if not text or "NVRM version:" not in text:
        return None
    return "open" if "Open Kernel Module" in text else "proprietary"


def read_coherent_memory(reader: NodeReader) -> str | None:
    """Return the memory mode of the loaded module for GPUs on a Grace board.

    Empty is the module's default; None if no module is loaded or it has no such option.
    """
    match = _MEMORY.search(reader.read_text("/proc/driver/nvidia/params") or "")
    return match["mode"] if match else None


def _userland(reader: NodeReader) -> str | None:
    for folder in _LIBRARIES:
        for name in _LIBRARY_NAMES:
            # The library that a program loads: the link's target has the version in its name.
            target = reader.real_path(f"{folder}/{name}.1")
            match = re.search(rf"\.so\.({_VERSION})$", target or "")
            if match:
                return match.group(1)
    return None


def _installed(
    module: str | None,
    dkms: Sequence[Mapping[str, Any]],
    packages: Sequence[Package],
    userland: str | None,
) -> str | None:
    """Return the version that the next load of the module gives, according to files."""
    built = [entry for entry in dkms if entry["state"] == "installed"]
    if module and module != UNKNOWN:
        return module
    for package in packages:
        match = _PACKAGE_VERSION.search(package.version)
        apart = package.name.startswith(("cuda-drivers", "nvidia-driver-pinning", "nvlsm"))
        # NVLink components can be of an older version after a manual upgrade.
        if match and not apart and not is_component(package.name):
            return match.group(1)
    if built:
        return str(built[-1]["version"])
    return userland


def module_file(dependencies: str | None) -> str | None:
    """Return the path of the driver's module in ``modules.dep``."""
    match = _MODULE.search(dependencies or "")
    return match.group(1) if match else None


def module_version(reader: NodeReader, path: str) -> str | None:
    """Return the version in a module's ``.modinfo``; None for a compressed one."""
    if not path.endswith(".ko"):
        return None
    header = reader.read_bytes(path, 64) or b""
    if header[:5] != b"\x7fELF\x02" or len(header) < 64:
        return None
    order = "little" if header[5] == 1 else "big"

    def number(data: bytes, at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little" if order == "little" else "big")

    # The sections' table: where it is, the size of an entry, how many, and which holds the names.
    place, size, count = number(header, 40, 8), number(header, 58, 2), number(header, 60, 2)
    table = reader.read_bytes(path, size * count, place) or b""
    sections = [
        (number(table, at, 4), number(table, at + 24, 8), number(table, at + 32, 8))
        for at in range(0, len(table), size or 64)
    ]
    index = number(header, 62, 2)
    if index >= len(sections):
        return None
    names = reader.read_bytes(path, sections[index][2], sections[index][1]) or b""
    for name, offset, length in sections:
        if names[name:].split(b"\0", 1)[0] == b".modinfo":
            info = reader.read_bytes(path, length, offset) or b""
            match = re.search(rb"(?:^|\0)version=([^\0]+)", info)
            return match.group(1).decode("ascii", "replace") if match else None
    return None


def read_dkms(
    reader: NodeReader, driver: str = "nvidia", form: str = _VERSION
) -> list[dict[str, Any]]:
    """Return the driver's builds in the DKMS tree: added, built, installed or failed.

    :param driver: the beginning of its name there.
    :param form: a regular expression of its versions.
    """
    found: list[dict[str, Any]] = []
    for module in reader.list_dir("/var/lib/dkms"):
        if not module.startswith(driver):
            continue
        base = f"/var/lib/dkms/{module}"
        names = reader.list_dir(base)
        # kernel-<kernel>-<architecture> points to what is installed for that kernel.
        installed = {
            reader.real_path(f"{base}/{name}") for name in names if name.startswith("kernel-")
        }
        for version in names:
            if not re.fullmatch(form, version):
                continue
            found.extend(_dkms_version(reader, f"{base}/{version}", version, installed))
    return found


def _dkms_version(
    reader: NodeReader, folder: str, version: str, installed: set[str | None]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for kernel in reader.list_dir(folder):
        if kernel in ("source", "build"):
            continue
        for architecture in reader.list_dir(f"{folder}/{kernel}"):
            place = f"{folder}/{kernel}/{architecture}"
            if reader.is_dir(f"{place}/module"):
                state = "installed" if reader.real_path(place) in installed else "built"
                found.append({"kernel": kernel, "version": version, "state": state})
    # A successful build removes its folder.
    log = reader.read_text(f"{folder}/build/make.log")
    if log is not None:
        match = _MAKE_LOG.search(log)
        failed = match.group(1) if match else None
        if failed not in [entry["kernel"] for entry in found]:
            found.append({"kernel": failed, "version": version, "state": "failed"})
    if not found and reader.is_dir(f"{folder}/source"):
        found.append({"kernel": None, "version": version, "state": "added"})
    return found


def _dkms_kernel_module(reader: NodeReader, dkms: Sequence[Mapping[str, Any]]) -> str | None:
    if not dkms:
        return None
    names = [name for name in reader.list_dir("/var/lib/dkms") if name.startswith("nvidia")]
    if any("open" in name for name in names):
        return "open"
    # The runfile registers both kinds under one name; their sources differ.
    source = f"/usr/src/nvidia-{dkms[-1]['version']}"
    if not reader.exists(f"{source}/dkms.conf"):
        return None
    return "proprietary" if reader.exists(f"{source}/nvidia/nv-kernel.o_binary") else "open"
