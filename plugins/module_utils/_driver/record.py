# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of the driver on a node, before and after a change. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._nvidia.driver_branches import STREAM_MODULE
from .types import INSTALLS, Plan, branch_of


@dataclass(frozen=True)
class Record:
    """The record of a node's driver.

    ``managed``: this collection installed the driver, or holds and configures it. ``original``: the
    driver before its first change. ``services``: the output of ``systemctl is-enabled`` for each
    unit before the first change. ``pending``: a change that is not finished, with the state before
    it.
    """

    managed: bool = False
    original: Mapping[str, Any] | None = None
    current: Mapping[str, Any] | None = None
    previous: Mapping[str, Any] | None = None
    services: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "managed": self.managed,
            "original": _plain(self.original),
            "current": _plain(self.current),
            "previous": _plain(self.previous),
            "services": dict(self.services),
            "pending": _plain(self.pending),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Record:
        return cls() if data is None else cls(**data)

    @property
    def installed(self) -> bool:
        """Return whether this collection installed the driver, and does not only configure it."""
        return self.current is not None and not same_driver(self.original, self.current)


def _plain(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if value is None else dict(value)


def current_driver(node: Mapping[str, Any], record: Record | None = None) -> dict[str, Any] | None:
    """Return the installed driver in the format of the record; None where there is none.

    :param record: has what facts lack: the runfile that a driver was installed from.
    """
    driver = node["driver"]
    if not driver["installed"] and not driver["packages"]:
        return None
    found = {
        "version": driver["installed"],
        "branch": branch_of(driver["installed"]),
        "source": driver["source"],
        "kernel_module": driver["kernel_module"],
        # A library of a second architecture follows its main one.
        "packages": {
            name: version for name, version in driver["packages"].items() if ":" not in name
        },
        "held": bool(driver["held"]),
    }
    if driver.get("streams") is not None:
        # The stream that is enabled cannot be derived from the version.
        found["streams"] = driver_streams(driver["streams"])
    current = record.current if record else None
    if current and current.get("runfile") and same_driver(current, found):
        found["runfile"] = current["runfile"]
    return found


def driver_streams(streams: Mapping[str, str]) -> dict[str, str]:
    """Return the enabled streams that belong to the driver."""
    return {module: stream for module, stream in streams.items() if module == STREAM_MODULE}


def same_driver(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(one.get(key) == other.get(key) for key in ("version", "source", "kernel_module"))


def start_change(
    record: Record,
    plan: Plan,
    node: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Any] | None],
    services: Mapping[str, str],
    initramfs: bool,
    runfile: Mapping[str, Any] | None = None,
    run: str = "",
    streams: Mapping[str, str] | None = None,
) -> Record:
    """Return the record to be saved before a change.

    The state before an interrupted change is kept, so that a rollback returns to it.

    :param files: the current state of each file that will be written; None where it does not exist.
    :param services: the current state of the plan's units (``systemctl is-enabled``).
    :param initramfs: whether the initial RAM disk must be rebuilt.
    :param runfile: the installer that will be run, with ``file``, its path on the node.
    :param run: the ID of the run that makes the change.
    :param streams: the streams of the installed driver, if the facts do not tell.
    """
    earlier = record.pending or {}
    pending: dict[str, Any] = {
        "action": plan.action if plan.action in INSTALLS else earlier.get("action", plan.action),
        "before": earlier["before"] if earlier else _before(node, record, streams),
        "files": {**files, **earlier.get("files", {})},
        "managed": earlier.get("managed", record.managed),
        "initramfs": initramfs or bool(earlier.get("initramfs")),
        "load": plan.load or bool(earlier.get("load")),
        "loaded": earlier.get("loaded", node["driver"]["loaded"]),
        "runfile": None if runfile is None else dict(runfile),
        "run": run,
    }
    if runfile is None and earlier.get("runfile"):
        # It finished, or is not requested any more; it remains managed.
        pending.update(runfile=earlier["runfile"], runfile_done=True)
    if earlier.get("runfile_begun"):
        pending["runfile_begun"] = True
    return replace(
        record,
        # From now on the driver is managed: the change is finished or rolled back.
        managed=True,
        original=record.original if record.managed else pending["before"],
        services={**services, **record.services},
        pending=pending,
    )


def _before(
    node: Mapping[str, Any], record: Record, streams: Mapping[str, str] | None
) -> dict[str, Any] | None:
    found = current_driver(node, record)
    return {"streams": dict(streams), **found} if found and streams else found


def finish_change(record: Record, node: Mapping[str, Any], *, back: bool = False) -> Record:
    """Return the record after a change. The driver before it becomes the previous one.

    :param back: the previous driver was requested. ``previous`` is kept then, so that the same
        request changes nothing in a second run.
    """
    pending = record.pending or {}
    before, now = pending.get("before"), current_driver(node)
    if now is not None and now["source"] == "runfile":
        runfile = pending.get("runfile") or (record.current or {}).get("runfile")
        if runfile:
            now["runfile"] = runfile
    return replace(
        record,
        managed=True,
        current=now,
        previous=(
            record.previous if back or before is None or same_driver(before, now) else before
        ),
        pending=None,
    )


def update_pending(record: Record, **more: Any) -> Record:
    """Return the record with more data about the pending change."""
    return replace(record, pending={**(record.pending or {}), **more})


def is_taken_over(record: Record, run: str) -> bool:
    """Return whether another run has taken over or finished the change of this run."""
    return record.pending is None or record.pending.get("run", "") != run


def runfile_to_run(plan: Plan, record: Record) -> Mapping[str, Any] | None:
    """Return the runfile to be run: the plan's, or that of an interrupted run."""
    if plan.runfile is not None and plan.source == "runfile" and plan.action in INSTALLS:
        return plan.runfile
    pending = record.pending or {}
    if plan.source == "runfile" and pending.get("runfile") and not pending.get("runfile_done"):
        return dict(pending["runfile"])
    return None


def cached_files(record: Record | None) -> tuple[str, ...]:
    """Return the runfiles in our cache on the node that can be needed again."""
    if record is None:
        return ()
    pending = record.pending or {}
    drivers = (record.current, record.previous, record.original, pending, pending.get("before"))
    runfiles = [driver.get("runfile") or {} for driver in drivers if driver]
    return tuple(
        dict.fromkeys(str(runfile["file"]) for runfile in runfiles if runfile.get("cached"))
    )


def record_after_rollback(record: Record) -> Record | None:
    """Return the record after a rollback; None where there was none before the change."""
    before = record.managed if record.pending is None else bool(record.pending["managed"])
    return replace(record, pending=None) if before else None


def needs_uninstaller(plan: Plan, record: Record, node: Mapping[str, Any]) -> bool:
    """Return whether ``state: absent`` must run the runfile's uninstaller.

    A driver that was not installed here, or that is removed already, needs none.
    """
    if node["driver"]["source"] != "runfile":
        return False
    if not record.managed:
        return plan.uninstall == "runfile"
    if record.installed and (record.current or {}).get("source") == "runfile":
        return True
    # A first change that is pending: the installer may have finished before the record was saved.
    pending = record.pending or {}
    before = pending.get("before") or {}
    return bool(pending.get("runfile")) and before.get("source") != "runfile"
