# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Package repositories in ``.repo`` files of dnf and zypper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._core.errors import InputError
from .addresses import host, is_direct, same_repository
from .comments import comment_out, markers, restore_lines
from .types import HEADER, Request, State

# The line that disabling writes in place of the commented one.
_ADDED = re.compile(r"enabled\s*=\s*0\s*\Z")
_SECTION = re.compile(r"\[(?P<name>[^\]]+)\]\s*\Z")
_OFF = ("0", "no", "false", "off")


@dataclass(frozen=True)
class RpmFormat:
    """Paths and content of the files of a package manager for rpm."""

    name: str
    sources_directory: str
    # Whether the entry can have a proxy and a CA.
    reaches: bool
    # Whether metadata is checked by rpm's keyring, too.
    one_keyring: bool
    validate: tuple[str, ...]
    keyring_directory: str = "/etc/pki/rpm-gpg"

    suite = "$basearch"
    source_file = re.compile(r"[^/]+\.repo\Z")
    keyring = True
    sandboxed = False
    more_sources = ()

    def sources_file(self, name: str) -> str:
        return f"{self.sources_directory}/{name}.repo"

    def key_file(self, name: str) -> str:
        return f"{self.keyring_directory}/RPM-GPG-KEY-{name}"

    def configuration_file(self, name: str) -> str:
        return ""

    def imports(self, request: Request) -> bool:
        return self.one_keyring or request.check_packages

    def check(self, request: Request) -> None:
        if request.components:
            raise InputError(f"{self.name} has no components.", next_step="Leave components out.")
        if request.keyring:
            raise InputError(
                f"keyring is for apt; {self.name} is given key and key_fingerprints.",
                next_step="Set key and key_fingerprints.",
            )
        if not (request.check_packages or request.check_metadata):
            raise InputError(
                "Neither packages nor metadata would be checked by a key.",
                next_step="Set check_packages or check_metadata to true.",
            )

    def warnings(self, request: Request) -> tuple[str, ...]:
        # Not an error: one variable sets proxy and CA for all nodes of a site.
        texts = []
        if not self.reaches and (request.http_proxy or request.https_proxy):
            texts.append(
                f"{self.name} has no proxy for one repository: none is written for {request.name}, "
                "and the system's is used. Next step: see that it is set in /etc/sysconfig/proxy."
            )
        if not self.reaches and request.ca_file:
            texts.append(
                f"{self.name} has no certificate authority for one repository: "
                f"{request.ca_file} is not named for {request.name}, and the system's are trusted. "
                "Next step: see that it lies in /etc/pki/trust/anchors, and run "
                "update-ca-certificates."
            )
        return tuple(texts)

    def sources(self, request: Request, state: State) -> str:
        lines = [
            HEADER,
            f"[{request.name}]",
            f"name={request.name}",
            f"baseurl={address(request)}",
            "enabled=1",
            f"gpgcheck={int(request.check_packages)}",
            f"repo_gpgcheck={int(request.check_metadata)}",
            f"gpgkey=file://{request.key_file}",
        ]
        if self.reaches:
            secure = request.url.lower().startswith("https")
            proxy = request.https_proxy if secure else request.http_proxy
            if proxy:
                direct = is_direct(host(request.url), request.no_proxy)
                lines.append(f"proxy={'_none_' if direct else proxy}")
            if request.ca_file:
                lines.append(f"sslcacert={request.ca_file}")
        return "\n".join(lines) + "\n"

    def configuration(self, request: Request) -> str:
        return ""

    def signs(self, path: str, text: str, key_file: str) -> bool:
        return any(
            section.enabled and f"file://{key_file}" in section.values("gpgkey")
            for section in sections(text)
        )

    def without_ours(self, request: Request, text: str) -> str | None:
        lines = text.splitlines(keepends=True)
        for section in reversed(list(sections(text))):
            if section.name == request.name:
                del lines[section.start : section.end]
        rest = "".join(line for line in lines if line.rstrip() != HEADER)
        return rest.lstrip("\n") if rest.strip() else None

    def own(self, request: Request) -> tuple[str, ...]:
        return (address(request),)

    def disable(
        self, text: str, path: str, name: str, addresses: Sequence[str], architecture: str
    ) -> tuple[str, tuple[str, ...]]:
        lines = text.splitlines(keepends=True)
        disabled: list[str] = []
        # From the end, so that line numbers of earlier sections stay valid.
        for section in reversed(list(sections(text))):
            uris = (*section.values("baseurl"), *section.values("mirrorlist"))
            matching = [uri for uri in uris if same_repository(uri, addresses, architecture)]
            if not section.enabled or not matching:
                continue
            lines[section.start : section.end] = _switched_off(
                name, lines[section.start : section.end]
            )
            disabled.extend(f"[{section.name}] {uri}" for uri in reversed(matching))
        return "".join(lines), tuple(reversed(disabled))

    def enable(self, text: str, name: str) -> str:
        return restore_lines(text, name, _ADDED)

    def validation(self, request: Request) -> tuple[str, ...]:
        return tuple(
            word.format(folder=self.sources_directory, name=request.name) for word in self.validate
        )


RPM_FORMATS = ("dnf", "dnf5", "zypper")


def rpm_format(
    name: str, sources_directory: str = "", keyring_directory: str = "/etc/pki/rpm-gpg"
) -> RpmFormat:
    """Return the format of dnf or zypper."""
    if name == "zypper":
        return RpmFormat(
            name="zypper",
            sources_directory=sources_directory or "/etc/zypp/repos.d",
            reaches=False,
            one_keyring=True,
            validate=("zypper", "--no-refresh", "--reposd-dir", "{folder}", "repos", "{name}"),
            keyring_directory=keyring_directory,
        )
    return RpmFormat(
        name=name,
        sources_directory=sources_directory or "/etc/yum.repos.d",
        reaches=True,
        one_keyring=False,
        validate=(
            *(name, "-C", "-q", "--setopt=reposdir={folder}", "--disablerepo=*"),
            *("--enablerepo={name}", "repolist"),
        ),
        keyring_directory=keyring_directory,
    )


def address(request: Request) -> str:
    """Return the address of the repository."""
    path = request.suite.strip("/")
    base = request.url.rstrip("/")
    return f"{base}/{path}" if path else base


@dataclass(frozen=True)
class Section:
    """A section of a ``.repo`` file; lines count from 0, the end excluded."""

    name: str
    start: int
    end: int
    lines: tuple[str, ...]

    def values(self, key: str) -> tuple[str, ...]:
        """Return the words of a value, which can continue in indented lines."""
        found: list[str] = []
        inside = False
        for line in self.lines:
            if line[:1] in ("#", ";") or not line.strip():
                continue
            if line[0] in " \t":
                if inside:
                    found.extend(line.replace(",", " ").split())
                continue
            title, equals, value = line.partition("=")
            inside = bool(equals) and title.strip().lower() == key
            if inside:
                found = value.replace(",", " ").split()
        return tuple(found)

    @property
    def enabled(self) -> bool:
        words = self.values("enabled")
        return not words or words[0].lower() not in _OFF


def sections(text: str) -> Iterator[Section]:
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if _SECTION.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        match = _SECTION.match(lines[start])
        if match and match["name"] != "main":
            # A comment above the next section belongs to that one.
            last = end
            while start + 1 < last < len(lines) and lines[last - 1].startswith("#"):
                last -= 1
            yield Section(match["name"], start, last, tuple(lines[start + 1 : last]))


def _switched_off(name: str, lines: Sequence[str]) -> list[str]:
    rest = [
        comment_out(name, line) if re.match(r"enabled\s*=", line, re.IGNORECASE) else line
        for line in lines[1:]
    ]
    head = lines[0] if lines[0].endswith("\n") else f"{lines[0]}\n"
    return [head, f"{markers(name)[1]}\n", "enabled=0\n", *rest]
