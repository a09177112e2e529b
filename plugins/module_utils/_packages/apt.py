# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The package manager apt, with dpkg.

Ansible's own module installs and removes packages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.errors import InputError
from .._host.access import Barrier, barrier, sandbox_user
from .._host.command import Result, Runner
from .._host.files import glob_files
from .._host.reader import NodeReader
from .failures import is_locked
from .manager import Changes, Database, Isolated, Simulation, WithoutStreams
from .obstacles import Obstacle, parse_policy, parse_preferences, pinned
from .types import ABSENT, BROKEN, CONFIGURATION, INSTALLED, Package

_LISTS_APART = """\
Dir::State::Lists "{folder}/lists";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""


# Ansible's module for packages installs this one if it is missing.
_HELPER = "python3-apt"


_FORMAT = r"\t".join(
    (
        "${Package}",
        "${Architecture}",
        "${Version}",
        "${db:Status-Want}",
        "${db:Status-Status}",
        "${db:Status-Eflag}",
        "${Depends}",
        "${Pre-Depends}",
        r"${Provides}\n",
    )
)


_FIELDS = 9
# Of a source entry, in both formats.
_SIGNED_BY = re.compile(r"^(?!#).*?\bsigned-by\s*[=:]\s*(/[^\s\],]+)", re.IGNORECASE | re.MULTILINE)


# Packages of the node's own architecture; names of other architectures contain a colon.
_INCOMING = re.compile(r"^Inst ([^\s:]+) (?:\[[^\]]*\] )?\(([^\s)]+)", re.MULTILINE)


# A package that waits for a trigger works; dpkg processes the trigger later.
_STATUS = {
    "installed": INSTALLED,
    "triggers-pending": INSTALLED,
    "triggers-awaited": INSTALLED,
    "config-files": CONFIGURATION,
    "not-installed": ABSENT,
}


class Apt(WithoutStreams):
    """The package manager of Debian, Ubuntu and their derivatives."""

    module = "ansible.builtin.apt"
    log = "/var/log/apt/term.log"
    journal = "/var/lib/dpkg/updates"
    # What is killed leaves its files: apt its folder of links to packages (apt-dpkg-install-*), the
    # makers of an initial RAM disk all of its content.
    temporary = "/var/cache/kubegpu/packages"
    # Without input, dpkg only takes its lock.
    lock_command: tuple[str, ...] = ("sh", "-c", "dpkg --set-selections </dev/null")
    releases_first = False
    waits_for_lock = True
    replaces = False
    marks_of_held = True
    broken_sources = "The list of sources could not be read"
    remove_kernels = "apt-get autoremove --purge"

    def __init__(self, run: Runner) -> None:
        self._run = run

    @property
    def run(self) -> Runner:
        return self._run

    def locked(self, answer: Result) -> bool:
        return not answer.ok and is_locked(answer.stderr)

    def read(self, names: Sequence[str] = ()) -> Database:
        return read(self.run, names)

    def read_all(self) -> Database:
        database = read(self.run)
        return Database(with_marks(self.run, database.packages), database.needs)

    def available(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return available(self.run, names)

    def refresh_command(self) -> tuple[str, ...]:
        return ("apt-get", "update")

    def refresh_errors(self, answer: Result) -> str:
        complaints = [
            line for line in answer.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))
        ]
        return "\n".join(complaints) or ("" if answer.ok else answer.last_output())

    def isolated(self, folder: str) -> Isolated:
        settings = f"{folder}/apt.conf"
        inner = self.run

        def run(
            argv: Sequence[str], timeout: int = 60, environment: Mapping[str, str] | None = None
        ) -> Result:
            return inner(
                argv, timeout=timeout, environment={"APT_CONFIG": settings, **(environment or {})}
            )

        return Isolated(
            Apt(run), (f"{folder}/lists/partial",), {settings: _LISTS_APART.format(folder=folder)}
        )

    def simulate(self, install: Mapping[str, str | None], remove: Sequence[str]) -> Simulation:
        return simulate(self.run, install, remove)

    def mentioned_packages(self, answer: Result) -> tuple[str, ...]:
        return mentioned(answer)

    def edited(self, names: Sequence[str]) -> tuple[str, ...]:
        return edited(self.run, names)

    def pinning(self, names: Sequence[str]) -> tuple[str, ...]:
        return pinning(self.run, names)

    def obstacles(self, wanted: Mapping[str, str | None]) -> tuple[Obstacle, ...]:
        return obstacles(self.run, wanted)

    def unreadable_keys(self) -> tuple[Barrier, ...]:
        return unreadable_keys(self.run)

    def helpers(self, packages: Mapping[str, Package], *, hold: bool) -> tuple[str, ...]:
        return () if packages.get(_HELPER, Package()).installed else (_HELPER,)

    def repair_commands(self, broken: Sequence[str]) -> tuple[Sequence[str], ...]:
        return (("dpkg", "--configure", "-a"),)

    def to_repair(self, broken: Sequence[str], uncovered: Sequence[str]) -> Sequence[str]:
        return uncovered

    def mark_commands(
        self, hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
    ) -> tuple[list[str], ...]:
        return mark_commands(hold, release, automatic)

    def tasks(self, changes: Changes, lock_timeout: int) -> list[dict[str, Any]]:
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
                {"name": list(changes.broken), "state": "absent", "purge": True},
                {"name": list(changes.remove), "state": "absent"},
                {"name": list(changes.purge), "state": "absent", "purge": True},
                {
                    "name": [
                        f"{name}={version}" if version else name
                        for name, version in sorted(changes.install.items())
                    ],
                    "state": "present",
                    "allow_downgrade": True,
                    "fail_on_autoremove": True,
                    "update_cache": False,
                },
                # Last, because python3-apt can be among them.
                {"name": list(changes.remove_last), "state": "absent", "purge": True},
            )
            if arguments["name"]
        ]


def read(run: Runner, names: Sequence[str] = ()) -> Database:
    """Return the named packages, or all; names that dpkg does not know are ignored.

    :raises InputError: the node has no dpkg.
    """
    answer = run(["dpkg-query", "--show", f"--showformat={_FORMAT}", *names])
    if answer.rc == 127:
        raise InputError(
            "This node does not use dpkg, and no other package manager is known to this release.",
            evidence=answer.last_output(),
            next_step="Install the packages with the module of its package manager.",
        )
    return parse_database(answer.stdout, run(["dpkg", "--print-architecture"]).stdout.strip())


def parse_database(text: str, architecture: str) -> Database:
    packages: dict[str, Package] = {}
    relations: dict[str, str] = {}
    providers: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != _FIELDS:
            continue
        name, of, version, want, status, flag, depends, pre, provides = fields
        if of not in (architecture, "all", ""):
            continue
        state = BROKEN if flag == "reinstreq" else _STATUS.get(status, BROKEN)
        packages[name] = Package(
            state,
            version or None,
            held=want == "hold",
            detail=f"{status}, to be reinstalled" if flag == "reinstreq" else status,
        )
        if state in (INSTALLED, BROKEN):
            # Recommended packages do not count: the package worked before they were installed.
            relations[name] = ",".join((depends, pre))
            for provided in _names(provides):
                providers.setdefault(provided, []).append(name)
    needs = {
        name: tuple(
            dict.fromkeys(
                real for needed in _names(text) for real in (needed, *providers.get(needed, ()))
            )
        )
        for name, text in relations.items()
    }
    return Database(packages, needs)


def with_marks(run: Runner, packages: Mapping[str, Package]) -> dict[str, Package]:
    """Return the packages with apt's automatic marks."""
    automatic = set(run(["apt-mark", "showauto"]).stdout.split())
    return {
        name: replace(package, automatic=name in automatic) for name, package in packages.items()
    }


def available(run: Runner, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the versions that apt can install by name, the newest first."""
    if not names:
        return {}
    return parse_madison(run(["apt-cache", "madison", *names]).stdout)


def parse_madison(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        # Source packages are listed, too.
        if len(fields) == 3 and not fields[2].endswith("Sources"):
            found.setdefault(fields[0], {})[fields[1]] = None
    return {name: tuple(versions) for name, versions in found.items()}


def simulate(run: Runner, install: Mapping[str, str | None], remove: Sequence[str]) -> Simulation:
    """Return the result of a dry run of apt."""
    answer = run(
        [
            "apt-get",
            "--simulate",
            "--allow-downgrades",
            "--allow-change-held-packages",
            "install",
            *(f"{name}={version}" if version else name for name, version in install.items()),
            *(f"{name}-" for name in remove),
        ],
        timeout=120,
    )
    return Simulation(
        answer,
        tuple(re.findall(r"^(?:Remv|Purg) ([^\s:]+)", answer.stdout, re.MULTILINE)),
        dict(_INCOMING.findall(answer.stdout)),
    )


def mentioned(answer: Result) -> tuple[str, ...]:
    """Return all words of the output that can be names of packages."""
    words = re.findall(r"(?<![a-z0-9+.:-])[a-z0-9][a-z0-9+.-]+", answer.stdout + answer.stderr)
    return tuple(dict.fromkeys(word.rstrip(".") for word in words))


def edited(run: Runner, names: Sequence[str]) -> tuple[str, ...]:
    """Return the packages with an edited configuration file."""
    found = []
    for name in names:
        lines = run(["dpkg", "--verify", name], timeout=120).stdout.splitlines()
        # "??5?????? c /etc/file": 5 is a wrong checksum, c a configuration file.
        if any(re.match(r"..5\S* +c /", line) for line in lines):
            found.append(name)
    return tuple(found)


def pinning(run: Runner, names: Sequence[str]) -> tuple[str, ...]:
    """Return the packages with a configuration file that pins versions.

    The file remains in effect after the package is removed and not purged.
    """
    found = []
    for name in names:
        text = run(["dpkg-query", "--show", "--showformat=${Conffiles}", name]).stdout
        if re.search(r"^ ?/etc/apt/preferences(?:\.d/|\s)", text, re.MULTILINE):
            found.append(name)
    return tuple(found)


def obstacles(run: Runner, wanted: Mapping[str, str | None]) -> tuple[Obstacle, ...]:
    """Return the pins that keep packages from being installed.

    :param wanted: packages and their requested versions (None: any); other words are ignored.
    """
    policies = parse_policy(run(["apt-cache", "policy", *wanted]).stdout)
    reader = NodeReader()
    pins = tuple(
        pin
        for path in ("/etc/apt/preferences", *glob_files("/etc/apt/preferences.d/*"))
        for pin in parse_preferences(path, reader.read_text(path) or "")
    )
    asked = {name: version for name, version in wanted.items() if version is not None}
    return pinned(policies, pins, asked)


def unreadable_keys(run: Runner) -> tuple[Barrier, ...]:
    """Return what keeps apt's own user from the keys of its sources and from ``trusted.gpg``."""
    user = sandbox_user(run)
    if not user:
        return ()
    reader = NodeReader()
    sources = ("/etc/apt/sources.list", *glob_files("/etc/apt/sources.list.d/*"))
    texts = [reader.read_text(path) or "" for path in sources]
    named = [path for text in texts for path in _SIGNED_BY.findall(text)]
    trusted = ("/etc/apt/trusted.gpg", *glob_files("/etc/apt/trusted.gpg.d/*"))
    found = [barrier(run, path, user) for path in dict.fromkeys((*named, *trusted))]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def mark_commands(
    hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
) -> tuple[list[str], ...]:
    """Return the commands that hold and release packages and set automatic marks."""
    marks = (("hold", hold), ("unhold", release), ("auto", automatic))
    return tuple(["apt-mark", verb, *names] for verb, names in marks if names)


def _names(relations: str) -> list[str]:
    """Return the names in a relation field, alternatives included."""
    return [
        match[1]
        for part in re.split(r"[,|]", relations)
        for match in [re.match(r"\s*([a-z0-9][a-z0-9+.-]*)", part)]
        if match
    ]
