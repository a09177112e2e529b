# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the objects of this collection's DRA driver, and those of its names, from a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._cluster.workloads import MANAGED_BY, OURS
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .data import POLICY_KIND
from .names import APPLICATION, CLIQUES, DOMAIN_GROUP, DOMAIN_VERSION, DOMAINS, NAMES

_LABELS = {MANAGED_BY: OURS, "app.kubernetes.io/name": APPLICATION}
_RBAC = "rbac.authorization.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")
# In the order of removal: what uses others comes first.
_NAMESPACED = (
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "DaemonSet", "daemonsets"),
    (_RBAC, "RoleBinding", "rolebindings"),
    (_RBAC, "Role", "roles"),
    ("v1", "ServiceAccount", "serviceaccounts"),
)
_CLUSTER_WIDE = (
    (_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    (_ADMISSION, POLICY_KIND, "validatingadmissionpolicies"),
    (_RBAC, "ClusterRoleBinding", "clusterrolebindings"),
    (_RBAC, "ClusterRole", "clusterroles"),
)


def dra_objects(cluster: Cluster, namespace: str, api: str) -> list[dict[str, Any]]:
    """Return the namespace, the objects of this collection, and all compute domains.

    Objects with a name that this collection uses, and definitions of compute domains, are returned
    whoever made them. They are listed and not asked for by name, because an account without the
    rights for compute domains may list them only. All objects are reduced to their metadata, and
    policies to that and their ``spec``, by which the plan sees that they are as they should be.

    :param api: the version of resource.k8s.io; empty if the server has none.
    """
    found: list[dict[str, Any]] = []
    for version, kind, plural in _NAMESPACED:
        path = f"{_base(version)}/namespaces/{namespace}/{plural}"
        found += filter(_is_wanted, _listed(cluster, path, version, kind))
    classes = ((f"resource.k8s.io/{api}", "DeviceClass", "deviceclasses"),) if api else ()
    for version, kind, plural in (*_CLUSTER_WIDE, *classes):
        path = f"{_base(version)}/{plural}"
        found += filter(_is_wanted, _listed(cluster, path, version, kind))
    version, kind, plural = _CRD
    defined = [
        item
        for name in (DOMAINS, CLIQUES)
        for item in [cluster.get(f"{_base(version)}/{plural}/{name}")]
        if item
    ]
    if defined:
        domains = f"{DOMAIN_GROUP}/{DOMAIN_VERSION}"
        path = f"{_base(domains)}/computedomains"
        found += _listed(cluster, path, domains, "ComputeDomain")
    found += [_reduced(item, version, kind) for item in defined]
    there = cluster.get(f"/api/v1/namespaces/{namespace}")
    return [*found, _reduced(there, "v1", "Namespace")] if there else found


def _base(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _is_wanted(item: Mapping[str, Any]) -> bool:
    """Return whether an object is of this collection's driver, or has a name of it."""
    labels = item["metadata"].get("labels") or {}
    return item["metadata"]["name"] in NAMES or _LABELS.items() <= labels.items()


def _listed(cluster: Cluster, path: str, version: str, kind: str) -> Iterator[dict[str, Any]]:
    """Return the objects of a kind; none if the server does not know the kind."""
    try:
        items = list(cluster.list(path))
    except KubeError as error:
        if error.status != 404:
            raise
        items = []
    return (_reduced(item, version, kind) for item in items)


def _reduced(item: Mapping[str, Any], version: str, kind: str) -> dict[str, Any]:
    kept = {
        name: item["metadata"][name]
        for name in ("name", "namespace", "labels")
        if name in item["metadata"]
    }
    more = {"spec": item["spec"]} if kind == POLICY_KIND and "spec" in item else {}
    return {"apiVersion": version, "kind": kind, "metadata": kept, **more}
