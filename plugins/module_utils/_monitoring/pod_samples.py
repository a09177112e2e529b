# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why no sample of an exporter names a pod, although pods hold GPUs of its node.

DCGM's exporter asks the kubelet which pod has which GPU, at the socket of its pod resources.
Without the socket, or for resources that it does not know, its samples have no pods, and it reports
no error.
github.com/NVIDIA/dcgm-exporter, internal/pkg/transformation/kubernetes.go; read 2026-11-27.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from .._cluster.allocation import NodeState, is_gpu_resource
from .._cluster.pods import PodView
from .._cluster.types import vendor_of
from .._core.finding import Finding
from .._exporter.page import has_pod
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .._kube.timestamp import unix_time

Object = Mapping[str, Any]

_CODE = "pods_without_metrics"
#: Seconds after which a pod is in the samples, whatever the interval of the exporter is.
_SETTLED = 300
_SOCKET_FOLDER = "/var/lib/kubelet/pod-resources"
_SWITCH = "DCGM_EXPORTER_KUBERNETES"
_SOCKET = "DCGM_POD_RESOURCES_KUBELET_SOCKET"
_NAMES = "NVIDIA_RESOURCE_NAMES"
_KNOWN, _KNOWN_PREFIX = "nvidia.com/gpu", "nvidia.com/mig-"
_MOST_SHOWN = 3


def find_missing_pods(
    cluster: Cluster, state: NodeState, exporter: PodView, page: str
) -> Finding | None:
    """Return why no sample names a pod; None if one does, or no pod has held a GPU for long.

    :param page: the metrics of the exporter.
    """
    held = _held(state, cluster.server_time or time.time())
    if not held or has_pod(page):
        return None
    names = sorted({name for uses in held.values() for name in uses})
    shown = ", ".join(names[:_MOST_SHOWN]) + (" and others" if len(names) > _MOST_SHOWN else "")
    try:
        pod = _read(cluster, exporter)
    except KubeError:
        pod = None
    found, step = _explain(pod, held)
    return Finding(
        _CODE,
        f"No sample of the exporter {exporter.full_name} names a pod, and pods hold GPUs of the "
        f"node {state.name}.",
        f"pods with GPUs: {shown}; {found}",
        step,
    )


def _held(state: NodeState, now: float) -> dict[str, list[str]]:
    """Return the pods that have run with GPUs of the device plugin for a while, by resource."""
    held: dict[str, list[str]] = {}
    for name, resource in state.resources.items():
        if resource.dra or vendor_of(name) != "nvidia" or not is_gpu_resource(name):
            continue
        for use in resource.pods:
            started = unix_time(use.started)
            if use.phase == "Running" and started is not None and now - started >= _SETTLED:
                held.setdefault(name, []).append(f"{use.namespace}/{use.name}")
    return held


def _read(cluster: Cluster, exporter: PodView) -> Object | None:
    chosen = {"fieldSelector": f"metadata.name={exporter.name}"}
    path = f"/api/v1/namespaces/{exporter.namespace}/pods"
    return next(iter(cluster.list(path, **chosen)), None)


def _explain(pod: Object | None, held: Iterable[str]) -> tuple[str, str]:
    """Return what the exporter's pod lacks, and the next step.

    :param held: the resources that pods hold.
    """
    if pod is None:
        return (
            "its pod could not be read",
            f"See that the exporter has {_SWITCH}=true and the host's folder {_SOCKET_FOLDER}.",
        )
    spec = pod.get("spec") or {}
    containers = spec.get("containers") or ()
    pairs = {
        str(one.get("name")): str(one.get("value") or "")
        for container in containers
        for one in container.get("env") or ()
    }
    words = [
        str(word)
        for container in containers
        for word in (*(container.get("command") or ()), *(container.get("args") or ()))
    ]
    if pairs.get(_SWITCH, "").lower() not in ("true", "1", "t") and not _has_switch(words):
        return (
            f"{_SWITCH}: {pairs.get(_SWITCH) or 'not set'}",
            f"Set {_SWITCH}=true in the environment of the exporter (gpu_monitoring_environment "
            "must not have another value).",
        )
    place = pairs.get(_SOCKET, "").rpartition("/")[0] or _SOCKET_FOLDER
    folder = _socket_folder(spec, containers, place)
    if not folder:
        return (
            f"no folder of the host is mounted at {place}",
            f"Mount the folder pod-resources of the kubelet into the exporter at {place}, "
            "read-only.",
        )
    unknown = sorted(one for one in held if one != _KNOWN and not one.startswith(_KNOWN_PREFIX))
    if unknown and len(unknown) == len(set(held)) and not pairs.get(_NAMES):
        return (
            f"they hold {', '.join(unknown)}, and {_NAMES} is not set",
            f"Set {_NAMES}={','.join(unknown)} in the environment of the exporter "
            "(gpu_monitoring_environment): it knows nvidia.com/gpu and nvidia.com/mig-* by itself.",
        )
    return (
        f"the exporter has the host's folder {folder}",
        f"See on the node that {folder}/kubelet.sock is the socket of the kubelet that runs: with "
        "another --root-dir set gpu_monitoring_kubelet_directory to it. The exporter's log says "
        "why it does not get the pods.",
    )


def _has_switch(words: Iterable[str]) -> bool:
    return any(word in ("-k", "--kubernetes", "--kubernetes=true") for word in words)


def _socket_folder(spec: Object, containers: Iterable[Object], place: str) -> str:
    """Return the host's folder that is mounted there in the exporter; empty without one."""
    mounted = {
        str(one.get("name"))
        for container in containers
        for one in container.get("volumeMounts") or ()
        if str(one.get("mountPath") or "").rstrip("/") == place
    }
    for volume in spec.get("volumes") or ():
        if volume.get("name") in mounted:
            return str((volume.get("hostPath") or {}).get("path") or "")
    return ""
