# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A set of packages in one exact version: from request, packages and record to a plan.

Nothing here knows of a package manager.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from .._core.errors import InputError, KubegpuError
from .failures import cause_of
from .types import (
    ANY,
    BROKEN,
    CONFIGURATION,
    INSTALLED,
    Lock,
    Package,
    Plan,
    Record,
    Request,
    Streams,
    fits,
)

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9+._-]*\Z")


_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_-]*\*?\Z")


_VERSION_PATTERN = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.+~:_-]*)?\*[A-Za-z0-9.+~:_-]+\Z")


# At least three characters of a name: no pattern may mean every package.
_PATTERN = re.compile(r"!?[a-z0-9*?][a-z0-9+.*?-]*\Z")


_LITERAL = re.compile(r"[a-z0-9+.-]{3}")


def best(wanted: str | None, versions: Sequence[str]) -> str | None:
    """Return the newest version that fits; ``versions`` with the newest first."""
    return next((version for version in versions if fits(wanted, version)), None)


def check(request: Request) -> None:
    """Refuse names and versions that could mean anything else to a package manager."""
    for name in (*request.packages, *request.optional, *request.obsolete):
        if not _NAME.match(name):
            raise InputError(
                f"{name!r} is not the name of a package.", next_step="Correct packages or obsolete."
            )
    for name, version in (*request.packages.items(), *request.optional.items()):
        if version is not None and not (_VERSION.match(version) or _VERSION_PATTERN.match(version)):
            raise InputError(
                f"{version!r} is not an exact version of {name}.",
                next_step="Give the full version with its packaging revision, such as 1.20.0-1, "
                "or the beginning of one with an asterisk, such as 595.58.03*.",
            )
    if request.lock is not None:
        _check_lock(request.lock)
    both = sorted({*request.packages, *request.optional} & set(request.obsolete))
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


def members(request: Request, packages: Mapping[str, Package]) -> dict[str, str | None]:
    """Return the version that each package shall have which belongs to the set unnamed.

    Those are what the lock covers, as far as it is there, and the optional packages.
    """
    locked: dict[str, str | None] = {}
    if request.lock is not None:
        locked = {
            name: request.lock.wanted
            for name, package in packages.items()
            if package.status in (INSTALLED, BROKEN) and request.lock.covers(name)
        }
    return {
        name: wanted
        for name, wanted in {**locked, **request.optional}.items()
        if name not in request.packages and name not in request.obsolete
    }


def _further(
    request: Request, packages: Mapping[str, Package], available: Mapping[str, Sequence[str]]
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return which members are asked for in which version, and which broken ones have to go."""
    asked: dict[str, str | None] = {}
    going = []
    for name, wanted in members(request, packages).items():
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
    request: Request,
    packages: Mapping[str, Package],
    available: Mapping[str, Sequence[str]] | None = None,
    purged: Collection[str] = (),
) -> Plan:
    """Return what makes the set be there in its versions; ``packages`` by name, as they stand.

    :param available: the versions that package lists have of those :func:`members` that are not
        as they shall be.
    :param purged: obsolete packages of which no configuration file may stay.
    """
    check(request)
    more, useless = _further(request, packages, available or {})
    asked = {**request.packages, **more}
    before: dict[str, Package] = {}
    after: dict[str, Package] = {}
    install: dict[str, str | None] = {}
    reasons: list[str] = []
    soft: list[str] = []
    for name in sorted(asked):
        version = asked[name]
        package = before[name] = packages.get(name, Package())
        held = request.held(name, package)
        if package.installed and fits(version, package.version):
            after[name] = replace(package, held=held)
            if package.held != held:
                reasons.append(f"{name} {'is not' if held else 'is'} held.")
            continue
        install[name] = version
        after[name] = Package(INSTALLED, version or ANY, held)
        if name in more and name not in request.optional:
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
    for name in request.obsolete:
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


def with_streams(plan: Plan, streams: Streams, *, present: bool) -> Plan:
    """Return the plan with what is to be done about streams of modules."""
    reasons = (*streams.reasons(present=present), *plan.reasons)
    return replace(plan, streams=streams, reasons=reasons)


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


def in_the_way(request: Request, names: Collection[str]) -> tuple[str, ...]:
    """Return which packages that would have to go may do so: members that nobody asks for."""
    if request.lock is None:
        return ()
    return tuple(
        name
        for name in sorted(names)
        if request.lock.covers(name)
        and name not in request.packages
        and name not in request.optional
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
