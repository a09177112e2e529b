# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what becomes of each pod of a node that is drained. Pure.

The rules and their order are those of ``kubectl drain`` (pkg/drain/filters.go of kubectl, read
2026-11), with two in front of them: pods of a label stay, and pods without GPUs if only those with
GPUs go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._kube.timestamp import unix_time
from .._labels.pause import leaves_paused
from .types import (
    EVICT,
    GONE,
    KEPT,
    LEAVES,
    REFUSED,
    WAITS,
    DaemonSets,
    Decision,
    Node,
    Pod,
    Request,
)

_MIRROR = "kubernetes.io/config.mirror"
# On kured's own DaemonSet while it drains and reboots nodes (kured 1.x, its default
# --lock-annotation): one lock, or several below "locks". Its TTL is in nanoseconds, 0 for none.
_KURED = "weave.works/kured-node-lock"
_NANO = 1e9
_SHORT_ID = 12
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_DEVICES = ("/dev/nvidia", "/dev/dri", "/dev/kfd")
_MOST_SHOWN = 60

Object = Mapping[str, Any]


def read_pod(data: Object, gpus: int = 0) -> Pod:
    """Return the parts of a Pod object.

    :param gpus: number of GPUs that it holds.
    """
    meta, spec, status = (data.get(part) or {} for part in ("metadata", "spec", "status"))
    owner: Object = next(
        (one for one in meta.get("ownerReferences") or () if one.get("controller")), {}
    )
    volumes = [one for one in spec.get("volumes") or () if one.get("emptyDir") is not None]
    memory = [one for one in volumes if one["emptyDir"].get("medium") == "Memory"]
    return Pod(
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        uid=str(meta.get("uid") or ""),
        node=str(spec.get("nodeName") or ""),
        phase=str(status.get("phase") or ""),
        labels=meta.get("labels") or {},
        owner_kind=str(owner.get("kind") or ""),
        owner_name=str(owner.get("name") or ""),
        owner_uid=str(owner.get("uid") or ""),
        mirror=_MIRROR in (meta.get("annotations") or {}),
        deletion=str(meta.get("deletionTimestamp") or ""),
        ready=any(
            one.get("type") == "Ready" and one.get("status") == "True"
            for one in status.get("conditions") or ()
        ),
        in_memory=tuple(str(one.get("name")) for one in memory),
        on_disk=tuple(str(one.get("name")) for one in volumes if one not in memory),
        gpus=gpus,
        sign="" if gpus else _gpu_sign(spec),
        containers=tuple(
            str(one.get("containerID") or "").rpartition("://")[2][:_SHORT_ID]
            for one in status.get("containerStatuses") or ()
            if one.get("containerID")
        ),
    )


def _gpu_sign(spec: Object) -> str:
    """Return what lets a pod use GPUs without a request; empty for nothing.

    A privileged pod can, too, but most of them are network and storage, which do not.
    """
    runtime = str(spec.get("runtimeClassName") or "")
    if runtime.startswith("nvidia"):
        return f"RuntimeClass {runtime}"
    for container in spec.get("containers") or ():
        for one in container.get("env") or ():
            value = str(one.get("value") or "")
            if one.get("name") == _VISIBLE and value.lower() not in ("", "void", "none"):
                return f"{_VISIBLE}={value[:_MOST_SHOWN]}"
    for volume in spec.get("volumes") or ():
        path = str((volume.get("hostPath") or {}).get("path") or "")
        if path.startswith(_DEVICES):
            return f"the host's {path[:_MOST_SHOWN]}"
    return ""


def read_daemonsets(items: Iterable[Object], now: float) -> DaemonSets:
    """Return the DaemonSets, those whose pods leave a node that is paused, and kured's locks.

    :param now: the time by the server's clock.
    """
    uids, pausing = set(), set()
    kured: dict[str, tuple[str, str]] = {}
    for item in items:
        meta = item.get("metadata") or {}
        uid = str(meta.get("uid") or "")
        uids.add(uid)
        text = str((meta.get("annotations") or {}).get(_KURED) or "")
        name = f"{meta.get('namespace')}/{meta.get('name')}"
        kured.update(dict.fromkeys(_locked_nodes(text, now), (name, text)))
        pod = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
        if leaves_paused((pod.get("affinity") or {}).get("nodeAffinity") or {}):
            pausing.add(uid)
    return DaemonSets(frozenset(uids), frozenset(pausing), kured)


def _locked_nodes(text: str, now: float) -> Iterator[str]:
    """Return the nodes of kured's lock. A text that cannot be read locks none."""
    try:
        data = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return
    locks = data.get("locks", [data]) if isinstance(data, dict) else ()
    for lock in locks if isinstance(locks, list) else ():
        if isinstance(lock, dict) and lock.get("nodeID") and not _has_expired(lock, now):
            yield str(lock["nodeID"])


def _has_expired(lock: Object, now: float) -> bool:
    """Return whether kured itself counts a lock as free: it has a TTL, which is over."""
    created, ttl = unix_time(lock.get("created")), lock.get("TTL")
    if created is None or not isinstance(ttl, int) or ttl <= 0:
        return False
    # Not divided: an annotation has numbers of any length.
    return (now - created) * _NANO >= ttl


def find_kured(node: Node, daemonsets: DaemonSets) -> Finding | None:
    """Return the finding for a node that kured drains and reboots now; None if it does not."""
    if node.name not in daemonsets.kured:
        return None
    name, text = daemonsets.kured[node.name]
    return Finding(
        "held_by_kured",
        f"kured has locked the node {node.name}: it is about to reboot it.",
        f"annotation {_KURED} of the DaemonSet {name}: {text[:200]}",
        "Wait until kured has finished. If the lock is left from a node that is gone, remove the "
        f"annotation: kubectl -n {name.partition('/')[0]} annotate daemonset "
        f"{name.partition('/')[2]} {_KURED}-",
    )


def classify(
    pod: Pod, request: Request, daemonsets: DaemonSets, *, waiting: bool = True
) -> Decision:
    """Decide what becomes of a pod.

    :param waiting: whether pods of ``wait_for`` still have time.
    """
    if pod.finished:
        return Decision(pod, GONE)
    kept = _why_kept(pod, request, daemonsets)
    if kept:
        return Decision(pod, KEPT, kept)
    if pod.deletion or _is_daemon(pod, daemonsets):
        return Decision(pod, LEAVES)
    if waiting and _may_finish(pod, request):
        return Decision(pod, WAITS)
    findings = tuple(_refusals(pod, request))
    return Decision(pod, REFUSED if findings else EVICT, findings=findings)


def _why_kept(pod: Pod, request: Request, daemonsets: DaemonSets) -> str:
    if request.keep_labels and _has(pod, request.keep_labels):
        return "label"
    if pod.mirror:
        return "static"
    if _is_daemon(pod, daemonsets):
        leaves = request.pause and pod.owner_uid in daemonsets.pausing
        return "" if leaves else "daemonset"
    if not pod.gpus and not request.all_pods:
        return "no_gpu"
    return ""


def _is_daemon(pod: Pod, daemonsets: DaemonSets) -> bool:
    """Return whether a DaemonSet that exists controls the pod: it would make it again at once."""
    return pod.owner_kind == "DaemonSet" and pod.owner_uid in daemonsets.uids


def _may_finish(pod: Pod, request: Request) -> bool:
    wanted = request.wait_for
    return (
        wanted is not None
        and (not wanted.owners or pod.owner_kind in wanted.owners)
        and (not wanted.namespaces or pod.namespace in wanted.namespaces)
        and _has(pod, wanted.labels)
    )


def _has(pod: Pod, labels: Mapping[str, str]) -> bool:
    return all(pod.labels.get(name) == value for name, value in labels.items())


def _refusals(pod: Pod, request: Request) -> Sequence[Finding]:
    found = []
    lost = {"refuse": (*pod.in_memory, *pod.on_disk), "memory": pod.on_disk, "delete": ()}
    volumes = lost[request.local_data]
    if volumes:
        found.append(
            Finding(
                "local_data",
                f"The pod {pod.full_name} has data on its node that are deleted with it: "
                f"{', '.join(volumes)} (emptyDir).",
                "",
                "Save them, wait until the pod has finished, or allow it with local_data: delete.",
            )
        )
    # A DaemonSet that is gone makes no new pod, nor does a controller that is not named.
    if request.unmanaged == "refuse" and pod.owner_kind in ("", "DaemonSet"):
        gone = f" Its DaemonSet {pod.owner_name} is gone." if pod.owner_name else ""
        found.append(
            Finding(
                "unmanaged_pod",
                f"The pod {pod.full_name} has no controller: once deleted, it is not created again."
                f"{gone}",
                "",
                "Delete it manually when nobody needs it, or allow it with unmanaged: delete.",
            )
        )
    return found
