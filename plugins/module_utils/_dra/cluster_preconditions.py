# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVIDIA's DRA driver needs of the cluster: versions, and no other allocator of GPUs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._cluster.dra import VERSIONS, newest_version
from .._cluster.workloads import COMPUTE_DOMAINS, DEVICE_PLUGIN, DRA_DRIVER, OPERATOR
from .._core.versions import version_numbers
from .data import API_SINCE, DYNAMIC_MIG, KUBERNETES, KUBERNETES_DOCUMENTED, Version
from .options import AUTO, PREFIX, REMOVE
from .types import Precondition, Request

#: What makes the API server serve a beta version.
_BETA = (
    "start the API server with --runtime-config=resource.k8s.io/{api}=true, and all parts of the "
    "control plane and the kubelets with --feature-gates=DynamicResourceAllocation=true"
)
_UPGRADE = (
    "Upgrade Kubernetes to 1.34.2 or later, which serves resource.k8s.io/v1 by default; until "
    f"then keep the device plugin ({PREFIX}enabled: false)."
)
#: The next step where a device plugin runs: compute domains do not allocate the same devices.
_DOMAINS_ALONE = f"; or serve compute domains alone ({PREFIX}gpus: false)"


def dotted(version: Version) -> str:
    return ".".join(str(number) for number in version)


def choose_api(request: Request, served: Sequence[str]) -> str:
    """Return the version of resource.k8s.io for the manifests; empty if none fits."""
    if request.api == AUTO:
        return newest_version(served)
    return request.api if request.api in served else ""


def cluster_preconditions(
    request: Request, cluster: Mapping[str, Any], *, compute_domains: bool = False
) -> list[Precondition]:
    """Return the preconditions of the cluster.

    :param cluster: the result of gpu_cluster_info with ``dra_namespace``.
    :param compute_domains: whether they are deployed.
    """
    parts = [part for part in cluster.get("parts") or () if part.get("vendor") == "nvidia"]
    found = [
        _kubernetes(str(cluster.get("kubernetes") or "")),
        _api(request, cluster),
    ]
    found += _drivers(request, parts, compute_domains=compute_domains)
    if request.gpus:
        found += _allocators(request, parts)
    if request.gate(DYNAMIC_MIG):
        found.append(_partitionable(str(cluster.get("kubernetes") or "")))
    return found


def _kubernetes(given: str) -> Precondition:
    name, version = "Kubernetes", version_numbers(given)[:3]
    if not version:
        return Precondition(
            "",
            name,
            "unknown",
            None,
            "the API server returned no version",
            "Check: kubectl version",
        )
    evidence = f"/version of the API server: {given}"
    if version < KUBERNETES:
        return Precondition("", name, given, False, evidence, _UPGRADE)
    advice = ""
    if version < KUBERNETES_DOCUMENTED:
        advice = (
            f"NVIDIA documents {dotted(KUBERNETES_DOCUMENTED)} or later; its chart accepts "
            f"{dotted(KUBERNETES)}."
        )
    return Precondition("", name, given, True, evidence, advice)


def _api(request: Request, cluster: Mapping[str, Any]) -> Precondition:
    name, served = "resource.k8s.io", list((cluster.get("dra") or {}).get("served") or ())
    value = ", ".join(served) or "not served"
    api = choose_api(request, served)
    if api:
        return Precondition("", name, value, True, f"the manifests use {api}")
    evidence = f"/apis/resource.k8s.io of the API server: {value}"
    if request.api != AUTO and any(version in served for version in VERSIONS):
        step = f"Set {PREFIX}api: auto, or one of the served versions."
        return Precondition(
            "", name, value, False, f"{evidence}; {PREFIX}api is {request.api}", step
        )
    return Precondition("", name, value, False, evidence, _serve(cluster))


def _serve(cluster: Mapping[str, Any]) -> str:
    """Return how this Kubernetes is made to serve a usable version."""
    version = version_numbers(str(cluster.get("kubernetes") or ""))[:2]
    if version and version < KUBERNETES:
        return _UPGRADE
    if version >= API_SINCE["v1"]:
        return (
            "Kubernetes 1.34 and later serve v1 unless it is switched off: remove "
            "resource.k8s.io/v1=false from --runtime-config of the API server."
        )
    api = next((one for one in VERSIONS if version >= API_SINCE[one]), "v1beta1")
    return f"Upgrade to 1.34.2 or later; or {_BETA.format(api=api)}."


def _drivers(
    request: Request, parts: Sequence[Mapping[str, Any]], *, compute_domains: bool
) -> list[Precondition]:
    """Return the DRA drivers of others, which would register with a kubelet by the same name."""
    kinds = (DRA_DRIVER, COMPUTE_DOMAINS) if compute_domains else (DRA_DRIVER,)
    return [
        _foreign(request, "another DRA driver", str(part["text"]))
        for part in parts
        if part["kind"] in kinds and not part["managed"]
    ]


def _allocators(request: Request, parts: Sequence[Mapping[str, Any]]) -> list[Precondition]:
    """Return whether an operator or a device plugin allocates the GPUs."""
    found = []
    for part in parts:
        value = str(part["text"])
        if part["kind"] == OPERATOR:
            step = "See that its device plugin remains off (devicePlugin.enabled=false)."
            found.append(Precondition("", "GPU operator", value, True, "", step))
        elif part["kind"] == DEVICE_PLUGIN and part["managed"]:
            found.append(_our_plugin(request, value))
        elif part["kind"] == DEVICE_PLUGIN:
            found.append(_foreign(request, "device plugin", value, _DOMAINS_ALONE))
    if not any(one.name == "device plugin" for one in found):
        found.append(Precondition("", "device plugin", "none", True, "no DaemonSet of one"))
    return found


def _our_plugin(request: Request, value: str) -> Precondition:
    name = "device plugin"
    if request.device_plugin == REMOVE:
        return Precondition(
            "", name, value, True, f"{PREFIX}device_plugin: the run removes it first"
        )
    return Precondition(
        "", name, value, False,
        "it and the DRA driver would allocate the same GPUs, each without regard to the other",
        f"Set {PREFIX}device_plugin: remove, and move pods that ask for nvidia.com/gpu to claims "
        f"where the cluster does not lend that name{_DOMAINS_ALONE}.",
    )  # fmt: skip


def _foreign(request: Request, name: str, value: str, otherwise: str = "") -> Precondition:
    if request.beside_others:
        return Precondition(
            "", name, value, True, f"{PREFIX}beside_others: it serves different nodes"
        )
    return Precondition(
        "", name, value, False,
        "this collection did not deploy it, and never changes it",
        "Remove it by its own means; or, where it serves other nodes than those with the label "
        f"kubegpu.nodes/gpu=nvidia, set {PREFIX}beside_others: true{otherwise}.",
    )  # fmt: skip


def _partitionable(given: str) -> Precondition:
    name, version = "DRAPartitionableDevices", version_numbers(given)[:2]
    if version >= (1, 36):
        return Precondition("", name, "on by default", True, f"Kubernetes {given}")
    if version >= API_SINCE["v1"]:
        return Precondition(
            "", name, "off by default", None, f"{DYNAMIC_MIG} needs it, Kubernetes {given}",
            "Enable this feature gate of the API server and the scheduler.",
        )  # fmt: skip
    return Precondition(
        "", name, "not there", False, f"{DYNAMIC_MIG} needs it, Kubernetes {given or 'unknown'}",
        "Upgrade to 1.34 or later, or leave DynamicMIG out.",
    )  # fmt: skip
