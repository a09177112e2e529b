# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which Debian archive this machine itself uses: no host name is written down here."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from tests.testbed.shell import TestbedError, run


def debian_mirror() -> str | None:
    """The archive's address, or None: then mmdebstrap takes the one that Debian built into it."""
    return os.environ.get("KUBEGPU_DEBIAN_MIRROR") or _address("Debian")


def suites(suite: str) -> list[tuple[str, str]]:
    """A release's archive and, where this machine knows one, its updates of security.

    :raises TestbedError: the sources of this machine name no archive of Debian.
    """
    main = debian_mirror()
    if main is None:
        raise TestbedError(
            "the package sources of this machine name no archive of Debian: set "
            "KUBEGPU_DEBIAN_MIRROR to the address of one, or run apt-get update first"
        )
    security = os.environ.get("KUBEGPU_DEBIAN_SECURITY_MIRROR") or _address("Debian-Security")
    return [(main, suite), *([(security, f"{suite}-security")] if security else [])]


def _address(label: str) -> str | None:
    listing = run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(SITE)|$(URI)"],
        check=False,
    )
    for line in listing.stdout.splitlines():
        fields = line.split("|")
        # Debian's security archive has the same origin, but another label.
        if fields[:3] != ["Debian", label, "main"] or "/dists/" not in fields[4]:
            continue
        address = _plain(fields[4].split("/dists/")[0])
        if address:
            return address
    return None


def _plain(address: str) -> str | None:
    """Cloud images name a file of mirrors: take its first one."""
    kind = urlsplit(address).scheme
    if kind in ("http", "https", "file"):
        return address
    if kind == "mirror+file":
        path = Path(urllib.request.url2pathname(urlsplit(address).path))
        lines = path.read_text().split() if path.is_file() else []
        return lines[0] if lines else None
    return None


def mmdebstrap_options() -> list[str]:
    """Options for every root file system made here."""
    return [
        # The machine's clock may be ahead of a frozen mirror; the signature is still checked.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=Acquire::Retries "3"',
    ]
