# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A set of packages in one exact version: from wish, packages and record to a plan.

Nothing here knows of a package manager.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .._core.errors import InputError, KubegpuError
from . import streams as modules
from .failures import cause_of
from .match import covers, fits
from .streams import Kept, Streams

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

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9+._-]*\Z")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_-]*\*?\Z")
_VERSION_PATTERN = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.+~:_-]*)?\*[A-Za-z0-9.+~:_-]+\Z")
# At least three characters of a name: no pattern may mean every package.
_PATTERN = re.compile(r"!?[a-z0-9*?][a-z0-9+.*?-]*\Z")
_LITERAL = re.compile(r"[a-z0-9+.-]{3}")


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
class Wish:
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


def best(wanted: str | None, versions: Sequence[str]) -> str | None:
    """Return the newest version that fits; ``versions`` with the newest first."""
    return next((version for version in versions if fits(wanted, version)), None)


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
    streams: Kept = field(default_factory=Kept)
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
            Kept(**data.get("streams", {})),
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


def check(wish: Wish) -> None:
    """Refuse names and versions that could mean anything else to a package manager."""
    for name in (*wish.packages, *wish.optional, *wish.obsolete):
        if not _NAME.match(name):
            raise InputError(
                f"{name!r} is not the name of a package.", next_step="Correct packages or obsolete."
            )
    for name, version in (*wish.packages.items(), *wish.optional.items()):
        if version is not None and not (_VERSION.match(version) or _VERSION_PATTERN.match(version)):
            raise InputError(
                f"{version!r} is not an exact version of {name}.",
                next_step="Give the full version with its packaging revision, such as 1.20.0-1, "
                "or the beginning of one with an asterisk, such as 595.58.03*.",
            )
    if wish.lock is not None:
        _check_lock(wish.lock)
    both = sorted({*wish.packages, *wish.optional} & set(wish.obsolete))
    if both:
        raise InputError(f"Asked for and obsolete at the same time: {', '.join(both)}.")


def _check_lock(lock: Lock) -> None:
    for pattern in lock.patterns:
        if not (_PATTERN.match(pattern) and _LITERAL.search(pattern)):
            raise InputError(
                f"{pattern!r} is not a pattern that locks packages.",
                next_step="Give beginnings of names such as libnvidia-*, with at least three "
                "characters of a name.",
            )
    if lock.version is not None and not _VERSION.match(lock.version):
        raise InputError(f"{lock.version!r} is not the beginning of a version.")


def members(wish: Wish, packages: Mapping[str, Package]) -> dict[str, str | None]:
    """Return the version that each package shall have which belongs to the set unnamed.

    Those are what the lock covers, as far as it is there, and the optional packages.
    """
    locked: dict[str, str | None] = {}
    if wish.lock is not None:
        locked = {
            name: wish.lock.wanted
            for name, package in packages.items()
            if package.status in (INSTALLED, BROKEN) and wish.lock.covers(name)
        }
    return {
        name: wanted
        for name, wanted in {**locked, **wish.optional}.items()
        if name not in wish.packages and name not in wish.obsolete
    }


def _further(
    wish: Wish, packages: Mapping[str, Package], available: Mapping[str, Sequence[str]]
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return which members are asked for in which version, and which broken ones have to go."""
    asked: dict[str, str | None] = {}
    going = []
    for name, wanted in members(wish, packages).items():
        package = packages.get(name, Package())
        if best(wanted, available.get(name, ())):
            asked[name] = wanted
        elif package.installed:
            # What no package list has in that version is held as it is.
            asked[name] = wanted if fits(wanted, package.version) else None
        elif package.status == BROKEN and name in available:
            # Left by a change that failed, and of no use in the version that is asked for now.
            going.append(name)
    return asked, tuple(going)


def plan_present(
    wish: Wish,
    packages: Mapping[str, Package],
    available: Mapping[str, Sequence[str]] | None = None,
    purged: Collection[str] = (),
) -> Plan:
    """Return what makes the set be there in its versions; ``packages`` by name, as they stand.

    :param available: the versions that package lists have of those :func:`members` that are not
        as they shall be.
    :param purged: obsolete packages of which no configuration file may stay.
    """
    check(wish)
    more, useless = _further(wish, packages, available or {})
    asked = {**wish.packages, **more}
    before: dict[str, Package] = {}
    after: dict[str, Package] = {}
    install: dict[str, str | None] = {}
    reasons: list[str] = []
    soft: list[str] = []
    for name in sorted(asked):
        version = asked[name]
        package = before[name] = packages.get(name, Package())
        held = wish.held(name, package)
        if package.installed and fits(version, package.version):
            after[name] = replace(package, held=held)
            if package.held != held:
                reasons.append(f"{name} {'is not' if held else 'is'} held.")
            continue
        install[name] = version
        after[name] = Package(INSTALLED, version or ANY, held)
        if name in more and name not in wish.optional:
            soft.append(name)
            if package.status == BROKEN and not fits(version, package.version):
                # Whether it comes back in that version, the dependencies of the others say.
                after[name] = Package()
        wanted = version or "any version"
        if package.installed:
            reasons.append(f"{name} is {package.version}, asked for is {wanted}.")
        elif package.status == BROKEN:
            reasons.append(f"{name} is {package.detail}, asked for is {wanted}.")
        else:
            reasons.append(f"{name} is not installed, asked for is {wanted}.")
    remove: list[str] = []
    purge: list[str] = []
    for name in wish.obsolete:
        package = before[name] = packages.get(name, Package())
        after[name] = package
        if package.status in (INSTALLED, BROKEN):
            (purge if name in purged else remove).append(name)
            after[name] = Package()
            reasons.append(f"{name} {package.version} is obsolete.")
    for name in useless:
        package = before[name] = packages[name]
        after[name] = Package()
        remove.append(name)
        reasons.append(f"{name} {package.version} is {package.detail}, and not asked for.")
    return Plan(
        before,
        after,
        install,
        tuple(remove),
        tuple(purge),
        reasons=tuple(reasons),
        soft=tuple(soft),
    )


def plan_absent(
    record: Record | None,
    packages: Mapping[str, Package],
    available: Mapping[str, Sequence[str]],
    edited: Collection[str] = (),
    removable: Collection[str] = (),
) -> Plan:
    """Return what gives back the packages that stood there before.

    :param packages: all packages of the node, as they stand.
    :param available: the versions that the package manager could install, by name.
    :param edited: packages of which somebody edited a configuration file: it stays.
    :param removable: what came along with the set and serves nothing else.
    """
    if record is None:
        return Plan({}, {}, reasons=("Nothing is recorded under this name: nothing to undo.",))
    before: dict[str, Package] = {}
    after: dict[str, Package] = {}
    install: dict[str, str | None] = {}
    remove: list[str] = []
    purge: list[str] = []
    automatic: list[str] = []
    reasons: list[str] = []
    warnings: list[str] = []
    lost: list[str] = []
    for name in sorted(record.before):
        old = record.before[name]
        package = before[name] = packages.get(name, Package())
        if not old.installed:
            after[name] = package
            # Of one that was obsolete meanwhile, the configuration is left.
            rest = package.status == CONFIGURATION != old.status and name not in edited
            if package.status in (INSTALLED, BROKEN) or rest:
                after[name] = Package()
                keeps = name in edited or old.status == CONFIGURATION
                (remove if keeps else purge).append(name)
                reasons.append(f"{name} was not installed before.")
                if name in edited:
                    reasons.append(f"{name}: its configuration was edited since, and stays.")
            continue
        if package.installed and package.version == old.version:
            after[name] = replace(package, held=old.held)
        elif old.version in available.get(name, ()):
            install[name] = old.version
            after[name] = Package(INSTALLED, old.version, old.held)
            reasons.append(f"{name} was {old.version} before.")
        else:
            after[name] = replace(package, held=old.held) if package.installed else package
            lost.append(name)
            warnings.append(
                f"{name} {old.version} was installed before and cannot be put back: no "
                "repository of this node has it now. Next step: add its repository and install "
                "it by hand."
            )
        if old.automatic and after[name].installed:
            automatic.append(name)
        if after[name].installed and package.installed and after[name].held != package.held:
            reasons.append(f"{name} was {'held' if old.held else 'not held'} before.")
    along: list[str] = []
    for name in sorted(removable):
        if name in edited:
            continue
        before[name] = packages[name]
        after[name] = Package()
        (remove if name in record.remains else along).append(name)
        reasons.append(f"{name} came along with the set and serves nothing else.")
    for name in sorted(record.brought):
        package = packages.get(name, Package())
        # Of what came along and became obsolete meanwhile, too.
        if (
            package.status == CONFIGURATION
            and name not in record.before
            and name not in record.remains
            and name not in edited
        ):
            before[name], after[name] = package, Package()
            purge.append(name)
            reasons.append(f"{name} came along with the set; its configuration was left.")
    return Plan(
        before,
        after,
        install,
        tuple(remove),
        tuple(purge),
        tuple(along),
        tuple(automatic),
        tuple(reasons),
        tuple(warnings),
        tuple(lost),
    )


def left(record: Record, packages: Mapping[str, Package]) -> Record | None:
    """Return what is still to be given back, for a later run; None where all is as it was."""
    before = {
        name: old
        for name, old in record.before.items()
        if old.installed and packages.get(name, Package()).version != old.version
    }
    return Record(before) if before else None


def with_streams(plan: Plan, streams: Streams, *, present: bool) -> Plan:
    """Return the plan with what is to be done about streams of modules."""
    reasons = (*streams.reasons(present=present), *plan.reasons)
    return replace(plan, streams=streams, reasons=reasons)


def ours(record: Record | None, names: Collection[str]) -> tuple[str, ...]:
    """Return which of the packages were not there before us."""
    if record is None:
        return ()
    return tuple(
        name
        for name in names
        if name in record.brought
        or (name in record.before and record.before[name].status == ABSENT)
    )


def resumed(record: Record | None, packages: Mapping[str, Package]) -> Record | None:
    """Return the record of a change that was begun, with what somebody else installed since.

    What came and was not announced is not ours: it counts as there before.
    """
    if record is None or record.pending is None or record.coming is None:
        return record
    known = {*record.pending, *record.coming, *record.before}
    others = [
        name
        for name, package in packages.items()
        if package.status in (INSTALLED, BROKEN) and name not in known
    ]
    return replace(record, pending=tuple(sorted({*record.pending, *others})))


def begun(
    record: Record | None,
    plan: Plan,
    packages: Mapping[str, Package],
    wish: Wish,
    coming: Collection[str] = (),
    named: Collection[str] = (),
    run: str = "",
    released: Collection[str] = (),
) -> Record:
    """Return the record to be kept before the change: a run that dies is known by it.

    :param packages: all packages of the node, as they stand.
    :param coming: what the package manager says it would install.
    :param named: what of it is told to it for its version alone.
    :param released: what is held, and cannot be for the change.
    """
    asked = {*wish.packages, *wish.optional}
    patterns = wish.lock.patterns if wish.lock else ()
    record = record or Record()
    # Packages that are in the record keep what was first seen; what came along was not there.
    mine = set(record.brought)
    # Of a package that was removed once, files are left: it is not there, and can come along.
    everything = [name for name, one in packages.items() if one.status in (INSTALLED, BROKEN)]
    rests = {name for name, one in packages.items() if one.status == CONFIGURATION}
    if record.pending is not None:
        others = {*record.pending, *(rests - set(record.coming or ()))}
        mine.update(name for name in plan.before if name not in others)
    touched = {
        name: Package() if name in mine else package
        for name, package in plan.before.items()
        if (package.status in (INSTALLED, BROKEN) or name in plan.install)
        and (name in asked or name not in mine)
    }
    before = {**touched, **record.before}
    earlier = {*mine, *before, *(record.coming or ())}
    remains = {*record.remains, *(name for name in coming if name in rests and name not in earlier)}
    pending = record.pending if record.pending is not None else tuple(sorted(everything))
    known = dict.fromkeys((*record.patterns, *patterns))
    announced = {*(record.coming or ()), *coming}
    if record.pending is not None and record.coming is None:
        # Begun by a release that did not write it down: all that is new is taken for ours.
        announced.update(name for name in everything if name not in pending)
    return Record(
        before,
        record.brought,
        pending,
        tuple(known),
        tuple(sorted(announced)),
        tuple(dict.fromkeys((*record.named, *named))),
        run,
        tuple(sorted(remains)),
        modules.begun(record.streams, plan.streams),
        tuple(dict.fromkeys((*record.released, *released))),
    )


def to_hold_again(record: Record, plan: Plan, packages: Mapping[str, Package]) -> tuple[str, ...]:
    """Return what was released for a change, by whichever run, and is not of the set."""
    return tuple(
        name
        for name in record.released
        if name not in plan.after
        and packages.get(name, Package()).status in (INSTALLED, BROKEN)
        and not packages[name].held
    )


def finished(record: Record, packages: Mapping[str, Package]) -> Record:
    """Return the record after the change, with what came along."""
    if record.pending is None:
        return record
    known = {*record.pending, *record.before}
    brought = {
        name: package.automatic
        for name, package in packages.items()
        if package.status in (INSTALLED, BROKEN) and name not in known and package.detail != SEVERAL
    }
    return Record(
        record.before,
        {**brought, **record.brought},
        None,
        record.patterns,
        remains=record.remains,
        streams=record.streams,
    )


def removable(
    record: Record | None,
    packages: Mapping[str, Package],
    needs: Mapping[str, Collection[str]],
    *,
    marks_of_held: bool = True,
) -> tuple[str, ...]:
    """Return what came along with the set and is needed by nothing that stays.

    :param needs: the names that each installed package depends on, alternatives and what is
        provided resolved to package names.
    :param marks_of_held: whether a package that is held keeps its mark as automatic.
    """
    if record is None:
        return ()
    mine = {name for name, old in record.before.items() if not old.installed}
    going = {
        name
        for name, automatic in record.brought.items()
        if name in packages
        and name not in record.before
        and packages[name].status in (INSTALLED, BROKEN)
        and (not packages[name].held or covers(record.patterns, name))
        # Somebody asked for it by name since: it is his now.
        and (
            packages[name].automatic or not automatic or (packages[name].held and not marks_of_held)
        )
    }
    while True:
        staying = {
            name
            for name, package in packages.items()
            if package.status in (INSTALLED, BROKEN) and name not in going and name not in mine
        }
        needed = {name for other in staying for name in needs.get(other, ())}
        if not going & needed:
            return tuple(sorted(going))
        going -= needed


def missing(plan: Plan, available: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the packages of the plan whose version no package list has."""
    return tuple(
        name
        for name, version in sorted(plan.install.items())
        if best(version, available.get(name, ())) is None
    )


def exact(
    install: Mapping[str, str | None], available: Mapping[str, Sequence[str]]
) -> dict[str, str | None]:
    """Return the versions to name to the package manager: the newest that begins as asked for."""
    return {
        name: best(version, available.get(name, ())) if version and "*" in version else version
        for name, version in install.items()
    }


def in_the_way(wish: Wish, names: Collection[str]) -> tuple[str, ...]:
    """Return which packages that would have to go may do so: members that nobody asks for."""
    if wish.lock is None:
        return ()
    return tuple(
        name
        for name in sorted(names)
        if wish.lock.covers(name) and name not in wish.packages and name not in wish.optional
    )


def without(plan: Plan, names: Collection[str], packages: Mapping[str, Package]) -> Plan:
    """Return the plan with more packages that go: what is known only once lists are read."""
    going = [name for name in names if name not in plan.going]
    return replace(
        plan,
        before={**plan.before, **{name: packages.get(name, Package()) for name in going}},
        after={**plan.after, **dict.fromkeys(going, Package())},
        remove=(*plan.remove, *going),
        reasons=(
            *plan.reasons,
            *(f"{name} stands in the way, and is not asked for." for name in going),
        ),
    )


def uncovered(plan: Plan, broken: Collection[str]) -> tuple[str, ...]:
    """Return the broken packages that the plan itself neither replaces nor takes away."""
    return tuple(sorted(set(broken) - set(plan.install) - set(plan.going)))


def verify(plan: Plan, packages: Mapping[str, Package]) -> tuple[str, ...]:
    """Return in what the packages differ from what the plan promised."""
    wrong = []
    for name, promised in sorted(plan.after.items()):
        package = packages.get(name, Package())
        if promised.installed:
            if not package.installed:
                wrong.append(f"{name} is {package.detail or package.status}")
            elif promised.version != ANY and not fits(promised.version, package.version):
                wrong.append(f"{name} is {package.version}, not {promised.version}")
            elif package.held != promised.held:
                wrong.append(f"{name} is {'held' if package.held else 'not held'}")
        elif name in plan.going and package.status in (INSTALLED, BROKEN):
            wrong.append(f"{name} {package.version} is still there")
    return tuple(wrong)


def shown(packages: Mapping[str, Package]) -> str:
    """Return the packages as the lines of a diff."""
    return "".join(
        " ".join(
            [name, package.version or "?"]
            + ([package.detail or BROKEN] if package.status == BROKEN else [])
            + (["held"] if package.held else [])
        )
        + "\n"
        for name, package in sorted(packages.items())
        if package.status in (INSTALLED, BROKEN)
    )


def not_available(
    names: Sequence[str], plan: Plan, available: Mapping[str, Sequence[str]], refresh: str
) -> KubegpuError:
    """Return the failure for versions that no package list has."""
    wanted = ", ".join(f"{name} {plan.install[name] or ''}".rstrip() for name in names)
    cause, next_step = cause_of(refresh) or (
        "",
        "Ask for a version that is available, or correct the repository.",
    )
    seen = "; ".join(
        f"{name}: {', '.join(available.get(name, ())) or 'no version at all'}" for name in names
    )
    return KubegpuError(
        f"No package list of this node has {wanted}." + (f" {cause}" if cause else ""),
        evidence=f"available are: {seen}" + (f"\n{refresh}" if refresh else ""),
        next_step=next_step,
    )
