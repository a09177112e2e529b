# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A package set: what is asked for, what is installed, what is recorded and what is planned.

Nothing here knows of a package manager.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

ABSENT = "absent"


INSTALLED = "installed"


# Removed, but its configuration files are still there.
CONFIGURATION = "configuration"


# Unpacked or configured half way: neither there nor gone.
BROKEN = "broken"


# The detail of a package that stands for several versions beside each other. Each has a name of its
# own, too, and it is by that one that what came along is given back.
SEVERAL = "in one version or several"


# Shown as the version of a package that is installed in whatever version there is.
ANY = "any"


# No stream is enabled, and dnf may take the default one.
NONE = ""


# No stream may be enabled. The name of no stream begins so.
DISABLED = "!disabled"


def covers(patterns: Sequence[str], name: str) -> bool:
    """Return whether a name is one of those that the patterns mean."""
    return any(
        fnmatch.fnmatchcase(name, pattern) for pattern in patterns if pattern[0] != "!"
    ) and not any(
        fnmatch.fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern[0] == "!"
    )


def fits(wanted: str | None, version: str | None) -> bool:
    """Return whether a version is the one that is asked for."""
    if wanted is None or version is None:
        return version is not None
    prefix, star, ending = wanted.partition("*")
    if not star:
        return wanted == version
    plain = version if ":" in prefix else version.rpartition(":")[2]
    rest = plain[len(prefix) :]
    # 595.5* is not 595.58: a number is meant whole.
    whole = not (prefix[-1:].isdigit() and rest[:1].isdigit())
    return plain.startswith(prefix) and rest.endswith(ending) and whole


@dataclass(frozen=True)
class Streams:
    """The streams of modules as they are and as they shall be, by module."""

    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes(self) -> dict[str, str]:
        return {
            module: stream
            for module, stream in sorted(self.after.items())
            if self.before.get(module, NONE) != stream
        }

    def reasons(self, *, present: bool) -> tuple[str, ...]:
        return tuple(
            f"The stream of the module {module} is {_words(self.before.get(module, NONE))}, "
            f"{'asked for is' if present else 'before it was'} {_words(stream)}."
            for module, stream in self.changes.items()
        )


@dataclass(frozen=True)
class StreamRecord:
    """What the record remembers: each stream before our first change, and what we made of it."""

    before: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.before)


@dataclass(frozen=True)
class Package:
    """A package as it stands. ``detail`` is the package manager's own word for ``status``."""

    status: str = ABSENT
    version: str | None = None
    held: bool = False
    automatic: bool = False
    detail: str = ""

    @property
    def installed(self) -> bool:
        return self.status == INSTALLED

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "version": self.version,
            "held": self.held,
            "automatic": self.automatic,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Package:
        return cls(data["status"], data["version"], data["held"], data["automatic"])


@dataclass(frozen=True)
class Lock:
    """All installed packages whose names match ``patterns``: one version, held together.

    A pattern that begins with an exclamation mark takes names out again. ``version`` is the
    beginning of the version that they shall have where there is one (None: whatever they have).
    """

    patterns: tuple[str, ...]
    version: str | None = None

    def covers(self, name: str) -> bool:
        return covers(self.patterns, name)

    @property
    def wanted(self) -> str | None:
        return None if self.version is None else f"{self.version.rstrip('*')}*"


@dataclass(frozen=True)
class Request:
    """What is asked for: version by name (None: any), and the names that have to go first.

    A version with a ``*`` is met by any that begins and ends so. ``optional`` is installed where a
    package list has it. With a ``lock``, only what it covers is held.
    """

    packages: Mapping[str, str | None]
    hold: bool = True
    obsolete: tuple[str, ...] = ()
    optional: Mapping[str, str | None] = field(default_factory=dict)
    lock: Lock | None = None
    streams: Mapping[str, str] = field(default_factory=dict)

    def held(self, name: str, before: Package) -> bool:
        """Return whether a package of the set shall be held."""
        if self.lock is None or self.lock.covers(name):
            return self.hold
        return before.held


@dataclass(frozen=True)
class Record:
    """What the node remembers of a set.

    ``before``: each package as it was before our first change; ``brought``: what came along with
    them, and whether the package manager marked it as automatic; ``pending``: a change that was
    begun and not finished, with the names of all packages that were installed at that time;
    ``patterns``: of the lock, by which packages that came along are held by us.

    Of a change that is pending: ``coming`` are the packages that the package manager said it would
    install (None: nobody wrote it down), ``named`` those of them that it was told for their version
    alone and that are marked as automatic in the end, ``released`` what was held and is not while
    the change is made, ``run`` the run that works on it.

    ``remains``: of what came along, the packages of which an earlier removal had left the
    configuration files. Those stay when the package goes.

    ``streams``: of modules, as they were before us and as we made them.
    """

    before: Mapping[str, Package] = field(default_factory=dict)
    brought: Mapping[str, bool] = field(default_factory=dict)
    pending: tuple[str, ...] | None = None
    patterns: tuple[str, ...] = ()
    coming: tuple[str, ...] | None = None
    named: tuple[str, ...] = ()
    run: str = ""
    remains: tuple[str, ...] = ()
    streams: StreamRecord = field(default_factory=StreamRecord)
    released: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "before": {name: package.to_json() for name, package in self.before.items()},
            "brought": dict(self.brought),
            "pending": None if self.pending is None else list(self.pending),
            **({"patterns": list(self.patterns)} if self.patterns else {}),
            **({} if self.coming is None else {"coming": list(self.coming)}),
            **({"named": list(self.named)} if self.named else {}),
            **({"run": self.run} if self.run else {}),
            **({"remains": list(self.remains)} if self.remains else {}),
            **({"streams": asdict(self.streams)} if self.streams else {}),
            **({"released": list(self.released)} if self.released else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Record | None:
        if data is None:
            return None
        pending, coming = data["pending"], data.get("coming")
        return cls(
            {name: Package.from_json(value) for name, value in data["before"].items()},
            dict(data["brought"]),
            None if pending is None else tuple(pending),
            tuple(data.get("patterns", ())),
            None if coming is None else tuple(coming),
            tuple(data.get("named", ())),
            str(data.get("run", "")),
            tuple(data.get("remains", ())),
            StreamRecord(**data.get("streams", {})),
            tuple(data.get("released", ())),
        )


@dataclass(frozen=True)
class Plan:
    """What has to be done: ``remove`` keeps configuration files, ``purge`` takes them too.

    ``along``: what came along with the set, to be purged last, since the package manager's own
    helper can be among it. ``after`` is what has to stand there then (None: not installed),
    ``automatic`` are packages whose mark goes back to automatic.
    """

    before: Mapping[str, Package]
    after: Mapping[str, Package]
    install: Mapping[str, str | None] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    purge: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    automatic: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # What stood there before and no repository of the node has now.
    lost: tuple[str, ...] = ()
    # Of ``install``: what nobody asks for by name, and may go instead where it is in the way.
    soft: tuple[str, ...] = ()
    streams: Streams = field(default_factory=Streams)

    @property
    def going(self) -> tuple[str, ...]:
        return (*self.remove, *self.purge, *self.along)

    @property
    def changed(self) -> bool:
        return bool(
            self.install
            or self.going
            or self.to_hold()
            or self.to_release()
            or self.streams.changes
        )

    def to_hold(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, package in sorted(self.after.items())
            if package.installed
            and package.held
            and (name in self.install or not self.before[name].held)
        )

    def to_release(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, package in sorted(self.after.items())
            if package.installed and not package.held and self.before[name].held
        )


def _words(stream: str) -> str:
    return {NONE: "not enabled", DISABLED: "disabled"}.get(stream, stream)
