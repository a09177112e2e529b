# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of rpm: queries, versions, and what its package managers have in common."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cmp_to_key

from .._core.errors import KubegpuError
from .._host.access import Barrier
from .._host.command import Result, Runner
from .installed import is_locked
from .manager import Database
from .obstacles import Obstacle, locked_names
from .types import BROKEN, INSTALLED, SEVERAL, Package

_FORMAT = r"%{NAME}\t%{ARCH}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\t%{INSTALLTIME}\n"
_RELATIONS = r"[P\t%{=NAME}\t%{PROVIDENAME}\n][R\t%{=NAME}\t%{REQUIRENAME}\n]"
_FILES = r"[%{=NAME}\t%{FILENAMES}\n]"
# Architectures beside the node's own one.
_SECOND = frozenset({"i386", "i486", "i586", "i686", "athlon", "armv7hl", "ppc", "s390", "(none)"})
# Packages of which several versions can be installed side by side.
_SIDE_BY_SIDE = re.compile(r"(?:kernel(?:-|\Z)|gpg-pubkey\Z)")
_NEVRA = re.compile(
    r"(?<![\w.+-])(?P<name>[A-Za-z0-9][\w.+-]*?)-(?:\d+:)?[^\s:-]+-[^\s:-]+"
    r"\.(?:noarch|x86_64|aarch64)\b"
)
_WORD = re.compile(r"(?<![\w.+:-])[A-Za-z0-9][\w.+-]*[A-Za-z0-9+]")
_PART = re.compile(r"\d+|[A-Za-z]+|[~^]")

# For a manager without an option to ignore its locks: a mount namespace of the command's own hides
# the list. This needs a root directory that is a mount point, as on every real node.
_WITHOUT_LOCKS = ("unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"')

# Version, release and architecture after a name.
_FULL = re.compile(r"-(?:\d+:)?[^:-]+-[^:-]+\.(?:noarch|x86_64|aarch64)\Z")

# Name and version of a package -> whether the lock file holds it.
Held = Callable[[str, str], bool]


def plain(version: str) -> str:
    """Return epoch, version and release, without an epoch of 0."""
    epoch, _colon, rest = version.partition(":")
    return rest if epoch in ("0", "(none)", "") else version


def side_by_side(name: str) -> bool:
    """Return whether several versions of the package can be installed side by side."""
    return bool(_SIDE_BY_SIDE.match(name))


def full_name(name: str, version: str, architecture: str) -> str:
    """Return the name of one version of a package that is installed side by side with others."""
    return f"{name}-{version}.{architecture}"


def short_name(name: str) -> str:
    """Return the name without version, if the package can be installed side by side."""
    return _FULL.sub("", name) if side_by_side(name) else name


def compare(one: str, other: str) -> int:
    """Compare two versions as rpm does; return 1, 0 or -1."""
    for left, right in zip(_fields(one), _fields(other)):
        order = _compare(left, right)
        if order:
            return order
    return 0


def _fields(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.rpartition(":")
    plain_version, _dash, release = rest.partition("-")
    return (epoch if colon else "0") or "0", plain_version, release


def _compare(one: str, other: str) -> int:
    left, right = _PART.findall(one), _PART.findall(other)
    for index in range(max(len(left), len(right))):
        a = left[index] if index < len(left) else ""
        b = right[index] if index < len(right) else ""
        if a == b:
            continue
        # A tilde is older than anything, the end included.
        if "~" in (a, b):
            return -1 if a == "~" else 1
        # A caret is newer than the end, and older than anything else.
        if "^" in (a, b):
            if a == "^":
                return 1 if b == "" else -1
            return -1 if a == "" else 1
        if not a or not b:
            return 1 if a else -1
        if a.isdigit() != b.isdigit():
            return 1 if a.isdigit() else -1
        difference = int(a) - int(b) if a.isdigit() else (a > b) - (a < b)
        if difference:
            return 1 if difference > 0 else -1
    return 0


def newest_first(versions: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(versions), key=cmp_to_key(compare), reverse=True))


def parse_versions(lines: Collection[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the versions by name, newest first, of fields: name, version, architecture."""
    found: dict[str, list[str]] = {}
    for fields in lines:
        if len(fields) == 3 and fields[2] not in _SECOND:
            found.setdefault(fields[0], []).append(plain(fields[1]))
    return {name: newest_first(versions) for name, versions in found.items()}


def _query(run: Runner, arguments: Sequence[str]) -> Result:
    answer = run(["rpm", *arguments], timeout=120)
    if answer.rc == 127:
        raise KubegpuError(
            "This node has no rpm.",
            evidence=answer.last_output(),
            next_step="Install the packages with the module of its package manager.",
        )
    return answer


def query_all(run: Runner, arguments: Sequence[str]) -> str:
    """Return the output of ``rpm -qa``.

    It exits with 0 if nothing matches. Any other status is an error; otherwise a node with a locked
    or broken database would look like one without packages.

    :raises KubegpuError: rpm is missing or failed.
    """
    answer = _query(run, ["-qa", *arguments])
    if not answer.ok:
        raise KubegpuError(
            "rpm cannot read its database.",
            evidence=f"rpm -qa ended with {answer.rc}: {answer.last_output() or 'no word'}",
            next_step="Let other runs of rpm end and run rpm -qa manually; where it still fails, "
            "rpm --rebuilddb rebuilds the indexes of the database.",
        )
    return answer.stdout


def read_installed(
    run: Runner, names: Sequence[str], held: Held, *, full: bool = False
) -> dict[str, Package]:
    """Return the named packages (or patterns), or all; ``full``: see :func:`parse_installed`."""
    text = query_all(run, ["--queryformat", _FORMAT, *names])
    packages = parse_installed(text, held, full=full)
    if not names:
        return packages
    # rpm also accepts a name with its version.
    return {
        name: package
        for name, package in packages.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in names)
    }


def parse_installed(text: str, held: Held, *, full: bool = False) -> dict[str, Package]:
    """Return the packages; of those that are installed side by side, the newest version.

    :param full: add each of these versions under its full name.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    packages = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4 and fields[1] not in _SECOND:
            time = int(fields[3]) if fields[3].isdigit() else 0
            name, version = fields[0], plain(fields[2])
            found.setdefault(name, []).append((time, version))
            if full and side_by_side(name):
                packages[full_name(name, version, fields[1])] = Package(
                    INSTALLED, version, held(name, version)
                )
    for name, entries in found.items():
        versions = [version for _time, version in sorted(entries)]
        if _SIDE_BY_SIDE.match(name):
            version = newest_first(versions)[0]
            packages[name] = Package(
                INSTALLED, version, held(name, version), detail=SEVERAL if full else ""
            )
            continue
        # A transaction that was killed has installed the new one and not yet erased the old one.
        twice = len(set(versions)) > 1
        packages[name] = Package(
            BROKEN if twice else INSTALLED,
            versions[-1],
            held(name, versions[-1]),
            detail=f"there in versions {', '.join(versions)} at once" if twice else "installed",
        )
    return packages


def read_database(run: Runner, held: Held, *, full: bool = False) -> Database:
    """Return all packages, and the names that each one needs."""
    packages = read_installed(run, (), held, full=full)
    text = query_all(run, ["--queryformat", _RELATIONS])
    paths = sorted(
        {
            fields[2]
            for fields in (line.split("\t") for line in text.splitlines())
            if len(fields) == 3 and fields[0] == "R" and fields[2].startswith("/")
        }
    )
    files = ""
    if paths:
        answer = _query(run, ["-qf", "--queryformat", r"%{NAME}\n", *paths])
        owners = sorted({line for line in answer.stdout.splitlines() if line in packages})
        if owners:
            files = _query(run, ["-q", "--queryformat", _FILES, *owners]).stdout
    needs = parse_needs(text, files)
    # Of packages that are installed side by side, each version counts as needed.
    versions: dict[str, list[str]] = {}
    for name in packages:
        if short_name(name) != name:
            versions.setdefault(short_name(name), []).append(name)
    return Database(
        packages,
        {
            name: (*others, *(full for other in others for full in versions.get(other, ())))
            for name, others in needs.items()
        },
    )


def parse_needs(text: str, files: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the packages that each package requires.

    :param files: files of packages, for requirements that are paths.
    """
    providers: dict[str, list[str]] = {}
    requires: dict[str, list[str]] = {}
    for line in text.splitlines():
        kind, _tab, rest = line.partition("\t")
        name, _tab, what = rest.partition("\t")
        if kind == "P":
            providers.setdefault(what, []).append(name)
        elif kind == "R":
            requires.setdefault(name, []).append(what)
    for line in files.splitlines():
        name, _tab, path = line.partition("\t")
        providers.setdefault(path, []).append(name)
    return {
        name: tuple(
            dict.fromkeys(
                other
                for what in whats
                # In (this if that), each word can be a requirement.
                for word in (what.strip("()").split() if what.startswith("(") else (what,))
                for other in providers.get(word, ())
                if other != name
            )
        )
        for name, whats in requires.items()
    }


def edited(run: Runner, names: Sequence[str]) -> tuple[str, ...]:
    """Return the packages with an edited configuration file."""
    found = []
    for name in names:
        lines = _query(run, ["-V", name]).stdout.splitlines()
        # "S.5....T.  c /etc/file": 5 is a wrong checksum, c a configuration file.
        if any(re.match(r"..5\S* +c /", line) for line in lines):
            found.append(name)
    return tuple(found)


def mentioned(answer: Result) -> tuple[str, ...]:
    """Return all words of the output that can be names of packages."""
    text = f"{answer.stdout}\n{answer.stderr}"
    names = [match["name"] for match in _NEVRA.finditer(text)]
    return tuple(dict.fromkeys((*names, *_WORD.findall(text))))


def superseded(run: Runner, names: Sequence[str]) -> tuple[str, ...]:
    """Return the old versions that a killed transaction did not erase."""
    if not names:
        return ()
    text = _query(
        run,
        ["-q", "--queryformat", r"%{NAME}\t%{ARCH}\t%{INSTALLTIME}\t%{NEVRA}\n", *names],
    ).stdout
    return parse_superseded(text)


def parse_superseded(text: str) -> tuple[str, ...]:
    found: dict[str, list[tuple[int, str]]] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4 and fields[1] not in _SECOND and not _SIDE_BY_SIDE.match(fields[0]):
            found.setdefault(fields[0], []).append((int(fields[2]), fields[3]))
    return tuple(nevra for entries in found.values() for _time, nevra in sorted(entries)[:-1])


def marked(packages: Mapping[str, Package], automatic: Collection[str]) -> dict[str, Package]:
    """Return the packages with their automatic marks."""
    return {
        name: Package(
            package.status, package.version, package.held, name in automatic, package.detail
        )
        for name, package in packages.items()
    }


class RpmManager:
    """The common part of dnf and zypper."""

    # rpm has no journal. A killed transaction leaves packages in two versions.
    journal = ""
    # rpm runs scripts from %_tmppath, whatever TMPDIR is.
    temporary = ""
    releases_first = True
    waits_for_lock = True
    replaces = False
    marks_of_held = True
    # Whether versions that are installed side by side are listed under their full names, too.
    full_names = False

    def __init__(self, run: Runner, options: Sequence[str] = ()) -> None:
        self._run = run
        self._options = tuple(options)

    @property
    def run(self) -> Runner:
        return self._run

    # Path of the manager's list of locks.
    lock_file = ""

    def locks(self) -> str:
        return self.run(["cat", self.lock_file]).stdout

    def patterns(self, text: str) -> tuple[str, ...]:
        """Return the patterns of locked names in the text of the list."""
        # Each of dnf and zypper has its own.
        raise NotImplementedError

    def held(self) -> Held:
        patterns = self.patterns(self.locks())
        return lambda name, version: is_locked(name, version, patterns)

    def unlocked(self) -> tuple[str, ...]:
        """Return the arguments that make a command ignore version locks."""
        return (*_WITHOUT_LOCKS, self.lock_file) if self.locks().strip() else ()

    def read(self, names: Sequence[str] = ()) -> Database:
        return Database(read_installed(self.run, names, self.held(), full=self.full_names), {})

    def mentioned_packages(self, answer: Result) -> tuple[str, ...]:
        return mentioned(answer)

    def edited(self, names: Sequence[str]) -> tuple[str, ...]:
        return edited(self.run, names)

    def pinning(self, names: Sequence[str]) -> tuple[str, ...]:
        return ()

    def locks_of(self, wanted: Mapping[str, str | None], command: str) -> tuple[Obstacle, ...]:
        """Return the locks that hold these packages.

        :param command: shows the locks.
        """
        patterns = self.patterns(self.locks())
        names = [
            name for name, version in wanted.items() if is_locked(name, version or "", patterns)
        ]
        return locked_names(names, self.lock_file, command)

    def unreadable_keys(self) -> tuple[Barrier, ...]:
        # rpm and its managers read keys as root.
        return ()

    def repair_commands(self, broken: Sequence[str]) -> tuple[Sequence[str], ...]:
        old = superseded(self.run, broken)
        if not old:
            return ()
        # The new version is installed. Versioned dependencies can be unmet until the change is
        # done. A lock on the old version is removed with it.
        return (*self.mark_commands((), broken, ()), ("rpm", "--erase", "--nodeps", *old))

    def mark_commands(
        self, hold: Sequence[str], release: Sequence[str], automatic: Sequence[str]
    ) -> tuple[list[str], ...]:
        # Each of dnf and zypper has its own.
        raise NotImplementedError

    def to_repair(self, broken: Sequence[str], uncovered: Sequence[str]) -> Sequence[str]:
        # The managers do not repair a package that is installed in two versions.
        return broken
