# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan NVIDIA's DRA driver for a cluster: preconditions, and objects where they are met. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._cluster.workloads import DEVICE_PLUGIN, FEATURE_DISCOVERY
from .._core.errors import KubegpuError, Refusal
from .._core.printable import printable
from .._core.versions import version_numbers
from .._device_plugin.manifests import absent as plugin_absent
from .._device_plugin.objects import identity, is_managed, is_taken, is_unmanaged, taken
from .._device_plugin.plan import expected_of, refusal_text
from .._device_plugin.types import Request as PluginRequest
from .._hardware.vendors import container_gpus
from .._kube.differing_options import differing_options
from .._kube.pod_parts import Object
from .cluster_preconditions import choose_api, cluster_preconditions
from .data import POLICY_KIND, POLICY_SINCE
from .manifests import manifests
from .names import CONTROLLER_NAME, DOMAINS
from .node_preconditions import is_in_rack, node_preconditions
from .options import AUTO, PREFIX, read_request
from .types import Layout, Precondition, Request

Objects = Sequence[Mapping[str, Any]]
_CRD = "CustomResourceDefinition"
_CLASS = "DeviceClass"
#: Kinds whose objects of others are used as they are.
_SHARED = ("Namespace", _CRD)


def plan(
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    cluster: Mapping[str, Any],
) -> dict[str, Any]:
    """Return preconditions, and the objects to apply and to remove.

    :param options: the options of :func:`read_request`.
    :param hosts: by name: ``gpu_node`` (the facts), ``node`` (its name in Kubernetes), ``match``
        (``name`` where it is not to be found by machine id), ``driver`` (the version that this run
        loads), ``cdi`` (whether this run enables CDI in containerd), ``mig`` (its MIG
        configuration) and ``options`` (its own view of the options, which has to be the same).
    :param cluster: the result of gpu_cluster_info with ``dra_namespace``.
    """
    result = _empty_result()
    result["nodes"] = {name: {**one, "resources": None} for name, one in _expected(hosts).items()}
    refusals: list[tuple[str, KubegpuError]] = [
        ("", one)
        for one in differing_options(
            hosts, PREFIX, "the DRA driver", "No variable of it may differ."
        )
    ]
    try:
        request = read_request(options)
    except KubegpuError as error:
        return _build_result(result, [*refusals, ("", error)], [], [])
    existing = list(cluster.get("dra_objects") or ())
    layout, reasons = _layout(request, hosts, cluster, existing)
    found = _preconditions(request, layout, hosts, cluster)
    refusals += [(one.node, _refusal(one)) for one in found if one.met is False]
    warnings = [_warning(one) for one in found if one.met is not False and one.next_step]
    result["preconditions"] = [one.to_json() for one in found]
    result["api"], result["compute_domains"] = layout.api, layout.compute_domains
    result["expected"] = _expected(hosts) if request.gpus else {}
    if layout.api:
        objects, unmanaged, others = _select_objects(request, manifests(request, layout), existing)
        result["objects"] = [one for one in objects if not _is_there(one, existing)]
        refusals += [("", one) for one in others]
        result["replaced"] = _replaced(request, cluster)
        result["absent"], kept = removable(existing, objects)
        reasons += unmanaged
        warnings += kept
    return _build_result(result, refusals, warnings, reasons)


def teardown(existing: Objects) -> dict[str, Any]:
    """Return the plan that removes everything of this collection but the namespace."""
    result = _empty_result()
    result["absent"], kept = removable(existing)
    others = [
        f"{one['kind']} {one['metadata']['name']}"
        for one in existing
        if one["kind"] not in ("Namespace", "ComputeDomain") and not is_managed(one)
    ]
    if others:
        kept.append(f"This collection did not make and does not remove: {', '.join(others)}")
    return _build_result(result, [], kept, [])


def removable(existing: Objects, wanted: Objects = ()) -> tuple[list[Object], list[str]]:
    """Return the managed objects to remove, and why others are kept.

    The definition of compute domains is kept while there are any: they would go with it.

    :param wanted: the objects to keep.
    """
    keep = {identity(item) for item in wanted}
    domains = sorted(
        f"{item['metadata'].get('namespace')}/{item['metadata']['name']}"
        for item in existing
        if item["kind"] == "ComputeDomain"
    )
    found: list[Object] = []
    for item in existing:
        if (
            identity(item) in keep
            or item["kind"] in ("Namespace", "ComputeDomain")
            or not is_managed(item)
            or (item["kind"] == _CRD and domains)
        ):
            continue
        place = {key: item["metadata"][key] for key in ("name", "namespace")
                 if item["metadata"].get(key)}  # fmt: skip
        found.append({"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": place})
    if domains and not any(one["metadata"]["name"] == DOMAINS for one in wanted):
        return found, [
            f"The definitions of compute domains are kept, because the cluster has "
            f"{', '.join(domains)}, which would go with them"
        ]
    return found, []


def _is_there(wanted: Mapping[str, Any], existing: Objects) -> bool:
    """Return whether an object into which the cluster writes is as it is wanted.

    A controller writes the status of a policy after it was made. The next apply, equal in each
    field, is then stored again, and counts as a change although nothing differs.
    """
    return wanted["kind"] == POLICY_KIND and any(
        identity(one) == identity(wanted) and _is_part(wanted, one) for one in existing
    )


def _is_part(wanted: Any, there: Any) -> bool:
    """Return whether each wanted field is there; the API server adds fields with defaults."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            name in there and _is_part(value, there[name]) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(there, list)
            and len(wanted) == len(there)
            and all(_is_part(one, other) for one, other in zip(wanted, there))
        )
    return bool(wanted == there)


def _empty_result() -> dict[str, Any]:
    return {
        "api": "",
        "compute_domains": False,
        "preconditions": [],
        "objects": [],
        "replaced": [],
        "absent": [],
        "expected": {},
        "nodes": {},
    }


def _build_result(
    result: dict[str, Any],
    refusals: Sequence[tuple[str, KubegpuError]],
    warnings: Sequence[str],
    reasons: Sequence[str],
) -> dict[str, Any]:
    refused = [
        {
            "host": host,
            "cause": one.cause,
            "evidence": one.evidence,
            "next_step": one.next_step,
        }
        for host, one in refusals
    ]
    if refused:
        result = {**result, "objects": [], "replaced": [], "absent": []}
    text = "\n\n".join(refusal_text(one) for one in refused)
    return {
        "action": "refuse" if refused else "apply",
        **result,
        "refusals": refused,
        "text": printable(f"DRA: not possible.\n\n{text}" if refused else ""),
        "warnings": list(warnings),
        "reasons": list(reasons),
    }


def _layout(
    request: Request,
    hosts: Mapping[str, Mapping[str, Any]],
    cluster: Mapping[str, Any],
    existing: Objects,
) -> tuple[Layout, list[str]]:
    """Return what is deployed, and the reasons.

    A run may cover only some nodes, so that compute domains that are there stay.
    """
    api = choose_api(request, list((cluster.get("dra") or {}).get("served") or ()))
    reasons = [f"resource.k8s.io/{api}"] if api else []
    racks = sorted(
        {rack for host in hosts.values() for rack in [is_in_rack(host["gpu_node"])]} - {""}
    )
    there = any(
        item["metadata"]["name"] == CONTROLLER_NAME and is_managed(item) for item in existing
    )
    if request.compute_domains == AUTO:
        domains = bool(racks) or there
        why = f"nodes of a {racks[0]}" if racks else "they are there already"
        reasons.append(f"compute domains: {why}" if domains else "no compute domains: no rack")
    else:
        domains = request.compute_domains == "true"
    kubernetes = version_numbers(str(cluster.get("kubernetes") or ""))[:2]
    discovery = any(part["kind"] == FEATURE_DISCOVERY for part in cluster.get("parts") or ())
    return Layout(
        api,
        domains,
        clique_label=domains and not discovery,
        policy=not kubernetes or kubernetes >= POLICY_SINCE,
    ), reasons


def _preconditions(
    request: Request,
    layout: Layout,
    hosts: Mapping[str, Mapping[str, Any]],
    cluster: Mapping[str, Any],
) -> list[Precondition]:
    found = cluster_preconditions(request, cluster, compute_domains=layout.compute_domains)
    nodes, node_of = cluster.get("nodes") or {}, cluster.get("node_of") or {}
    for name in sorted(hosts):
        if container_gpus(hosts[name]["gpu_node"]):
            state = nodes.get(node_of.get(name) or "")
            found += node_preconditions(request, layout, name, hosts[name], state)
    return found


def _refusal(one: Precondition) -> Refusal:
    return Refusal(f"{one.name}: {one.value}", one.next_step, one.evidence)


def _warning(one: Precondition) -> str:
    where = f"{one.node}: " if one.node else ""
    evidence = f" ({one.evidence})" if one.evidence else ""
    return f"{where}{one.name}: {one.value}{evidence}. {one.next_step}"


def _expected(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what each host should offer, in the format of gpu_cluster_info."""
    return {
        name: expected_of(name, host, {"nvidia.com/gpu": len(container_gpus(host["gpu_node"]))})
        for name, host in sorted(hosts.items())
        if container_gpus(host["gpu_node"])
    }


def _replaced(request: Request, cluster: Mapping[str, Any]) -> list[Object]:
    """Return the objects of this collection's device plugin, which the DRA driver replaces."""
    parts = cluster.get("parts") or ()
    if not request.gpus:
        return []
    namespaces = sorted(
        {part["namespace"] for part in parts if part["kind"] == DEVICE_PLUGIN and part["managed"]
         and part["vendor"] == "nvidia"}
    )  # fmt: skip
    return [one for name in namespaces for one in plugin_absent(PluginRequest(namespace=name))]


def _select_objects(
    request: Request, objects: Sequence[Object], existing: Objects
) -> tuple[list[Object], list[str], list[Refusal]]:
    """Return the objects to apply, and what is reported of those that others made.

    :returns: also a reason for each object of others that is used as it is, and a refusal of each
        one that is not.
    """
    seen = {identity(item): item for item in existing}
    # A class selects devices by their driver, so that the one of another installation serves, too.
    shared = (*_SHARED, _CLASS) if request.beside_others else _SHARED
    reasons = [
        f"{item['kind']} {item['metadata']['name']} was there before and is left as it is"
        for item in objects
        if is_unmanaged(item, seen, shared)
    ]
    refusals = [
        taken(item, PREFIX, "beside_others: true" if item["kind"] == _CLASS else "")
        for item in objects
        if is_taken(item, seen, shared)
    ]
    return [item for item in objects if not is_unmanaged(item, seen, shared)], reasons, refusals
