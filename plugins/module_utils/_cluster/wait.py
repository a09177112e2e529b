# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until the nodes of a cluster offer what is expected."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from .feature_discovery import TITLE, Steady, discoveries
from .pods import PodView
from .read import Reader
from .snapshot import look, look_closer, offers
from .types import Expected, Snapshot
from .workloads import (
    FEATURE_DISCOVERY,
    Workload,
    plugins,
)

_INTERVAL = 3.0
#: A container that has ended this often after its first start will not come by waiting.
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
    """Read until all nodes offer what is expected, or waiting is in vain; then say why not.

    :param timeout: seconds.
    :param rollout: wait as well until our device plugin's pods are all of its newest template.
    """
    start = clock()
    restarts: dict[str, int] = {}
    steady = Steady(rollout)
    while True:
        snapshot = look(reader, expected)
        waited = clock() - start
        failing = _failing(snapshot, restarts)
        unsettled = steady.unsettled(_expected_discovery(snapshot))
        if waited >= timeout or not (unsettled or _is_worth_waiting(snapshot, failing, rollout)):
            break
        sleep(min(_INTERVAL, max(0.1, timeout - waited)))
    if snapshot.shortfalls or _odd(snapshot):
        snapshot = look_closer(reader, expected, snapshot)
    if rollout:
        snapshot = replace(snapshot, notes=(*snapshot.notes, *map(_behind, _rolling(snapshot))))
    return snapshot, waited


def _failing(snapshot: Snapshot, first: dict[str, int]) -> set[str]:
    """Return the pods that fail again and again while they are waited for.

    :param first: the restarts of each pod when it was seen first, filled in here. Those before are
        of another time, such as that before a reboot.
    """
    return {
        pod.full_name
        for pods in (*snapshot.view.pods.values(), *snapshot.view.discovery.values())
        for pod in pods
        if pod.restarts - first.setdefault(pod.full_name, pod.restarts) >= _RESTARTS_IN_VAIN
        and pod.reason == "CrashLoopBackOff"
    }


def _expected_discovery(snapshot: Snapshot) -> dict[str, Sequence[PodView]]:
    """Return the pods of feature discovery on the nodes that are waited for."""
    named = {state.name for state in snapshot.matches.values() if state}
    return {node: pods for node, pods in snapshot.view.discovery.items() if node in named}


def _is_worth_waiting(snapshot: Snapshot, failing: set[str], rollout: bool) -> bool:
    if any(short.pod not in failing for short in snapshot.open):
        return True
    # A pod that fails keeps those of other nodes from being made.
    return rollout and not failing and bool(_rolling(snapshot))


def _rolling(snapshot: Snapshot) -> list[Workload]:
    parts = snapshot.view.parts
    return [
        part for part in (*plugins(parts), *discoveries(parts)) if part.ours and not part.rolled_out
    ]


def _behind(part: Workload) -> str:
    what = TITLE if part.kind == FEATURE_DISCOVERY else "the device plugin"
    return (
        f"Not all pods of {what} {part.namespace}/{part.name} are there yet: of "
        f"{part.desired}, {part.updated if part.observed else 0} are of the newest template and "
        f"{part.available} are available."
    )


def _odd(snapshot: Snapshot) -> bool:
    """Return whether a plugin's pod outside of the expected nodes needs a closer look."""
    named = {state.name for state in snapshot.matches.values() if state}
    for node, pods in snapshot.view.pods.items():
        state = snapshot.states.get(node)
        if node not in named and (
            any(not pod.ready for pod in pods) or (state is not None and not offers(state))
        ):
            return True
    return False
