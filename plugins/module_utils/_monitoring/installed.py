# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the objects of this collection's monitoring from a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._cluster.workloads import Workload
from .._kube.api import Cluster
from .._kube.selinux import selinux_part
from .names import (
    MONITORING_API,
    NAME,
    OBJECTS,
    POD_MONITOR,
    PROMETHEUS_RULE,
    SERVICE_MONITOR,
)

_KINDS = (SERVICE_MONITOR, POD_MONITOR, PROMETHEUS_RULE)
_KEPT = ("name", "namespace", "labels")


def read_monitoring(
    cluster: Cluster, namespace: str, parts: Iterable[Workload] = ()
) -> dict[str, Any]:
    """Return which kinds of the Prometheus operator the cluster has, and our objects.

    :param namespace: that of the exporter. Objects are reduced to name, namespace and labels.
    :param parts: the workloads of the cluster, which show the namespaces of earlier runs.
    """
    group = cluster.get(f"/apis/{MONITORING_API}") or {}
    served = {str(one.get("kind")) for one in group.get("resources") or ()}
    kinds = [kind for kind in _KINDS if kind in served]
    found = [_reduced("v1", "Namespace", cluster.get(f"/api/v1/namespaces/{namespace}"))]
    earlier = {one.namespace for one in parts if one.managed and one.name == NAME} - {namespace}
    for place in (namespace, *sorted(earlier)):
        for kind, api, plural, names in OBJECTS:
            shared = kind.startswith("Cluster")
            if (kind in _KINDS and kind not in kinds) or (shared and place != namespace):
                continue
            inside = "" if shared else f"/namespaces/{place}"
            version = api.partition("/")[2]
            for name in names:
                item = cluster.get(f"/{api}{inside}/{plural}/{name}")
                found.append(_reduced(version, kind, item))
    return {"kinds": kinds, "objects": [item for item in found if item]}


def _reduced(version: str, kind: str, item: Mapping[str, Any] | None) -> dict[str, Any]:
    if not item:
        return {}
    metadata = {key: item["metadata"][key] for key in _KEPT if key in item["metadata"]}
    types = selinux_part({**item, "kind": kind})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **types}
