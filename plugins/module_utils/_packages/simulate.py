# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dry runs of the package manager: which versions fit together, and what would be removed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .._core.errors import KubegpuError
from . import streams as modules
from .host import Host
from .manager import Database, Simulation
from .options import Options
from .plan import best, exact, in_the_way, missing, not_available
from .read import plan_from_database, refresh
from .types import Lock, Package, Plan, Record, Request, fits


@dataclass(frozen=True)
class Resolution:
    """What to pass to the package manager, as its dry run accepted it.

    ``install``: versions by name. ``version_only``: those of them that are dependencies, named so
    that they come in the version of the lock. ``removed``: members of the lock that conflict with
    the set. ``incoming``: all packages that will be installed. ``replaced``: packages that are
    removed by the call that installs.
    """

    install: Mapping[str, str | None] = field(default_factory=dict)
    version_only: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    incoming: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def predict(
    host: Host, options: Options, plan: Plan, record: Record | None, database: Database
) -> Resolution:
    """Return the resolution in check mode, from refreshed lists in a temporary directory if needed.

    :raises KubegpuError: the run would fail for a reason that can be known already.
    """
    errors = ""
    with contextlib.ExitStack() as stack:
        unknown = missing(plan, host.manager.available([*plan.install])) if plan.install else ()
        unknown += host.missing_streams()
        if unknown and options.update_cache and not options.repository_expected:
            host = stack.enter_context(host.with_temporary_lists())
            errors = refresh(host)
            plan = plan_from_database(host, options.request, options.present, record, database)
        return resolve(host, options, plan, errors, may_be_missing=options.repository_expected)


def resolve(
    host: Host, options: Options, plan: Plan, refresh_errors: str, *, may_be_missing: bool
) -> Resolution:
    """Return what to pass to the package manager.

    :param may_be_missing: whether the same play can still add a repository. What is not available
        is then no failure.
    :raises KubegpuError: the change cannot work, or would remove packages that are not of the set.
    """
    absent_streams = host.missing_streams()
    if absent_streams and not may_be_missing:
        available_streams = host.available_streams(host.streams)
        seen = host.circumstances(refresh_errors, {})
        raise modules.not_offered(absent_streams, available_streams, refresh_errors, seen)
    if absent_streams or (not plan.install and not plan.to_remove):
        return Resolution()
    available = host.manager.available(list(plan.install))
    unknown = missing(plan, available)
    if unknown:
        if may_be_missing:
            return Resolution()
        wanted = {name: plan.install[name] for name in unknown}
        seen = host.circumstances(refresh_errors, wanted, missing=True)
        raise not_available(unknown, plan, available, refresh_errors, seen)
    versions = exact(plan.install, available)
    install = {name: version for name, version in versions.items() if name not in plan.unrequested}
    unrequested = {name: versions[name] for name in versions if name in plan.unrequested}
    simulation, named = _simulate(host, options.request, install, unrequested, plan.to_remove)
    resolution, foreign = _with_removals(host, options.request, plan, install, named, simulation)
    if foreign:
        raise _would_remove(options.name, foreign, plan, resolution)
    if not simulation.answer.ok:
        output = f"{simulation.answer.stdout}\n{simulation.answer.stderr}"
        # The same play can repair sources that the package manager refuses.
        if may_be_missing and host.manager.broken_sources in output:
            return Resolution()
        doing = f"The package set {options.name} (dry run)"
        raise host.explain(output, doing, resolution.install)
    return resolution


def _with_removals(
    host: Host,
    request: Request,
    plan: Plan,
    install: Mapping[str, str | None],
    named: Mapping[str, str | None],
    simulation: Simulation,
) -> tuple[Resolution, list[str]]:
    """Return the resolution, and the packages not of the set that would be removed with it.

    Packages are removed in a call of their own, before others are installed. That call can install
    a replacement, and can need to remove more.
    """
    to_remove = plan.to_remove
    foreign = sorted(set(simulation.removed) - set(to_remove))
    removed = in_the_way(request, foreign) if plan.install else ()
    foreign = [name for name in foreign if name not in removed]
    incoming = dict(simulation.incoming)
    replaced: tuple[str, ...] = ()
    if not foreign and plan.install and (to_remove or removed):
        leaving = (*to_remove, *removed)
        known = {*leaving, *install, *named}
        removal = host.manager.simulate({}, leaving)
        foreign = sorted(set(removal.removed) - known)
        if foreign and host.manager.replaces:
            # Others need the old or the new package, so that the install call has to replace it.
            replaced = tuple(name for name in leaving if name in simulation.removed)
            first = tuple(name for name in leaving if name not in replaced)
            removal = (
                host.manager.simulate({}, first) if first else Simulation(removal.answer, (), {})
            )
            foreign = sorted(set(removal.removed) - known)
        incoming.update(removal.incoming)
    version_only = tuple(name for name in named if name not in install)
    resolution = Resolution({**install, **named}, version_only, removed, tuple(incoming), replaced)
    return resolution, foreign


def _would_remove(
    name: str, foreign: Sequence[str], plan: Plan, resolution: Resolution
) -> KubegpuError:
    return KubegpuError(
        f"The package set {name} cannot be changed without removing "
        f"{', '.join(foreign)}; nothing was changed.",
        evidence=f"requested: install {', '.join(plan.install) or 'nothing'}; "
        f"remove {', '.join((*plan.to_remove, *resolution.removed)) or 'nothing'}",
        next_step="Remove them manually, or name them in obsolete.",
    )


def _simulate(
    host: Host,
    request: Request,
    install: Mapping[str, str | None],
    unrequested: Mapping[str, str | None],
    to_remove: Sequence[str],
) -> tuple[Simulation, dict[str, str | None]]:
    """Repeat the dry run, and name members of the lock until all of them have its version.

    :param unrequested: installed members in a wrong version. They are named unless the dry run
        removes them.
    :returns: the last dry run, and the packages that were named in addition to ``install``.
    """
    named: dict[str, str | None] = {}
    # Packages without a requested version were tried in the newest one.
    steps = dict.fromkeys(install, 0)
    lock = request.lock
    while True:
        simulation = host.manager.simulate({**install, **named}, to_remove)
        if simulation.answer.ok:
            touched = {*named, *simulation.removed, *simulation.incoming}
            more = {name: version for name, version in unrequested.items() if name not in touched}
            if more:
                named.update(more)
                continue
        if lock is None or lock.version is None:
            return simulation, named
        # A dry run that fails names the packages that do not fit together.
        seen = (
            [name for name, new in simulation.incoming.items() if not fits(lock.wanted, new)]
            if simulation.answer.ok
            else host.manager.mentioned_packages(simulation.answer)
        )
        names = [
            name
            for name in seen
            if lock.covers(name) and name not in {*install, *named, *to_remove, *request.obsolete}
        ]
        available = host.manager.available(names)
        found = {
            name: version
            for name in names
            for version in [best(lock.wanted, available.get(name, ()))]
            if version is not None
        }
        if not found and not simulation.answer.ok:
            may_differ = {**dict.fromkeys([*names, *steps]), **install}
            found = _older_versions(host, lock, may_differ, seen, steps)
        if not found:
            return simulation, named
        named.update(found)


def _older_versions(
    host: Host,
    lock: Lock,
    names: Mapping[str, str | None],
    seen: Sequence[str],
    steps: dict[str, int],
) -> dict[str, str]:
    """Return the next older versions of packages that do not fit together with the lock.

    Modules that a distribution builds have the kernel's version and fit one driver. Only the
    package manager knows which.

    :param names: packages that may be named, with the version that is required (None: any).
    :param steps: index of the version that was tried last, by name; 0 is the newest. It is updated.
    """
    free = [name for name in seen if names.get(name, "") is None]
    next_ones = {
        name: (steps.get(name, -1) + 1, versions)
        for name, versions in host.manager.available(free).items()
        if not any(fits(lock.wanted, one) for one in versions)
    }
    untried = {name: one for name, one in next_ones.items() if one[0] < len(one[1])}
    # The packages with the fewest tries first: they depend on each other, and stepping all of them
    # at once would skip the versions that fit.
    least = min((step for step, _versions in untried.values()), default=0)
    found = {name: versions[step] for name, (step, versions) in untried.items() if step == least}
    steps.update(dict.fromkeys(found, least))
    return found


def packages_to_install(
    host: Host, resolution: Resolution, database: Database, hold: bool
) -> list[str]:
    """Return all packages that the package manager will install, helpers included."""
    names = list(resolution.incoming)
    for helper in host.manager.helpers(database.packages, hold=hold):
        # Helpers are installed in a call of their own.
        simulation = host.manager.simulate({helper: None}, ())
        names.extend(name for name in (helper, *simulation.incoming) if name not in names)
    return names


def packages_to_release(
    host: Host, plan: Plan, resolution: Resolution, database: Database
) -> list[str]:
    """Return the held packages that have to be released before the change."""
    if not (host.manager.releases_first and plan.changed):
        return []
    names = (*plan.install, *plan.to_remove, *resolution.install, *resolution.incoming)
    return [name for name in dict.fromkeys(names) if database.packages.get(name, Package()).held]
