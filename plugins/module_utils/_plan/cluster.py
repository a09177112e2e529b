# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts that a cluster has once: what each host says of them, and who plans them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._acceptance.marks import marks
from .._core.options import PODS, Spec, read_arguments, variable_of
from .._device_plugin import options as nvidia_options
from .._device_plugin import vendor_options
from .._device_plugin.plan import plan as plan_nvidia
from .._device_plugin.plan import restarts
from .._device_plugin.vendor_plan import plan as plan_vendor
from .._dra import options as dra_options
from .._dra import plan as dra
from .._labels.desired import node_labels
from .._labels.options import LABEL_ARGUMENTS
from .._monitoring import options as monitoring_options
from .._monitoring.plan import plan as plan_monitoring
from .parts import is_set
from .plan import options_of, value_of
from .types import Node, Plan

#: What the plans know of each host, by its name.
Row = Mapping[str, Any]
Rows = Mapping[str, Row]
Cluster = Mapping[str, Any]
_ACCEPTANCE = {"key": "kubegpu.nodes/acceptance", "operator": "Exists", "effect": "NoSchedule"}
_KUBE = ("kubeconfig", "context", "host", "delegate")
_APPLY = ("field_manager", "wait_timeout")
_CHART = "kubegpu-nvidia-device-plugin-chart"
#: Variables of the fleet on which each part depends.
OF_EACH_CLUSTER = (
    "gpu_acceptance_required", "gpu_node_labels_node_name", "kubegpu_apply", "kubegpu_kube", PODS,
)  # fmt: skip
# What all hosts have to see alike, besides the options of the request.
_ALIKE = ("beside_others", "force_conflicts")


@dataclass(frozen=True)
class Part:
    """A part of a cluster, which one role applies.

    :param options: the argument spec of its request, by the role's names without its prefix.
    :param row: returns what the plan has to know of a host, but for the options.
    :param plan: returns the plan for the row whose options count, the rows of all hosts, and what
        the cluster has.
    :param teardown: returns the plan that removes it, for its namespace.
    :param removed: returns the row of a host for a teardown that is made of rows.
    :param own: options of the role that ``row`` reads.
    :param alike: the options besides those of the request that have to be equal on all hosts.
    :param others: variables of other roles that ``row`` reads, and their results.
    :param accepted: whether its pods run on a node that is tested before it takes work.
    """

    options: Spec
    row: Callable[[str, Node], Mapping[str, Any]]
    plan: Callable[[Row, Rows, Cluster], Plan]
    teardown: Callable[[str, Cluster], Plan] | None = None
    removed: Callable[[str, Node], Row] | None = None
    own: Collection[str] = ()
    alike: Collection[str] = _ALIKE
    others: Collection[str] = ()
    accepted: bool = True


def variables_of_cluster(part: str) -> set[str]:
    """Return the names of the variables on which the plan of a part depends."""
    found = CLUSTER[part]
    options = (*found.options, *found.own, *found.alike)
    names = {variable_of(part, option).partition(".")[0] for option in options}
    return {*names, *found.others, *OF_EACH_CLUSTER}


def host_row(part: str, host: str, node: Node) -> dict[str, Any]:
    """Return what a host says of a part of its cluster.

    :param node: its variables have the connection with all keys.
    :raises InputError: a variable has a wrong value.
    """
    found = CLUSTER[part]
    if not found.alike:
        return dict(found.row(host, node))
    options = options_of(part, found.options, node)
    if found.accepted and is_set(node, "gpu_acceptance_required"):
        options.setdefault("tolerations", found.options["tolerations"]["default"])
        options["tolerations"] = [*options["tolerations"], _ACCEPTANCE]
    seen = {name: node.variables.get(f"{part}_{name}") for name in found.alike}
    for name in ("beside_others", "force_conflicts"):
        # Equal, however they are written.
        seen[name] = is_set(node, f"{part}_{name}")
    shared = {
        f"{name}.{key}": value_of(f"{name}.{key}", node)
        for name, keys in (("kubegpu_kube", _KUBE), ("kubegpu_apply", _APPLY))
        for key in keys
    }
    return {**found.row(host, node), "options": {**options, **seen, **shared}}


def plan_cluster(part: str, first: Row, rows: Rows, cluster: Cluster) -> Plan:
    """Return the plan of a part.

    :param first: the row whose options count, unless those of another host differ, which is
        refused.
    :param rows: of :func:`host_row`, each with the fact ``gpu_node``.
    :param cluster: the result of ``gpu_cluster_info``. Without it the plan has what each host
        should offer, which does not depend on what is there.
    """
    return CLUSTER[part].plan(first, rows, cluster)


def plan_teardown(part: str, namespace: str, cluster: Cluster) -> Plan:
    """Return the plan that removes a part."""
    return (CLUSTER[part].teardown or _nothing)(namespace, cluster)


def removed_row(part: str, host: str, node: Node) -> dict[str, Any] | None:
    """Return what a host says of a teardown; None if its plan needs no host."""
    removed = CLUSTER[part].removed
    return None if removed is None else dict(removed(host, node))


def _nothing(_namespace: str, _cluster: Cluster) -> Plan:
    return {"action": "none"}


def _labelled(host: str, node: Node) -> dict[str, Any]:
    """Return which node a host is."""
    by_id = node.variables.get("gpu_node_labels_match", "machine_id") == "machine_id"
    return {
        "name": node.variables.get("gpu_node_labels_node_name") or host,
        "machine_id": node.facts["os"]["machine_id"] if by_id else "",
    }


def _labels_row(host: str, node: Node) -> dict[str, Any]:
    """Return the labels of a node. From one without a GPU, earlier labels are removed."""
    options = {name: node.variables.get(f"gpu_node_labels_{name}") for name in LABEL_ARGUMENTS}
    if "gpu_node_labels_accelerator_key" in node.variables:
        # An empty name sets no such label.
        options["accelerator_key"] = options["accelerator_key"] or ""
    options["mig"] = (node.variables.get("nvidia_mig_result") or {}).get("next_devices")
    labels = node_labels(node.facts, **read_arguments(LABEL_ARGUMENTS, options, "gpu_node_labels_"))
    accepted = marks(node.facts, required=is_set(node, "gpu_acceptance_required"))
    # One of the acceptance counts alone: a user's own with its key would be there twice, or outlive
    # a pass.
    theirs = {*accepted["drop_taints"], *(one["key"] for one in accepted["taints"])}
    own = [
        one
        for one in node.variables.get("gpu_node_labels_taints") or ()
        if not (isinstance(one, Mapping) and one.get("key") in theirs)
    ]
    annotations = node.variables.get("gpu_node_labels_annotations") or {}
    return {
        **_labelled(host, node),
        "labels": {**labels, **accepted["labels"]},
        "annotations": {**annotations, **accepted["annotations"]} if labels else {},
        "taints": [*own, *accepted["taints"]] if labels else [],
        "drop_taints": accepted["drop_taints"],
    }


def _plan_labels(_first: Row, rows: Rows, _cluster: Cluster) -> Plan:
    return {
        "nodes": {
            host: {name: one for name, one in row.items() if name != "gpu_node"}
            for host, row in rows.items()
        }
    }


def _request(part: str, row: Row) -> dict[str, Any]:
    """Return the options of the request, which a row has with the others."""
    seen = row.get("options") or {}
    return {name: value for name, value in seen.items() if name in CLUSTER[part].options}


def _node(part: str) -> Callable[[str, Node], dict[str, Any]]:
    def row(host: str, node: Node) -> dict[str, Any]:
        return {
            "node": node.variables.get("gpu_node_labels_node_name") or host,
            "match": node.variables.get("gpu_node_labels_match") or "machine_id",
        }

    return row


def _nvidia_row(host: str, node: Node) -> dict[str, Any]:
    given = node.variables
    toolkit = given.get("nvidia_container_toolkit_result") or {}
    runtimes = toolkit.get("runtimes") or {}
    mig = given.get("nvidia_mig_result") or {}
    engines = ("containerd", "docker", "crio")
    changed = [
        "driver" if (given.get("nvidia_driver_result") or {}).get("changed") else "",
        "MIG" if mig.get("changed") and not mig.get("restarted") else "",
        *(name for name in engines if (runtimes.get(name) or {}).get("restarted")),
    ]
    labelled = ((given.get("gpu_node_labels_result") or {}).get("nodes") or {}).get(host) or {}
    login = given.get("nvidia_device_plugin_pull_secret_login") or {}
    return {
        **_node("nvidia_device_plugin")(host, node),
        "config": given.get("nvidia_device_plugin_config") or "",
        "chart_version": str(given.get("nvidia_device_plugin_chart_version") or ""),
        # The names of what is given; an empty value is not.
        "login": [name for name, value in login.items() if value],
        "mig": mig.get("next_devices") or [],
        # What the roles of this run know is newer than the facts.
        "default_runtime": {
            name: (runtimes.get(name) or {}).get("default_runtime") or "" for name in engines
        },
        "planned": "runtimes" in toolkit,
        # The toolkit's role switches CDI on in containerd.
        "cdi": is_set(node, "nvidia_container_toolkit_runtime_cdi"),
        "started": _serving_engine(node.facts).get("started"),
        # The label is set after the node's own part, and another run may have deployed the plugin.
        "new": "kubegpu.nodes/gpu" in (labelled.get("added") or ()),
        "changed": ", ".join(filter(None, changed)),
    }


def _serving_engine(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the engine that serves Kubernetes."""
    runtimes = facts.get("runtimes") or {}
    containerd: Mapping[str, Any] = runtimes.get("containerd") or {}
    if containerd.get("cri_enabled"):
        return containerd
    return runtimes.get("crio") or runtimes.get("docker") or {}


def _plan_nvidia(first: Row, rows: Rows, cluster: Cluster) -> Plan:
    seen = first.get("options") or {}
    options = _request("nvidia_device_plugin", first)
    existing = list(cluster.get("plugin_objects") or ())
    parts = list(cluster.get("parts") or ())
    planned = plan_nvidia(
        options,
        rows,
        method=str(seen.get("method") or "manifest"),
        chart_version=first.get("chart_version") or "",
        existing=existing,
        # This collection's own DRA driver is on the same nodes.
        others=_foreign(cluster, "nvidia", seen)
        + [one["text"] for one in parts if one["kind"] == "dra_driver" and one["managed"]],
        login=first.get("login") or (),
    )
    pods = [item for item in existing if item["kind"] == "Pod"]
    place = (options.get("namespace"), _CHART)
    step = (
        "tell it to leave drivers and toolkit to the host (GPU operator: driver.enabled=false, "
        "toolkit.enabled=false), or remove it (DRA driver: resources.gpus.enabled=false leaves "
        "compute domains alone; that of this collection: the teardown of the role "
        "nvidia_dra_driver); or, where each serves different nodes, set "
        "nvidia_device_plugin_beside_others: true."
    )
    return {
        **planned,
        "restarts": restarts(pods, rows, cluster.get("node_of") or {}),
        "chart_there": place in [(one["namespace"], one["name"]) for one in parts],
        "messages": _messages(planned, "device plugin", step),
    }


def _foreign(cluster: Cluster, vendor: str, seen: Mapping[str, Any]) -> list[str]:
    """Return the operators and device plugins that this collection does not manage."""
    if seen.get("beside_others"):
        return []
    return [one["text"] for one in cluster.get("foreign") or () if one["vendor"] == vendor]


def _messages(planned: Plan, what: str, step: str) -> list[str]:
    """Return what is shown of a plan that is no refusal."""
    unknown = [f"{host}: {why}" for host, why in sorted((planned.get("unknown") or {}).items())]
    left = (
        f"The cluster has {', '.join(planned['others'])}. It is left alone, and this collection "
        f"deploys no {what}. Next step: {step}"
        if planned["action"] == "leave"
        else ""
    )
    return [*planned["warnings"], *unknown, *([left] if left else [])]


def _vendor(vendor: str) -> Part:
    part = f"{vendor}_device_plugin"

    def plan(first: Row, rows: Rows, cluster: Cluster) -> Plan:
        planned = plan_vendor(
            vendor,
            _request(part, first),
            rows,
            existing=cluster.get("plugin_objects") or (),
            others=_foreign(cluster, vendor, first.get("options") or {}),
        )
        step = f"remove it, or, where each serves different nodes, set {part}_beside_others: true."
        return {**planned, "messages": _messages(planned, "device plugin", step)}

    def teardown(namespace: str, cluster: Cluster) -> Plan:
        existing = cluster.get("plugin_objects") or ()
        return plan_vendor(vendor, {"namespace": namespace}, {}, existing=existing, teardown=True)

    return Part(
        vendor_options.OPTIONS[vendor],
        _node(part),
        plan,
        teardown,
        others=("gpu_node_labels_match",),
        accepted=False,
    )


def _dra_row(host: str, node: Node) -> dict[str, Any]:
    return {
        **_node("nvidia_dra_driver")(host, node),
        # What the roles of this run do before is newer than the facts.
        "driver": (node.plans.get("nvidia_driver") or {}).get("next_driver") or "",
        "cdi": is_set(node, "nvidia_container_toolkit_runtime_cdi"),
        "mig": node.variables.get("nvidia_mig_config") or "",
    }


def _plan_monitoring(first: Row, rows: Rows, cluster: Cluster) -> Plan:
    # Not there where the namespace is empty, which the plan refuses.
    there = cluster.get("monitoring") or {"kinds": [], "objects": []}
    planned = plan_monitoring(
        _request("gpu_monitoring", first),
        rows,
        kinds=there["kinds"],
        existing=there["objects"],
        others=_exporters(cluster, first.get("options") or {}),
    )
    step = (
        "remove it, or use its metrics with the rules and the dashboard of gpu_monitoring_plan; to "
        "have both, set gpu_monitoring_beside_others: true."
    )
    return {**planned, "messages": _messages(planned, "exporter", step)}


def _exporters(cluster: Cluster, seen: Mapping[str, Any]) -> list[str]:
    """Return the exporters of NVIDIA's GPUs that somebody else manages, such as an operator's."""
    if seen.get("beside_others"):
        return []
    return [
        one["text"]
        for one in cluster.get("parts") or ()
        if one["kind"] == "exporter" and one["vendor"] == "nvidia" and not one["managed"]
    ]


def _objects(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    return (cluster.get("monitoring") or {}).get("objects") or ()


#: By the role, in the order in which the roles run.
CLUSTER: Mapping[str, Part] = {
    "gpu_node_labels": Part(
        {},
        _labels_row,
        _plan_labels,
        removed=_labelled,
        own=(
            "match",
            "annotations",
            "taints",
            "accelerator_key",
            "details",
            "device_plugin_config",
            "extra",
        ),
        alike=(),
        others=("nvidia_mig_result",),
    ),
    "nvidia_dra_driver": Part(
        dra_options.OPTIONS,
        _dra_row,
        lambda first, rows, cluster: dra.plan(_request("nvidia_dra_driver", first), rows, cluster),
        lambda _namespace, cluster: dra.teardown(list(cluster.get("dra_objects") or ())),
        others=(
            "gpu_node_labels_match",
            "nvidia_container_toolkit_runtime_cdi",
            "nvidia_mig_config",
        ),
    ),
    "nvidia_device_plugin": Part(
        nvidia_options.OPTIONS,
        _nvidia_row,
        _plan_nvidia,
        lambda namespace, cluster: plan_nvidia(
            {"namespace": namespace},
            {},
            existing=cluster.get("plugin_objects") or (),
            teardown=True,
        ),
        own=("config", "chart_version", "pull_secret_login"),
        alike=("method", *_ALIKE),
        others=(
            "gpu_node_labels_match",
            "gpu_node_labels_result",
            "nvidia_container_toolkit_result",
            "nvidia_container_toolkit_runtime_cdi",
            "nvidia_driver_result",
            "nvidia_mig_result",
        ),
    ),
    "amd_device_plugin": _vendor("amd"),
    "intel_device_plugin": _vendor("intel"),
    "gpu_monitoring": Part(
        monitoring_options.OPTIONS,
        lambda _host, _node: {},
        _plan_monitoring,
        lambda namespace, cluster: plan_monitoring(
            {"namespace": namespace}, existing=_objects(cluster), teardown=True
        ),
    ),
}
