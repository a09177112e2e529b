# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a package set, from the request or the record and from the installed packages.

It does not depend on the package manager.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .._core.errors import InputError, KubegpuError
from .._known_faults.rules.packages import DKMS_MISSING
from .failures import NOTHING_SEEN, Circumstances, cause_of
from .obstacles import joined
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


_VERSION_PATTERN = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.+~:_-]*)?\*[A-Za-z0-9.+~:_-]+\*?\Z")


# At least three characters of a name: no pattern may mean every package.
_PATTERN = re.compile(r"!?[a-z0-9*?][a-z0-9+.*?-]*\Z")


_LITERAL = re.compile(r"[a-z0-9+.-]{3}")


def best(wanted: str | None, versions: Sequence[str]) -> str | None:
    """Return the newest version that matches; ``versions`` are sorted, the newest first."""
    return next((version for version in versions if fits(wanted, version)), None)


def check(request: Request) -> None:
    """Check the request: no name or version may mean something else to a package manager.

    :raises InputError: the request is not valid.
    """
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
    """Return the required version of each package that belongs to the set without being listed.

    These are the installed packages that the lock covers, and the optional packages.
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
    """Return the members to install with their versions, and the broken ones to remove."""
    asked: dict[str, str | None] = {}
    unusable = []
    for name, wanted in members(request, packages).items():
        package = packages.get(name, Package())
        if best(wanted, available.get(name, ())):
            asked[name] = wanted
        elif package.installed:
            # A package that is not available in that version is held in its own version.
            asked[name] = wanted if fits(wanted, package.version) else None
        elif package.status == BROKEN and name in available:
            # A failed change left it, and it is not available in the requested version.
            unusable.append(name)
    return asked, tuple(unusable)


@dataclass
class _Draft:
    """A plan that is being made; the fields are those of :class:`Plan`."""

    before: dict[str, Package] = field(default_factory=dict)
    after: dict[str, Package] = field(default_factory=dict)
    install: dict[str, str | None] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    purge: list[str] = field(default_factory=list)
    purge_last: list[str] = field(default_factory=list)
    automatic: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unavailable: list[str] = field(default_factory=list)
    unrequested: list[str] = field(default_factory=list)

    def plan(self) -> Plan:
        return Plan(
            self.before,
            self.after,
            self.install,
            tuple(self.remove),
            tuple(self.purge),
            tuple(self.purge_last),
            tuple(self.automatic),
            tuple(self.reasons),
            tuple(self.warnings),
            tuple(self.unavailable),
            tuple(self.unrequested),
        )


def plan_present(
    request: Request,
    packages: Mapping[str, Package],
    available: Mapping[str, Sequence[str]] | None = None,
    purged: Collection[str] = (),
) -> Plan:
    """Return the plan that installs the set in the requested versions.

    :param packages: the installed packages, by name.
    :param available: the available versions of the :func:`members` that are not in the requested
        version.
    :param purged: obsolete packages whose configuration files have to be removed, too.
    :raises InputError: the request is not valid.
    """
    check(request)
    more, unusable = _further(request, packages, available or {})
    draft = _Draft()
    for name, version in sorted({**request.packages, **more}.items()):
        named = name in request.packages or name in request.optional
        package = packages.get(name, Package())
        _plan_package(draft, name, version, package, request.held(name, package), named)
    for name in request.obsolete:
        package = draft.before[name] = packages.get(name, Package())
        draft.after[name] = package
        if package.status in (INSTALLED, BROKEN):
            (draft.purge if name in purged else draft.remove).append(name)
            draft.after[name] = Package()
            draft.reasons.append(f"{name} {package.version} is obsolete.")
    for name in unusable:
        package = draft.before[name] = packages[name]
        draft.after[name] = Package()
        draft.remove.append(name)
        draft.reasons.append(f"{name} {package.version} is {package.detail}, and not requested.")
    return draft.plan()


def _plan_package(
    draft: _Draft, name: str, version: str | None, package: Package, held: bool, named: bool
) -> None:
    """Plan one package of the set.

    :param named: whether the request names it; otherwise it is a member of the lock.
    """
    draft.before[name] = package
    if package.installed and fits(version, package.version):
        draft.after[name] = replace(package, held=held)
        if package.held != held:
            draft.reasons.append(f"{name} {'is not' if held else 'is'} held.")
        return
    draft.install[name] = version
    draft.after[name] = Package(INSTALLED, version or ANY, held)
    if not named:
        draft.unrequested.append(name)
        if package.status == BROKEN and not fits(version, package.version):
            # The dependencies of the other packages decide whether it is installed again.
            draft.after[name] = Package()
    wanted = version or "any version"
    if package.installed:
        draft.reasons.append(f"{name} is {package.version}, requested is {wanted}.")
    elif package.status == BROKEN:
        draft.reasons.append(f"{name} is {package.detail}, requested is {wanted}.")
    else:
        draft.reasons.append(f"{name} is not installed, requested is {wanted}.")


def plan_absent(
    record: Record | None,
    packages: Mapping[str, Package],
    available: Mapping[str, Sequence[str]],
    edited: Collection[str] = (),
    removable: Collection[str] = (),
) -> Plan:
    """Return the plan that restores the packages that were installed before the set.

    :param packages: all packages of the node, by name.
    :param available: the available versions, by name.
    :param edited: packages with an edited configuration file. Their files are kept.
    :param removable: dependencies of the set that no other package needs.
    """
    if record is None:
        return Plan({}, {}, reasons=("Nothing is recorded under this name: nothing to undo.",))
    draft = _Draft()
    for name, old in sorted(record.before.items()):
        package = draft.before[name] = packages.get(name, Package())
        if old.installed:
            _restore(draft, name, old, package, available.get(name, ()))
        else:
            _remove(draft, name, old, package, name in edited)
    for name in sorted(removable):
        if name in edited:
            continue
        draft.before[name] = packages[name]
        draft.after[name] = Package()
        (draft.remove if name in record.remains else draft.purge_last).append(name)
        draft.reasons.append(f"{name} came along with the set and serves nothing else.")
    for name in sorted(record.brought):
        package = packages.get(name, Package())
        # Dependencies that another package replaced since left their configuration, too.
        if (
            package.status == CONFIGURATION
            and name not in record.before
            and name not in record.remains
            and name not in edited
        ):
            draft.before[name], draft.after[name] = package, Package()
            draft.purge.append(name)
            draft.reasons.append(f"{name} came along with the set; its configuration was left.")
    return draft.plan()


def _remove(draft: _Draft, name: str, old: Package, package: Package, edited: bool) -> None:
    """Plan to remove a package that was not installed before the set."""
    draft.after[name] = package
    # A package that became obsolete since left its configuration.
    leftover = package.status == CONFIGURATION != old.status and not edited
    if package.status in (INSTALLED, BROKEN) or leftover:
        draft.after[name] = Package()
        keeps = edited or old.status == CONFIGURATION
        (draft.remove if keeps else draft.purge).append(name)
        draft.reasons.append(f"{name} was not installed before.")
        if edited:
            draft.reasons.append(f"{name}: its configuration was edited since, and is kept.")


def _restore(
    draft: _Draft, name: str, old: Package, package: Package, available: Sequence[str]
) -> None:
    """Plan to restore version, hold and automatic mark of a package."""
    if package.installed and package.version == old.version:
        draft.after[name] = replace(package, held=old.held)
    elif old.version in available:
        draft.install[name] = old.version
        draft.after[name] = Package(INSTALLED, old.version, old.held)
        draft.reasons.append(f"{name} was {old.version} before.")
    else:
        draft.after[name] = replace(package, held=old.held) if package.installed else package
        draft.unavailable.append(name)
        draft.warnings.append(
            f"{name} {old.version} was installed before and cannot be restored: no "
            "repository of this node has it now. Next step: add its repository and install "
            "it manually."
        )
    after = draft.after[name]
    if old.automatic and after.installed:
        draft.automatic.append(name)
    if after.installed and package.installed and after.held != package.held:
        draft.reasons.append(f"{name} was {'held' if old.held else 'not held'} before.")


def with_streams(plan: Plan, streams: Streams, *, present: bool) -> Plan:
    """Return the plan with the changes of module streams."""
    reasons = (*streams.reasons(present=present), *plan.reasons)
    return replace(plan, streams=streams, reasons=reasons)


def missing(plan: Plan, available: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the packages to install whose version is not available."""
    return tuple(
        name
        for name, version in sorted(plan.install.items())
        if best(version, available.get(name, ())) is None
    )


def exact(
    install: Mapping[str, str | None], available: Mapping[str, Sequence[str]]
) -> dict[str, str | None]:
    """Return the exact versions to pass to the package manager: the newest that match."""
    return {
        name: best(version, available.get(name, ())) if version and "*" in version else version
        for name, version in install.items()
    }


def in_the_way(request: Request, names: Collection[str]) -> tuple[str, ...]:
    """Return the packages that may be removed: members of the lock that are not requested."""
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
    """Return the plan with more packages to remove, as the dry run found."""
    removed = [name for name in names if name not in plan.to_remove]
    return replace(
        plan,
        before={**plan.before, **{name: packages.get(name, Package()) for name in removed}},
        after={**plan.after, **dict.fromkeys(removed, Package())},
        remove=(*plan.remove, *removed),
        reasons=(
            *plan.reasons,
            *(f"{name} conflicts, and is not requested." for name in removed),
        ),
    )


def uncovered(plan: Plan, broken: Collection[str]) -> tuple[str, ...]:
    """Return the broken packages that the plan neither installs nor removes."""
    return tuple(sorted(set(broken) - set(plan.install) - set(plan.to_remove)))


def verify(plan: Plan, packages: Mapping[str, Package]) -> tuple[str, ...]:
    """Return the differences between the packages and the plan, after the change."""
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
        elif name in plan.to_remove and package.status in (INSTALLED, BROKEN):
            wrong.append(f"{name} {package.version} is still there")
    return tuple(wrong)


def shown(packages: Mapping[str, Package]) -> str:
    """Return the packages as lines for a diff."""
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
    names: Sequence[str],
    plan: Plan,
    available: Mapping[str, Sequence[str]],
    refresh: str,
    circumstances: Circumstances = NOTHING_SEEN,
) -> KubegpuError:
    """Return the error for versions that are not available.

    :param refresh: errors of the last refresh of the package lists.
    :param circumstances: what the node shows: a setting can hide what a repository has.
    """
    wanted = ", ".join(f"{name} {plan.install[name] or ''}".rstrip() for name in names)
    hidden = circumstances.obstacles and (*joined(circumstances.obstacles), "package_filtered")
    cause, next_step, code = (
        hidden
        or cause_of(refresh, circumstances)
        or (
            "",
            "Ask for a version that is available, or correct the repository.",
            DKMS_MISSING if "dkms" in names else "package_missing",
        )
    )
    seen = "; ".join(
        f"{name}: {', '.join(available.get(name, ())) or 'no version at all'}" for name in names
    )
    return KubegpuError(
        (
            f"{wanted} cannot be installed."
            if hidden
            else f"No package list of this node has {wanted}."
        )
        + (f" {cause}" if cause else ""),
        evidence=f"available are: {seen}" + (f"\n{refresh}" if refresh else ""),
        next_step=next_step,
        code=code,
    )
