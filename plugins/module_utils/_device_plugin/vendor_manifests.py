# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Kubernetes objects of the device plugins of AMD and Intel. Pure.

Sources, read 2026-11-23: github.com/ROCm/k8s-device-plugin (k8s-ds-amdgpu-dp.yaml,
k8s-ds-amdgpu-dp-health.yaml, k8s-ds-amdgpu-labeller.yaml, helm/amd-gpu, Dockerfile) and
github.com/intel/intel-device-plugins-for-kubernetes (deployments/gpu_plugin,
cmd/gpu_plugin/README.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._kube.pod_parts import Object, from_field, host_path, mount, unprivileged
from .names import LABELLER_NAME, PLUGINS, PREFIX
from .objects import (
    SOCKETS,
    PluginRequest,
    daemonset,
    identity,
    metadata,
    namespace_object,
    not_paused,
    service_account,
)
from .vendor_types import AmdRequest, IntelRequest

_GROUP = "rbac.authorization.k8s.io"
# Seconds between two checks of the health of the devices.
_PULSE = 10
_LABELS = (
    "vram", "cu-count", "simd-count", "device-id", "family", "product-name", "driver-version"
)  # fmt: skip


def marker(vendor: str) -> dict[str, str]:
    """Return the label of the nodes on which a vendor's plugin runs."""
    return {f"kubegpu.nodes/gpu-{vendor}": "true"}


def app_names(vendor: str) -> tuple[str, ...]:
    """Return the application names on the pods of a vendor's plugin."""
    names = [PLUGINS[vendor], *([LABELLER_NAME] if vendor == "amd" else [])]
    return tuple(name.removeprefix(PREFIX) for name in names)


def manifests(request: AmdRequest | IntelRequest) -> list[Object]:
    """Return the objects in the order of application."""
    vendor = "amd" if isinstance(request, AmdRequest) else "intel"
    name, app = PLUGINS[vendor], app_names(vendor)[0]
    objects = [namespace_object(request.namespace), service_account(request, name, app)]
    if isinstance(request, IntelRequest):
        return [*objects, _intel_plugin(request, name, app)]
    objects.append(_amd_plugin(request, name, app))
    return [*objects, *(_labeller(request) if request.labeller else [])]


def absent(
    vendor: str, request: PluginRequest, wanted: Sequence[Mapping[str, Any]] = ()
) -> list[Object]:
    """Return the managed objects that must not exist, in the order of removal.

    The namespace is excluded, because others may use it.

    :param wanted: the objects to keep.
    """
    name = PLUGINS[vendor]
    rows = [("apps/v1", "DaemonSet", name), ("v1", "ServiceAccount", name)]
    if vendor == "amd":
        rows = [
            rows[0],
            ("apps/v1", "DaemonSet", LABELLER_NAME),
            (f"{_GROUP}/v1", "ClusterRoleBinding", LABELLER_NAME),
            (f"{_GROUP}/v1", "ClusterRole", LABELLER_NAME),
            ("v1", "ServiceAccount", LABELLER_NAME),
            rows[1],
        ]
    there = {identity(item) for item in wanted}
    found = []
    for version, kind, one in rows:
        data = {"name": one}
        if not kind.startswith("Cluster"):
            data["namespace"] = request.namespace
        item: Object = {"apiVersion": version, "kind": kind, "metadata": data}
        if identity(item) not in there:
            found.append(item)
    return found


def _pods(request: PluginRequest, account: str, container: Object, volumes: list[Object]) -> Object:
    if request.resources:
        container = {**container, "resources": dict(request.resources)}
    return {
        "serviceAccountName": account,
        "affinity": not_paused(),
        "containers": [container],
        "volumes": volumes,
    }


def _amd_plugin(request: AmdRequest, name: str, app: str) -> Object:
    volumes = [host_path("device-plugins", SOCKETS, "Directory"), host_path("sys", "/sys")]
    mounts = [mount("device-plugins", SOCKETS), mount("sys", "/sys", True)]
    if request.health:
        # It opens the devices to see whether they answer.
        volumes += [
            host_path("kfd", "/dev/kfd"),
            host_path("dri", "/dev/dri", "Directory"),
            host_path("metrics", "/var/lib/amd-metrics-exporter", "DirectoryOrCreate"),
        ]
        mounts += [mount("kfd", "/dev/kfd"), mount("dri", "/dev/dri"),
                   mount("metrics", "/var/lib/amd-metrics-exporter")]  # fmt: skip
    container: Object = {
        "name": app,
        "image": request.reference,
        "imagePullPolicy": request.image_pull_policy,
        # The image's working directory has the program, and a relative path.
        "workingDir": "/root",
        "command": ["./k8s-device-plugin"],
        "args": [
            "-logtostderr=true",
            "-stderrthreshold=INFO",
            "-v=5",
            f"-pulse={_PULSE if request.health else 0}",
            f"-resource_naming_strategy={request.naming}",
            *request.arguments,
        ],
        "volumeMounts": mounts,
        "securityContext": {"privileged": True} if request.health else unprivileged(),
    }
    return daemonset(
        request, name, app, _pods(request, name, container, volumes), marker("amd"),
        request.annotations,
    )  # fmt: skip


def _labeller(request: AmdRequest) -> list[Object]:
    name, app = LABELLER_NAME, app_names("amd")[1]
    image = f"{request.image}:{request.labeller_version}"
    container: Object = {
        "name": app,
        "image": image,
        "imagePullPolicy": request.image_pull_policy,
        "workingDir": "/root",
        "command": ["./k8s-node-labeller"],
        "args": [f"-{label}" for label in _LABELS],
        "env": [from_field("DS_NODE_NAME", "spec.nodeName")],
        "volumeMounts": [mount("sys", "/sys", True), mount("dev", "/dev")],
        # It asks the driver through the device nodes.
        "securityContext": {"privileged": True},
    }
    volumes = [host_path("sys", "/sys"), host_path("dev", "/dev")]
    pods = {**_pods(request, name, container, volumes), "automountServiceAccountToken": True}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": request.namespace}
    return [
        service_account(request, name, app),
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": metadata(None, name, app),
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["nodes"],
                    "verbs": ["get", "list", "watch", "update"],
                }
            ],
        },
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata(None, name, app),
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        },
        daemonset(request, name, app, pods, marker("amd"), request.annotations),
    ]


def _intel_plugin(request: IntelRequest, name: str, app: str) -> Object:
    arguments = [
        "-v=2",
        f"-shared-dev-num={request.shared}",
        f"-allocation-policy={request.allocation_policy}",
        *(["-enable-monitoring"] if request.monitoring else []),
        *([f"-allow-ids={','.join(request.allow_ids)}"] if request.allow_ids else []),
        *request.arguments,
    ]
    context = {
        **unprivileged(),
        "readOnlyRootFilesystem": True,
        "seLinuxOptions": {"type": "container_device_plugin_t"},
    }
    container: Object = {
        "name": app,
        "image": request.reference,
        "imagePullPolicy": request.image_pull_policy,
        "args": arguments,
        "env": [
            from_field("NODE_NAME", "spec.nodeName"),
            from_field("HOST_IP", "status.hostIP"),
        ],
        "volumeMounts": [
            mount("dri", "/dev/dri", True),
            mount("drm", "/sys/class/drm", True),
            mount("device-plugins", SOCKETS),
            mount("cdi", "/var/run/cdi"),
        ],
        "securityContext": context,
    }
    volumes = [
        host_path("dri", "/dev/dri"),
        host_path("drm", "/sys/class/drm"),
        host_path("device-plugins", SOCKETS, "Directory"),
        host_path("cdi", "/var/run/cdi", "DirectoryOrCreate"),
    ]
    return daemonset(
        request, name, app, _pods(request, name, container, volumes), marker("intel"),
        request.annotations,
    )  # fmt: skip
