# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands before and after a change: repair half configured packages, release and hold packages,
switch streams of modules and switch them back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._core.errors import KubegpuError
from . import streams as modules
from .host import Host
from .plan import uncovered
from .read import broken_packages
from .types import Package, Plan, Streams


def repair(host: Host, plan: Plan, broken: Mapping[str, str], announced: Sequence[str]) -> None:
    """Let the package manager finish half configured packages that the plan does not replace.

    :param announced: packages that an unfinished change of the set would install.
    :raises KubegpuError: packages are still half configured.
    """
    own = {*plan.before, *announced}
    others = host.manager.to_repair(
        [name for name in broken if name in own], uncovered(plan, broken)
    )
    if not others:
        # Taking the lock also processes the journal of a killed dpkg.
        if host.interrupted():
            host.run_unlocked(host.manager.lock_command)
        if not host.interrupted():
            return
    commands = host.manager.repair_commands(others)
    failed = [
        answer
        for answer in [host.run_unlocked(argv, timeout=1800) for argv in commands]
        if not answer.ok
    ]
    if not failed:
        return
    still = broken_packages(host.manager.read_all().packages)
    left_over = host.manager.to_repair(
        [name for name in still if name in own], uncovered(plan, still)
    )
    if host.interrupted() or left_over:
        raise host.explain(
            failed[0].last_output(),
            f"Repairing half-configured packages ({', '.join(broken) or 'interrupted dpkg'})",
        )


def mark(
    host: Host,
    plan: Plan,
    name: str,
    automatic: Sequence[str] = (),
    held: Sequence[str] = (),
) -> None:
    """Set the holds and automatic marks of the plan, and those given in addition."""
    commands = host.manager.mark_commands(
        (*plan.to_hold(), *held), plan.to_release(), (*plan.automatic, *automatic)
    )
    for argv in commands:
        answer = host.run_unlocked(argv)
        if not answer.ok:
            raise host.explain(answer.last_output(), f"Marking the packages of {name}")


def release(host: Host, names: Sequence[str]) -> None:
    """Release held packages before a change; the record already names them.

    :raises KubegpuError: a package remains held. Holds and streams are restored then.
    """
    try:
        _release(host, names)
    except KubegpuError:
        still = host.manager.read(names).packages
        released = [name for name in names if not still.get(name, Package()).held]
        for argv in host.manager.mark_commands(released, (), ()):
            host.run_unlocked(argv)
        restore_streams(host, host.streams.before)
        raise


def _release(host: Host, names: Sequence[str]) -> None:
    for argv in host.manager.mark_commands((), names, ()):
        answer = host.run_unlocked(argv)
        if not answer.ok:
            raise host.explain(answer.last_output(), f"Releasing {', '.join(names)}")
    still = host.manager.read(names).packages if names else {}
    held = [name for name in names if still.get(name, Package()).held]
    if held:
        raise KubegpuError(
            f"{', '.join(held)} cannot be changed: a lock that covers more than this one package "
            "holds it, and was not made by this module.",
            next_step="Take that lock out of the package manager's list (dnf versionlock list, "
            "zypper locks), then run again; the set is then held package by package.",
        )


def switch_streams(host: Host) -> None:
    """Switch to the streams of modules that packages were planned for."""
    before, changes = host.streams.before, host.streams.changes
    for argv in host.manager.stream_commands(before, changes) if changes else ():
        answer = host.run_unlocked(argv, timeout=300)
        if not answer.ok:
            restore_streams(host, before)
            raise host.explain(
                answer.last_output(), f"Switching to {modules.shown(changes).strip()}"
            )


def restore_streams(host: Host, earlier: Mapping[str, str]) -> None:
    """Switch back to the streams before a failed change; the next run reports what fails here."""
    if not earlier:
        return
    found = host.manager.streams([*earlier])
    changes = Streams(found, earlier).changes
    for argv in host.manager.stream_commands(found, changes):
        host.run_unlocked(argv, timeout=300)
