# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods of NVIDIA's DRA driver: the kubelet's plugin and the controller of compute domains.

Images, commands, variables and mounts as the chart v0.5.0 has them (templates/kubeletplugin.yaml,
templates/controller.yaml of github.com/kubernetes-sigs/dra-driver-nvidia-gpu).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from .._device_plugin.config import plain
from .._device_plugin.daemonsets import MARKER
from .._device_plugin.objects import MANAGED_BY, MANAGED_LABEL
from .._kube.pod_parts import (
    Object,
    environment,
    from_field,
    host_path,
    max_unavailable,
    mount,
    unprivileged,
)
from .._labels.pause import away_from_paused
from .data import HEALTH_PORTS
from .names import APPLICATION, CONTROLLER_NAME, PLUGIN_NAME
from .types import Layout, Request

GPUS, DOMAINS = "gpus", "compute-domains"

_COMPONENT = "app.kubernetes.io/component"
_PLUGIN, _CONTROLLER = "kubelet-plugin", "controller"
_CDI = "/var/run/cdi"
_DRIVER_ROOT = "/driver-root"
_PARENT = "driver-root-parent"
_COMMANDS = {GPUS: "gpu-kubelet-plugin", DOMAINS: "compute-domain-kubelet-plugin"}
# Kubernetes schedules no such pods on control planes otherwise; the controller needs no GPU.
_CONTROL_PLANE = (
    {
        "key": "node-role.kubernetes.io/control-plane",
        "operator": "Exists",
        "effect": "NoSchedule",
    },
)


def labels(component: str = "") -> dict[str, str]:
    found = {
        "app.kubernetes.io/name": APPLICATION,
        "app.kubernetes.io/instance": "kubegpu",
        MANAGED_LABEL: MANAGED_BY,
    }
    return {**found, _COMPONENT: component} if component else found


def metadata(name: str, namespace: str = "", component: str = "") -> Object:
    data: Object = {"name": name, "labels": labels(component)}
    return {**data, "namespace": namespace} if namespace else data


def plugin_daemonset(request: Request, layout: Layout) -> Object:
    """Return the DaemonSet that offers the node's devices to the kubelet."""
    served = [GPUS] if request.gpus else []
    served += [DOMAINS] if layout.compute_domains else []
    pod: Object = {
        **_common(request, PLUGIN_NAME),
        "nodeSelector": {**MARKER, **request.node_selector},
        "affinity": {"nodeAffinity": away_from_paused()},
        "tolerations": [dict(one) for one in request.tolerations],
        "initContainers": [_wait_for_driver(request)],
        "containers": [_plugin_container(request, layout, name) for name in served],
        "volumes": _volumes(request),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(PLUGIN_NAME, request.namespace, _PLUGIN),
        "spec": {
            "selector": {"matchLabels": _selector(_PLUGIN)},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": max_unavailable(request.max_unavailable)},
            },
            "template": _template(request, _PLUGIN, pod),
        },
    }


def controller_deployment(request: Request) -> Object:
    """Return the Deployment that makes the daemons and claims of compute domains."""
    pairs = {
        **_common_variables(request),
        "IMAGE_NAME": request.reference,
        "LOG_VERBOSITY_CD_DAEMON": request.log_verbosity,
        "CD_DAEMON_IMAGE_PULL_SECRET_NAMES": request.pull_secret,
        "IMEX_MODE": request.imex_mode,
        "IMEX_ISOLATION": "domain",
    }
    container = _container(request, "compute-domain", "compute-domain-controller", pairs)
    container["env"] += [
        from_field("POD_NAME", "metadata.name"),
        from_field("NAMESPACE", "metadata.namespace"),
    ]
    container["securityContext"] = unprivileged()
    pod: Object = {
        **_common(request, CONTROLLER_NAME),
        "tolerations": [*(dict(one) for one in request.tolerations), *_CONTROL_PLANE],
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(CONTROLLER_NAME, request.namespace, _CONTROLLER),
        "spec": {
            "replicas": 1,
            # Without leader election there is never more than one.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _selector(_CONTROLLER)},
            "template": _template(request, _CONTROLLER, pod),
        },
    }


def _common(request: Request, account: str) -> Object:
    return {
        "serviceAccountName": account,
        "priorityClassName": request.priority_class,
        "imagePullSecrets": [{"name": request.pull_secret}] if request.pull_secret else [],
    }


def _selector(component: str) -> dict[str, str]:
    return {key: value for key, value in labels(component).items() if key != MANAGED_LABEL}


def _template(request: Request, component: str, pod: Mapping[str, Any]) -> Object:
    data: Object = {"labels": labels(component)}
    if request.annotations:
        data["annotations"] = dict(request.annotations)
    # Omit empty fields: applying them would take ownership of them.
    return {
        "metadata": data,
        "spec": {key: value for key, value in pod.items() if value not in ("", [], {})},
    }


def _common_variables(request: Request) -> dict[str, Any]:
    gates = ",".join(
        f"{name}={str(value).lower()}" for name, value in sorted(request.feature_gates.items())
    )
    return {
        # The container toolkit would inject all GPUs otherwise, as the image asks for them.
        "NVIDIA_VISIBLE_DEVICES": "void",
        "LOG_VERBOSITY": request.log_verbosity,
        "FEATURE_GATES": gates,
    }


def _container(
    request: Request, name: str, command: str, pairs: Mapping[str, Any]
) -> dict[str, Any]:
    container: Object = {
        "name": name,
        "image": request.reference,
        "imagePullPolicy": request.image_pull_policy,
        "command": [command, "-v", str(request.log_verbosity)],
        "env": environment(
            {**{key: value for key, value in pairs.items() if value != ""}, **request.environment}
        ),
    }
    if request.resources:
        container["resources"] = plain(request.resources)
    return container


def _wait_for_driver(request: Request) -> Object:
    """Return the container that ends when nvidia-smi answers on the node."""
    pairs = {
        "NVIDIA_VISIBLE_DEVICES": "void",
        "NVIDIA_DRIVER_ROOT": request.driver_root,
        **_folders(request),
    }
    parent = mount(_PARENT, f"/{_PARENT}", read_only=True)
    if request.driver_root.rstrip("/"):
        # A driver container mounts its files while this one waits for them.
        parent = {**parent, "mountPropagation": "HostToContainer"}
    return {
        "name": "wait-for-driver",
        "image": request.reference,
        "imagePullPolicy": request.image_pull_policy,
        "command": ["bash", "/usr/bin/kubelet-plugin-prestart.sh"],
        "env": environment(pairs),
        "securityContext": {"privileged": True},
        "volumeMounts": [parent],
    }


def _folders(request: Request) -> dict[str, str]:
    return {
        "KUBELET_REGISTRAR_DIRECTORY_PATH": f"{request.kubelet_directory}/plugins_registry",
        "KUBELET_PLUGINS_DIRECTORY_PATH": f"{request.kubelet_directory}/plugins",
    }


def _plugin_container(request: Request, layout: Layout, name: str) -> Object:
    port = HEALTH_PORTS[name]
    pairs: dict[str, Any] = {
        **_common_variables(request),
        "NVIDIA_DRIVER_ROOT": request.driver_root,
        "NVIDIA_MIG_CONFIG_DEVICES": "all",
        "CDI_ROOT": _CDI,
        "HEALTHCHECK_PORT": port,
        **_folders(request),
    }
    fields = [
        from_field("NODE_NAME", "spec.nodeName"),
        from_field("NAMESPACE", "metadata.namespace"),
    ]
    if name == GPUS:
        pairs |= {
            "IMAGE_NAME": request.reference,
            "IMAGE_PULL_POLICY": request.image_pull_policy,
            "IMAGE_PULL_SECRETS": request.pull_secret,
        }
        fields.append(from_field("SERVICE_ACCOUNT_NAME", "spec.serviceAccountName"))
    else:
        pairs |= {
            "IMEX_MODE": request.imex_mode,
            "IMEX_ISOLATION": "domain",
            "GPU_CLIQUE_LABEL_ENABLED": layout.clique_label,
        }
    container = _container(request, name, _COMMANDS[name], pairs)
    container["env"] += fields
    return {
        **container,
        "securityContext": {"privileged": True},
        "startupProbe": _probe(port, failureThreshold=120, periodSeconds=5),
        "livenessProbe": _probe(port, failureThreshold=3, periodSeconds=30),
        "volumeMounts": _mounts(request, read_only=name == DOMAINS),
    }


def _probe(port: int, **limits: int) -> Object:
    return {"grpc": {"port": port, "service": "liveness"}, "timeoutSeconds": 10, **limits}


def _mounts(request: Request, *, read_only: bool) -> Sequence[Object]:
    # The sockets and the mounts below plugins have the same path for the kubelet and in the pod.
    registry, plugins = _folders(request).values()
    return [
        mount("plugins-registry", registry),
        {**mount("plugins", plugins), "mountPropagation": "Bidirectional"},
        mount("cdi", _CDI),
        {**mount("driver-root", _DRIVER_ROOT, read_only), "mountPropagation": "HostToContainer"},
    ]


def _volumes(request: Request) -> Sequence[Object]:
    registry, plugins = _folders(request).values()
    root = request.driver_root.rstrip("/") or "/"
    return [
        host_path("plugins-registry", registry, "Directory"),
        host_path("plugins", plugins, "Directory"),
        host_path("cdi", _CDI, "DirectoryOrCreate"),
        host_path("driver-root", root, "DirectoryOrCreate"),
        host_path(_PARENT, posixpath.dirname(root), "DirectoryOrCreate"),
    ]
