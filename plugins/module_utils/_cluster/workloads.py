# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators, device plugins, DRA drivers and feature discovery of a cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]

OPERATOR = "operator"
DEVICE_PLUGIN = "device_plugin"
FEATURE_DISCOVERY = "feature_discovery"
DRA_DRIVER = "dra_driver"
#: NVIDIA's DRA driver without GPUs: it allocates none, and a device plugin may run next to it.
COMPUTE_DOMAINS = "compute_domains"
EXPORTER = "exporter"

#: The label and its value on all objects of this collection.
MANAGED_BY = "app.kubernetes.io/managed-by"
OURS = "kubegpu.nodes"
OUR_PLUGIN = "kubegpu-nvidia-device-plugin"

# (kind, vendor, name, pattern of an image without its tag, pattern of the command). The first match
# decides. The same image serves NVIDIA's plugin and feature discovery.
_IMAGES = (
    # The images are nvcr.io/nvidia/k8s-dra-driver-gpu (to v25.12.0), since then
    # registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu (v0.4.0), and that of the operator,
    # nvcr.io/nvidia/dra-driver-nvidia-gpu; the chart runs this command in its container gpus
    # (github.com/kubernetes-sigs/dra-driver-nvidia-gpu, templates/kubeletplugin.yaml). Without it
    # the pod serves compute domains alone, which are no GPUs.
    (DRA_DRIVER, "nvidia", "NVIDIA's DRA driver", r"", r"(?<![\w-])gpu-kubelet-plugin(?![\w-])"),
    (COMPUTE_DOMAINS, "nvidia", "NVIDIA's DRA driver for compute domains", r"",
     r"(?<![\w-])compute-domain-kubelet-plugin(?![\w-])"),
    (OPERATOR, "nvidia", "NVIDIA GPU operator", r"(^|/)(nvidia|cloud-native)/gpu-operator$", None),
    (OPERATOR, "amd", "AMD GPU operator", r"(^|/)rocm/gpu-operator$", None),
    (OPERATOR, "intel", "Intel device plugins operator",
     r"(^|/)intel-deviceplugin-operator$", None),
    # NVIDIA's image with other commands: MPS control and configuration, not the plugin. The chart's
    # container for the configuration of feature discovery is named gpu-feature-discovery-sidecar
    # and comes first (k8s-device-plugin v0.20.0, templates/daemonset-gfd.yml).
    (None, "nvidia", "", r"(^|/)k8s-device-plugin$", r"mps-control-daemon|config-manager"),
    # AMD's labeller has the image of AMD's plugin, and labels nodes only
    # (ROCm/k8s-device-plugin, k8s-ds-amdgpu-labeller.yaml).
    (None, "amd", "", r"(^|/)k8s-device-plugin$", r"k8s-node-labeller"),
    (FEATURE_DISCOVERY, "nvidia", "GPU feature discovery", r"(^|/)gpu-feature-discovery$", None),
    (FEATURE_DISCOVERY, "nvidia", "GPU feature discovery", r"(^|/)k8s-device-plugin$",
     r"gpu-feature-discovery"),
    (DEVICE_PLUGIN, "amd", "AMD device plugin", r"(^|/)rocm/k8s-device-plugin$", None),
    (DEVICE_PLUGIN, "nvidia", "NVIDIA device plugin", r"(^|/)k8s-device-plugin$", None),
    (DEVICE_PLUGIN, "nvidia", "Google's device plugin", r"(^|/)nvidia-gpu-device-plugin$", None),
    (DEVICE_PLUGIN, "nvidia", "Volcano's device plugin", r"(^|/)volcano-(vgpu-)?device-plugin$",
     None),
    (DEVICE_PLUGIN, "nvidia", "HAMi", r"(^|/)(project)?hami/(hami|k8s-vgpu)[^/]*$",
     r"device-plugin"),
    (DEVICE_PLUGIN, "nvidia", "GPU share device plugin", r"(^|/)k8s-gpushare-plugin$", None),
    (DEVICE_PLUGIN, "intel", "Intel GPU plugin", r"(^|/)intel-gpu-plugin$", None),
    (EXPORTER, "nvidia", "DCGM exporter", r"(^|/)dcgm-exporter[^/]*$", None),
    (EXPORTER, "nvidia", "NVIDIA GPU exporter", r"(^|/)nvidia_gpu_exporter$", None),
    (EXPORTER, "amd", "AMD's metrics exporter", r"(^|/)device-metrics-exporter$", None),
    (EXPORTER, "intel", "Intel XPU manager", r"(^|/)(xpumd|xpumanager)$", None),
)  # fmt: skip
_RULES = tuple(
    (kind, vendor, name, re.compile(image), re.compile(command) if command else None)
    for kind, vendor, name, image, command in _IMAGES
)
_TAG = re.compile(r"(@sha256:[0-9a-f]+|:[\w][\w.-]*)+$")


@dataclass(frozen=True)
class Workload:
    """A GPU-related DaemonSet or Deployment, or the DeviceClass of a DRA driver."""

    kind: str
    vendor: str
    title: str
    workload: str
    namespace: str
    name: str
    image: str
    container: str
    managed: bool
    #: The operator or Helm that manages it; empty if unknown.
    managed_by: str
    selector: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Mapping[str, Any] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    runtime_class: str = ""
    desired: int = 0
    available: int = 0
    #: Pods of the newest template.
    updated: int = 0
    #: Whether the controller has observed the newest template, so that the counts are valid.
    observed: bool = True

    @property
    def rolled_out(self) -> bool:
        """Whether all pods are of the newest template and available."""
        return self.observed and min(self.updated, self.available) >= self.desired

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.title} ({self.workload} {place}{self.name})"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "vendor": self.vendor,
            "title": self.title,
            "text": str(self),
            "workload": self.workload,
            "namespace": self.namespace,
            "name": self.name,
            "image": self.image,
            "managed": self.managed,
            "managed_by": self.managed_by or None,
            "runtime_class": self.runtime_class or None,
            "desired": self.desired,
            "available": self.available,
        }


def recognize(workloads: Iterable[Object], kind: str) -> list[Workload]:
    """Return the GPU-related workloads.

    :param workloads: items of a list of the API server.
    :param kind: ``DaemonSet`` or ``Deployment``, which items of a list do not contain.
    """
    found = []
    for item in workloads:
        workload = _recognize(item, kind)
        if workload is not None:
            found.append(workload)
    return sorted(found, key=lambda one: (one.namespace, one.name))


def _recognize(item: Object, kind: str) -> Workload | None:
    meta, spec, status = (item.get(part) or {} for part in ("metadata", "spec", "status"))
    labels = meta.get("labels") or {}
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    all_labels = {**((template.get("metadata") or {}).get("labels") or {}), **labels}
    managed = all_labels.get(MANAGED_BY) == OURS
    roles = [
        (container, role)
        for container in pod.get("containers") or ()
        for role in [_role(container, all_labels, managed)]
        if role is not None
    ]
    if not roles:
        return None
    # In the chart's pod the container for compute domains comes before that for GPUs.
    container, (what, vendor, title) = min(roles, key=lambda one: one[1][0] == COMPUTE_DOMAINS)
    return Workload(
        kind=what,
        vendor=vendor,
        title=title,
        workload=kind,
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        image=str(container.get("image") or ""),
        container=str(container.get("name") or ""),
        # With Helm, the name starts the same, but the label is that of the chart.
        managed=managed or str(meta.get("name")).startswith(OUR_PLUGIN),
        managed_by=_manager(meta, all_labels),
        selector=dict((spec.get("selector") or {}).get("matchLabels") or {}),
        node_selector=dict(pod.get("nodeSelector") or {}),
        affinity=(pod.get("affinity") or {}).get("nodeAffinity") or {},
        tolerations=tuple(pod.get("tolerations") or ()),
        runtime_class=str(pod.get("runtimeClassName") or ""),
        desired=int(status.get("desiredNumberScheduled") or status.get("replicas") or 0),
        available=int(status.get("numberAvailable") or status.get("availableReplicas") or 0),
        updated=int(status.get("updatedNumberScheduled") or status.get("updatedReplicas") or 0),
        observed=int(status.get("observedGeneration") or 0) >= int(meta.get("generation") or 0),
    )


def _role(
    container: Object, labels: Mapping[str, str], managed: bool
) -> tuple[str, str, str] | None:
    image = _TAG.sub("", str(container.get("image") or ""))
    words = " ".join(
        str(word)
        for part in ([container.get("name") or ""], container.get("command") or (),
                     container.get("args") or ())
        for word in part
    )  # fmt: skip
    for kind, vendor, title, image_pattern, command in _RULES:
        if image_pattern.search(image) and (command is None or command.search(words)):
            return (kind, vendor, title) if kind else None
    # The image in a private registry may have any name; fall back to the usual labels.
    name = labels.get("app.kubernetes.io/name") or labels.get("name") or labels.get("app") or ""
    if name.startswith(("nvidia-device-plugin", "nvidia-gpu-device-plugin")):
        if container.get("name") == "gpu-feature-discovery":
            return FEATURE_DISCOVERY, "nvidia", "GPU feature discovery"
        if managed and container.get("name") != "nvidia-device-plugin":
            return None
        if "mps-control" in words or "mps-control" in name:
            return None
        return DEVICE_PLUGIN, "nvidia", "NVIDIA device plugin"
    if name.startswith(("amd-device-plugin", "amdgpu-dp-ds")):
        return DEVICE_PLUGIN, "amd", "AMD device plugin"
    if name.startswith(("intel-device-plugin", "intel-gpu-plugin")):
        return DEVICE_PLUGIN, "intel", "Intel GPU plugin"
    if name == "gpu-feature-discovery":
        return FEATURE_DISCOVERY, "nvidia", "GPU feature discovery"
    if name == "gpu-operator":
        return OPERATOR, "nvidia", "NVIDIA GPU operator"
    if name in ("dcgm-exporter", "nvidia-dcgm-exporter"):
        return EXPORTER, "nvidia", "DCGM exporter"
    return None


def _manager(meta: Object, labels: Mapping[str, str]) -> str:
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner.get('kind')} {owner.get('name')}"
    return str(labels.get(MANAGED_BY) or "")


def plugins(parts: Iterable[Workload]) -> list[Workload]:
    return [part for part in parts if part.kind == DEVICE_PLUGIN]


def dra_drivers(parts: Iterable[Workload]) -> list[Workload]:
    return [part for part in parts if part.kind == DRA_DRIVER]


def exporters(parts: Iterable[Workload], vendor: str) -> list[Workload]:
    return [part for part in parts if part.kind == EXPORTER and part.vendor == vendor]


def foreign(parts: Iterable[Workload], vendor: str | None = None) -> list[Workload]:
    """Return the unmanaged operators, device plugins and DRA drivers."""
    return [
        part
        for part in parts
        if part.kind in (OPERATOR, DEVICE_PLUGIN, DRA_DRIVER)
        and not part.managed
        and vendor in (None, part.vendor)
    ]


@dataclass(frozen=True)
class Place:
    """What keeps the pods of a DaemonSet off a node."""

    missing_labels: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    affinity: bool = False

    @property
    def allowed(self) -> bool:
        return not (self.missing_labels or self.taints or self.affinity)


#: Tolerations that the controller adds to DaemonSets.
_ALWAYS_TOLERATED = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        "not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure",
        "unschedulable",
    )
)  # fmt: skip


def place(
    workload: Workload, labels: Mapping[str, str], taints: Sequence[Mapping[str, str]]
) -> Place:
    """Return what keeps the pods of a DaemonSet off a node."""
    return Place(
        tuple(
            f"{name}={value}"
            for name, value in sorted(workload.node_selector.items())
            if labels.get(name) != value
        ),
        tuple(
            taint_text(taint)
            for taint in taints
            if taint["effect"] != "PreferNoSchedule"
            and taint["key"] not in _ALWAYS_TOLERATED
            and not any(tolerates(one, taint) for one in workload.tolerations)
        ),
        not matches_affinity(workload.affinity, labels),
    )


def taint_text(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    """Return whether a toleration covers a taint, by Kubernetes' rules."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    key = toleration.get("key") or ""
    if (toleration.get("operator") or "Equal") == "Exists":
        return key in ("", taint["key"])
    return key == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def matches_affinity(affinity: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a node's labels satisfy a required node affinity."""
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms")
    if terms is None:
        return True
    # matchFields are about the node's name, which the DaemonSet controller sets itself.
    return any(
        all(_matches(rule, labels) for rule in term.get("matchExpressions") or ()) for term in terms
    )


def _matches(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(rule["key"])
    given = rule.get("values") or ()
    operator = rule["operator"]
    if operator == "In":
        return value in given
    if operator == "NotIn":
        return value not in given
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return _compare(operator, value, given)


def _compare(operator: str, value: str | None, given: Sequence[str]) -> bool:
    try:
        number, bound = int(value or ""), int(given[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def namespace_manifest(name: str) -> dict[str, Any]:
    """Return the namespace that this collection creates where it has none."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {MANAGED_BY: OURS}},
    }
