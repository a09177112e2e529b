# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""apt and dpkg behind the seam of ``_package_manager``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._host.command import Result, Runner
from . import dpkg as _dpkg
from .manager import Apart, Database, Simulation, WithoutStreams, Work
from .plan import Package

_LISTS_APART = """\
Dir::State::Lists "{folder}/lists";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
# Ansible's module for packages brings this one where it is missing, from the same lists.
_HELPER = "python3-apt"


class Apt(WithoutStreams):
    """The package manager of Debian, Ubuntu and those that build on them."""

    module = "ansible.builtin.apt"
    log = "/var/log/apt/term.log"
    journal = "/var/lib/dpkg/updates"
    # With nothing to set, dpkg takes its lock and does no more.
    nothing: tuple[str, ...] = ("sh", "-c", "dpkg --set-selections </dev/null")
    releases_first = False
    waits = True
    replaces = False
    marks_of_held = True
    broken_sources = "The list of sources could not be read"

    def __init__(self, run: Runner) -> None:
        self._run = run

    @property
    def run(self) -> Runner:
        return self._run

    def locked(self, answer: Result) -> bool:
        return not answer.ok and "lock" in answer.stderr

    def read(self, names: Sequence[str] = ()) -> Database:
        return _dpkg.read(self.run, names)

    def everything(self) -> Database:
        database = _dpkg.read(self.run)
        return Database(_dpkg.with_marks(self.run, database.packages), database.needs)

    def available(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return _dpkg.available(self.run, names)

    def update(self) -> tuple[str, ...]:
        return ("apt-get", "update")

    def complaints(self, answer: Result) -> str:
        complaints = [
            line for line in answer.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))
        ]
        return "\n".join(complaints) or ("" if answer.ok else answer.words())

    def apart(self, folder: str) -> Apart:
        settings = f"{folder}/apt.conf"
        inner = self.run

        def run(
            argv: Sequence[str], timeout: int = 60, environment: Mapping[str, str] | None = None
        ) -> Result:
            return inner(
                argv, timeout=timeout, environment={"APT_CONFIG": settings, **(environment or {})}
            )

        return Apart(
            Apt(run), (f"{folder}/lists/partial",), {settings: _LISTS_APART.format(folder=folder)}
        )

    def simulate(self, install: Mapping[str, str | None], remove: Sequence[str]) -> Simulation:
        return _dpkg.simulate(self.run, install, remove)

    def mentioned(self, answer: Result) -> tuple[str, ...]:
        return _dpkg.mentioned(answer)

    def edited(self, names: Sequence[str]) -> tuple[str, ...]:
        return _dpkg.edited(self.run, names)

    def pinning(self, names: Sequence[str]) -> tuple[str, ...]:
        return _dpkg.pinning(self.run, names)

    def helpers(self, packages: Mapping[str, Package], *, hold: bool) -> tuple[str, ...]:
        return () if packages.get(_HELPER, Package()).installed else (_HELPER,)

    def mend(self, broken: Sequence[str]) -> tuple[Sequence[str], ...]:
        return (("dpkg", "--configure", "-a"),)

    def mends(self, broken: Sequence[str], uncovered: Sequence[str]) -> Sequence[str]:
        return uncovered

    def mark_commands(
        self, hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
    ) -> tuple[list[str], ...]:
        return _dpkg.mark_commands(hold, release, automatic)

    def tasks(self, work: Work, lock_timeout: int) -> list[dict[str, Any]]:
        return [
            {
                "module": self.module,
                "arguments": {
                    "lock_timeout": lock_timeout,
                    "allow_change_held_packages": True,
                    **arguments,
                },
            }
            for arguments in (
                {"name": list(work.broken), "state": "absent", "purge": True},
                {"name": list(work.remove), "state": "absent"},
                {"name": list(work.purge), "state": "absent", "purge": True},
                {
                    "name": [
                        f"{name}={version}" if version else name
                        for name, version in sorted(work.install.items())
                    ],
                    "state": "present",
                    "allow_downgrade": True,
                    "fail_on_autoremove": True,
                    "update_cache": False,
                },
                # Last, since apt's own helper for Python can be among it.
                {"name": list(work.along), "state": "absent", "purge": True},
            )
            if arguments["name"]
        ]
