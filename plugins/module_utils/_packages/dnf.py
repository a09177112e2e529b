# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The package managers dnf 4 and dnf 5."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._host.command import Result, Runner
from .._known_faults.answers import complaints, is_declined
from . import rpm as _rpm
from . import streams as _streams
from .failures import is_locked
from .installed import read_versionlock, read_versionlock_toml
from .manager import Changes, Database, Isolated, Simulation
from .module_files import FOLDER, parse_module_file
from .obstacles import (
    Obstacle,
    excluded,
    of_other_stream,
    parse_excludes,
    parse_providing_streams,
)
from .types import Package, fits

# The name of the plugin's package differs between distributions; this capability does not.
_PLUGIN = "dnf-command(versionlock)"
# dnf 4 adds a line end after each package, dnf 5 does not; empty lines are ignored.
_LISTING = "%{name}\t%{epoch}:%{version}-%{release}\t%{arch}\n"
_REASONS = "%{name}\t%{reason}\n"
# Reasons of packages that dnf may remove once nothing needs them.
_AUTOMATIC = ("dependency", "weak-dependency", "weak dependency", "clean")
# One repository that cannot be reached is no error: missing versions are detected afterwards.
_TOLERANT = "--setopt=*.skip_if_unavailable=1"
# Ansible's modules set this whatever dnf.conf says, and the dry run has to match.
_WEAK = True
_INSTALLS = ("installing", "upgrading", "downgrading", "reinstalling")
_REMOVES = ("removing",)
# NAME.ARCH VERSION with dnf 4, NAME ARCH VERSION with dnf 5.
_REPLACES = re.compile(
    r"\s+replacing\s+(?P<name>\S+?)(?:\.|\s+)(?:noarch|x86_64|aarch64|i\d86)\s+\S+"
)
# Packages of modules that are not enabled are offered, too.
_ALL_STREAMS = "--setopt=*.module_hotfixes=1"
_EXCLUDES = (
    *("sh", "-c"),
    "grep -EHs '^[[:space:]]*exclude(pkgs)?[[:space:]]*=' "
    "/etc/dnf/dnf.conf /etc/yum.repos.d/*.repo",
)


class Dnf(_rpm.RpmManager):
    """The package manager of RHEL 8 to 10, their derivatives, and Amazon Linux 2023."""

    module = "ansible.builtin.dnf"
    log = "/var/log/dnf.rpm.log"
    # dnf has no command that only takes its lock. A file names the process that holds it.
    lock_command: tuple[str, ...] = (
        "sh",
        "-c",
        'pid=$(cat /var/lib/dnf/rpmdb_lock.pid 2>/dev/null) && kill -0 "$pid" 2>/dev/null '
        '&& { echo "dnf: its lock is held by process $pid" >&2; exit 1; }; exit 0',
    )
    broken_sources = "Parsing file"
    remove_kernels = "dnf remove --oldinstallonly"
    lock_file = "/etc/dnf/plugins/versionlock.list"
    # What differs between the two.
    program = "dnf"
    all_versions: tuple[str, ...] = ("--showduplicates",)
    without_excludes = "--setopt=disable_excludes=all"
    without_plugin: tuple[str, ...] = ("--disableplugin=versionlock",)
    mark: tuple[str, ...] = ("mark", "remove")
    has_streams: bool = True
    full_names = True
    replaces = True

    def __init__(
        self, run: Runner, options: Sequence[str] = (), streams: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(run, options)
        # Only commands that read see these streams enabled.
        self._streams = dict(streams or {})

    def locked(self, answer: Result) -> bool:
        return not answer.ok and is_locked(answer.stderr)

    def read_all(self) -> Database:
        database = _rpm.read_database(self.run, self.held(), full=True)
        answer = self._dnf("--disablerepo=*", "repoquery", "--installed", "--queryformat", _REASONS)
        return Database(
            _rpm.marked(database.packages, parse_automatic(answer.stdout)), database.needs
        )

    def available(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return self._offered(names)

    def _offered(self, names: Sequence[str], *options: str) -> dict[str, tuple[str, ...]]:
        """Return the versions of packages in repositories, read with further options of dnf."""
        if not names:
            return {}
        answer = self._dnf(
            *self.without_plugin,
            *options,
            *("repoquery", "--available", *self.all_versions, "--queryformat", _LISTING, *names),
        )
        lines = [line.split("\t") for line in answer.stdout.splitlines()]
        # Packages that are installed side by side can be requested by their full names.
        more = [
            [full, *fields[1:]]
            for fields in lines
            if len(fields) == 3 and _rpm.side_by_side(fields[0])
            for full in [_rpm.full_name(fields[0], _rpm.plain(fields[1]), fields[2])]
            if full in names
        ]
        return _rpm.parse_versions([*lines, *more])

    def refresh_command(self) -> tuple[str, ...]:
        # -y also accepts the keys of the repositories' entries, which were checked before.
        return (self.program, "-y", "--refresh", _TOLERANT, *self._options, "makecache")

    def refresh_errors(self, answer: Result) -> str:
        return "\n".join(complaints(answer.stderr)) or ("" if answer.ok else answer.last_output())

    def isolated(self, folder: str) -> Isolated:
        return Isolated(type(self)(self.run, (f"--setopt=cachedir={folder}",), self._streams))

    def streams(self, modules: Sequence[str]) -> dict[str, str]:
        return {
            name: parse_module_file(name, self.run(["cat", f"{FOLDER}/{name}.module"]).stdout)
            for name in modules
        }

    def available_streams(self, modules: Sequence[str]) -> dict[str, tuple[str, ...]]:
        answer = self._dnf("module", "list", *modules)
        found = _streams.parse_module_list(answer.stdout)
        return {name: found.get(name, ()) for name in modules}

    def stream_commands(
        self, now: Mapping[str, str], wanted: Mapping[str, str]
    ) -> tuple[list[str], ...]:
        program = (self.program, "-C", "-y", "-q", _TOLERANT, *self._options)
        return _streams.switch_commands(program, now, wanted)

    def with_streams(self, streams: Mapping[str, str]) -> Dnf:
        return type(self)(self.run, self._options, streams)

    def simulate(self, install: Mapping[str, str | None], remove: Sequence[str]) -> Simulation:
        # Packages are removed by an earlier call, so that they may conflict here.
        command = (
            (
                "install",
                "--allowerasing",
                *(_spec(name, version) for name, version in install.items()),
            )
            if install
            else ("remove", *remove)
        )
        answer = self.run(
            [
                *(*_streams.with_streams_prefix(self._streams), *self.without_locks()),
                *(self.program, "-C", _TOLERANT, *self._options),
                *(*self.without_plugin, "--assumeno", "--setopt=clean_requirements_on_remove=0"),
                f"--setopt=install_weak_deps={int(_WEAK)}",
                *command,
            ],
            timeout=300,
        )
        words = f"{answer.stdout}\n{answer.stderr}"
        done = answer.ok or ("Transaction Summary" in words and is_declined(words))
        removed, incoming = parse_transaction(answer.stdout, (*install, *remove))
        return Simulation(
            Result(0 if done else answer.rc, answer.stdout, answer.stderr), removed, incoming
        )

    def obstacles(self, wanted: Mapping[str, str | None]) -> tuple[Obstacle, ...]:
        names = sorted(wanted)
        offered = self._offered(names)
        every = self._offered(names, self.without_excludes)
        hidden = _hidden(wanted, every, offered)
        found = [*excluded(hidden, parse_excludes(self.run(_EXCLUDES).stdout))] if hidden else []
        if self.has_streams:
            all_streams = self._offered(names, self.without_excludes, _ALL_STREAMS)
            others = _hidden(wanted, all_streams, every)
            having = {
                name: parse_providing_streams(self._dnf("module", "provides", name).stdout)
                for name in others
            }
            found.extend(of_other_stream(others, having))
        return (*found, *self.locks_of(wanted, f"{self.program} versionlock list"))

    def helpers(self, packages: Mapping[str, Package], *, hold: bool) -> tuple[str, ...]:
        if not hold or self._dnf("--disablerepo=*", "versionlock", "list").ok:
            return ()
        return (_PLUGIN,)

    def mark_commands(
        self, hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
    ) -> tuple[list[str], ...]:
        marks = (
            (("versionlock", "add"), hold),
            (("versionlock", "delete"), release),
            (self.mark, automatic),
        )
        return tuple(
            [self.program, "-C", "-y", "-q", "--disablerepo=*", *verb, *names]
            for verb, names in marks
            if names
        )

    def tasks(self, changes: Changes, lock_timeout: int) -> list[dict[str, Any]]:
        # All in one call: dnf 5 removes no package that another one still needs.
        along = list(changes.remove_last)
        last = along if changes.install else []
        first = [] if changes.install else along
        removed = list(dict.fromkeys((*changes.broken, *changes.remove, *changes.purge, *first)))
        return [
            {"module": self.module, "arguments": {"lock_timeout": lock_timeout, **arguments}}
            for arguments in (
                {"name": removed, "state": "absent", "autoremove": False},
                {
                    "name": list(changes.helpers),
                    "state": "present",
                    "install_weak_deps": _WEAK,
                },
                {
                    "name": [
                        _spec(name, version) for name, version in sorted(changes.install.items())
                    ],
                    "state": "present",
                    "allow_downgrade": True,
                    "install_weak_deps": _WEAK,
                    **({"allowerasing": True} if changes.replacing else {}),
                },
                {"name": last, "state": "absent", "autoremove": False},
            )
            if arguments["name"]
        ]

    def _dnf(self, *arguments: str) -> Result:
        return self.run(
            [
                *(
                    *_streams.with_streams_prefix(self._streams),
                    self.program,
                    "-C",
                    "-q",
                    _TOLERANT,
                ),
                *(*self._options, *arguments),
            ],
            timeout=300,
        )

    def patterns(self, text: str) -> tuple[str, ...]:
        return read_versionlock(text)

    def without_locks(self) -> tuple[str, ...]:
        """Return the arguments before a dry run; dnf 4 disables its plugin instead."""
        return ()


class Dnf5(Dnf):
    """The package manager of Fedora from 41 on. Its locks need no plugin."""

    module = "ansible.builtin.dnf5"
    log = "/var/log/dnf5.log"
    # No shell tool can test its file lock; a command that meets it reports that.
    lock_command: tuple[str, ...] = ("true",)
    lock_file = "/etc/dnf/versionlock.toml"
    program = "dnf5"
    all_versions: tuple[str, ...] = ()
    without_excludes = "--setopt=disable_excludes=*"
    without_plugin: tuple[str, ...] = ()
    mark: tuple[str, ...] = ("mark", "dependency")
    # Fedora has had no modules since release 39.
    has_streams: bool = False

    def patterns(self, text: str) -> tuple[str, ...]:
        return read_versionlock_toml(text)

    def without_locks(self) -> tuple[str, ...]:
        return self.unlocked()

    def helpers(self, packages: Mapping[str, Package], *, hold: bool) -> tuple[str, ...]:
        return ()


def _hidden(
    wanted: Mapping[str, str | None],
    every: Mapping[str, Sequence[str]],
    offered: Mapping[str, Sequence[str]],
) -> dict[str, list[str]]:
    """Return the requested versions in ``every``, of packages of which ``offered`` has none.

    A repository that is excluded on purpose hides nothing that another one offers.
    """
    found = {
        name: [one for one in every.get(name, ()) if fits(version, one)]
        for name, version in wanted.items()
        if not any(fits(version, one) for one in offered.get(name, ()))
    }
    return {name: versions for name, versions in found.items() if versions}


def _spec(name: str, version: str | None) -> str:
    if version is None or _rpm.short_name(name) != name:
        return name
    return f"{name}-{version}"


def parse_automatic(text: str) -> frozenset[str]:
    """Return the packages that were installed as dependencies."""
    fields = (line.split("\t") for line in text.splitlines())
    return frozenset(
        words[0] for words in fields if len(words) == 2 and words[1].lower() in _AUTOMATIC
    )


def parse_transaction(
    text: str, asked: Collection[str] = ()
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the packages to remove, and the versions to install, from a transaction's table.

    :param asked: names that were passed to dnf. Packages that are installed side by side get their
        full names, unless they were passed by the short one.
    """
    removed: list[str] = []
    incoming: dict[str, str] = {}
    kind = ""
    entry: list[str] = []
    for line in [*text.splitlines(), ""]:
        replaced = _REPLACES.match(line)
        # After a long name, the other columns follow on an indented line.
        if re.match(r" {8,}\S", line) and entry and not replaced:
            entry.extend(line.split())
            continue
        if len(entry) >= 3:
            name, version = entry[0], _rpm.plain(entry[2])
            if _rpm.side_by_side(name) and name not in asked:
                name = _rpm.full_name(name, version, entry[1])
            if kind in _INSTALLS:
                incoming[name] = version
            elif kind in _REMOVES:
                removed.append(name)
        entry = []
        if replaced:
            removed.append(replaced["name"])
        elif line.startswith("Transaction Summary"):
            break
        elif re.match(r"\S.*:\Z", line):
            kind = line.split()[0].rstrip(":").lower()
        elif re.match(r" \S", line):
            entry = line.split()
    return tuple(name for name in dict.fromkeys(removed) if name not in incoming), incoming
