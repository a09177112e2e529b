# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What node_gpu_label returns: the result, its warnings and its failure. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError, KubegpuError
from .._core.failure import parts
from .._kube.errors import KubeError
from .match_hosts import Match
from .types import Conflict

_MOST_NAMED = 10


@dataclass(frozen=True)
class Result:
    """What node_gpu_label did, or would do in check mode."""

    changed: bool
    nodes: dict[str, dict[str, Any]]
    unknown: list[str]
    not_ready: list[str]
    conflicts: list[Conflict]
    #: By node.
    errors: dict[str, KubeError]
    #: By host.
    refused: dict[str, InputError]
    feature_discovery: bool
    left_out: list[str]
    warnings: list[str]
    #: None of the hosts is a node of the cluster, which is probably another one.
    strangers: KubegpuError | None = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def to_json(self, requests: Mapping[str, int]) -> dict[str, Any]:
        """Return the module's return values.

        :param requests: number of requests to the API server, by verb.
        """
        return {
            "changed": self.changed,
            "diff": {"before": self.before, "after": self.after},
            "nodes": self.nodes,
            "unknown": self.unknown,
            "not_ready": self.not_ready,
            "conflicts": [
                {**dataclasses.asdict(item), "label": item.name} for item in self.conflicts
            ],
            "errors": {name: error.cause for name, error in self.errors.items()},
            "refused": {key: str(error) for key, error in self.refused.items()},
            "refusals": {key: [parts(error)] for key, error in self.refused.items()},
            "feature_discovery": self.feature_discovery,
            "left_to_feature_discovery": self.left_out,
            "requests": {"list": 0, "patch": 0, **requests},
        }


def build_warnings(
    matches: Sequence[Match], unknown: Sequence[str], not_ready: Sequence[str], check: bool
) -> list[str]:
    """Return what to warn of: hosts that are not nodes, and nodes that are not ready.

    :param check: whether nothing is changed (check mode).
    """
    warnings = [found.note for found in matches if found.note]
    if unknown:
        warnings.append(
            "These hosts are not nodes of the cluster, by machine id or name: "
            f"{join_names(unknown)}. The others "
            f"{'would be' if check else 'were'} labelled. Next step: join them to the cluster, or "
            "set gpu_node_labels_node_name to the name that kubectl get nodes shows."
        )
    if not_ready:
        warnings.append(
            f"These nodes are not ready: {join_names(not_ready)}. They "
            f"{'would be' if check else 'were'} labelled."
        )
    return warnings


def strangers_error(unknown: Sequence[str], server: str) -> KubegpuError:
    """Return the error for a cluster that has none of the hosts."""
    return KubegpuError(
        f"None of these hosts is a node of the cluster {server}: {join_names(unknown)}.",
        evidence="They were searched for by machine id and by name.",
        next_step="Check that kubegpu_kube (kubeconfig, context) names the right cluster. Join the "
        "hosts to it, or set gpu_node_labels_node_name to the name that kubectl get nodes shows.",
    )


def join_names(names: Sequence[str]) -> str:
    """Return names in one line, the first ten of them."""
    more = len(names) - _MOST_NAMED
    text = ", ".join(names[:_MOST_NAMED])
    return f"{text} and {more} more" if more > 0 else text


def failure(result: Result) -> dict[str, str] | None:
    """Return cause, evidence and next step of what went wrong; None where nothing did."""
    causes: list[str] = []
    first = result.strangers
    if first is not None:
        causes.append(first.cause)
    if result.refused:
        first = next(iter(result.refused.values()))
        causes.append(
            f"Which node these hosts are is not certain: {join_names(list(result.refused))}. The "
            f"first of them: {first.cause}"
        )
    if result.errors:
        error = next(iter(result.errors.values()))
        first = first or error
        causes.append(
            f"These nodes could not be labelled: {join_names(list(result.errors))}. The first "
            f"of them: {error.cause}"
        )
    if result.conflicts:
        theirs = join_names([str(item) for item in result.conflicts])
        causes.append(
            ("" if causes else "Some of the requested values could not be set; all others were. ")
            + f"These belong to other owners: {theirs}"
        )
    if not causes:
        return None
    return {
        "cause": ". ".join(causes),
        "evidence": first.evidence if first else "",
        "next_step": first.next_step
        if first
        else "Ask the owner to give it up, leave it out, or take it over with "
        "force_conflicts: true (gpu_node_labels_force_conflicts in the role).",
    }
