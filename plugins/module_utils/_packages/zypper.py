# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The package manager zypper."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._host.command import Result
from . import rpm as _rpm
from .failures import is_locked
from .installed import read_zypp_locks
from .manager import Changes, Database, Isolated, Simulation, WithoutStreams
from .obstacles import Obstacle
from .types import Package

_AUTOMATIC = "/var/lib/zypp/AutoInstalled"
_MARK = (
    *("sh", "-c"),
    'for name; do grep -qxF -e "$name" "$0" 2>/dev/null || echo "$name" >>"$0"; done',
)
_TAG = re.compile(r"<(?P<end>/?)(?P<tag>to-[\w-]+|solvable)\b(?P<rest>[^>]*)>")
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_MESSAGE = re.compile(
    r"(?:<message type=\"(?:error|warning|info)\">|<prompt [^>]*>\s*<description>)"
    r"(?P<text>.*?)</(?:message|description)>",
    re.DOTALL,
)
# Installed packages that are in no repository.
_SYSTEM = ("(System Packages)", "@System")
_LOCKED = 7


class Zypper(WithoutStreams, _rpm.RpmManager):
    """The package manager of SLES and openSUSE."""

    module = "community.general.zypper"
    log = "/var/log/zypp/history"
    lock_command: tuple[str, ...] = (
        "sh",
        "-c",
        'pid=$(cat /run/zypp.pid 2>/dev/null) && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null '
        f'&& {{ echo "zypper: its lock is held by process $pid" >&2; exit {_LOCKED}; }}; exit 0',
    )
    broken_sources = "is not valid"
    waits_for_lock = False
    # Each commit removes the automatic mark of all locked packages.
    marks_of_held = False
    lock_file = "/etc/zypp/locks"
    remove_kernels = "zypper purge-kernels"

    def locked(self, answer: Result) -> bool:
        return answer.rc == _LOCKED or (not answer.ok and is_locked(answer.stderr))

    def read_all(self) -> Database:
        database = _rpm.read_database(self.run, self.held())
        lines = self.run(["cat", _AUTOMATIC]).stdout.splitlines()
        return Database(
            _rpm.marked(database.packages, [line for line in lines if line[:1] != "#"]),
            database.needs,
        )

    def available(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        if not names:
            return {}
        answer = self._zypper(
            *("search", "--details", "--match-exact", "--type", "package", "--", *names)
        )
        return parse_search(answer.stdout)

    def refresh_command(self) -> tuple[str, ...]:
        return ("zypper", "--non-interactive", *self._options, "refresh")

    def refresh_errors(self, answer: Result) -> str:
        lines = [
            line.strip()
            for line in f"{answer.stdout}\n{answer.stderr}".splitlines()
            if re.search(r"error|warning|fail|problem|invalid|skipping", line, re.IGNORECASE)
        ]
        return "\n".join(dict.fromkeys(lines)) or ("" if answer.ok else answer.last_output())

    def isolated(self, folder: str) -> Isolated:
        return Isolated(Zypper(self.run, ("--cache-dir", folder)))

    def simulate(self, install: Mapping[str, str | None], remove: Sequence[str]) -> Simulation:
        command = (
            [
                *("install", "--dry-run", "--details", "--oldpackage", "--no-recommends"),
                *("--force-resolution", "--auto-agree-with-licenses", "--"),
                *(_spec(name, version) for name, version in install.items()),
                *(f"-{name}" for name in remove),
            ]
            if install
            else ["remove", "--dry-run", "--details", "--", *remove]
        )
        # Held packages may be changed; they are held again afterwards.
        answer = self.run([*self.unlocked(), *self._command(), *command], timeout=300)
        removed, incoming = parse_summary(answer.stdout)
        return Simulation(
            Result(answer.rc, messages(answer.stdout), answer.stderr), removed, incoming
        )

    def obstacles(self, wanted: Mapping[str, str | None]) -> tuple[Obstacle, ...]:
        return self.locks_of(wanted, "zypper locks")

    def helpers(self, packages: Mapping[str, Package], *, hold: bool) -> tuple[str, ...]:
        return ()

    def mark_commands(
        self, hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
    ) -> tuple[list[str], ...]:
        marks = (("addlock", hold), ("removelock", release))
        commands = [["zypper", "--non-interactive", verb, *names] for verb, names in marks if names]
        # zypper removes the mark of packages that are named, and has no command to set it.
        if automatic:
            commands.append([*_MARK, _AUTOMATIC, *automatic])
        return tuple(commands)

    def tasks(self, changes: Changes, lock_timeout: int) -> list[dict[str, Any]]:
        removed = list(dict.fromkeys((*changes.broken, *changes.remove, *changes.purge)))
        return [
            {"module": self.module, "arguments": arguments}
            for arguments in (
                {"name": removed, "state": "absent"},
                {
                    "name": [
                        _spec(name, version) for name, version in sorted(changes.install.items())
                    ],
                    "state": "present",
                    "oldpackage": True,
                    # As in the dry run: packages that are not named may be downgraded, too.
                    "force_resolution": True,
                    "disable_recommends": True,
                },
                {"name": list(changes.remove_last), "state": "absent"},
            )
            if arguments["name"]
        ]

    def _command(self) -> list[str]:
        return ["zypper", "--non-interactive", "--xmlout", "--no-refresh", *self._options]

    def _zypper(self, *arguments: str) -> Result:
        return self.run([*self._command(), *arguments], timeout=300)

    def patterns(self, text: str) -> tuple[str, ...]:
        return read_zypp_locks(text)


def _spec(name: str, version: str | None) -> str:
    return f"{name}={version}" if version else name


def _attributes(text: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(text)}


def parse_search(text: str) -> dict[str, tuple[str, ...]]:
    """Return the versions in repositories from the XML of ``zypper search --details``."""
    found = []
    for match in _TAG.finditer(text):
        fields = _attributes(match["rest"])
        if (
            match["tag"] == "solvable"
            and not match["end"]
            and fields.get("repository", _SYSTEM[0]) not in _SYSTEM
        ):
            found.append((fields["name"], fields["edition"], fields["arch"]))
    return _rpm.parse_versions(found)


def parse_summary(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the packages to remove, and the versions to install, from the XML of a dry run."""
    removed: list[str] = []
    incoming: dict[str, str] = {}
    kind = ""
    for match in _TAG.finditer(text):
        if match["tag"] != "solvable":
            kind = "" if match["end"] else match["tag"]
            continue
        if match["end"]:
            continue
        fields = _attributes(match["rest"])
        if fields.get("type", "package") != "package":
            continue
        if kind == "to-remove":
            removed.append(fields["name"])
        elif kind:
            incoming[fields["name"]] = _rpm.plain(fields["edition"])
    return tuple(name for name in dict.fromkeys(removed) if name not in incoming), incoming


def messages(text: str) -> str:
    """Return zypper's messages from its XML, as lines."""
    parts = [html.unescape(match["text"]).strip() for match in _MESSAGE.finditer(text)]
    return "\n".join(part for part in parts if part)
