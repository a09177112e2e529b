# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Package repositories in the files of apt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .._core.errors import InputError
from .._core.redact import redact
from .addresses import host, is_direct, same_repository
from .apt_parser import ONE_LINE, AptEntry, parse
from .comments import comment_out, markers, restore_lines
from .types import HEADER, Request, State

# The line that disabling writes in place of the commented ones.
_ADDED = re.compile(r"(?:Enabled:\s*no|URIs:)", re.IGNORECASE)


@dataclass(frozen=True)
class AptFormat:
    """Paths and content of apt's files."""

    sources_directory: str = "/etc/apt/sources.list.d"
    sources_list: str = "/etc/apt/sources.list"
    keyring_directory: str = "/etc/apt/keyrings"
    configuration_directory: str = "/etc/apt/apt.conf.d"

    name = "apt"
    suite = "$(ARCH)/"
    source_file = re.compile(r"[A-Za-z0-9._-]+\.(?:list|sources)\Z")
    keyring = False
    sandboxed = True

    @property
    def more_sources(self) -> tuple[str, ...]:
        return (self.sources_list,)

    def imports(self, request: Request) -> bool:
        return False

    def sources_file(self, name: str) -> str:
        return f"{self.sources_directory}/{name}.sources"

    def key_file(self, name: str) -> str:
        return f"{self.keyring_directory}/{name}.asc"

    def configuration_file(self, name: str) -> str:
        return f"{self.configuration_directory}/80{name}.conf"

    def warnings(self, request: Request) -> tuple[str, ...]:
        return ()

    def check(self, request: Request) -> None:
        flat = request.suite.endswith("/")
        if flat == bool(request.components):
            raise InputError(
                "A suite that ends with a slash is a path and has no components; any other needs "
                "one.",
                evidence=f"suite {request.suite!r}, components {list(request.components)}",
                next_step="Correct suite or components.",
            )
        if (request.ca_file or request.http_proxy or request.https_proxy) and ":" in host(
            request.url
        ):
            raise InputError(
                "apt cannot have a proxy or a certificate authority for an IPv6 address.",
                evidence=redact(request.url),
                next_step="Give the mirror a host name.",
            )

    def sources(self, request: Request, state: State) -> str:
        return _sources(request, _signed_by(request, state))

    def configuration(self, request: Request) -> str:
        return _configuration(request)

    def signs(self, path: str, text: str, key_file: str) -> bool:
        return any(
            key_file in (entry.signed_by or "").split()
            for entry in parse(path, text)
            if entry.enabled
        )

    def without_ours(self, request: Request, text: str) -> str | None:
        return _without_our_stanza(request, text)

    def own(self, request: Request) -> tuple[str, ...]:
        return (_location(_address(request), request.suite),)

    def disable(
        self, text: str, path: str, name: str, addresses: Sequence[str], architecture: str
    ) -> tuple[str, tuple[str, ...]]:
        return disable(text, path, name, addresses, architecture)

    def enable(self, text: str, name: str) -> str:
        return enable(text, name)

    def validation(self, request: Request) -> tuple[str, ...]:
        return (
            *("apt-get", "indextargets", "-o"),
            f"Dir::Etc::sourcelist={self.sources_list}",
            "-o",
            f"Dir::Etc::sourceparts={self.sources_directory}",
        )


def disable(
    text: str, path: str, name: str, addresses: Sequence[str], architecture: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Disable the entries for ``addresses``; return the text and the disabled entries."""
    lines = text.splitlines(keepends=True)
    disabled: list[str] = []
    # From the end, so that line numbers of earlier entries stay valid.
    for entry in reversed(parse(path, text)):
        if not entry.enabled:
            continue
        matching = _matching(entry, addresses, architecture)
        if not matching:
            continue
        first, last = entry.start_line - 1, entry.end_line
        if entry.kind == ONE_LINE:
            lines[first:last] = [comment_out(name, line) for line in lines[first:last]]
        elif len(matching) == len(entry.uris):
            lines[first:last] = _set_field(name, lines[first:last], "Enabled", "no")
        else:
            staying = " ".join(uri for uri in entry.uris if uri not in matching)
            lines[first:last] = _set_field(name, lines[first:last], "URIs", staying)
        disabled.extend(reversed([f"{uri} {' '.join(entry.suites)}".strip() for uri in matching]))
    return "".join(lines), tuple(reversed(disabled))


def enable(text: str, name: str) -> str:
    """Undo everything that :func:`disable` did for ``name``."""
    return restore_lines(text, name, _ADDED)


def _without_our_stanza(request: Request, text: str) -> str | None:
    lines = text.splitlines(keepends=True)
    for entry in reversed(parse(request.sources_file, text)):
        ours = request.key_file in (entry.signed_by or "").split()
        # An entry with a key file of the node is known by the line above it.
        if ours or lines[max(entry.start_line - 2, 0)].rstrip() == HEADER:
            del lines[entry.start_line - 1 : entry.end_line]
    rest = "".join(line for line in lines if line.rstrip() != HEADER)
    return rest.lstrip("\n") if rest.strip() else None


def _signed_by(request: Request, state: State) -> str:
    """Return the value of Signed-By; with a keyring, that of other entries for the same address.

    apt refuses entries for one address that differ in it.
    """
    if not request.keyring:
        return request.key_file
    place = (_location(_address(request), request.suite),)
    for path in sorted(state.files):
        text = state.file(path).text
        if path == request.sources_file or text is None:
            continue
        for entry in parse(path, text):
            if entry.enabled and _matches(entry, place, state.architecture):
                return entry.signed_by or ""
    return request.keyring


def _matches(entry: AptEntry, place: Sequence[str], architecture: str) -> bool:
    return any(
        same_repository(_location(uri, suite), place, architecture)
        for uri in entry.uris
        for suite in entry.suites
    )


def _sources(request: Request, signed_by: str) -> str:
    lines = [
        HEADER,
        "Types: deb",
        f"URIs: {_address(request)}",
        f"Suites: {'/' if request.suite.endswith('/') else request.suite}",
    ]
    if request.components:
        lines.append(f"Components: {' '.join(request.components)}")
    lines.append("Enabled: yes")
    if signed_by:
        lines.append(f"Signed-By: {signed_by}")
    return "\n".join(lines) + "\n"


def _configuration(request: Request) -> str:
    name = host(request.url)
    direct = "DIRECT" if is_direct(name, request.no_proxy) else ""
    settings = [
        (f"Acquire::http::Proxy::{name}", request.http_proxy and (direct or request.http_proxy)),
        (f"Acquire::https::Proxy::{name}", request.https_proxy and (direct or request.https_proxy)),
        (f"Acquire::https::{name}::CaInfo", request.ca_file),
    ]
    lines = [f'{key} "{value}";' for key, value in settings if value and name]
    return "\n".join([HEADER.replace("#", "//", 1), *lines]) + "\n" if lines else ""


def _address(request: Request) -> str:
    """Return the URI of the entry; it includes the path of a flat suite, as NVIDIA writes it."""
    base = request.url.rstrip("/")
    path = request.suite.strip("/") if request.suite.endswith("/") else ""
    return f"{base}/{path}" if path else base


def _location(uri: str, suite: str) -> str:
    """Return the location of an entry's index, which identifies the repository."""
    return uri if suite.endswith("/") else f"{uri.rstrip('/')}/dists/{suite}"


def _matching(entry: AptEntry, addresses: Sequence[str], architecture: str) -> tuple[str, ...]:
    matching = []
    for uri in entry.uris:
        hits = [
            same_repository(
                f"{uri}/{suite}" if suite.endswith("/") else _location(uri, suite),
                addresses,
                architecture,
            )
            for suite in entry.suites or ("/",)
        ]
        if any(hits) and not all(hits):
            raise InputError(
                f"{entry.file}, line {entry.start_line}: one entry gives the repository together "
                "with others below the same URL.",
                evidence=redact(f"{uri} {' '.join(entry.suites)}"),
                next_step="Split it into one entry for each suite, then run again.",
            )
        if any(hits):
            matching.append(uri)
    return tuple(matching)


def _set_field(name: str, stanza: list[str], title: str, value: str) -> list[str]:
    """Return the stanza with one field set; its old lines become comments."""
    new = [f"{markers(name)[1]}\n", f"{title}: {value}\n"]
    result: list[str] = []
    inside = placed = False
    for line in stanza:
        if line.lower().startswith(f"{title.lower()}:"):
            inside = True
        elif line[0] not in " \t#" and inside:
            inside = False
            if not placed:
                result.extend(new)
                placed = True
        if inside and not line.startswith("#"):
            result.append(comment_out(name, line if line.endswith("\n") else f"{line}\n"))
        else:
            result.append(line)
    if inside and not placed:
        result.extend(new)
        placed = True
    if placed:
        return result
    # Before the first field: a stray continuation line after it would become a part of it.
    first = next((at for at, line in enumerate(result) if line[0] not in " \t#"), 0)
    return [*result[:first], *new, *result[first:]]
