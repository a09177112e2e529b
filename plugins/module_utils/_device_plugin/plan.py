# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of the device plugin for the whole cluster: wishes, hosts and what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core.errors import KubegpuError
from .._core.printable import printable
from .._hardware.vendors import container_gpus
from .manifests import (
    HANDLER,
    MANAGED_BY,
    MANAGED_LABEL,
    NAME,
    Object,
    Wish,
    absent,
    check_sharing,
    expected,
    helm_values,
    identity,
    manifests,
    read_wish,
)
from .sharing import Refusal, check_cdi, undivided

METHODS = ("manifest", "helm")
_SHARED_KINDS = ("Namespace", "RuntimeClass")
_SECRETS_OF_THE_SYSTEM = ("kubernetes.io/service-account-token", "helm.sh/release.v1")


def default_handler(node: Mapping[str, Any], seen: Mapping[str, Any] | None = None) -> str | None:
    """Return the default runtime of the engine that serves Kubernetes; None where it is not known.

    :param seen: what the roles of the same run know newer than the facts: ``containerd``,
        ``docker`` and ``crio``, each the default runtime's name.
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
    wishes: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    *,
    method: str = "manifest",
    chart_version: str = "",
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    login: Sequence[str] = (),
    teardown: bool = False,
) -> dict[str, Any]:
    """Return what is applied and removed, and what each host has to show then.

    :param wishes: the options of :func:`read_wish`, and ``runtime_class`` may be ``auto``.
    :param hosts: by name: ``gpu_node`` (the facts), ``config`` (the host's choice, may be empty),
        ``node`` (its name in Kubernetes where it is not found by machine id), ``match`` (``name``
        where it is not to be found by machine id), ``wishes`` (its own view of the options, which
        has to be the same), ``default_runtime`` (newer than the facts), ``planned`` (whether this
        run sets up the runtime) and ``cdi`` (whether CDI is asked for there).
    :param chart_version: the chart's version, with the method ``helm``.
    :param existing: objects of these names that the cluster has: Namespace, RuntimeClass and
        DaemonSet.
    :param others: in words, the operators and plugins of somebody else that the cluster has.
    :param login: what the login for the image has, by name; not the values.
    :param teardown: whether all of it goes.
    """
    refusals = _different(hosts)
    seen = {identity(item): item for item in existing}
    warnings: list[str] = []
    reasons: list[str] = []
    result: dict[str, Any] = {
        "objects": [],
        "absent": [],
        "values": {},
        "expected": {},
        "unknown": {},
        "others": [str(one) for one in others],
        "runtime_class": "",
    }
    try:
        if method not in METHODS:
            raise KubegpuError(
                f"nvidia_device_plugin_method is {method!r}, and has to be one of "
                f"{', '.join(METHODS)}"
            )
        runtime_class, reason = _runtime_class(wishes, hosts, seen)
        reasons.append(reason)
        wish = read_wish({**wishes, "runtime_class": runtime_class})
        result["runtime_class"] = runtime_class
        _check_login(wish, login)
        values = helm_values(wish, chart_version) if method == "helm" else {}
        warnings += wish.remarks
    except KubegpuError as error:
        refusals.append(Refusal(error.cause, error.next_step, error.evidence))
        return _answer(result, refusals, warnings, reasons)

    if teardown:
        result["absent"] = [*absent(wish), *_made_by_us(wish, existing)]
        return _answer(result, [], warnings, [])
    if others:
        # Two plugins would take turns in registering the same resource.
        return {**_answer(result, [], warnings, reasons), "action": "leave"}
    refusals += _foreign_class(seen)
    for name in sorted(hosts):
        _host(wish, name, hosts[name], result, refusals, warnings)
    objects = manifests(wish)
    ours = [item for item in objects if not _somebody_elses(item, seen)]
    for item in objects:
        if _somebody_elses(item, seen):
            kind, _namespace, item_name = identity(item)
            reasons.append(f"{kind} {item_name} was there before and is left as it is")
    if method == "helm":
        # The chart brings the rest under its own names.
        ours = [item for item in ours if item["kind"] in _SHARED_KINDS]
    result["objects"], result["values"] = ours, values
    result["absent"] = absent(wish, ours)
    return _answer(result, refusals, warnings, reasons)


def _answer(
    result: dict[str, Any], refusals: Sequence[Refusal], warnings: list[str], reasons: list[str]
) -> dict[str, Any]:
    refused = [one.to_json() for one in refusals]
    if refused:
        result = {**result, "objects": [], "absent": [], "values": {}}
    return {
        "action": "refuse" if refused else "apply",
        **result,
        "refusals": refused,
        "text": printable("\n\n".join(_refusal_text(one) for one in refused)),
        "warnings": warnings,
        "reasons": reasons,
    }


def _refusal_text(refusal: Mapping[str, str]) -> str:
    host = f"{refusal['host']}: " if refusal["host"] else ""
    return str(
        KubegpuError(
            f"{host}{refusal['cause']}",
            evidence=refusal["evidence"],
            next_step=refusal["next_step"],
        )
    )


def _different(hosts: Mapping[str, Mapping[str, Any]]) -> list[Refusal]:
    """Return the options that hosts of one run see differently: the cluster has one plugin."""
    known = [(name, hosts[name]["wishes"]) for name in sorted(hosts) if hosts[name].get("wishes")]
    if not known:
        return []
    first, wishes = known[0]
    found = []
    for option in sorted({key for _host_name, other in known for key in other}):
        for name, other in known[1:]:
            if other.get(option) != wishes.get(option):
                found.append(
                    Refusal(
                        f"nvidia_device_plugin_{option} differs between {first} and {name}, and "
                        "the device plugin is one for the whole cluster",
                        "Set it for all hosts of the cluster alike. What may differ is "
                        "nvidia_device_plugin_config, the config that a host chooses.",
                        f"{first}: {wishes.get(option)!r}; {name}: {other.get(option)!r}",
                    )
                )
                break
    return found


def _runtime_class(
    wishes: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    seen: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> tuple[str, str]:
    """Return the RuntimeClass of the plugin's pods, and why.

    A run may see a part of the nodes only (``--limit``, a job's slice), and several such runs go on
    at once, but the cluster has one DaemonSet. So this does not depend on what the default runtime
    of the hosts is: containerd and CRI-O know the handler by its name where it is the default, too.
    """
    wished = str(wishes.get("runtime_class", "auto"))
    if wished != "auto":
        return wished, f"nvidia_device_plugin_runtime_class is {wished or 'empty'}"
    # Of other nodes the facts do not say what containerd does, and the plugin is not for them.
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
    namespace = str(wishes.get("namespace") or Wish.namespace)
    running = seen.get(("DaemonSet", namespace, NAME)) or {}
    spec = ((running.get("spec") or {}).get("template") or {}).get("spec") or {}
    if spec.get("runtimeClassName") == HANDLER:
        # A run with --limit does not see all nodes; with the class it works on each of them.
        return HANDLER, f"RuntimeClass {HANDLER}: the plugin runs with it already"
    return "", f"no RuntimeClass: Docker serves Kubernetes, and {HANDLER} is its default runtime"


def _served_by_docker(node: Mapping[str, Any]) -> bool:
    """Return whether Docker is the engine of Kubernetes: it may not know handlers by name."""
    runtimes = node.get("runtimes") or {}
    others = (runtimes.get("containerd") or {}).get("cri_enabled") or runtimes.get("crio")
    return bool(runtimes.get("docker")) and not others


def _check_login(wish: Wish, given: Sequence[str]) -> None:
    """See that the login is whole: the task that makes the secret of it says nothing of what fails.

    :raises KubegpuError: where it is not.
    """
    known = ("registry", "username", "password")
    option = "nvidia_device_plugin_pull_secret_login"
    if given and not wish.pull_secret:
        raise KubegpuError(
            f"{option} is set and nvidia_device_plugin_pull_secret is not",
            next_step="Give the secret a name: nvidia_device_plugin_pull_secret: registry",
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


def _somebody_elses(
    item: Mapping[str, Any], seen: Mapping[tuple[str, str, str], Mapping[str, Any]]
) -> bool:
    there = seen.get(identity(item))
    return there is not None and item["kind"] in _SHARED_KINDS and not _is_ours(there)


def _made_by_us(wish: Wish, existing: Sequence[Mapping[str, Any]]) -> list[Object]:
    """Return what teardown removes besides: secrets, RuntimeClass and namespace that we made.

    The namespace goes last, as it takes with it what is in it, and stays where that is not ours.
    """
    inside = [one for one in existing if one["metadata"].get("namespace") == wish.namespace]
    others = [one for one in inside if not _is_ours(one) and not _comes_by_itself(one)]
    found = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": _place(one)}
        for one in inside
        if one["kind"] == "Secret" and _is_ours(one)
    ]
    seen = {identity(one): one for one in existing}
    for item in reversed(manifests(wish)[:2]):
        there = seen.get(identity(item))
        if there is None or not _is_ours(there) or (item["kind"] == "Namespace" and others):
            continue
        metadata = {"name": item["metadata"]["name"]}
        found.append({"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata})
    return found


def _place(item: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": str(item["metadata"]["name"]),
        "namespace": str(item["metadata"]["namespace"]),
    }


def _is_ours(item: Mapping[str, Any]) -> bool:
    return (item["metadata"].get("labels") or {}).get(MANAGED_LABEL) == MANAGED_BY


def _comes_by_itself(item: Mapping[str, Any]) -> bool:
    """Return whether Kubernetes or Helm made this in every namespace of this use."""
    kind, _namespace, name = identity(item)
    return (
        (kind == "ConfigMap" and name == "kube-root-ca.crt")
        or (kind == "Secret" and str(item.get("type")) in _SECRETS_OF_THE_SYSTEM)
        or name.startswith(NAME)
    )


def _foreign_class(seen: Mapping[tuple[str, str, str], Mapping[str, Any]]) -> list[Refusal]:
    there = seen.get(("RuntimeClass", "", HANDLER))
    if there is None or there.get("handler") == HANDLER:
        return []
    return [
        Refusal(
            f"the cluster has a RuntimeClass {HANDLER} for another handler, and a handler cannot "
            "be changed",
            f"Delete it (kubectl delete runtimeclass {HANDLER}) if nobody needs it; or make "
            f"{HANDLER} the default runtime and set nvidia_device_plugin_runtime_class: ''.",
            f"handler: {there.get('handler')}",
        )
    ]


def _host(
    wish: Wish,
    name: str,
    host: Mapping[str, Any],
    result: dict[str, Any],
    refusals: list[Refusal],
    warnings: list[str],
) -> None:
    node, chosen = host["gpu_node"], str(host.get("config") or "")
    config = wish.config(chosen)
    if config is None:
        there = ", ".join(sorted(wish.configs)) or "none, nvidia_device_plugin_configs is empty"
        refusals.append(
            Refusal(
                f"there is no config {chosen!r}",
                "Correct nvidia_device_plugin_config of this host, or add the config to "
                "nvidia_device_plugin_configs.",
                f"there are: {there}",
                name,
            )
        )
        return
    if not container_gpus(node):
        return
    found = [*check_sharing(node, config), *check_cdi(node, config, bool(host.get("cdi")))]
    for refusal in found:
        refusals.append(Refusal(refusal.cause, refusal.next_step, refusal.evidence, name))
    left_out = undivided(node, config)
    if left_out:
        warnings.append(
            f"{name}: MIG is enabled and no MIG device is there on {', '.join(left_out)}; the "
            "plugin leaves it out. Make MIG devices on it, or disable MIG there"
        )
    handlers = ((node.get("runtimes") or {}).get("containerd") or {}).get("handlers")
    if wish.runtime_class and handlers and HANDLER not in handlers and not host.get("planned"):
        warnings.append(
            f"{name}: containerd has no handler {HANDLER}; the plugin cannot start there before "
            "the container toolkit is set up (role nvidia_container_toolkit)"
        )
    if wish.feature_discovery and not wish.feature_discovery_privileged:
        guests = [gpu for gpu in container_gpus(node) if (gpu.get("vgpu") or {}).get("guest")]
        if guests:
            warnings.append(
                f"{name}: GPU feature discovery tells the host's driver of a vGPU only where it is "
                "privileged (nvidia_device_plugin_feature_discovery_privileged)"
            )
    resources = expected(node, config)
    if resources is None:
        result["unknown"][name] = (
            f"MIG strategy {config.mig_strategy}: which MIG devices are there cannot be told "
            "before the driver runs, or without pynvml on the node"
        )
        return
    # As gpu_cluster_info takes it; what is more than resources is for its explanations.
    result["expected"][name] = {
        "name": str(host.get("node") or name),
        "machine_id": None
        if host.get("match") == "name"
        else (node.get("os") or {}).get("machine_id"),
        "resources": resources,
        "driver": (node.get("driver") or {}).get("loaded") or "",
        "default_runtime": default_handler(node, host.get("default_runtime")),
        "gpus": list(node.get("gpus") or ()),
    }


def restarts(
    pods: Sequence[Mapping[str, Any]],
    hosts: Mapping[str, Mapping[str, Any]],
    node_of: Mapping[str, str | None],
) -> list[dict[str, Any]]:
    """Return the pods whose runtime changed after they were made, each with the reason.

    A pod keeps the runtime with which its sandbox was made, however often its containers start
    again, so that only a new pod helps.

    :param pods: the plugin's pods, as the API server has them.
    :param hosts: by name: ``started`` (when the node's runtime was started, as the API server
        writes times, or null), ``changed`` (what this run changed on it, or empty) and ``new``
        (whether the plugin comes to the node by this run's label only, so that its pod was made
        after that change: another run at the same time may have deployed the plugin already).
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


def object_list(wishes: Mapping[str, Any], warn: Callable[[str], object]) -> list[Object]:
    """Return the objects for these options.

    :param warn: is given each remark about the options.
    :raises KubegpuError: where an option is not valid.
    """
    options = dict(wishes)
    if options.get("runtime_class") == "auto":
        options["runtime_class"] = HANDLER
    wish = read_wish(options)
    for remark in wish.remarks:
        warn(remark)
    return manifests(wish)
