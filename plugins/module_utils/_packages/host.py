# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node as a package set sees it: its package manager and the module streams to plan for."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence

from .._distro.os_release import read_os
from .._host.command import Result, Runner
from .._host.reader import NodeReader
from .._host.temporary import create_tree, temporary_directory
from . import streams as modules
from .manager import PackageManager
from .registry import choose
from .types import Streams


def find_manager(name: str, run: Runner) -> PackageManager:
    """Return the package manager of this name; ``auto`` is that of the node's distribution.

    :raises InputError: this release does not support the package manager.
    """
    found = read_os(NodeReader(run=run))["package_manager"] if name == "auto" else name
    return choose(found, run)


class Host:
    """The package manager of a node, with the streams of modules that packages are planned for.

    :param find: returns the package manager. It is called when the manager is first needed.
    :param lock_timeout: seconds to wait while another process holds the manager's lock.
    """

    def __init__(
        self,
        find: Callable[[], PackageManager],
        lock_timeout: int,
        streams: Streams | None = None,
    ) -> None:
        self._find = find
        self._lock_timeout = lock_timeout
        self.streams = streams or Streams()

    @functools.cached_property
    def manager(self) -> PackageManager:
        # A set that is not recorded can be absent without any package manager.
        return self._find()

    def run_unlocked(self, argv: Sequence[str], timeout: int = 60) -> Result:
        """Run a command of the package manager; retry while another process holds its lock.

        :param timeout: seconds for each attempt.
        """
        deadline = time.monotonic() + self._lock_timeout
        while True:
            answer = self.manager.run(argv, timeout=timeout)
            if not self.manager.locked(answer) or time.monotonic() >= deadline:
                return answer
            time.sleep(1)

    @contextlib.contextmanager
    def with_temporary_lists(self) -> Iterator[Host]:
        """Yield the host with package lists in a temporary directory; they are still empty."""
        # apt downloads as a user of its own, which has to enter the directory.
        with temporary_directory("kubegpu-lists-", 0o755) as folder:
            isolated = self.manager.isolated(folder)
            create_tree(isolated.directories, isolated.files)
            yield Host(lambda: isolated.manager, self._lock_timeout, self.streams)

    def with_streams(self, streams: Streams) -> Host:
        """Return the host as it would be with these streams enabled; nothing is switched."""
        if not streams.after:
            return self
        changes = streams.changes
        manager = self.manager.with_streams(changes) if changes else self.manager
        return Host(lambda: manager, self._lock_timeout, streams)

    def missing_streams(self) -> tuple[str, ...]:
        """Return the streams to enable that no repository has."""
        return modules.unavailable_streams(self.streams, self.available_streams(self.streams))

    def available_streams(self, streams: Streams) -> dict[str, tuple[str, ...]]:
        """Return the streams in repositories, by module, of the modules to switch."""
        names = sorted(streams.changes)
        return self.manager.available_streams(names) if names else {}

    def interrupted(self) -> bool:
        """Return whether a killed run of the package manager left entries in its journal."""
        journal = self.manager.journal
        return bool(journal and NodeReader().list_dir(journal))
