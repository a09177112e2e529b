# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_host_maintenance: take a host without Kubernetes out of service, and release it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._host.systemd import read_daemon
from .._kube.timestamp import timestamp
from . import slurm
from .plan import begin, decide, find_obstacle, left_over, progress
from .record import KEY, read_record
from .types import (
    AUTO,
    DRAINED,
    RELEASED,
    SLURM,
    Decision,
    Record,
    Request,
    Seen,
    SlurmNode,
    Stopped,
)

if TYPE_CHECKING:
    from .._host.command import Runner
    from .._known_faults.evidence_types import DeviceUser
    from .._record.store import StateStore
    from .engine import Engine
    from .scheduler import Scheduler

_SLURMD = "slurmd"
# Seconds for dockerd and slurmd to start after a reboot.
_STARTS = 60
_RESTARTS = 90


@dataclass(frozen=True)
class Dependencies:
    """Access to the host.

    :param users: returns the processes that use a GPU.
    :param scheduler: returns access to Slurm for the name of a node.
    """

    run: Runner
    store: StateStore
    engine: Engine
    users: Callable[[], tuple[DeviceUser, ...]]
    scheduler: Callable[[str], Scheduler]
    warn: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


class HostMaintenance:
    """One call of the module.

    :param limit: seconds after which a drain returns unfinished; 0 for none.
    :param carried: what :meth:`carry` of the call before returned.
    """

    def __init__(
        self,
        request: Request,
        node: Dependencies,
        *,
        dry_run: bool = False,
        limit: int = 0,
        carried: Mapping[str, Any] | None = None,
    ) -> None:
        self._request = request
        self._node = node
        self._dry_run = dry_run
        self._limit = limit
        earlier = carried or {}
        self._waited = float(earlier.get("waited") or 0)
        #: What the drain waits for, if it continues in another call.
        self.progress: list[str] = []
        self._record = read_record(node.store.get(KEY))
        self._before = read_record(earlier["before"]) if earlier else self._record
        self._scheduler: Scheduler | None = None
        self._slurm: SlurmNode | None = None
        self._changed = False
        self._stopped: list[str] = list(earlier.get("stopped") or ())
        self._waiting: list[Mapping[str, str]] = []
        self._findings: list[Finding] = []

    def run(self) -> dict[str, Any]:
        """Do what is requested; return the row of the host."""
        try:
            self._run()
        except KubegpuError as error:
            self._fail(error)
        return self._row()

    def _fail(self, error: KubegpuError) -> None:
        code = error.code or "host_not_asked"
        self._findings.append(Finding(code, error.cause, error.evidence, error.next_step))

    def carry(self) -> dict[str, Any]:
        """Return what the next call needs; nothing if there is none."""
        if not self.progress:
            return {}
        before = self._before.to_json() if self._before else None
        return {"waited": self._waited, "stopped": self._stopped, "before": before}

    def _run(self) -> None:
        try:
            self._read_slurm()
        except KubegpuError as error:
            if self._request.state != RELEASED or self._record is None:
                raise
            # The containers are started anyway.
            self._fail(error)
        obstacle = find_obstacle(self._request, self._record, self._slurm)
        if obstacle is not None:
            self._findings.append(obstacle)
        elif self._request.state == RELEASED:
            self._release()
        elif self._request.state == DRAINED:
            self._drain()
        else:
            self._hold()
            if self._request.restart_slurmd:
                self._register()

    def _read_slurm(self) -> None:
        """Read the node in Slurm, if Slurm manages the host."""
        known = self._record.slurm_node if self._record else ""
        wanted = self._request.scheduler
        if wanted == AUTO and not known and not read_daemon(self._node.run, _SLURMD).active:
            return
        if wanted in (AUTO, SLURM) or known:
            self._scheduler = self._node.scheduler(known or self._request.slurm_node)
            self._slurm = self._scheduler.node()
            # After a reboot in a maintenance.
            deadline = self._node.clock() + _STARTS
            while known and not self._slurm.responds and self._node.clock() < deadline:
                self._node.sleep(self._request.poll)
                self._slurm = self._scheduler.node()

    def _hold(self) -> None:
        """Record the maintenance, then keep new jobs off the host."""
        if self._record is None:
            now = timestamp(time.time())
            self._save(begin(self._request, self._slurm, now))
        if self._slurm is not None and self._scheduler is not None and not self._slurm.drained:
            self._changed = True
            if not self._dry_run:
                self._scheduler.drain(self._slurm, self._request.run)
                self._slurm = self._scheduler.node()

    def _register(self) -> None:
        """Restart slurmd if Slurm refused its registration, as it does without a driver."""
        if self._slurm is None or self._scheduler is None or self._slurm.registered:
            return
        self._changed = True
        if self._dry_run:
            return
        answer = self._node.run(["systemctl", "restart", _SLURMD], timeout=_RESTARTS)
        if not answer.ok:
            self._node.warn(f"slurmd was not restarted: {answer.last_output()}")
        deadline = self._node.clock() + _STARTS
        self._slurm = self._scheduler.node()
        while not self._slurm.ready and self._node.clock() < deadline:
            self._node.sleep(self._request.poll)
            self._slurm = self._scheduler.node()
        if not self._slurm.registered:
            self._findings.append(slurm.not_registered(self._slurm))

    def _save(self, record: Record | None) -> None:
        """Write the record; None removes it."""
        if record == self._record:
            return
        self._record, self._changed = record, True
        if self._dry_run:
            return
        with self._node.store.transaction():
            if record is None:
                self._node.store.drop(KEY)
            else:
                self._node.store.put(KEY, record.to_json())

    def _drain(self) -> None:
        decision = decide(self._request, self._look(), self._record)
        self._findings += decision.findings
        if self._findings:
            return
        self._hold()
        began = self._node.clock() - self._waited
        ended = self._node.clock() + self._limit
        while decision.stop or decision.waiting:
            if self._dry_run:
                self._stopped += [one.name for one in decision.stop]
                self._waiting = list(decision.waiting)
                return
            self._waited = self._node.clock() - began
            if not decision.waiting and self._waited <= self._request.timeout:
                self._stop(decision)
            elif self._waited >= self._request.timeout:
                self._waiting = list(decision.waiting)
                self._findings.append(left_over(self._request, decision))
                return
            elif self._limit and self._node.clock() >= ended:
                self._waiting = list(decision.waiting)
                self.progress = progress(self._request, decision)
                return
            else:
                self._node.sleep(self._request.poll)
            decision = decide(self._request, self._look(), self._record)

    def _look(self) -> Seen:
        if self._scheduler is not None:
            self._slurm = self._scheduler.node()
        jobs = self._scheduler.jobs(self._slurm) if self._scheduler and self._slurm else ()
        containers = tuple(self._node.engine.running()) if self._has_docker() else ()
        return Seen(containers, self._slurm, jobs, self._node.users())

    def _has_docker(self) -> bool:
        # With socket activation a request would start dockerd.
        return read_daemon(self._node.run, self._request.unit).active

    def _stop(self, decision: Decision) -> None:
        """Record the containers, then stop them. Those with --rm are gone for good."""
        record = self._record or begin(self._request, self._slurm, timestamp(time.time()))
        known = {one.id for one in record.containers}
        fresh = [
            one.to_stopped() for one in decision.stop if one.id not in known and not one.auto_remove
        ]
        # They are started again in the other order.
        self._save(replace(record, containers=(*record.containers, *reversed(fresh))))
        for one in decision.stop:
            self._node.engine.stop(one)
            self._changed = True
            self._stopped.append(one.name)

    def _release(self) -> None:
        if self._record is None:
            # A record that was lost: the reason in Slurm is still ours.
            if self._slurm is not None and slurm.is_ours(self._slurm, self._request.run):
                self._resume(begin(self._request, self._slurm, ""))
            return
        record = self._record
        left = self._start(record)
        self._resume(record)
        # What could not be restored is tried again by the next release.
        self._save(replace(record, containers=left) if self._findings else None)

    def _start(self, record: Record) -> tuple[Stopped, ...]:
        """Start the containers that were stopped; return those that do not start."""
        if not record.containers:
            return ()
        self._changed = True
        if self._dry_run:
            return ()
        deadline = self._node.clock() + _STARTS
        while not self._has_docker() and self._node.clock() < deadline:
            self._node.sleep(self._request.poll)
        left = []
        for one in record.containers:
            try:
                if self._node.engine.is_running(one.id) is None:
                    self._node.warn(f"The container {one.name} was removed meanwhile.")
                    continue
                self._node.engine.start(one)
            except KubegpuError as error:
                left.append(one)
                self._findings.append(
                    Finding(
                        "container_not_started",
                        f"The container {one.name} was not started again.",
                        error.evidence,
                        "Repair what the message names, and release the host again.",
                    )
                )
        return tuple(left)

    def _resume(self, record: Record) -> None:
        if self._slurm is None or self._scheduler is None:
            return
        note = slurm.other_drain(self._slurm, record)
        if note:
            self._node.warn(note)
        if slurm.needs_resume(self._slurm, record):
            self._changed = True
            if not self._dry_run:
                self._scheduler.resume(self._slurm)
                self._slurm = self._scheduler.node()
        if not self._slurm.registered:
            # Nothing of this maintenance is left to restore.
            finding = slurm.not_registered(self._slurm)
            self._node.warn(f"{finding.cause} {finding.evidence}. {finding.next_step}")

    def _row(self) -> dict[str, Any]:
        # In check mode the host is as it was.
        record = self._before if self._dry_run else self._record
        drained = self._slurm is not None and self._slurm.drained
        return {
            "node": self._request.name,
            "ok": not self._findings,
            "changed": self._changed,
            "ready": self._slurm is None or self._slurm.ready,
            "unschedulable": record is not None or drained,
            "was_unschedulable": record.was_drained if record else drained,
            "held_by": record.run if record else "",
            "slurm_node": self._slurm.name if self._slurm else "",
            "evicted": [{"namespace": "docker", "name": name} for name in self._stopped],
            "waiting": [dict(row) for row in self._waiting],
            "findings": [finding.as_problem() for finding in self._findings],
            "diff": (_view(self._before), _view(self._record)),
        }


def _view(record: Record | None) -> dict[str, Any]:
    """Return what the diff shows of a host."""
    return {
        "run": record.run if record else None,
        "stopped": [one.name for one in record.containers] if record else [],
    }
