# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses of package repositories: comparison, hosts, and exceptions from proxies."""

from __future__ import annotations

import re
from collections.abc import Sequence

# As apt, and as dnf and zypper write it.
_ARCHITECTURE = re.compile(r"\$(?:\(ARCH\)|(?:base)?arch\b|\{basearch\})")


def same_repository(address: str, addresses: Sequence[str], architecture: str = "") -> bool:
    """Return whether ``address`` is one of ``addresses`` or lies below one of them."""
    plain = _plain(address, architecture)
    return any(
        plain == other or plain.startswith(f"{other}/")
        for other in (_plain(text, architecture) for text in addresses)
    )


def is_direct(name_of_host: str, no_proxy: str) -> bool:
    """Return whether a host is reached without a proxy, by the usual rules of ``no_proxy``."""
    for word in no_proxy.replace(",", " ").split():
        name = word.lstrip("*").lstrip(".").lower()
        if (
            word == "*"
            or name_of_host.lower() == name
            or (name and name_of_host.lower().endswith(f".{name}"))
        ):
            return True
    return False


def below(url: str, name: str) -> str:
    """Return the address of a file below the URL; the query is kept."""
    place, mark, query = url.partition("?")
    return f"{place.rstrip('/')}/{name}{mark}{query}"


def host(url: str) -> str:
    """Return the host of the URL, without port and credentials."""
    name = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]


def _plain(address: str, architecture: str) -> str:
    """Return an address in a normal form, without scheme, credentials and query."""
    text = address.partition("?")[0]
    text = text.partition(":")[2].lstrip("/") if ":/" in text else text
    name, slash, path = text.partition("/")
    if architecture:
        path = _ARCHITECTURE.sub(architecture, path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join([name.rpartition("@")[2].lower(), *parts]) if slash else name.lower()
