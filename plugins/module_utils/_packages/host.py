# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node as a package set sees it: its package manager and the module streams to plan for."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from .._core.errors import KubegpuError, Refusal
from .._distro.images import PACKAGES, immutable
from .._distro.os_release import read_os
from .._host.command import Result, Runner
from .._host.reader import NodeReader
from .._host.space import read_file_systems
from .._host.temporary import create_tree, temporary_directory
from . import streams as modules
from .failures import CHOICE, READ_ONLY, SIGNATURE, SPACE, Circumstances, deciding_lines, kind_of
from .failures import explain as _explain
from .manager import PackageManager
from .obstacles import Obstacle
from .registry import choose
from .types import Package, Streams


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
    :param lock_option: the variable or option that sets these seconds, for messages.
    """

    def __init__(
        self,
        find: Callable[[], PackageManager],
        lock_timeout: int,
        streams: Streams | None = None,
        lock_option: str = "lock_timeout",
    ) -> None:
        self._find = find
        self._lock_timeout = lock_timeout
        self._lock_option = lock_option
        self.streams = streams or Streams()

    @functools.cached_property
    def manager(self) -> PackageManager:
        # A set that is not recorded can be absent without any package manager.
        return self._find()

    def image_refusal(self) -> Refusal | None:
        """Return why no packages are installed or removed: they are those of an image; or None."""
        return immutable(read_os(NodeReader(run=self.manager.run)), PACKAGES)

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
            yield Host(
                lambda: isolated.manager, self._lock_timeout, self.streams, self._lock_option
            )

    def with_streams(self, streams: Streams) -> Host:
        """Return the host as it would be with these streams enabled; nothing is switched."""
        if not streams.after:
            return self
        changes = streams.changes
        manager = self.manager.with_streams(changes) if changes else self.manager
        return Host(lambda: manager, self._lock_timeout, streams, self._lock_option)

    def missing_streams(self) -> tuple[str, ...]:
        """Return the streams to enable that no repository has."""
        return modules.unavailable_streams(self.streams, self.available_streams(self.streams))

    def available_streams(self, streams: Streams) -> dict[str, tuple[str, ...]]:
        """Return the streams in repositories, by module, of the modules to switch."""
        names = sorted(streams.changes)
        return self.manager.available_streams(names) if names else {}

    def explain(
        self, output: str, doing: str, wanted: Mapping[str, str | None] | None = None
    ) -> KubegpuError:
        """Return the error for the output of a package manager that failed.

        :param wanted: the packages to install, with their versions.
        """
        return _explain(output, doing, self.circumstances(output, wanted or {}))

    def circumstances(
        self, output: str, wanted: Mapping[str, str | None], *, missing: bool = False
    ) -> Circumstances:
        """Return what the node shows of the failure.

        :param missing: whether packages of ``wanted`` were not found, whatever the output says.
        """
        kind = kind_of(output)
        return Circumstances(
            self._lock_option,
            self.manager.remove_kernels,
            read_file_systems(NodeReader()) if kind in (SPACE, READ_ONLY) else (),
            self.manager.unreadable_keys() if kind == SIGNATURE else (),
            self._obstacles(output, wanted) if missing or kind == CHOICE else (),
        )

    def _obstacles(self, output: str, wanted: Mapping[str, str | None]) -> tuple[Obstacle, ...]:
        """Return the settings that keep packages from being installed, and foreign holds.

        The output names dependencies, whose pins and holds count as well.
        """
        lines = deciding_lines(output)
        mentioned = self.manager.mentioned_packages(Result(1, lines, "")) if lines else ()
        others = [name for name in mentioned if name not in wanted]
        found = self.manager.obstacles({**wanted, **dict.fromkeys(others)})
        packages = self.manager.read(others).packages if others else {}
        held = [(name, packages.get(name, Package())) for name in others]
        return (
            *found,
            *(
                Obstacle(
                    name,
                    f"it is held in version {package.version}",
                    "Release it (apt-mark unhold, dnf versionlock delete, zypper removelock), or "
                    "ask for versions that fit it.",
                )
                for name, package in held
                if package.installed and package.held and name not in {one.subject for one in found}
            ),
        )

    def interrupted(self) -> bool:
        """Return whether a killed run of the package manager left entries in its journal."""
        journal = self.manager.journal
        return bool(journal and NodeReader().list_dir(journal))
