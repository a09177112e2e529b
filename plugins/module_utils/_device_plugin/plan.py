# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the device plugin of a cluster from options, hosts' facts and existing objects. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import KubegpuError, Refusal
from .._core.printable import printable
from .._hardware.nvml import with_planned_mig
from .._hardware.vendors import container_gpus
from .._known_faults.predicates import deciding
from .._kube.differing_options import differing_options
from .._kube.pod_parts import Object
from .._kube.selinux import DEVICE, DEVICE_PLUGIN, WRITES_FEATURES, with_types
from .config import Config
from .gpudirect import unserved
from .manifests import absent, helm_values, manifests
from .names import DISCOVERY_NAME, HANDLER, MPS_NAME, NAME
from .names import PREFIX as NAME_PREFIX
from .objects import SHARED_KINDS, identity, is_managed, is_unmanaged, keeps_namespace, place
from .options import PREFIX, read_request
from .sharing import check_cdi, check_sharing, expected, undivided
from .types import Request

HostRefusal = tuple[str, KubegpuError]
METHODS = ("manifest", "helm")
_MAY_DIFFER = "What may differ is nvidia_device_plugin_config, the config that a host chooses."
_APPS = tuple(name.removeprefix(NAME_PREFIX) for name in (NAME, MPS_NAME, DISCOVERY_NAME))


def default_handler(node: Mapping[str, Any], seen: Mapping[str, Any] | None = None) -> str | None:
    """Return the default runtime of the engine that serves Kubernetes; None if unknown.

    :param seen: default runtimes that roles of this run have set after the facts were gathered, by
        engine: ``containerd``, ``docker``, ``crio``.
    """
    runtimes = node.get("runtimes") or {}
    containerd, docker = runtimes.get("containerd") or {}, runtimes.get("docker") or {}
    newer = seen or {}
    if containerd.get("cri_enabled"):
        return str(newer.get("containerd") or containerd.get("default_handler") or "") or None
    crio = runtimes.get("crio")
    if crio:
        return str(newer.get("crio") or crio.get("default_runtime") or "") or None
    if docker:
        return str(newer.get("docker") or docker.get("default_runtime") or "") or None
    return None


def plan(
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    *,
    method: str = "manifest",
    chart_version: str = "",
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    login: Sequence[str] = (),
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the objects to apply and to remove, and the resources expected of each host.

    :param options: the options of :func:`read_request`; ``runtime_class`` may also be ``auto``.
    :param hosts: by name: ``gpu_node`` (the facts), ``config`` (the host's choice, may be empty),
        ``node`` (its name in Kubernetes where it is not found by machine id), ``match`` (``name``
        where it is not to be found by machine id), ``options`` (its own view of the options, which
        has to be the same), ``default_runtime`` (newer than the facts), ``planned`` (whether this
        run sets up the runtime), ``cdi`` (whether CDI is asked for there) and ``mig`` (mode and
        devices that its GPUs will have, as :func:`with_planned_mig` takes them).
    :param chart_version: the chart's version, with the method ``helm``.
    :param existing: the cluster's objects of these names: Namespace, RuntimeClass and DaemonSet.
    :param others: descriptions of the unmanaged operators and plugins of the cluster.
    :param login: the names of the keys of the image's login, without their values.
    :param teardown: whether everything is removed.
    """
    # Each with its host; an empty name is the whole cluster.
    refusals: list[HostRefusal] = [
        ("", one) for one in differing_options(hosts, PREFIX, "the device plugin", _MAY_DIFFER)
    ]
    seen = {identity(item): item for item in existing}
    warnings: list[str] = []
    reasons: list[str] = []
    result = empty_result(others)
    try:
        _check_method(method)
        runtime_class, reason = _runtime_class(options, hosts, seen)
        reasons.append(reason)
        request = read_request({**options, "runtime_class": runtime_class})
        result["runtime_class"] = runtime_class
        _check_login(request, login)
        values = helm_values(request, chart_version) if method == "helm" else {}
        warnings += request.remarks
    except KubegpuError as error:
        refusals.append(("", error))
        return build_result(result, refusals, warnings, reasons)

    if teardown:
        result["absent"] = [*absent(request), *_removable_objects(request, existing)]
        return build_result(result, [], warnings, [])
    if others:
        # Two plugins would register the same resource alternately.
        return {**build_result(result, [], warnings, reasons), "action": "leave"}
    refusals += [("", one) for one in _check_runtime_class(seen)]
    for name in sorted(hosts):
        _plan_host(request, name, hosts[name], result, refusals, warnings)
    warnings += unserved(request, hosts)
    result["objects"], unmanaged = _select_objects(request, method, hosts, existing)
    result["values"], result["absent"] = values, absent(request, result["objects"])
    return build_result(result, refusals, warnings, [*reasons, *unmanaged])


def empty_result(others: Sequence[str]) -> dict[str, Any]:
    return {
        "objects": [],
        "absent": [],
        "values": {},
        "expected": {},
        "unknown": {},
        "others": [str(one) for one in others],
        "runtime_class": "",
    }


def _types(request: Request) -> dict[str, str]:
    """Return the SELinux types of the DaemonSets."""
    discovery = DEVICE if request.feature_discovery_api else WRITES_FEATURES
    return {NAME: DEVICE_PLUGIN, DISCOVERY_NAME: discovery}


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise KubegpuError(
            f"nvidia_device_plugin_method is {method!r}, and has to be one of {', '.join(METHODS)}"
        )


def _select_objects(
    request: Request,
    method: str,
    hosts: Mapping[str, Mapping[str, Any]],
    existing: Sequence[Mapping[str, Any]],
) -> tuple[list[Object], list[str]]:
    """Return the objects to apply, and a reason for each one that is left unmanaged."""
    objects: list[Object] = []
    reasons: list[str] = []
    seen = {identity(item): item for item in existing}
    for item in manifests(request):
        if is_unmanaged(item, seen):
            kind, _namespace, name = identity(item)
            reasons.append(f"{kind} {name} was there before and is left as it is")
        elif method != "helm" or item["kind"] in SHARED_KINDS:
            # With Helm, the chart brings the other objects under its own names.
            objects.append(item)
    return with_types(objects, _types(request), hosts, existing), reasons


def build_result(
    result: dict[str, Any], refusals: Sequence[HostRefusal], warnings: list[str], reasons: list[str]
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
        result = {**result, "objects": [], "absent": [], "values": {}}
    return {
        "action": "refuse" if refused else "apply",
        **result,
        "refusals": refused,
        "text": printable("\n\n".join(refusal_text(one) for one in refused)),
        "warnings": warnings,
        "reasons": reasons,
    }


def refusal_text(refusal: Mapping[str, str]) -> str:
    host = f"{refusal['host']}: " if refusal["host"] else ""
    return str(
        KubegpuError(
            f"{host}{refusal['cause']}",
            evidence=refusal["evidence"],
            next_step=refusal["next_step"],
        )
    )


def _runtime_class(
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    seen: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> tuple[str, str]:
    """Return the RuntimeClass of the plugin's pods, and the reason.

    A run may cover only some nodes (``--limit``, a job's slice), and several such runs may be
    active at the same time, but the cluster has one DaemonSet. So the choice does not depend on the
    default runtime of the hosts: containerd and CRI-O also accept the handler by its name if it is
    the default.
    """
    requested = str(options.get("runtime_class", "auto"))
    if requested != "auto":
        return requested, f"nvidia_device_plugin_runtime_class is {requested or 'empty'}"
    # The plugin does not run on other nodes, and their facts lack the runtimes.
    nodes = [host["gpu_node"] for host in hosts.values() if container_gpus(host["gpu_node"])]
    if not any(_served_by_docker(node) for node in nodes):
        return HANDLER, f"RuntimeClass {HANDLER}: right whatever a node's default runtime is"
    other = [
        name
        for name in sorted(hosts)
        if container_gpus(hosts[name]["gpu_node"])
        and default_handler(hosts[name]["gpu_node"], hosts[name].get("default_runtime")) != HANDLER
    ]
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        return HANDLER, f"RuntimeClass {HANDLER}: it is not the default runtime on {other[0]}{more}"
    namespace = str(options.get("namespace") or Request.namespace)
    running = seen.get(("DaemonSet", namespace, NAME)) or {}
    spec = ((running.get("spec") or {}).get("template") or {}).get("spec") or {}
    if spec.get("runtimeClassName") == HANDLER:
        # A run with --limit does not cover all nodes; the class works on each of them.
        return HANDLER, f"RuntimeClass {HANDLER}: the plugin runs with it already"
    return "", f"no RuntimeClass: Docker serves Kubernetes, and {HANDLER} is its default runtime"


def _served_by_docker(node: Mapping[str, Any]) -> bool:
    """Return whether Kubernetes uses Docker, which may not know handlers by name."""
    runtimes = node.get("runtimes") or {}
    others = (runtimes.get("containerd") or {}).get("cri_enabled") or runtimes.get("crio")
    return bool(runtimes.get("docker")) and not others


def _check_login(request: Request, given: Sequence[str]) -> None:
    """Check that the login is complete, because the task that uses it hides its errors.

    :raises KubegpuError: it is not.
    """
    known = ("registry", "username", "password")
    option = "nvidia_device_plugin_pull_secret_login"
    if given and not request.pull_secret:
        raise KubegpuError(
            f"{option} is set and nvidia_device_plugin_pods.pull_secret is not",
            next_step="Give the secret a name: nvidia_device_plugin_pods: {pull_secret: registry}",
        )
    missing = [name for name in known if name not in given]
    unknown = sorted(set(given) - set(known))
    if given and (missing or unknown):
        lacks = f"lacks {', '.join(missing)}" if missing else ""
        has = f"does not know {', '.join(unknown)}" if unknown else ""
        raise KubegpuError(
            f"{option} {' and '.join(filter(None, (lacks, has)))}",
            next_step=f"Give {', '.join(known)}, and nothing else.",
        )


def _removable_objects(request: Request, existing: Sequence[Mapping[str, Any]]) -> list[Object]:
    """Return the managed secrets, RuntimeClass and namespace, which only teardown removes.

    The namespace is last, because its objects are deleted with it. It is kept if it has unmanaged
    objects.
    """
    inside = [one for one in existing if one["metadata"].get("namespace") == request.namespace]
    others = keeps_namespace(inside, NAME, _APPS)
    found = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": place(one)}
        for one in inside
        if one["kind"] == "Secret" and is_managed(one)
    ]
    seen = {identity(one): one for one in existing}
    for item in reversed(manifests(request)[:2]):
        there = seen.get(identity(item))
        if there is None or not is_managed(there) or (item["kind"] == "Namespace" and others):
            continue
        metadata = {"name": item["metadata"]["name"]}
        found.append({"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata})
    return found


def _check_runtime_class(seen: Mapping[tuple[str, str, str], Mapping[str, Any]]) -> list[Refusal]:
    there = seen.get(("RuntimeClass", "", HANDLER))
    if there is None or there.get("handler") == HANDLER:
        return []
    return [
        Refusal(
            f"the cluster has a RuntimeClass {HANDLER} for another handler, and a handler cannot "
            "be changed",
            f"Delete it (kubectl delete runtimeclass {HANDLER}) if it is not needed; or make "
            f"{HANDLER} the default runtime and set nvidia_device_plugin_runtime_class: ''.",
            f"handler: {there.get('handler')}",
        )
    ]


def _plan_host(
    request: Request,
    name: str,
    host: Mapping[str, Any],
    result: dict[str, Any],
    refusals: list[HostRefusal],
    warnings: list[str],
) -> None:
    node = with_planned_mig(host["gpu_node"], host.get("mig") or ())
    host, chosen = {**host, "gpu_node": node}, str(host.get("config") or "")
    config = request.config(chosen)
    if config is None:
        there = ", ".join(sorted(request.configs)) or "none, nvidia_device_plugin_configs is empty"
        refusal = Refusal(
            f"unknown config {chosen!r}",
            "Correct nvidia_device_plugin_config of this host, or add the config to "
            "nvidia_device_plugin_configs.",
            f"there are: {there}",
        )
        refusals.append((name, refusal))
        return
    if not container_gpus(node):
        return
    found = [*check_sharing(node, config), *check_cdi(node, config, bool(host.get("cdi")))]
    refusals += [(name, refusal) for refusal in found]
    warnings += _host_warnings(request, name, host, config)
    resources = expected(node, config)
    if resources is None:
        result["unknown"][name] = (
            f"MIG strategy {config.mig_strategy}: the MIG devices are unknown "
            "before the driver runs, or without pynvml on the node"
        )
    result["expected"][name] = expected_of(name, host, resources)


def expected_of(
    name: str, host: Mapping[str, Any], resources: Mapping[str, int] | None
) -> dict[str, Any]:
    """Return what a host should offer, in the format of gpu_cluster_info.

    The other keys serve its explanations.

    :param resources: None for an unknown number, of which at least one is waited for.
    """
    node = host["gpu_node"]
    return {
        "name": str(host.get("node") or name),
        "machine_id": None
        if host.get("match") == "name"
        else (node.get("os") or {}).get("machine_id"),
        "resources": dict(resources or {}),
        "some_of": ["nvidia"] if resources is None else [],
        "driver": (node.get("driver") or {}).get("loaded") or "",
        "default_runtime": default_handler(node, host.get("default_runtime")),
        "gpus": list(node.get("gpus") or ()),
        "facts": deciding(node),
    }


def _host_warnings(
    request: Request, name: str, host: Mapping[str, Any], config: Config
) -> list[str]:
    node = host["gpu_node"]
    warnings = []
    left_out = undivided(node, config)
    if left_out:
        warnings.append(
            f"{name}: MIG is enabled and no MIG device is there on {', '.join(left_out)}; the "
            "plugin leaves it out. Make MIG devices on it, or disable MIG there"
        )
    handlers = ((node.get("runtimes") or {}).get("containerd") or {}).get("handlers")
    if request.runtime_class and handlers and HANDLER not in handlers and not host.get("planned"):
        warnings.append(
            f"{name}: containerd has no handler {HANDLER}; the plugin cannot start there before "
            "the container toolkit is set up (role nvidia_container_toolkit)"
        )
    if request.feature_discovery and not request.feature_discovery_privileged:
        guests = [gpu for gpu in container_gpus(node) if (gpu.get("vgpu") or {}).get("guest")]
        if guests:
            warnings.append(
                f"{name}: GPU feature discovery reads the host's driver of a vGPU only where it is "
                "privileged (nvidia_device_plugin_feature_discovery_privileged)"
            )
    return warnings


def restarts(
    pods: Sequence[Mapping[str, Any]],
    hosts: Mapping[str, Mapping[str, Any]],
    node_of: Mapping[str, str | None],
) -> list[dict[str, Any]]:
    """Return the pods whose runtime changed after their creation, each with the reason.

    A pod keeps the runtime of its sandbox even if its containers restart, so that it must be
    replaced.

    :param pods: the plugin's Pod objects.
    :param hosts: by name: ``started`` (the start time of the node's runtime in the API server's
        format, or null), ``changed`` (what this run changed on the runtime, or empty) and ``new``
        (whether only this run's label brought the plugin to the node, so that its pod is newer than
        that change: a concurrent run may have deployed the plugin before).
    :param node_of: the Kubernetes node of each host.
    """
    by_node = {str(node_of[name]): host for name, host in hosts.items() if node_of.get(name)}
    found: list[dict[str, Any]] = []
    for pod in pods:
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        host = by_node.get(node)
        if host is None:
            continue
        started = str(host.get("started") or "")
        since = str((pod.get("status") or {}).get("startTime") or "")
        if host.get("changed") and not host.get("new"):
            reason = f"{host['changed']} changed in this run"
        elif started and since and since < started:
            reason = f"the runtime was started at {started}, after the pod ({since})"
        else:
            continue
        metadata = {
            "name": str(pod["metadata"]["name"]),
            "namespace": str(pod["metadata"]["namespace"]),
        }
        found.append(
            {
                "name": metadata["name"],
                "node": node,
                "reason": reason,
                "definition": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata},
            }
        )
    return found
