# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The seam between package sets and package managers: what every manager has to answer.

The flow (read, plan, apply, verify) is one: ``_package_set`` and the module ``package_set``. What
differs is behind this: one file for each manager, which knows its commands and reads their words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .._host.command import Result, Runner
from .types import Package


@dataclass(frozen=True)
class Simulation:
    """The answer to a dry run: what would be removed, and what would come in which version."""

    answer: Result
    removed: tuple[str, ...]
    incoming: Mapping[str, str]


@dataclass(frozen=True)
class Database:
    """The packages of the node's own architecture, and the names that each one needs."""

    packages: Mapping[str, Package]
    needs: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Changes:
    """What is to be changed by Ansible's own module, in this order.

    ``broken`` and ``purge`` go with their configuration, ``remove`` without; ``install`` has the
    versions by name; ``helpers`` is what is needed before it; ``along`` came along with the set and
    goes last.
    """

    broken: Sequence[str] = ()
    remove: Sequence[str] = ()
    purge: Sequence[str] = ()
    install: Mapping[str, str | None] = field(default_factory=dict)
    helpers: Sequence[str] = ()
    remove_last: Sequence[str] = ()
    # Whether installing takes away what it replaces (see ``PackageManager.replaces``).
    replacing: bool = False


@dataclass(frozen=True)
class Isolated:
    """A manager whose package lists lie in a folder of their own, which has to be made first."""

    manager: PackageManager
    directories: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


class WithoutStreams:
    """The part of a package manager that has no modules."""

    has_streams: bool = False

    def streams(self, modules: Sequence[str]) -> dict[str, str]:
        return {}

    def available_streams(self, modules: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {}

    def stream_commands(
        self, now: Mapping[str, str], wanted: Mapping[str, str]
    ) -> tuple[list[str], ...]:
        return ()

    def with_streams(self, streams: Mapping[str, str]) -> PackageManager:
        # Asked only of one that has streams, which is looked at before.
        raise NotImplementedError


class PackageManager(Protocol):
    """One package manager of a node, asked by a runner that is passed in."""

    # Ansible's module that changes packages.
    module: str
    # What tells more where something went wrong.
    log: str
    # What a killed run has not written into the database yet; empty where there is no such thing.
    journal: str
    # Takes the manager's lock, and does no more.
    lock_command: tuple[str, ...]
    # Whether what is held has to be released before it can be changed.
    releases_first: bool
    # Whether Ansible's module waits for the manager's lock.
    waits_for_lock: bool
    # What the words of a dry run say where the sources themselves cannot be read.
    broken_sources: str
    # Whether one call installs packages and removes what they replace. Elsewhere that goes first,
    # in a call of its own, which takes away what needs the one or the other.
    replaces: bool
    # Whether a package that is held keeps its mark as automatic when others change.
    marks_of_held: bool
    # Whether packages come in streams of modules, of which one is enabled.
    has_streams: bool

    @property
    def run(self) -> Runner: ...

    def locked(self, answer: Result) -> bool:
        """Return whether a command failed since another run holds the manager's lock."""

    def read(self, names: Sequence[str] = ()) -> Database:
        """Return the packages named (patterns, too), or all; what is unknown is left out."""

    def read_all(self) -> Database:
        """Return all packages, with the marks of those that nobody asked for."""

    def available(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the versions that package lists have, newest first, by name."""

    def refresh_command(self) -> tuple[str, ...]:
        """Return the command that reads the package lists again."""

    def refresh_errors(self, answer: Result) -> str:
        """Return what was complained about when the lists were read."""

    def isolated(self, folder: str) -> Isolated:
        """Return the same manager with package lists in the folder."""

    def simulate(self, install: Mapping[str, str | None], remove: Sequence[str]) -> Simulation:
        """Return what the manager would do, holds left aside."""

    def mentioned_packages(self, answer: Result) -> tuple[str, ...]:
        """Return all words of an answer that can be names of packages."""

    def edited(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the packages of which a configuration file was changed."""

    def pinning(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the packages of which a configuration file goes on pinning when they are gone."""

    def helpers(self, packages: Mapping[str, Package], *, hold: bool) -> tuple[str, ...]:
        """Return what is missing that changing or holding packages needs, and brings."""

    def repair_commands(self, broken: Sequence[str]) -> tuple[Sequence[str], ...]:
        """Return the commands that finish what was left half done; ``broken`` is of the plan."""

    def to_repair(self, broken: Sequence[str], uncovered: Sequence[str]) -> Sequence[str]:
        """Return which of the broken packages have to be mended before a change.

        ``uncovered`` are those that the change itself neither replaces nor takes away.
        """

    def mark_commands(
        self, hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
    ) -> tuple[list[str], ...]:
        """Return the commands that hold and release packages and give automatic marks back."""

    def tasks(self, changes: Changes, lock_timeout: int) -> list[dict[str, Any]]:
        """Return the calls of Ansible's module: ``module`` and ``arguments`` of each."""

    def streams(self, modules: Sequence[str]) -> dict[str, str]:
        """Return the stream of each module that is enabled, as ``_module_streams`` says it."""

    def available_streams(self, modules: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the streams that repositories have, by module."""

    def stream_commands(
        self, now: Mapping[str, str], wanted: Mapping[str, str]
    ) -> tuple[list[str], ...]:
        """Return the commands that switch to the streams."""

    def with_streams(self, streams: Mapping[str, str]) -> PackageManager:
        """Return the same manager, which reads as if these streams were enabled."""
