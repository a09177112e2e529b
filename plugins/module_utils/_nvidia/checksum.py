# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checksum of a runfile: given, or read from a file next to it. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from .._core.errors import InputError
from .._core.redact import addresses

# The most that is read of a file with a checksum.
MOST_TEXT = 4 * 1024 * 1024
_SHA256 = re.compile(r"^[0-9a-fA-F]{64}$")
_SUM_LINE = re.compile(r"^(?:(?P<bsd>SHA256) \((?P<name1>.+)\) = )?(?P<hex>[0-9a-fA-F]{64})"
                       r"(?: [ *](?P<name2>.+))?$")  # fmt: skip


@dataclass(frozen=True)
class Checksum:
    """A SHA-256, or the URL or path of a file that has it."""

    sha256: str | None = None
    source: str | None = None

    @property
    def is_url(self) -> bool:
        return self.source is not None and is_url(self.source)


def parse_checksum(option: str | None, name: str) -> Checksum:
    """Return the checksum that the option ``checksum`` of a runfile gives.

    It is a SHA-256, with or without ``sha256:`` before it, or the URL or path of a file that has
    it: ``NAME.run.sha256sum``, or NVIDIA's ``redistrib_<version>.json``.
    """
    text = (option or "").strip()
    algorithm, colon, rest = text.partition(":")
    if colon and algorithm.lower() in ("md5", "sha1", "sha224", "sha384", "sha512"):
        raise InputError(
            f"checksum of {name}: {algorithm} is not taken, only sha256.",
            next_step="Give sha256:<64 hex digits>, as sha256sum prints it.",
        )
    if colon and algorithm.lower() == "sha256":
        text = rest.strip()
    if _SHA256.match(text):
        return Checksum(sha256=text.lower())
    if text.lower().startswith(("http:", "ftp:")):
        raise InputError(
            f"checksum of {name}: {addresses(text, True)} is not read, as whoever is on the way "
            "can change it together with the runfile.",
            next_step="Give it by https://, as a file of the controller, or as "
            "sha256:<64 hex digits>.",
        )
    if is_url(text) or text.startswith("/"):
        return Checksum(source=text)
    raise InputError(
        f"The runfile {name} has no checksum; without one it is not run."
        if not text
        else f"checksum of {name} is neither a sha256 nor a URL or absolute path: "
        f"{addresses(text, True)[:80]!r}.",
        next_step="Give checksum: sha256:<64 hex digits>, or the URL or path of its .sha256sum "
        "file or of NVIDIA's redistrib_<version>.json.",
    )


def checksum_from_text(text: str, name: str, source: str) -> str:
    """Return the SHA-256 of the file ``name`` in the text of a checksum file.

    :param source: path or URL of the text, for messages.
    :raises InputError: the text has no such checksum.
    """
    if text.lstrip().startswith("{"):
        return _from_redistrib(text, name, source)
    lines = [line.strip() for line in text.splitlines()]
    matches = [match for match in map(_SUM_LINE.match, lines) if match]
    alone = None
    for match in matches:
        named = match["name1"] or match["name2"]
        if named is not None and file_name(named.strip()) == name:
            return match["hex"].lower()
        if named is None:
            alone = match["hex"].lower()
    if alone is not None and len(matches) == 1:
        return alone
    listed = [match["name1"] or match["name2"] for match in matches]
    raise InputError(
        f"{shown(source)} has no sha256 of {name}.",
        evidence=f"it names {', '.join(name[:80] for name in listed[:5] if name)}" if any(listed)
        else f"it begins with {text.strip()[:80]!r}",
        next_step="Give the checksum file of exactly this runfile, or checksum: sha256:<hex>.",
    )  # fmt: skip


def _from_redistrib(text: str, name: str, source: str) -> str:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{shown(source)} is not JSON.",
            evidence=str(error),
            next_step="Give the URL of NVIDIA's redistrib_<version>.json.",
        ) from error
    files = dict(_redistrib_files(document))
    checksum = files.get(name)
    if checksum is not None and _SHA256.match(checksum):
        return checksum.lower()
    names = sorted(files)
    raise InputError(
        f"{shown(source)} has no entry for {name}.",
        evidence=f"it lists {len(names)} files: {', '.join(name[:80] for name in names[:4])}"
        + (", ..." if len(names) > 4 else ""),
        next_step="That list covers archives (.tar.xz); give checksum: sha256:<hex>, or the "
        ".sha256sum file that lies next to the runfile.",
    )


def _redistrib_files(value: Any) -> list[tuple[str, str]]:
    """Return name and SHA-256 of each entry at any depth: components, then platforms."""
    found: list[tuple[str, str]] = []
    waiting = [value]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, list):
            waiting += reversed(entry)
        elif isinstance(entry, dict):
            place, checksum = entry.get("relative_path"), entry.get("sha256")
            if isinstance(place, str) and isinstance(checksum, str):
                found.append((file_name(place), checksum))
            else:
                waiting += reversed(list(entry.values()))
    return found


def is_url(text: str) -> bool:
    """Return whether the text is a URL and not a path."""
    return re.match(r"^(?:https?|ftp|file)://", text) is not None


def file_name(place: str) -> str:
    """Return the file name of a path or URL, without a query."""
    path = unquote(urlsplit(place).path) if is_url(place) else place
    return path.rstrip("/").rpartition("/")[2]


def is_file_name(name: str) -> bool:
    """Return whether the name is a plain file name, without a path."""
    return name not in ("", ".", "..") and name.isprintable() and "/" not in name


def shown(place: str) -> str:
    """Return a path or URL without password and query (signed links)."""
    return addresses(place, True) if is_url(place) else place
