# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The units that are stopped for a change of MIG and started again after it.

systemd stops a unit with each unit that it requires, and does not start it again with that one. So
all units that were active before the change are started after it: those that still are stay so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .._host.command import Runner
from .._known_faults.device_users import container_unit
from .._known_faults.evidence_types import DeviceUser
from .._nvidia.toolkit_paths import CDI_REFRESH_UNIT
from .types import EXPORTER, METRICS, METRICS_TIMER

#: Restarted after a change: its specification names the devices of the instances.
CDI_UNIT = CDI_REFRESH_UNIT[: -len(".service")]
_SECONDS = 120
# "activating" has a unit that systemd restarts after a failure, too.
_RUNS = ("active", "activating", "reloading")


@dataclass(frozen=True)
class Services:
    """Stops and starts units; names without a type are services."""

    run: Runner
    warn: Callable[[str], None]

    def to_start(
        self, stop: Sequence[str], services: Sequence[str], interrupts: bool
    ) -> tuple[str, ...]:
        """Return the units to start after a change, in their order.

        :param stop: the services that the plan stops.
        :param services: all services that may be stopped.
        :param interrupts: whether a GPU changes in a way that no program may use it meanwhile.
        """
        asked = [*(services if stop else ()), *([METRICS_TIMER] if interrupts else ())]
        active = self._active(asked)
        return tuple(unit for unit in asked if unit in active or unit in stop)

    def stop(self, units: Sequence[str]) -> None:
        """Stop units, and with the timer of the metrics the program that it starts."""
        for unit in units:
            self._systemctl("stop", unit)
            if unit == METRICS_TIMER:
                self._systemctl("stop", METRICS)

    def start(self, units: Sequence[str]) -> None:
        """Start units; one that does not start is a warning."""
        for unit in units:
            verb = "restart" if unit == CDI_UNIT else "start"
            failure = self._systemctl(verb, unit)
            if failure:
                self.warn(
                    f"systemctl {verb} {unit} failed: {failure}. Next step: check "
                    f"journalctl --unit {unit}"
                )

    def exists(self, unit: str) -> bool:
        return self.run(["systemctl", "cat", _full(unit)]).ok

    def _active(self, units: Sequence[str]) -> set[str]:
        if not units:
            return set()
        # A line for each, in the order of the command, also for units that do not exist.
        answer = self.run(["systemctl", "is-active", *map(_full, units)])
        states = answer.stdout.split()
        return {unit for unit, state in zip(units, states) if state in _RUNS}

    def _systemctl(self, verb: str, unit: str) -> str:
        """Return the output of a failure, else nothing."""
        answer = self.run(["systemctl", verb, _full(unit)], timeout=_SECONDS)
        return "" if answer.ok else answer.last_output() or f"status {answer.rc}"


def with_exporter(run: Runner, users: Sequence[DeviceUser]) -> tuple[DeviceUser, ...]:
    """Return the users of GPUs; those in the container of this collection's exporter by its unit.

    Docker starts the container outside of the unit.
    """
    if not any((user.unit or "").startswith(container_unit("")) for user in users):
        return tuple(users)
    answer = run(["docker", "inspect", "--type", "container", "--format", "{{.Id}}", EXPORTER])
    mine = container_unit(answer.stdout.strip()) if answer.ok else None
    return tuple(
        replace(user, unit=_full(EXPORTER)) if user.unit == mine else user for user in users
    )


def _full(unit: str) -> str:
    return unit if unit.endswith((".service", ".timer")) else f"{unit}.service"
