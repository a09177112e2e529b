# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a package set on the node, before, during and after a change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from . import streams as modules
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
    request: Request,
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
    asked = {*request.packages, *request.optional}
    patterns = request.lock.patterns if request.lock else ()
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


def left(record: Record, packages: Mapping[str, Package]) -> Record | None:
    """Return what is still to be given back, for a later run; None where all is as it was."""
    before = {
        name: old
        for name, old in record.before.items()
        if old.installed and packages.get(name, Package()).version != old.version
    }
    return Record(before) if before else None


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
