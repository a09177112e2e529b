# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of package managers: what a package set needs of each of them.

Reading, planning, applying and verifying a set is the same for all. Each manager has one file with
its commands and the parsers of their output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .._host.access import Barrier
from .._host.command import Result, Runner
from .obstacles import Obstacle
from .types import Package


@dataclass(frozen=True)
class Simulation:
    """The result of a dry run: the packages to remove, and the versions to install by name."""

    answer: Result
    removed: tuple[str, ...]
    incoming: Mapping[str, str]


@dataclass(frozen=True)
class Database:
    """The packages of the node's own architecture, and the packages that each one depends on."""

    packages: Mapping[str, Package]
    needs: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Changes:
    """The changes that Ansible's own module makes, in this order.

    ``broken`` and ``purge`` are removed with their configuration, ``remove`` without it.
    ``install``: versions by name. ``helpers``: packages to install before. ``remove_last``:
    dependencies of the set.
    """

    broken: Sequence[str] = ()
    remove: Sequence[str] = ()
    purge: Sequence[str] = ()
    install: Mapping[str, str | None] = field(default_factory=dict)
    helpers: Sequence[str] = ()
    remove_last: Sequence[str] = ()
    # Whether the install call removes packages, too (see ``PackageManager.replaces``).
    replacing: bool = False


@dataclass(frozen=True)
class Isolated:
    """A manager with package lists in another directory, and what has to be created there first."""

    manager: PackageManager
    directories: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


class WithoutStreams:
    """The part of a package manager without streams of modules."""

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
        # Callers check has_streams before.
        raise NotImplementedError


class PackageManager(Protocol):
    """A package manager of a node. Commands are run by a runner that is passed in."""

    # Name of Ansible's module for packages.
    module: str
    # Log file that error messages name.
    log: str
    # Directory with changes that a killed run did not write to the database; empty if none exists.
    journal: str
    # Beginning of the directory for temporary files of the manager and of the packages' scripts,
    # one for each set; empty if it takes none (TMPDIR).
    temporary: str
    # Command that only takes the manager's lock.
    lock_command: tuple[str, ...]
    # Whether held packages have to be released before a change.
    releases_first: bool
    # Whether Ansible's module waits for the manager's lock.
    waits_for_lock: bool
    # Text in the output of a dry run if the package sources cannot be read.
    broken_sources: str
    # Whether one call can install packages and remove those that they replace. With the other
    # managers these are removed by an earlier call, together with packages that depend on them.
    replaces: bool
    # Whether held packages keep their automatic mark when others change.
    marks_of_held: bool
    # Whether the manager has modules with streams.
    has_streams: bool
    # Command that removes the kernels that are not used any more.
    remove_kernels: str

    @property
    def run(self) -> Runner: ...

    def locked(self, answer: Result) -> bool:
        """Return whether a command failed because another process holds the manager's lock."""

    def read(self, names: Sequence[str] = ()) -> Database:
        """Return the named packages, or all. Names can be patterns; unknown names are ignored."""

    def read_all(self) -> Database:
        """Return all packages, with their automatic marks."""

    def available(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the available versions by name, the newest first."""

    def refresh_command(self) -> tuple[str, ...]:
        """Return the command that refreshes the package lists."""

    def refresh_errors(self, answer: Result) -> str:
        """Return the errors and warnings of a refresh, or an empty string."""

    def isolated(self, folder: str) -> Isolated:
        """Return the manager with package lists in the directory."""

    def simulate(self, install: Mapping[str, str | None], remove: Sequence[str]) -> Simulation:
        """Return the result of a dry run that ignores holds."""

    def mentioned_packages(self, answer: Result) -> tuple[str, ...]:
        """Return all words of the output that can be names of packages."""

    def edited(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the packages with an edited configuration file."""

    def pinning(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the packages whose configuration would keep pinning versions after removal."""

    def obstacles(self, wanted: Mapping[str, str | None]) -> tuple[Obstacle, ...]:
        """Return the settings that keep these packages from being installed.

        :param wanted: packages and their requested versions (None: any).
        """

    def unreadable_keys(self) -> tuple[Barrier, ...]:
        """Return what keeps the manager from the keys of its repositories."""

    def helpers(self, packages: Mapping[str, Package], *, hold: bool) -> tuple[str, ...]:
        """Return the missing packages that changing or holding packages needs."""

    def repair_commands(self, broken: Sequence[str]) -> tuple[Sequence[str], ...]:
        """Return the commands that repair half installed packages."""

    def to_repair(self, broken: Sequence[str], uncovered: Sequence[str]) -> Sequence[str]:
        """Return the packages that have to be repaired before a change.

        :param broken: half installed packages of the set.
        :param uncovered: half installed packages that the change neither installs nor removes.
        """

    def mark_commands(
        self, hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
    ) -> tuple[list[str], ...]:
        """Return the commands that hold and release packages and set automatic marks."""

    def tasks(self, changes: Changes, lock_timeout: int) -> list[dict[str, Any]]:
        """Return the calls of Ansible's module, each with ``module`` and ``arguments``."""

    def streams(self, modules: Sequence[str]) -> dict[str, str]:
        """Return the enabled stream of each module; see ``NONE`` and ``DISABLED``."""

    def available_streams(self, modules: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the available streams, by module."""

    def stream_commands(
        self, now: Mapping[str, str], wanted: Mapping[str, str]
    ) -> tuple[list[str], ...]:
        """Return the commands that switch from the current to the wanted streams."""

    def with_streams(self, streams: Mapping[str, str]) -> PackageManager:
        """Return the manager; it reads and simulates as if these streams were enabled."""
