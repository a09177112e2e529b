# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until the nodes of a cluster offer what is expected."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from .dra import TITLE as DRA_TITLE
from .feature_discovery import TITLE, Steady, discoveries
from .pods import PodView
from .read import Reader
from .snapshot import add_details, offers, take_snapshot
from .types import Expected, Snapshot
from .workloads import (
    DRA_DRIVER,
    EXPORTER,
    FEATURE_DISCOVERY,
    Workload,
    dra_drivers,
    exporters,
    plugins,
)

_INTERVAL = 3.0
_TITLES = {
    FEATURE_DISCOVERY: TITLE,
    DRA_DRIVER: DRA_TITLE,
    EXPORTER: "the exporter",
}
#: Number of restarts after which waiting for a container is given up.
_RESTARTS_IN_VAIN = 2
Sleep = Callable[[float], None]
Clock = Callable[[], float]


def wait(
    reader: Reader,
    expected: Sequence[Expected],
    timeout: float,
    *,
    rollout: bool = False,
    sleep: Sleep = time.sleep,
    clock: Clock = time.monotonic,
) -> tuple[Snapshot, float]:
    """Read until all nodes offer what is expected, or waiting cannot help.

    :param timeout: seconds.
    :param rollout: whether to wait until all managed pods are of the newest template.
    :returns: the last snapshot, and the seconds waited.
    """
    start = clock()
    restarts: dict[str, int] = {}
    steady = Steady(rollout)
    while True:
        snapshot = take_snapshot(reader, expected)
        waited = clock() - start
        failing = _failing(snapshot, restarts)
        needs_another_read = steady.needs_another_read(_expected_discovery(snapshot))
        if waited >= timeout or not (
            needs_another_read or _is_worth_waiting(snapshot, failing, rollout)
        ):
            break
        sleep(min(_INTERVAL, max(0.1, timeout - waited)))
    if snapshot.shortfalls or _has_unexpected_pods(snapshot):
        snapshot = add_details(reader, expected, snapshot)
    if rollout:
        snapshot = replace(
            snapshot, notes=(*snapshot.notes, *map(_rollout_note, _unfinished_rollouts(snapshot)))
        )
    return snapshot, waited


def _failing(snapshot: Snapshot, first: dict[str, int]) -> set[str]:
    """Return the pods that restart repeatedly during the wait.

    :param first: the restarts of each pod in its first snapshot, filled in here. Earlier restarts
        do not count: they may date from before a reboot.
    """
    return {
        pod.full_name
        for one in (snapshot.view.pods, snapshot.view.discovery, snapshot.view.exporters)
        for pods in one.values()
        for pod in pods
        if pod.restarts - first.setdefault(pod.full_name, pod.restarts) >= _RESTARTS_IN_VAIN
        and pod.reason == "CrashLoopBackOff"
    }


def _expected_discovery(snapshot: Snapshot) -> dict[str, Sequence[PodView]]:
    """Return the pods of feature discovery on the expected nodes."""
    named = {state.name for state in snapshot.matches.values() if state}
    return {node: pods for node, pods in snapshot.view.discovery.items() if node in named}


def _is_worth_waiting(snapshot: Snapshot, failing: set[str], rollout: bool) -> bool:
    if any(short.pod not in failing for short in snapshot.open):
        return True
    # A failing pod blocks the rollout on other nodes.
    return rollout and not failing and bool(_unfinished_rollouts(snapshot))


def _unfinished_rollouts(snapshot: Snapshot) -> list[Workload]:
    parts = snapshot.view.parts
    return [
        part
        for part in (
            *plugins(parts),
            *dra_drivers(parts),
            *discoveries(parts),
            *exporters(parts, "nvidia"),
        )
        if part.managed and not part.rolled_out
    ]


def _rollout_note(part: Workload) -> str:
    what = _TITLES.get(part.kind, "the device plugin")
    return (
        f"Not all pods of {what} {part.namespace}/{part.name} are there yet: of "
        f"{part.desired}, {part.updated if part.observed else 0} are of the newest template and "
        f"{part.available} are available."
    )


def _has_unexpected_pods(snapshot: Snapshot) -> bool:
    """Return whether a plugin's pod on another node is not ready or offers nothing."""
    named = {state.name for state in snapshot.matches.values() if state}
    for node, pods in snapshot.view.pods.items():
        state = snapshot.states.get(node)
        if node not in named and (
            any(not pod.ready for pod in pods) or (state is not None and not offers(state))
        ):
            return True
    return False
