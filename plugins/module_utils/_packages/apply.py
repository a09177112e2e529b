# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two phases of ``package_set``; between them its action plugin changes the packages.

:func:`prepare` plans, records the intent and returns the calls of Ansible's package module.
:func:`finish` sets holds and marks, verifies, and finishes the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import KubegpuError
from .._host.temporary import clear_shared, make_shared
from .._record.store import StateStore
from . import preserve
from . import streams as modules
from .host import Host
from .lock import wait_for_lock
from .manager import Changes, Database
from .needrestart import services_to_restart, warning
from .options import Options
from .plan import missing, not_available, plan_absent, shown, verify, without
from .read import (
    broken_packages,
    installed_names,
    plan_after_change,
    plan_for_set,
    plan_from_database,
    read_streams,
    refresh_for_rollback,
    refresh_if_needed,
)
from .record import begin_change, finish_change, not_restored, resume_change, to_hold_again
from .repair import mark, release, repair, restore_streams, switch_streams
from .saved import save_packages
from .simulate import Resolution, packages_to_install, packages_to_release, predict, resolve
from .types import BROKEN, INSTALLED, Package, Plan, Record, fits


@dataclass(frozen=True)
class Result:
    """What the module returns: the values, and the diff (None: no diff)."""

    values: dict[str, Any]
    diff: tuple[dict[str, str], ...] | None = None


def find_missing(options: Options, host: Host) -> Result:
    """Return which packages no repository has in these versions, also of those installed."""
    wanted = options.request.packages
    there = host.manager.available(sorted(wanted))
    absent = [
        name
        for name, version in sorted(wanted.items())
        if not any(fits(version, one) for one in there.get(name, ()))
    ]
    values = {"changed": False, "packages": {}, "module_streams": {}, "broken": {}, "reasons": []}
    return Result({**values, "not_available": absent}, diff=())


def save(options: Options, host: Host) -> Result:
    """Save the packages on the node as files that apt can install."""
    changes = save_packages(host, options.request.packages, check_mode=options.check_mode)
    versions = {name: Package(INSTALLED, version) for name, version in changes.after.items()}
    earlier = {name: Package(INSTALLED, version) for name, version in changes.before.items()}
    values: dict[str, Any] = {
        "changed": changes.changed,
        "packages": _public(versions),
        "previous": _public(earlier),
        "module_streams": {},
        "broken": {},
        "not_available": list(changes.lost),
        "reasons": [],
    }
    title = f"saved packages {options.name}"
    before, after = shown(earlier), shown(versions)
    diff = {"before": before, "after": after, "before_header": title, "after_header": title}
    return Result(values, (diff,) if before != after else ())


def prepare(options: Options, host: Host, store: StateStore) -> Result:
    """Plan the set; if something differs, record the intent and return the calls to make."""
    preserve.check_patterns(options.preserve)
    # What a run left that was killed while the package manager worked.
    left = preserve.differing(store, options.name)
    if not options.check_mode:
        preserve.restore(store, options.name)
    result = _prepare(options, host, store)
    if left:
        result.values["changed"] = True
        result.values["reasons"] = [
            f"{', '.join(left)}: restored, since the run before was killed",
            *result.values["reasons"],
        ]
    return result


def _prepare(options: Options, host: Host, store: StateStore) -> Result:
    request, present = options.request, options.present
    record = Record.from_json(store.get(options.key))
    host = host.with_streams(read_streams(host, request, present, record))
    if present:
        plan = plan_for_set(host, request, record)
        if not plan.changed and (record is None or record.pending is None):
            return _result(options, plan, {})
        _check_not_image(host, plan)
    elif record is None:
        return _result(options, plan_absent(None, {}, {}), {})
    elif host.image_refusal():
        seen = host.manager.read_all()
        own = resume_change(record, seen.packages)
        _check_not_image(host, plan_from_database(host, request, present, own, seen))
    if options.check_mode:
        return _check(options, host, record)
    wait_for_lock(host, options.name, record is not None and record.pending is not None)
    _clear(options, host)
    database = host.manager.read_all()
    record = resume_change(record, database.packages)
    if record is not None and not present:
        refresh_for_rollback(host, options, record, database)
    plan = promised = plan_from_database(host, request, present, record, database)
    broken = broken_packages(database.packages)
    if plan.changed:
        preserve.save(store, options.name, options.preserve)
    if (plan.install or plan.to_remove) and (broken or host.interrupted()):
        repair(host, plan, broken, (record.coming or ()) if record else ())
        database = host.manager.read_all()
        # The result shows the first plan; the repair can have left less to do.
        plan = plan_from_database(host, request, present, record, database)
    errors = refresh_if_needed(host, options, plan, database)
    if errors is not None and present:
        # More optional packages can be available now.
        plan = plan_from_database(host, request, present, record, database)
    resolution = resolve(host, options, plan, errors or "", may_be_missing=False)
    plan = without(plan, resolution.removed, database.packages)
    result = _result(options, without(promised, resolution.removed, database.packages), broken)
    if plan.changed:
        result.values["_tasks"] = _begin(options, host, store, plan, record, resolution, database)
    else:
        _complete(options, host, store, plan, record, database)
        preserve.restore(store, options.name)
    return result


def _check_not_image(host: Host, plan: Plan) -> None:
    """Check that packages are not installed in an image, or removed from it.

    :raises Refusal: they are; the package manager would fail, or its change would be lost.
    """
    refusal = host.image_refusal() if plan.install or plan.to_remove else None
    if refusal:
        raise refusal


def _check(options: Options, host: Host, record: Record | None) -> Result:
    """Return the result in check mode. Nothing is waited for, repaired or refreshed."""
    database = host.manager.read_all()
    record = resume_change(record, database.packages)
    plan = plan_from_database(host, options.request, options.present, record, database)
    broken = broken_packages(database.packages)
    # The dry run of a package manager fails while packages are half configured.
    resolution = Resolution() if broken else predict(host, options, plan, record, database)
    return _result(options, without(plan, resolution.removed, database.packages), broken)


def _begin(
    options: Options,
    host: Host,
    store: StateStore,
    plan: Plan,
    record: Record | None,
    resolution: Resolution,
    database: Database,
) -> dict[str, Any]:
    """Record the intent, then do what comes before the calls, and return the calls."""
    request = options.request
    version_only = [name for name in resolution.version_only if _is_automatic(database, name)]
    released = packages_to_release(host, plan, resolution, database)
    if options.present:
        announced = (
            packages_to_install(host, resolution, database, request.hold)
            if plan.install or plan.to_remove
            else ()
        )
        packages = database.packages
        begin = begin_change(
            *(record, plan, packages, request, announced, version_only, options.run, released)
        )
        store.put(options.key, begin.to_json())
    elif record is not None:
        names = tuple(dict.fromkeys((*record.released, *released)))
        store.put(options.key, replace(record, run=options.run, released=names).to_json())
    calls = _calls(options, host, plan, resolution, database)
    folder = options.temporary(host.manager.temporary)
    temporary = make_shared(host.manager.run, folder) if folder else ""
    start(host, released)
    streams = dict(host.streams.before)
    return {"calls": calls, "named": version_only, "streams": streams, "temporary": temporary}


def _clear(options: Options, host: Host) -> None:
    """Remove the temporary files of the change, or of one that was killed."""
    folder = options.temporary(host.manager.temporary)
    if folder:
        clear_shared(folder)


def start(host: Host, released: Sequence[str]) -> None:
    """Switch streams and release packages, in this order: a switch can fail by itself."""
    switch_streams(host)
    release(host, released)


def _calls(
    options: Options, host: Host, plan: Plan, resolution: Resolution, database: Database
) -> list[dict[str, Any]]:
    """Return the calls of Ansible's module that carry out the plan."""
    packages = database.packages
    # apt removes no dependency of a package that is held and not named.
    held = [name for name in plan.purge_last if packages[name].held]
    purge = [name for name in (*plan.purge, *held) if name not in resolution.replaced]
    remove = [name for name in plan.remove if name not in resolution.replaced]
    hold = options.present and options.request.hold
    changes = Changes(
        # Half configured packages fail in each call of apt until they are removed, and Ansible's
        # module removes them only by purging.
        broken=[name for name in broken_packages(packages) if name in plan.to_remove],
        # The same holds for packages that depend on one that is removed.
        remove=[*remove, *(installed_names(purge, packages) if remove else ())],
        purge=purge,
        install=resolution.install,
        helpers=host.manager.helpers(packages, hold=hold),
        remove_last=[name for name in plan.purge_last if name not in {*held, *resolution.replaced}],
        replacing=bool(resolution.replaced),
    )
    return host.manager.tasks(changes, options.lock_timeout)


def _complete(
    options: Options,
    host: Host,
    store: StateStore,
    plan: Plan,
    record: Record | None,
    database: Database,
) -> None:
    """Finish the record where nothing is left to do.

    The repair was all that was missing, or an earlier run was killed before it finished the record.
    """
    earlier = record or Record()
    held = to_hold_again(earlier, plan, database.packages)
    if not options.present:
        mark(host, plan, options.name, (), held)
        _drop_record(options, store, earlier, database.packages)
    elif record is not None:
        mark(host, plan, options.name, installed_names(record.named, database.packages), held)
        packages = host.manager.read_all().packages
        store.put(options.key, finish_change(record, packages).to_json())


def finish(options: Options, host: Host, store: StateStore) -> Result:
    """Hold packages, verify them, and finish the record, after the package manager ran.

    :raises KubegpuError: the package manager failed, or the packages differ from the request.
    """
    request, present = options.request, options.present
    record = Record.from_json(store.get(options.key)) or Record()
    if record.run != options.run:
        raise KubegpuError(
            f"Another run has continued with the package set {options.name} since this one began; "
            "this one stops here.",
            evidence=options.failure,
            next_step="Wait for that run to end, and start no two runs for one node at a time.",
        )
    # Before the record is finished: the run after this one clears nothing without a record.
    _clear(options, host)
    preserve.restore(store, options.name)
    database = host.manager.read_all()
    plan = plan_after_change(request, present, record, database.packages)
    version_only = installed_names(
        [*dict.fromkeys((*options.version_only, *record.named))], database.packages
    )
    if options.failure:
        raise _failed(options, host, plan, record, database, version_only)
    others = to_hold_again(record, plan, database.packages)
    mark(host, plan, options.name, version_only, others)
    packages = host.manager.read_all().packages
    wrong = (
        *verify(plan_after_change(request, present, record, packages), packages),
        *read_streams(host, request, present, record).reasons(present=present),
    )
    if wrong:
        raise KubegpuError(
            f"The package set {options.name} does not match the plan after the change.",
            evidence="; ".join(wrong),
            next_step=f"Run again; if this persists, check {host.manager.log}.",
        )
    if present:
        # Others can have installed packages while this run waited for the lock.
        current = resume_change(record, packages) or record
        store.put(options.key, finish_change(current, packages).to_json())
    else:
        _drop_record(options, store, record, packages)
    changed = {name: packages.get(name, Package()) for name in plan.after}
    services = services_to_restart(host.manager.run)
    if services:
        options.warn(warning(services))
    return Result(
        {
            "changed": True,
            "packages": _public(changed),
            "services_to_restart": list(services),
        }
    )


def _failed(
    options: Options,
    host: Host,
    plan: Plan,
    record: Record,
    database: Database,
    version_only: Sequence[str],
) -> KubegpuError:
    """Restore holds, marks and streams after a failed change; return the failure to raise."""
    released = [
        name
        for name in installed_names(record.released, database.packages)
        if not database.packages[name].held
    ]
    for argv in host.manager.mark_commands(released, (), version_only):
        host.run_unlocked(argv)
    wanted = options.request.packages if options.present else {}
    error = host.explain(options.failure, f"The package set {options.name}", wanted)
    available = host.manager.available(sorted(options.request.packages))
    restore_streams(host, options.streams)
    unknown = missing(plan, available) if options.present else ()
    if unknown:
        text = error.evidence or str(error)
        seen = host.circumstances(text, plan.install, missing=True)
        return not_available(unknown, plan, available, text, seen)
    return error


def _drop_record(
    options: Options, store: StateStore, record: Record, packages: Mapping[str, Package]
) -> None:
    """Remove the record, except for packages that could not be restored yet."""
    rest = not_restored(record, packages)
    if rest is None:
        store.drop(options.key)
    else:
        store.put(options.key, rest.to_json())


def _is_automatic(database: Database, name: str) -> bool:
    """Return whether a package is marked as automatic, or is not installed."""
    package = database.packages.get(name, Package())
    return package.automatic or package.status not in (INSTALLED, BROKEN)


def _public(packages: Mapping[str, Package]) -> dict[str, dict[str, Any]]:
    return {
        name: {"version": package.version, "held": package.held}
        for name, package in sorted(packages.items())
        if package.installed
    }


def _result(options: Options, plan: Plan, broken: Mapping[str, str]) -> Result:
    for text in plan.warnings:
        options.warn(text)
    values: dict[str, Any] = {
        "changed": plan.changed,
        "packages": _public(plan.after),
        "previous": _public(plan.before),
        "module_streams": dict(plan.streams.after),
        "broken": dict(broken),
        "not_available": list(plan.unavailable),
        "reasons": [*plan.reasons, *plan.warnings],
    }
    title = f"packages {options.name}"
    before = modules.shown(plan.streams.before) + shown(plan.before)
    after = modules.shown(plan.streams.after) + shown(plan.after)
    diff = {"before": before, "after": after, "before_header": title, "after_header": title}
    return Result(values, (diff,) if before != after else ())
