# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a package set: before, during and after a change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from .streams import record_streams
from .types import (
    ABSENT,
    BROKEN,
    CONFIGURATION,
    INSTALLED,
    SEVERAL,
    Package,
    Plan,
    Record,
    Request,
    covers,
)


def not_installed_before(record: Record | None, names: Collection[str]) -> tuple[str, ...]:
    """Return the packages that were not installed before the set."""
    if record is None:
        return ()
    return tuple(
        name
        for name in names
        if name in record.brought
        or (name in record.before and record.before[name].status == ABSENT)
    )


def resume_change(record: Record | None, packages: Mapping[str, Package]) -> Record | None:
    """Return the record of an unfinished change, updated with packages that others installed since.

    A package that was not announced does not belong to the set: it counts as installed before.
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


def begin_change(
    record: Record | None,
    plan: Plan,
    packages: Mapping[str, Package],
    request: Request,
    coming: Collection[str] = (),
    named: Collection[str] = (),
    run: str = "",
    released: Collection[str] = (),
) -> Record:
    """Return the record to store before the change, so that the next run can continue a killed one.

    :param packages: all packages of the node, by name.
    :param coming: packages that the package manager announces to install.
    :param named: those of them that are passed to it for their version alone.
    :param run: identifier of the run.
    :param released: held packages that have to be released for the change.
    """
    asked = {*request.packages, *request.optional}
    patterns = request.lock.patterns if request.lock else ()
    record = record or Record()
    # Recorded packages keep their first state; dependencies of the set were not installed.
    own = set(record.brought)
    # A package of which only configuration files are left can be installed as a dependency.
    installed = [name for name, one in packages.items() if one.status in (INSTALLED, BROKEN)]
    leftovers = {name for name, one in packages.items() if one.status == CONFIGURATION}
    if record.pending is not None:
        others = {*record.pending, *(leftovers - set(record.coming or ()))}
        own.update(name for name in plan.before if name not in others)
    changed = {
        name: Package() if name in own else package
        for name, package in plan.before.items()
        if (package.status in (INSTALLED, BROKEN) or name in plan.install)
        and (name in asked or name not in own)
    }
    before = {**changed, **record.before}
    earlier = {*own, *before, *(record.coming or ())}
    remains = {
        *record.remains,
        *(name for name in coming if name in leftovers and name not in earlier),
    }
    pending = record.pending if record.pending is not None else tuple(sorted(installed))
    known = dict.fromkeys((*record.patterns, *patterns))
    announced = {*(record.coming or ()), *coming}
    if record.pending is not None and record.coming is None:
        # A release without this field began it: all new packages count as dependencies of the set.
        announced.update(name for name in installed if name not in pending)
    return Record(
        before,
        record.brought,
        pending,
        tuple(known),
        tuple(sorted(announced)),
        tuple(dict.fromkeys((*record.named, *named))),
        run,
        tuple(sorted(remains)),
        record_streams(record.streams, plan.streams),
        tuple(dict.fromkeys((*record.released, *released))),
    )


def to_hold_again(record: Record, plan: Plan, packages: Mapping[str, Package]) -> tuple[str, ...]:
    """Return packages not of the set that this run or an earlier one released for the change."""
    return tuple(
        name
        for name in record.released
        if name not in plan.after
        and packages.get(name, Package()).status in (INSTALLED, BROKEN)
        and not packages[name].held
    )


def finish_change(record: Record, packages: Mapping[str, Package]) -> Record:
    """Return the record after the change, with the dependencies that were installed."""
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


def not_restored(record: Record, packages: Mapping[str, Package]) -> Record | None:
    """Return the record of what could not be restored yet; None if everything was."""
    before = {
        name: old
        for name, old in record.before.items()
        if old.installed and packages.get(name, Package()).version != old.version
    }
    return Record(before) if before else None


def unneeded_dependencies(
    record: Record | None,
    packages: Mapping[str, Package],
    needs: Mapping[str, Collection[str]],
    *,
    marks_of_held: bool = True,
) -> tuple[str, ...]:
    """Return the dependencies of the set that no remaining package needs.

    :param needs: the packages that each installed package depends on; alternatives and virtual
        packages are resolved to names of packages.
    :param marks_of_held: whether the package manager keeps automatic marks of held packages.
    """
    if record is None:
        return ()
    own = {name for name, old in record.before.items() if not old.installed}
    candidates = {
        name
        for name, automatic in record.brought.items()
        if name in packages
        and name not in record.before
        and packages[name].status in (INSTALLED, BROKEN)
        and (not packages[name].held or covers(record.patterns, name))
        # Marked as manual since: a user requested it by name.
        and (
            packages[name].automatic or not automatic or (packages[name].held and not marks_of_held)
        )
    }
    while True:
        remaining = {
            name
            for name, package in packages.items()
            if package.status in (INSTALLED, BROKEN) and name not in candidates and name not in own
        }
        needed = {name for other in remaining for name in needs.get(other, ())}
        if not candidates & needed:
            return tuple(sorted(candidates))
        candidates -= needed
