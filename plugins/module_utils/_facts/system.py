# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a node's Python, kernels, Secure Boot, package archive and units."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from .._core.redact import addresses
from .._core.versions import upstream_version
from .._hardware.gpudirect_modules import GPUDIRECT_MODULES
from .._hardware.kernel_drivers import KERNEL_DRIVERS
from .._hardware.module_blocks import MODULES, find_blocks
from .._packages.installed import LIBC_PACKAGES, PODMAN_PACKAGE, Package, select
from .._repository.apt_parser import AptEntry
from .._repository.apt_parser import parse as parse_apt

if TYPE_CHECKING:
    from .._host.reader import NodeReader

# The unit search path of systemd (systemd.unit(5)); generator.late is for /etc/init.d.
_UNIT_FOLDERS = (
    *("/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient"),
    *("/run/systemd/generator.early", "/etc/systemd/system", "/run/systemd/system"),
    *("/run/systemd/generator", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"),
    *("/lib/systemd/system", "/run/systemd/generator.late"),
)
# Microseconds since the machine was started.
_STARTED = "ExecMainStartTimestampMonotonic"
_EFI = "/sys/firmware/efi"
# Plain kubelets, k3s and RKE2; k0s; MicroK8s.
_KUBELET_FOLDERS = (
    *("/var/lib/kubelet", "/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet"),
)
# Folders that the kubelet makes at its start: for the sockets of plugins, and for their data.
_PLUGIN_FOLDERS = ("plugins_registry", "plugins")
# The search path of modprobe.d(5).
_MODPROBE = (
    *("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d"),
    "/lib/modprobe.d",
)
_COMMAND_LINE = "/proc/cmdline"
_SELINUX = "/sys/fs/selinux"
_SELINUX_CONFIG = "/etc/selinux/config"
_SELINUX_MODES = ("enforcing", "permissive", "disabled")
_SELINUX_SETTING = re.compile(r"^[ \t]*SELINUX[ \t]*=[ \t]*(\w{1,20})", re.MULTILINE)
# The kubelet writes it in all distributions of Kubernetes, and does not start with another policy
# than the one in it (pkg/kubelet/cm/cpumanager/state/state_checkpoint.go).
_CPU_MANAGER = "cpu_manager_state"
_CPU_POLICY = re.compile(r'"policyName"[ \t]*:[ \t]*"([\w-]{1,40})"')
# More than a file of settings has.
_SETTINGS_BYTES = 64 * 1024

_APT_LIST = "/etc/apt/sources.list"
_APT_FOLDER = "/etc/apt/sources.list.d"
_OUR_FILE = re.compile(r"/kubegpu-[^/]*\Z")
_ARCHIVE_FILE = re.compile(r"/(?:sources\.list|(?:debian|ubuntu|system)\.sources)\Z")
# Mirrors and cloud images keep the last part of the path; mirror+file names a mirror list.
_ARCHIVE_URI = re.compile(r"/(?:debian|ubuntu|ubuntu-ports)/?\Z|\Amirror\+file:")


def read_archive(reader: NodeReader, codename: str | None) -> dict[str, Any] | None:
    """Return apt's entry for the distribution's archive, or None."""
    if codename is None:
        return None
    names = [name for name in reader.list_dir(_APT_FOLDER) if name.endswith((".list", ".sources"))]
    entries: list[AptEntry] = []
    for path in (_APT_LIST, *(f"{_APT_FOLDER}/{name}" for name in names)):
        entries.extend(parse_apt(path, reader.read_text(path) or ""))
    return find_archive(entries, codename)


def find_archive(entries: Iterable[AptEntry], codename: str) -> dict[str, Any] | None:
    """Return the archive's entry, with the suites and components of all entries for its address.

    Third-party repositories use the release's codename as a suite too. So the distribution's files
    and addresses take precedence, and an archive must have the component main.
    """
    enabled = [
        entry
        for entry in entries
        if entry.enabled and "deb" in entry.types and not _OUR_FILE.search(entry.file)
    ]
    found = [entry for entry in enabled if codename in entry.suites and "main" in entry.components]
    if not found:
        return None
    first = min(found, key=_rank)
    entries_of_uri = [entry for entry in enabled if first.uris[0] in entry.uris]
    signed_by = (first.signed_by or "").split()
    return {
        "file": first.file,
        "uri": addresses(first.uris[0], True),
        "suites": _union(entry.suites for entry in entries_of_uri),
        "components": _union(
            entry.components for entry in entries_of_uri if codename in entry.suites
        ),
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
    """Return whether Secure Boot is enabled; False without EFI, None if it cannot be read."""
    for name in reader.list_dir(f"{_EFI}/efivars"):
        if name.startswith("SecureBoot-"):
            content = reader.read_bytes(f"{_EFI}/efivars/{name}")
            # Four bytes of attributes, then the value.
            return None if not content else content[-1] == 1
    # Containers hide /sys/firmware.
    if reader.exists(_EFI) or not reader.list_dir("/sys/firmware"):
        return None
    return False


def read_blocks(reader: NodeReader, gpus: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts ``nouveau`` and ``blocked_modules``.

    ``nouveau`` is whether a kernel driver for NVIDIA GPUs (nouveau, nova) is loaded, and blocked.
    ``blocked_modules`` has what blocks modules that the GPUs need; None if it cannot be read.
    """
    files: dict[str, str | None] = {}
    names: set[str] = set()
    for folder in _MODPROBE:
        for name in reader.list_dir(folder):
            # A file overrides files of the same name in later folders.
            if name.endswith(".conf") and name not in names:
                names.add(name)
                files[f"{folder}/{name}"] = reader.read_text(f"{folder}/{name}")
    command_line = reader.read_line(_COMMAND_LINE)
    unread = [path for path, text in files.items() if text is None and not reader.absent(path)]
    if command_line is None and not reader.absent(_COMMAND_LINE):
        unread.append(_COMMAND_LINE)
    texts = {path: text or "" for path, text in files.items()}
    loaded = [name for name in KERNEL_DRIVERS if reader.exists(f"/sys/module/{name}")]
    needed = [name for gpu in gpus for name in MODULES.get(gpu["vendor"], ())]
    found = find_blocks([*needed, *KERNEL_DRIVERS], texts, command_line or "")
    return {
        "nouveau": {
            "loaded": bool(loaded),
            "blocked": all(name in found for name in loaded or ["nouveau"]),
            "modules": loaded,
        },
        "blocked_modules": None
        if unread
        else {name: found[name] for name in dict.fromkeys(needed) if name in found},
    }


def read_gpudirect(reader: NodeReader) -> list[str]:
    """Return the loaded kernel modules whose devices containers get for GPUDirect."""
    return [name for name in GPUDIRECT_MODULES if reader.exists(f"/sys/module/{name}")]


def read_kernels(reader: NodeReader, running: str | None) -> list[dict[str, Any]]:
    """Return the kernels with modules on disk, and the running one."""
    found = {name for name in reader.list_dir("/lib/modules") if name[:1].isdigit()}
    if running:
        found.add(running)
    return [
        {
            "version": name,
            "running": name == running,
            # In a container the running kernel is the host's, which is not on its disk.
            "on_disk": reader.is_dir(f"/lib/modules/{name}"),
            # Without headers the link exists, but is broken.
            "headers": reader.is_dir(f"/lib/modules/{name}/build"),
        }
        for name in sorted(found)
    ]


def read_units(
    reader: NodeReader, names: tuple[str, ...]
) -> tuple[dict[str, str | None] | None, dict[str, str]]:
    """Return the state and the start time of systemd units, by name.

    The state of a missing unit is None. Without systemd, the states as a whole are None.
    """
    if not reader.exists("/run/systemd/system"):
        return None, {}
    # systemd searches all folders for each unknown unit, which is slow.
    files = {name for folder in _UNIT_FOLDERS for name in reader.list_dir(folder)}
    existing = tuple(name for name in names if f"{name}.service" in files)
    states: dict[str, str | None] = dict.fromkeys(names)
    argv = ["systemctl", "show", f"--property=Id,LoadState,ActiveState,{_STARTED}"]
    # Without a name systemctl shows systemd itself, so at least one is passed.
    result = reader.run([*argv, *(f"{name}.service" for name in existing or names[:1])])
    if not result or not result.ok:
        return None, {}
    states.update(read_unit_states(result.stdout, existing))
    boot = _read_boot(reader)
    return states, {} if boot is None else read_unit_starts(result.stdout, existing, boot)


def _read_boot(reader: NodeReader) -> float | None:
    """Return the boot time as Unix time.

    ``btime`` of ``/proc/stat`` is truncated to seconds: a file written just before a start would
    seem newer than the start.
    """
    uptime = re.match(r"\d+\.\d+", reader.read_text("/proc/uptime") or "")
    return time.time() - float(uptime[0]) if uptime else None


def read_unit_starts(text: str, names: tuple[str, ...], boot: float) -> dict[str, str]:
    """Return the start times of the active units' main processes, in UTC with seconds.

    :param boot: the boot time as Unix time; systemd reports offsets from it, and dates only in the
        node's time zone.
    """
    found = {}
    for name, fields in _unit_fields(text, names):
        after = fields.get(_STARTED, "0")
        if fields.get("ActiveState") in ("active", "reloading") and int(after or 0) > 0:
            # Rounded up: a file written in the same second counts as older.
            seconds = math.ceil(boot + int(after) / 1_000_000)
            moment = datetime.fromtimestamp(seconds, timezone.utc)
            found[name] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return found


def _unit_fields(text: str, names: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    # systemctl keeps the order of the names; a name may be an alias of another unit.
    for name, paragraph in zip(names, text.strip().split("\n\n")):
        yield name, dict(line.split("=", 1) for line in paragraph.splitlines() if "=" in line)


def read_unit_states(text: str, names: tuple[str, ...]) -> dict[str, str | None]:
    """Return the states from the output of ``systemctl show``, one paragraph for each unit."""
    states: dict[str, str | None] = dict.fromkeys(names)
    for name, fields in _unit_fields(text, names):
        load, active = fields.get("LoadState", "not-found"), fields.get("ActiveState")
        if load != "not-found":
            states[name] = "masked" if (load, active) == ("masked", "inactive") else active
    return states


def read_kubelet(reader: NodeReader) -> dict[str, Any] | None:
    """Return the fact ``kubelet``: its folder, and which folders for plugins are in it."""
    folder = next((path for path in _KUBELET_FOLDERS if reader.is_dir(path)), None)
    if folder is None:
        return None
    return {
        "directory": folder,
        "plugin_folders": [name for name in _PLUGIN_FOLDERS if reader.is_dir(f"{folder}/{name}")],
        "cpu_manager_policy": _first(
            _CPU_POLICY, reader.read_text(f"{folder}/{_CPU_MANAGER}", _SETTINGS_BYTES)
        ),
    }


def _first(pattern: re.Pattern[str], text: str | None) -> str | None:
    """Return the first group of the first match."""
    match = pattern.search(text or "")
    return match[1] if match else None


def read_selinux(reader: NodeReader) -> dict[str, Any]:
    """Return the fact ``selinux``: the mode of the running kernel, and that of the next boot.

    None is unknown; a system without a configuration of SELinux has none.
    """
    words = _first(_SELINUX_SETTING, reader.read_text(_SELINUX_CONFIG, _SETTINGS_BYTES))
    configured = words.lower() if words and words.lower() in _SELINUX_MODES else None
    mode = {"1": "enforcing", "0": "permissive"}.get(reader.read_line(f"{_SELINUX}/enforce") or "")
    # The kernel makes the folder only with SELinux; a container may hide what is in it.
    if mode is None and reader.absent(_SELINUX) and reader.list_dir("/sys/fs"):
        mode = "disabled"
    return {"mode": mode, "configured": configured}


def read_libc(
    reader: NodeReader, packages: Sequence[Package], arch: str | None
) -> dict[str, Any] | None:
    """Return the fact ``os.libc``; None if no package and no loader shows it."""
    for package in select(packages, LIBC_PACKAGES):
        return {"name": "glibc", "version": upstream_version(package.version)}
    # Debian has a package of musl, too, beside its glibc.
    musl = bool(arch) and reader.exists(f"/lib/ld-musl-{arch}.so.1")
    return {"name": "musl", "version": None} if musl else None


def read_podman(packages: Sequence[Package]) -> str | None:
    """Return the fact ``podman``: the version of its package."""
    return next(
        (upstream_version(one.version) for one in select(packages, (PODMAN_PACKAGE,))), None
    )
