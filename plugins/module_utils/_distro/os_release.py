# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distribution, release and package manager of a node, and the names of the host."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .data import FAMILIES, OTHER_MANAGERS, family_of
from .images import MOUNTS, SIGNS, Signs, find_image, usr_is_read_only
from .upstream import find_upstream

_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
# A package of Proxmox VE, which is a Debian by its os-release.
_PROXMOX = "/usr/bin/pveversion"
_PROXMOX_VE = "Proxmox VE"
_ANY_MANAGER = (
    *(manager for family in FAMILIES.values() for manager in family.managers),
    *OTHER_MANAGERS,
)


class Reader(Protocol):
    """The part of ``NodeReader`` that is used here; its package is in the same layer."""

    def read_text(self, path: str) -> str | None: ...

    def read_line(self, path: str) -> str | None: ...

    def exists(self, path: str) -> bool: ...

    def first(self, paths: Sequence[str]) -> str | None: ...

    def kernel_value(self, name: str) -> str | None: ...


def read_os(reader: Reader) -> dict[str, Any]:
    release = _os_release(reader)
    identity = release.get("ID", "").lower() or None
    family = os_family(identity, release.get("ID_LIKE", ""))
    hostname = reader.kernel_value("hostname") or reader.read_line("/etc/hostname")
    manager = next((name for name, path in _managers(family) if reader.exists(path)), None) or next(
        (name for name, path in _ANY_MANAGER if reader.exists(path)), None
    )
    return {
        "family": family,
        "id": identity,
        "version": release.get("VERSION_ID") or None,
        "codename": find_codename(release),
        "arch": reader.kernel_value("arch"),
        "kernel": reader.kernel_value("osrelease"),
        "package_manager": manager,
        "hostname": hostname.partition(".")[0] if hostname else None,
        "fqdn": find_fqdn(hostname, reader.read_text("/etc/hosts") or ""),
        "machine_id": reader.read_line("/etc/machine-id")
        or reader.read_line("/var/lib/dbus/machine-id"),
        # With it, a machine id that was cloned is told from one machine under two names.
        "boot_id": reader.read_line("/proc/sys/kernel/random/boot_id"),
        **_image(reader, release, manager),
        "upstream": find_upstream(release),
        "product": _PROXMOX_VE if reader.exists(_PROXMOX) else None,
    }


def _image(reader: Reader, release: Mapping[str, str], manager: str | None) -> dict[str, Any]:
    """Return what shows that the system is an image, and of which kind; None if it is none."""
    signs = Signs(
        tuple(path for path in SIGNS if reader.exists(path)),
        usr_is_read_only(reader.read_text(MOUNTS) or ""),
        manager,
    )
    found = find_image(release, signs)
    return {"image": found[1] if found else None, "image_system": found[0].key if found else None}


def _os_release(reader: Reader) -> dict[str, str]:
    path = reader.first(_OS_RELEASE)
    text = reader.read_text(path) if path else None
    found = {}
    for line in (text or "").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            found[name] = value.strip("\"'")
    return found


def _managers(family: str | None) -> tuple[tuple[str, str], ...]:
    row = FAMILIES.get(family or "")
    return row.managers if row else ()


def os_family(identity: str | None, like: str) -> str | None:
    """Return debian, rhel or suse, by the distribution's id or those that it is like."""
    return family_of((identity or "", *like.lower().split()))


def find_fqdn(hostname: str | None, hosts: str) -> str | None:
    """Return the full name of the host from its own name or ``/etc/hosts``; no DNS is asked."""
    if not hostname:
        return None
    if "." in hostname:
        return hostname
    for line in hosts.splitlines():
        names = line.partition("#")[0].split()[1:]
        if hostname in names:
            full = next((name for name in names if name.startswith(f"{hostname}.")), None)
            if full:
                return full
    return None


def find_codename(release: Mapping[str, str]) -> str | None:
    """Return the release's word in package sources, from the fields of ``os-release``."""
    codename = release.get("VERSION_CODENAME") or release.get("UBUNTU_CODENAME")
    match = re.search(r"\(([a-z]+)\)", release.get("VERSION", ""))
    return codename or (match.group(1) if match else None)
