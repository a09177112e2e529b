# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``metrics``: one scrape of each node's exporter has a sample for each GPU, and the pods
that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._cluster.allocation import NodeState
from .._cluster.pods import PodView, find_pod_problem
from .._cluster.types import Expected, Snapshot
from .._core.finding import Finding
from .._core.printable import printable
from .._exporter.page import dcgm_gpus
from .._hardware.vendors import container_gpus
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .pod_samples import find_missing_pods

LAYER = "metrics"


def metric_layers(
    cluster: Cluster, snapshot: Snapshot, expected: Sequence[Expected]
) -> list[dict[str, Any]]:
    """Return the entry of each host with NVIDIA GPUs, from one scrape through the API server."""
    found = []
    for item in expected:
        gpus = len(container_gpus({"gpus": item.gpus}))
        if gpus:
            state = snapshot.matches[item.key]
            pods = snapshot.view.exporters.get(state.name, ()) if state else ()
            found.append(_entry(item, *_judge(cluster, state, pods, gpus, item.known)))
    return found


def _judge(
    cluster: Cluster,
    state: NodeState | None,
    pods: Sequence[PodView],
    gpus: int,
    facts: Mapping[str, Any],
) -> tuple[Finding | None, str]:
    """Return what is wrong, or the proof that nothing is."""
    if state is None:
        return Finding(
            "node_unknown",
            "The cluster has no node for this host, so that no exporter runs there.",
            "",
            "Join the host to the cluster, or correct gpu_node_labels_node_name.",
        ), ""
    if not pods:
        return _missing(state), ""
    pod = pods[0]
    if not pod.ready:
        return find_pod_problem(pod, facts) or _not_ready(pod), ""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/proxy/metrics"
    try:
        page = cluster.text(path)
    except KubeError as error:
        return Finding(
            "exporter_no_answer",
            f"The exporter {pod.full_name} does not answer: {error.cause}",
            error.evidence,
            error.next_step or f"Check kubectl -n {pod.namespace} logs {pod.name}.",
        ), ""
    samples = dcgm_gpus(page)
    if len(samples) < gpus:
        return _too_few(pod, len(samples), gpus), ""
    finding = find_missing_pods(cluster, state, pod, page)
    if finding is not None:
        return finding, ""
    return None, f"the exporter {pod.full_name} has samples of {len(samples)} GPUs"


def _missing(state: NodeState) -> Finding:
    return Finding(
        "exporter_missing",
        f"No exporter of GPU metrics runs on the node {state.name}.",
        "",
        "Run kubegpu.nodes.site with --tags monitoring. If its DaemonSet is there, the node lacks "
        "the label kubegpu.nodes/gpu=nvidia, has a taint that the pods do not tolerate, or is "
        "paused (label kubegpu.nodes/pause).",
    )


def _not_ready(pod: PodView) -> Finding:
    return Finding(
        "exporter_not_ready",
        f"The exporter {pod.full_name} is not ready.",
        f"phase {pod.phase}, {pod.restarts} restarts",
        f"Check kubectl -n {pod.namespace} logs {pod.name}: DCGM finds no GPU, or the driver "
        "does not answer.",
    )


def _too_few(pod: PodView, samples: int, gpus: int) -> Finding:
    return Finding(
        "gpu_without_metrics",
        f"The exporter {pod.full_name} has samples of {samples} of {gpus} GPUs of the node.",
        "",
        "Compare with nvidia-smi -L on the node: a GPU that it lacks has fallen off the bus or is "
        "not driven. If all are there, DCGM does not support the others, or the container gets "
        "only some (NVIDIA_VISIBLE_DEVICES).",
    )


def _entry(item: Expected, finding: Finding | None, proof: str) -> dict[str, Any]:
    words: Mapping[str, str] = {
        name: printable(getattr(finding, name)) if finding else ""
        for name in ("code", "cause", "evidence", "next_step")
    }
    return {
        "node": item.key,
        "layer": LAYER,
        "ok": finding is None,
        **words,
        "proof": printable(proof),
        "subject": "",
    }
