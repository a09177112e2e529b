# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the device plugin of AMD or Intel for a cluster: objects, and what nodes offer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import KubegpuError
from .._hardware.vendors import DRIVERS, container_gpus
from .._known_faults.predicates import deciding
from .._kube.differing_options import differing_options
from .._kube.selinux import DEVICE_PLUGIN, with_types
from .names import PLUGINS
from .objects import (
    PluginRequest,
    identity,
    is_managed,
    is_unmanaged,
    keeps_namespace,
)
from .plan import HostRefusal, build_result, empty_result
from .vendor_manifests import absent, app_names, manifests
from .vendor_options import read_request, role_prefix
from .vendor_types import AmdRequest, IntelRequest

_WHOLE = "spx_"


def plan(
    vendor: str,
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    *,
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the objects to apply and to remove, and the resources expected of each host.

    :param vendor: ``amd`` or ``intel``.
    :param options: the options of :func:`read_request`.
    :param hosts: by name: ``gpu_node`` (the facts), ``node`` (its name in Kubernetes where it is
        not found by machine id), ``match`` (``name`` where it is not to be found by machine id)
        and ``options`` (its own view of them, which has to be the same).
    :param existing: the cluster's objects of these names: Namespace and DaemonSet.
    :param others: descriptions of the unmanaged operators and plugins of this vendor.
    :param teardown: whether everything is removed.
    """
    prefix = role_prefix(vendor)
    refusals: list[HostRefusal] = [
        ("", one)
        for one in differing_options(
            hosts, prefix, "the device plugin", f"{prefix}node_name may differ."
        )
    ]
    namespace = str(options.get("namespace") or PluginRequest.namespace)
    result = {**empty_result(others), "namespace": namespace}
    try:
        request = read_request(vendor, options)
    except KubegpuError as error:
        return build_result(result, [*refusals, ("", error)], [], [])
    if teardown:
        result["absent"] = [
            *absent(vendor, request),
            *_removable_namespace(vendor, request, existing),
        ]
        return build_result(result, [], [], [])
    if others:
        # Two plugins would register the same resource alternately.
        return {**build_result(result, [], [], []), "action": "leave"}
    warnings: list[str] = []
    for name in sorted(hosts):
        _plan_host(vendor, request, name, hosts[name], result, warnings)
    seen = {identity(item): item for item in existing}
    objects = [item for item in manifests(request) if not is_unmanaged(item, seen)]
    reasons = [
        f"{item['kind']} {item['metadata']['name']} was there before and is left as it is"
        for item in manifests(request)
        if is_unmanaged(item, seen)
    ]
    result["objects"] = with_types(objects, {PLUGINS[vendor]: DEVICE_PLUGIN}, hosts, existing)
    result["absent"] = absent(vendor, request, objects)
    return build_result(result, refusals, warnings, reasons)


def _removable_namespace(
    vendor: str, request: AmdRequest | IntelRequest, existing: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the namespace if this collection made it and only this plugin uses it."""
    inside = [one for one in existing if one["metadata"].get("namespace") == request.namespace]
    there = next((one for one in existing if one["kind"] == "Namespace"), None)
    if there is None or not is_managed(there):
        return []
    if keeps_namespace(inside, PLUGINS[vendor], app_names(vendor)):
        return []
    metadata = {"name": request.namespace}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}]


def _plan_host(
    vendor: str,
    request: AmdRequest | IntelRequest,
    name: str,
    host: Mapping[str, Any],
    result: dict[str, Any],
    warnings: list[str],
) -> None:
    node = host["gpu_node"]
    if not container_gpus(node, vendor):
        return
    resources, why = expected(node, request)
    if resources is None:
        result["unknown"][name] = why
    elif why:
        warnings.append(f"{name}: {why}")
    # The format of gpu_cluster_info; all keys but resources serve its explanations.
    result["expected"][name] = {
        "name": str(host.get("node") or name),
        "machine_id": None
        if host.get("match") == "name"
        else (node.get("os") or {}).get("machine_id"),
        # Of an unknown number at least one is waited for: none is never right.
        "resources": resources or {},
        "some_of": [vendor] if resources is None else [],
        "gpus": list(node.get("gpus") or ()),
        "facts": deciding(node),
    }


def expected(
    node: Mapping[str, Any], request: AmdRequest | IntelRequest
) -> tuple[dict[str, int] | None, str]:
    """Return the resources that a node should offer, or None and why they are unknown.

    The second value of known resources is a warning, or empty.
    """
    if isinstance(request, AmdRequest):
        return _expected_amd(node, request)
    return _expected_intel(node, request)


def _expected_amd(
    node: Mapping[str, Any], request: AmdRequest
) -> tuple[dict[str, int] | None, str]:
    nodes = _render_nodes(node, "amd")
    divided = sorted({one["partition"] for one in nodes if one["partition"]})
    if request.naming == "mixed" and divided:
        return None, f"the names of its resources follow the partitions ({', '.join(divided)})"
    if any(not name.startswith(_WHOLE) for name in divided):
        return None, f"its GPUs are divided ({', '.join(divided)}): the number of parts is unknown"
    # The plugin offers each function that amdgpu serves, with the graphics of a processor; without
    # a loaded driver it should offer the cards on the bus.
    count = len({one["address"] for one in nodes}) or len(container_gpus(node, "amd"))
    return {"amd.com/gpu": count}, ""


def _expected_intel(
    node: Mapping[str, Any], request: IntelRequest
) -> tuple[dict[str, int] | None, str]:
    gpus = container_gpus(node, "intel")
    if any(gpu.get("virtual_function") for gpu in gpus):
        return None, "it has virtual functions, and the plugin offers them instead of their card"
    nodes = {one["address"]: one for one in _render_nodes(node, "intel")}
    if not request.allow_ids:
        drivers = [one["driver"] for one in nodes.values()]
        return _counted(drivers or [_driver(gpu) for gpu in gpus], request), ""
    served = [gpu for gpu in gpus if f"0x{gpu['device_id']}" in request.allow_ids]
    left_out = sorted({gpu["device_id"] for gpu in gpus if gpu not in served})
    warning = ""
    if left_out:
        warning = (
            f"the GPU {', '.join(left_out)} is not offered, as intel_device_plugin_allow_ids does "
            "not have it. Add its id, such as 0x" + left_out[0]
        )
    return _counted([_driver(gpu) for gpu in served], request), warning


def _counted(drivers: Sequence[str], request: IntelRequest) -> dict[str, int]:
    found: dict[str, int] = {}
    for driver in drivers:
        name = f"gpu.intel.com/{driver}"
        found[name] = found.get(name, 0) + request.shared
    return found


def _driver(gpu: Mapping[str, Any]) -> str:
    driver = str(gpu.get("kernel_driver") or "")
    return driver if driver in DRIVERS["intel"] else DRIVERS["intel"][0]


def _render_nodes(node: Mapping[str, Any], vendor: str) -> list[Mapping[str, Any]]:
    return [
        one
        for one in node.get("device_nodes") or ()
        if one["driver"] in DRIVERS[vendor] and one["address"]
    ]
