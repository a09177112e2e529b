# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A package repository: the request, the files on the node, and the plan.

:class:`Format` is the interface to the files of a package manager.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .._record.file_record import Undo

KEY = "key"


CONFIGURATION = "configuration"


EARLIER = "earlier"


SOURCES = "sources"


HEADER = "# Written by kubegpu.nodes.package_repository."


class Format(Protocol):
    """The files in which a package manager has its repositories: their paths and their content."""

    @property
    def name(self) -> str:
        """Return the name of the package manager in messages."""

    @property
    def suite(self) -> str:
        """Return the default suite."""

    @property
    def source_file(self) -> re.Pattern[str]:
        """Return the pattern of names of source files; the manager ignores other files."""

    @property
    def keyring(self) -> bool:
        """Return whether the node has one keyring for all repositories."""

    @property
    def sandboxed(self) -> bool:
        """Return whether the manager reads keys as another user than root."""

    @property
    def more_sources(self) -> tuple[str, ...]:
        """Return the source files in other directories."""

    def imports(self, request: Request) -> bool:
        """Return whether the keys have to be imported into that keyring."""

    def sources_file(self, name: str) -> str: ...

    def key_file(self, name: str) -> str: ...

    def configuration_file(self, name: str) -> str:
        """Return the file with proxy and CA of the host; empty if the entry has them."""

    def check(self, request: Request) -> None:
        """Check the request.

        :raises InputError: this manager does not support it.
        """

    def warnings(self, request: Request) -> tuple[str, ...]:
        """Return warnings about options that only the whole system can have."""

    def sources(self, request: Request, state: State) -> str:
        """Return the entry."""

    def configuration(self, request: Request) -> str:
        """Return the text with proxy and CA of the host, or an empty string."""

    def signs(self, path: str, text: str, key_file: str) -> bool:
        """Return whether an entry in the file trusts the key file."""

    def without_ours(self, request: Request, text: str) -> str | None:
        """Return the text without the entry of the request; None if nothing is left."""

    def own(self, request: Request) -> tuple[str, ...]:
        """Return the addresses that no other entry may have."""

    def disable(
        self, text: str, path: str, name: str, addresses: Sequence[str], architecture: str
    ) -> tuple[str, tuple[str, ...]]:
        """Disable the entries for the addresses; return the text and the disabled entries."""

    def enable(self, text: str, name: str) -> str:
        """Enable the entries that were disabled for ``name``."""

    def validation(self, request: Request) -> tuple[str, ...]:
        """Return the command by which the manager validates its sources."""


@dataclass(frozen=True)
class Request:
    """The requested repository. Empty strings and tuples mean none; ``key`` is an armored key.

    ``keyring``: an existing key file of the node, instead of ``key``. ``keyring_key``: its content
    (None: the file does not exist).
    """

    name: str
    format: Format
    present: bool = True
    url: str = ""
    suite: str = "$(ARCH)/"
    components: tuple[str, ...] = ()
    key: str = ""
    key_fingerprints: tuple[str, ...] = ()
    keyring: str = ""
    keyring_key: bytes | None = None
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: str = ""
    ca_file: str = ""
    replaces: tuple[str, ...] = ()
    # Whether packages and metadata have to be signed; apt always requires signed metadata.
    check_packages: bool = True
    check_metadata: bool = True

    @property
    def sources_file(self) -> str:
        return self.format.sources_file(self.name)

    @property
    def key_file(self) -> str:
        return self.format.key_file(self.name)

    @property
    def signed_by(self) -> str:
        """Return the file of the keys that the entry trusts."""
        return self.keyring or self.key_file

    @property
    def configuration_file(self) -> str:
        return self.format.configuration_file(self.name)


@dataclass(frozen=True)
class SeenFile:
    """A file of the node. ``undo`` and ``restored``: how its change is undone, by the record."""

    path: str
    text: str | None
    mode: int | None = None
    recorded: bool = False
    undo: Undo = Undo.REMOVE_LINES
    restored: str | None = None
    restored_mode: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """The relevant files by path, and the node's architecture as the package manager names it."""

    files: Mapping[str, SeenFile]
    architecture: str = ""

    def file(self, path: str) -> SeenFile:
        return self.files.get(path, SeenFile(path, None))


@dataclass(frozen=True)
class Change:
    """The new state of a file; ``text`` None removes it. ``undo``: drop its record, too."""

    kind: str
    path: str
    text: str | None
    mode: int | None
    undo: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The files to write, in this order. ``disabled``: the earlier entries that are disabled."""

    changes: tuple[Change, ...] = ()
    disabled: tuple[Mapping[str, str], ...] = ()
    key_fingerprints: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
