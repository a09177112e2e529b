# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A package repository: what is asked for, the files that matter, and what is planned.

What the files of a package manager look like is behind :class:`Format`.
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


HEADER = "# Written by kubegpu.nodes.nvidia_repository."


class Format(Protocol):
    """How a package manager has its repositories: where the files lie, and what stands in them."""

    @property
    def name(self) -> str:
        """Return what the manager is called in messages."""

    @property
    def suite(self) -> str:
        """Return what stands for the suite where none is given."""

    @property
    def source_file(self) -> re.Pattern[str]:
        """Return how files of sources are called; the manager ignores others."""

    @property
    def keyring(self) -> bool:
        """Return whether keys lie in a keyring of the whole node, too."""

    @property
    def more_sources(self) -> tuple[str, ...]:
        """Return the files of sources that lie elsewhere."""

    def imports(self, request: Request) -> bool:
        """Return whether the keys have to be in that keyring, too."""

    def sources_file(self, name: str) -> str: ...

    def key_file(self, name: str) -> str: ...

    def configuration_file(self, name: str) -> str:
        """Return the file that says how the host is reached; empty where the entry says that."""

    def check(self, request: Request) -> None:
        """Refuse what this manager cannot do."""

    def warnings(self, request: Request) -> tuple[str, ...]:
        """Return what this manager takes from the whole system, and an entry cannot say."""

    def sources(self, request: Request, state: State) -> str:
        """Return the entry."""

    def configuration(self, request: Request) -> str:
        """Return how the host is reached, or an empty string."""

    def signs(self, path: str, text: str, key_file: str) -> bool:
        """Return whether an entry in the file trusts the key file."""

    def without_ours(self, request: Request, text: str) -> str | None:
        """Return the text without our entry; None where nothing is left."""

    def own(self, request: Request) -> tuple[str, ...]:
        """Return the addresses that no other entry may give, too."""

    def disable(
        self, text: str, path: str, name: str, addresses: Sequence[str], architecture: str
    ) -> tuple[str, tuple[str, ...]]:
        """Switch off the entries for the addresses; return the text and what was switched off."""

    def enable(self, text: str, name: str) -> str:
        """Take back what was switched off in the text for ``name``."""

    def validation(self, request: Request) -> tuple[str, ...]:
        """Return the command by which the manager says what it has against its sources."""


@dataclass(frozen=True)
class Request:
    """What is asked for. ``key`` is the armored key; empty strings and tuples mean: none.

    ``keyring`` is a key file that the node has already, instead of ``key``: ``keyring_key`` is what
    is in it, None where it is not there.
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
    # Whether packages, and the repository's metadata, have to be signed; apt wants the latter.
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
    """A file as it stands. ``way`` and ``restored`` are what the node's record says of it."""

    path: str
    text: str | None
    mode: int | None = None
    recorded: bool = False
    way: Undo = Undo.REMOVE_LINES
    restored: str | None = None
    restored_mode: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """The files that matter, by path, and the node's architecture in the manager's words."""

    files: Mapping[str, SeenFile]
    architecture: str = ""

    def file(self, path: str) -> SeenFile:
        return self.files.get(path, SeenFile(path, None))


@dataclass(frozen=True)
class Change:
    """One file's new shape; ``text`` None removes it. ``undo``: forget the record as well."""

    kind: str
    path: str
    text: str | None
    mode: int | None
    undo: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What is to be written, in this order. ``disabled`` are the earlier entries that go."""

    changes: tuple[Change, ...] = ()
    disabled: tuple[Mapping[str, str], ...] = ()
    key_fingerprints: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
