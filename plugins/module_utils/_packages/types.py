# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A package set: the request, the installed packages, the record and the plan.

Nothing here depends on the package manager.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .module_files import DISABLED, NONE

ABSENT = "absent"


INSTALLED = "installed"


# Removed; its configuration files are left.
CONFIGURATION = "configuration"


# Unpacked or configured only in part.
BROKEN = "broken"


# The detail of a package of which several versions are installed side by side. Each version is also
# listed under its full name, by which dependencies are removed again.
SEVERAL = "in one version or several"


# Shown as the version of a package whose version only the package manager will decide.
ANY = "any"


def covers(patterns: Sequence[str], name: str) -> bool:
    """Return whether a name matches the patterns; one that begins with ``!`` excludes names."""
    return any(
        fnmatch.fnmatchcase(name, pattern) for pattern in patterns if pattern[0] != "!"
    ) and not any(
        fnmatch.fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern[0] == "!"
    )


def fits(wanted: str | None, version: str | None) -> bool:
    """Return whether a version matches the wanted one, which can contain a ``*`` (None: any)."""
    if wanted is None or version is None:
        return version is not None
    prefix, star, others = wanted.partition("*")
    if not star:
        return wanted == version
    plain = version if ":" in prefix else version.rpartition(":")[2]
    rest = plain[len(prefix) :]
    # 595.5* does not match 595.58: numbers are matched as a whole.
    whole = not (prefix[-1:].isdigit() and rest[:1].isdigit())
    return plain.startswith(prefix) and fnmatch.fnmatchcase(rest, f"*{others}") and whole


@dataclass(frozen=True)
class Streams:
    """The current and the requested streams of dnf modules, by module."""

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
            f"{'requested is' if present else 'before it was'} {_words(stream)}."
            for module, stream in self.changes.items()
        )


@dataclass(frozen=True)
class StreamRecord:
    """The recorded streams: before the first change of the set, and as the set enabled them."""

    before: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.before)


@dataclass(frozen=True)
class Package:
    """The state of a package. ``detail`` is the package manager's own word for ``status``."""

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
    """All installed packages whose names match ``patterns``; they have one version and are held.

    A pattern that begins with an exclamation mark excludes names. ``version`` is the beginning of
    the required version (None: any).
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
    """The requested versions by name (None: any), and obsolete packages to remove first.

    A ``*`` in a version matches any text. Packages in ``optional`` are installed if they are
    available. With a ``lock``, only the packages that it covers are held.
    """

    packages: Mapping[str, str | None]
    hold: bool = True
    obsolete: tuple[str, ...] = ()
    optional: Mapping[str, str | None] = field(default_factory=dict)
    lock: Lock | None = None
    streams: Mapping[str, str] = field(default_factory=dict)

    def held(self, name: str, before: Package) -> bool:
        """Return whether a package of the set has to be held."""
        if self.lock is None or self.lock.covers(name):
            return self.hold
        return before.held


@dataclass(frozen=True)
class Record:
    """What the node remembers of a package set.

    ``before``: each package of the set before the first change. ``brought``: packages that were
    installed as dependencies of the set, and whether they are marked as automatic. ``remains``:
    those of them of which an earlier removal had left configuration files; these files are kept.
    ``patterns``: patterns of the lock, which tell holds of the set from others. ``streams``: of dnf
    modules.

    The other fields are set while a change is not finished. ``pending``: all packages that were
    installed when it began. ``coming``: packages that the package manager announced to install
    (None: not recorded). ``named``: those that were passed to it for their version alone, and that
    get marked as automatic. ``released``: packages that were held before the change. ``run``:
    identifier of the run that makes the change.
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
    """The changes to make. ``remove`` keeps configuration files, ``purge`` removes them, too.

    ``purge_last``: dependencies of the set. They are removed last, because a helper of the package
    manager can be among them. ``before`` and ``after``: the packages before and after the change.
    ``automatic``: packages to mark as automatically installed. ``unavailable``: packages that were
    installed before the set and that no repository has now. ``unrequested``: packages to install
    that the request does not name; they may be removed instead if they conflict with the set.
    """

    before: Mapping[str, Package]
    after: Mapping[str, Package]
    install: Mapping[str, str | None] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    purge: tuple[str, ...] = ()
    purge_last: tuple[str, ...] = ()
    automatic: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()
    unrequested: tuple[str, ...] = ()
    streams: Streams = field(default_factory=Streams)

    @property
    def to_remove(self) -> tuple[str, ...]:
        return (*self.remove, *self.purge, *self.purge_last)

    @property
    def changed(self) -> bool:
        return bool(
            self.install
            or self.to_remove
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
