# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module gpu_cluster_info returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import KubegpuError
from .allocation import NodeState
from .causes import is_foreign_only
from .causes_dra import by_dra
from .feature_discovery import TITLE
from .pods import PodView, find_pod_problem
from .types import Expected, Shortfall, Snapshot, View
from .workloads import (
    FEATURE_DISCOVERY,
    foreign,
)


def build_result(
    snapshot: Snapshot, expected: Sequence[Expected], only_gpu: bool = True
) -> dict[str, Any]:
    """Return the return values of gpu_cluster_info.

    :param only_gpu: whether nodes without GPUs are omitted.
    """
    view = snapshot.view
    named = {state.name for state in snapshot.matches.values() if state}
    shown = {
        name: state.to_json()
        for name, state in sorted(snapshot.states.items())
        if not only_gpu or state.resources or state.dra or name in named or view.plugin_pods(name)
    }
    known = {state.name: item.known for item in expected if (state := snapshot.matches[item.key])}
    by_key = {
        short.expected.key: short
        for short in snapshot.shortfalls
        if short.part != FEATURE_DISCOVERY
    }
    undiscovered = {
        short.expected.key: short
        for short in snapshot.shortfalls
        if short.part == FEATURE_DISCOVERY
    }
    return {
        "nodes": shown,
        "node_of": {
            key: state.name if state else None for key, state in snapshot.matches.items()
        },
        "plugin_pods": [*_pods(view.pods, known), *_pods(view.dra_pods, known)],
        "discovery_pods": _pods(view.discovery, known),
        "exporter_pods": _pods(view.exporters, known),
        "parts": [part.to_json() for part in view.parts],
        "foreign": [part.to_json() for part in foreign(view.parts)],
        "dra": view.dra.to_json(),
        "missing": [short.to_json() for short in snapshot.shortfalls],
        "layers": [
            *(
                _layer(item, snapshot.matches[item.key], by_key.get(item.key), view)
                for item in expected
                if not item.none or item.key in by_key
            ),
            *(_discovery_layer(short) for short in undiscovered.values()),
        ],
    }  # fmt: skip


def build_unreachable(
    expected: Sequence[Expected], layer: str, error: KubegpuError
) -> list[dict[str, Any]]:
    """Return the layer entries of hosts whose cluster is unreachable.

    Only the first entry has the error. With the entries, the table still shows the other layers.
    """
    failure = {"cause": error.cause, "evidence": error.evidence, "next_step": error.next_step}
    waits = {"cause": "The cluster could not be asked.", "evidence": "", "next_step": ""}
    return [
        {
            "node": item.key, "layer": layer, "ok": None if number else False,
            "code": "waits" if number else "cluster_not_asked",
            **(waits if number else failure), "proof": "", "subject": "",
        }
        for number, item in enumerate(expected)
    ]  # fmt: skip


def _pods(
    pods: Mapping[str, Sequence[PodView]], known: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the pods of plugins and drivers.

    :param known: what is known of the hosts, by the name of their node.
    """
    return [
        {**pod.to_json(), "findings": _findings(pod, known.get(node))}
        for node in sorted(pods)
        for pod in pods[node]
    ]


def _findings(pod: PodView, facts: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    finding = find_pod_problem(pod, facts) if pod.log or pod.events or not pod.ready else None
    return [finding.as_problem()] if finding else []


def _layer(
    item: Expected, state: NodeState | None, short: Shortfall | None, view: View
) -> dict[str, Any]:
    """Return the entry of a host for the layer ``allocatable``, in the format of all layers."""
    entry = {
        "node": item.key, "layer": "allocatable", "ok": short is None, "code": "", "cause": "",
        "evidence": "", "next_step": "", "proof": "", "subject": "",
    }  # fmt: skip
    if short is not None:
        entry.update(_finding_fields(short))
    elif state is not None and state.dra and by_dra(item, state):
        names = [name for name, resource in sorted(state.resources.items()) if resource.dra]
        how = " or ".join(["a ResourceClaim", *names])
        entry["proof"] = (
            f"the DRA driver {' and '.join(state.dra.drivers)} serves the node {state.name}: "
            f"{state.dra} in its ResourceSlices, requested by {how}"
        )
    elif state is not None:
        offers = ", ".join(
            f"{resource.allocatable} {name}"
            for name, resource in sorted(state.resources.items())
            if resource.allocatable
        )
        whose = ", by a plugin of another owner" if is_foreign_only(item, view) else ""
        entry["proof"] = f"the node {state.name} offers {offers}{whose}"
    return entry


def _discovery_layer(short: Shortfall) -> dict[str, Any]:
    """Return the entry of a node that offers GPUs, but on which feature discovery does not run."""
    return {
        "node": short.expected.key, "layer": "allocatable", "ok": False, "proof": "",
        "subject": TITLE, **_finding_fields(short),
    }  # fmt: skip


def _finding_fields(short: Shortfall) -> dict[str, Any]:
    found = short.finding
    return {
        "code": found.code,
        "cause": found.cause,
        "evidence": found.evidence,
        "next_step": found.next_step,
        **found.named(),
    }
