# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read packages, package lists and module streams of the node, and plan from them.

Package lists are refreshed here, too. Nothing else is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._core.errors import InputError
from . import streams as modules
from .host import Host
from .manager import Database
from .options import Options
from .plan import check, members, missing, plan_absent, plan_present, with_streams
from .record import finish_change, not_installed_before, unneeded_dependencies
from .types import (
    BROKEN,
    CONFIGURATION,
    INSTALLED,
    Package,
    Plan,
    Record,
    Request,
    StreamRecord,
    Streams,
    fits,
)

# Packages in these states have configuration files.
_WITH_CONFIGURATION = (INSTALLED, CONFIGURATION)


def read_streams(host: Host, request: Request, present: bool, record: Record | None) -> Streams:
    """Return the current and the requested streams of modules.

    :raises InputError: the package manager has no streams.
    """
    modules.check(request.streams)
    kept = record.streams if record else StreamRecord()
    names = list(request.streams if present else kept.before)
    if not names:
        return Streams()
    if not host.manager.has_streams:
        raise InputError(
            f"module_streams: {host.manager.module.rpartition('.')[2]}, the package manager of "
            "this node, has no streams of modules.",
            next_step="Leave module_streams out here; it is for dnf 4 on RHEL 8 and 9, those that "
            "build on them, and Amazon Linux 2023.",
        )
    found = host.manager.streams(names)
    if present:
        return Streams(found, request.streams)
    back = modules.restored_streams(kept, found)
    # A stream whose repository was removed cannot be enabled any more.
    return modules.without_unavailable(back, host.available_streams(back))


def plan_for_set(host: Host, request: Request, record: Record | None) -> Plan:
    """Return the plan for state present, from the packages of the set alone."""
    check(request)
    names = {*request.packages, *request.optional, *request.obsolete}
    if request.lock:
        # dpkg and rpm understand the same patterns.
        names.update(pattern for pattern in request.lock.patterns if pattern[0] != "!")
    packages = host.manager.read(sorted(names)).packages if names else {}
    return _plan_present(host, request, record, packages)


def plan_from_database(
    host: Host, request: Request, present: bool, record: Record | None, database: Database
) -> Plan:
    """Return the plan from all packages of the node."""
    if present:
        return _plan_present(host, request, record, database.packages)
    assumed = finish_change(record, database.packages) if record else None
    dependencies = unneeded_dependencies(
        *(assumed, database.packages, database.needs), marks_of_held=host.manager.marks_of_held
    )
    before = record.before if record else {}
    brought = assumed.brought if assumed else {}
    to_remove = [
        name
        for name in dict.fromkeys((*before, *dependencies, *brought))
        if name in database.packages and not before.get(name, Package()).installed
    ]
    plan = plan_absent(
        assumed,
        database.packages,
        host.manager.available([name for name, old in before.items() if old.installed]),
        host.manager.edited(
            [name for name in to_remove if database.packages[name].status in _WITH_CONFIGURATION]
        ),
        dependencies,
    )
    return with_streams(plan, host.streams, present=False)


def plan_after_change(
    request: Request, present: bool, record: Record, packages: Mapping[str, Package]
) -> Plan:
    """Return what is left to do after the package manager ran: holds and automatic marks."""
    return plan_present(request, packages) if present else plan_absent(record, packages, {})


def _plan_present(
    host: Host, request: Request, record: Record | None, packages: Mapping[str, Package]
) -> Plan:
    purged = _to_purge(host, request, record, packages)
    plan = plan_present(request, packages, _available(host, request, packages), purged)
    return with_streams(plan, host.streams, present=True)


def _to_purge(
    host: Host, request: Request, record: Record | None, packages: Mapping[str, Package]
) -> tuple[str, ...]:
    """Return the obsolete packages of the set whose configuration would keep pinning versions."""
    pins = host.manager.pinning(
        installed_names(not_installed_before(record, request.obsolete), packages)
    )
    edited = host.manager.edited(pins)
    return tuple(name for name in pins if name not in edited)


def _available(
    host: Host, request: Request, packages: Mapping[str, Package]
) -> dict[str, tuple[str, ...]]:
    """Return the available versions of the members that are not in the requested version."""
    names = [
        name
        for name, wanted in sorted(members(request, packages).items())
        if not packages.get(name, Package()).installed or not fits(wanted, packages[name].version)
    ]
    return {**dict.fromkeys(names, ()), **host.manager.available(names)}


def refresh_for_rollback(host: Host, options: Options, record: Record, database: Database) -> None:
    """Refresh the package lists if they lack a version that was installed before the set."""
    wanted = {
        name: old.version
        for name, old in record.before.items()
        if old.installed and database.packages.get(name, Package()).version != old.version
    }
    if not wanted or not options.update_cache:
        return
    available = host.manager.available(sorted(wanted))
    if any(version not in available.get(name, ()) for name, version in wanted.items()):
        # A failure is reported by the plan, which then does not find the version.
        refresh(host)


def refresh_if_needed(host: Host, options: Options, plan: Plan, database: Database) -> str | None:
    """Refresh the package lists if they lack something; return the errors of the refresh.

    One repository among many that cannot be reached is no failure; what counts is whether the
    versions are available afterwards. That is why this is not left to Ansible's module.

    :returns: None if the lists were not refreshed.
    """
    if not options.update_cache:
        return None
    if host.missing_streams():
        return refresh(host)
    if not plan.install:
        return None
    helpers = host.manager.helpers(database.packages, hold=options.request.hold)
    available = host.manager.available([*plan.install, *helpers])
    if not missing(plan, available) and all(available.get(name) for name in helpers):
        return None
    return refresh(host)


def refresh(host: Host) -> str:
    """Refresh the package lists; return the errors of the package manager."""
    answer = host.run_unlocked(host.manager.refresh_command(), timeout=900)
    return host.manager.refresh_errors(answer)


def installed_names(names: Sequence[str], packages: Mapping[str, Package]) -> list[str]:
    """Return the names of packages that are installed, half installed ones included."""
    return [name for name in names if packages.get(name, Package()).status in (INSTALLED, BROKEN)]


def broken_packages(packages: Mapping[str, Package]) -> dict[str, str]:
    """Return the half installed packages with the package manager's word for their status."""
    return {
        name: package.detail
        for name, package in sorted(packages.items())
        if package.status == BROKEN
    }
