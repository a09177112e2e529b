# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Kubernetes objects of NVIDIA's device plugin, and the values of NVIDIA's chart. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from .._kube.pod_parts import Object
from .config import (
    Flags,
    as_file,
    plain,
)
from .daemonsets import (
    CONFIG_NAME,
    CONTAINER,
    MARKER,
    config_data,
    config_files,
    discovery_daemonset,
    discovery_security_context,
    mps_daemonset,
    plugin_daemonset,
)
from .names import DISCOVERY_NAME, HANDLER, MPS_NAME, NAME
from .objects import (
    MANAGED_BY,
    MANAGED_LABEL,
    identity,
    metadata,
    namespace_object,
    not_paused,
    service_account,
)
from .settings import Release, at_least, chart_values, read_release
from .types import Request

# Differs from this collection's DaemonSet, whose selector is another one and immutable.
CHART_NAME = f"{NAME}-chart"
# From this release, feature discovery in the chart uses the NodeFeature API unless its config
# disables it.
_CHART_WITHOUT_API: Release = (0, 19)

_KINDS = (
    ("apps/v1", "DaemonSet", NAME),
    ("apps/v1", "DaemonSet", MPS_NAME),
    ("apps/v1", "DaemonSet", DISCOVERY_NAME),
    ("v1", "ConfigMap", CONFIG_NAME),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", NAME),
    ("rbac.authorization.k8s.io/v1", "Role", NAME),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", NAME),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", NAME),
    ("v1", "ServiceAccount", NAME),
)
_CLUSTER_WIDE = frozenset({"Namespace", "RuntimeClass", "ClusterRole", "ClusterRoleBinding"})


def manifests(request: Request) -> list[Object]:
    """Return the objects in the order of application."""
    objects = [namespace_object(request.namespace), _runtime_class()]
    objects.append(service_account(request, NAME, CONTAINER))
    objects.extend(_rights(request))
    if request.configs:
        objects.append(_config_map(request))
    objects.append(plugin_daemonset(request))
    if request.mps_configs:
        objects.append(mps_daemonset(request))
    if request.feature_discovery:
        objects.append(discovery_daemonset(request))
    return objects


def absent(request: Request, wanted: Sequence[Mapping[str, Any]] = ()) -> list[Object]:
    """Return the managed objects that must not exist, in the order of removal.

    Namespace and RuntimeClass are excluded, because others may use them.

    :param wanted: the objects to keep.
    """
    there = {identity(item) for item in wanted}
    found = []
    for version, kind, name in _KINDS:
        data = {"name": name}
        if kind not in _CLUSTER_WIDE:
            data["namespace"] = request.namespace
        item = {"apiVersion": version, "kind": kind, "metadata": data}
        if identity(item) not in there:
            found.append(item)
    return found


def _runtime_class() -> Object:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": HANDLER, "labels": {MANAGED_LABEL: MANAGED_BY}},
        "handler": HANDLER,
    }


def _rights(request: Request) -> list[Object]:
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": request.namespace}
    found: list[Object] = []
    if request.by_label:
        # config-manager lists and watches its own node by a field selector; a rule cannot name
        # future nodes.
        found += [
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRole",
                "metadata": metadata(None, NAME, CONTAINER),
                "rules": [
                    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
                ],
            },
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": metadata(None, NAME, CONTAINER),
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME},
                "subjects": [subject],
            },
        ]
    if request.feature_discovery_api:
        found += [
            {
                "apiVersion": f"{group}/v1",
                "kind": "Role",
                "metadata": metadata(request, NAME, CONTAINER),
                "rules": [
                    {
                        "apiGroups": ["nfd.k8s-sigs.io"],
                        "resources": ["nodefeatures"],
                        "verbs": ["get", "list", "watch", "create", "update"],
                    },
                    # It sets its pod as the owner of the NodeFeature.
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                ],
            },
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": metadata(request, NAME, CONTAINER),
                "roleRef": {"apiGroup": group, "kind": "Role", "name": NAME},
                "subjects": [subject],
            },
        ]
    return found


def _config_map(request: Request) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(request, CONFIG_NAME, CONTAINER),
        "data": config_files(request),
    }


def helm_values(request: Request, chart_version: str = "") -> Object:
    """Return the values of NVIDIA's chart for the same request.

    :param chart_version: decides which values the chart has.
    :raises InputError: the chart does not support the request.
    """
    _check_chart(request)
    values = _common_values(request)
    release = read_release(chart_version)
    for name, value in chart_values(request.environment, release).items():
        values[name] = {**values.get(name, {}), **value} if isinstance(value, dict) else value
    configs = {name: dict(config.data) for name, config in request.configs.items()}
    if not at_least(release, _CHART_WITHOUT_API):
        values["nfd"]["enableNodeFeatureApi"] = request.feature_discovery_api
    elif request.feature_discovery and not request.feature_discovery_api:
        # The chart no longer has a value for it, but a config has; feature discovery uses the API
        # by default.
        configs = configs or {"default": dict(request.all_configs[0].data)}
        for config in configs.values():
            config["flags"] = {**config["flags"], "useNodeFeatureAPI": False}
    if configs:
        values["config"] = {"map": config_data(configs), "default": request.chosen or "default"}
        return values
    return {**values, **_flag_values(request.flags)}


def _common_values(request: Request) -> Object:
    """Return the values that do not depend on the chart's release or on configs."""
    values: Object = {
        "fullnameOverride": CHART_NAME,
        "image": {
            "repository": request.image,
            "tag": f"{request.version}@{request.digest}" if request.digest else request.version,
            "pullPolicy": request.image_pull_policy,
        },
        "imagePullSecrets": [{"name": request.pull_secret}] if request.pull_secret else [],
        "priorityClassName": request.priority_class,
        "runtimeClassName": request.runtime_class or None,
        "nodeSelector": {**MARKER, **request.node_selector},
        # In the place of the chart's, which requires labels of node-feature-discovery.
        "affinity": not_paused(),
        "tolerations": [dict(one) for one in request.tolerations],
        "resources": plain(request.resources),
        "podAnnotations": dict(request.annotations),
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {
                "maxUnavailable": int(request.max_unavailable)
                if request.max_unavailable.isdigit()
                else request.max_unavailable
            },
        },
        "nvidiaDriverRoot": request.flags.driver_root,
        "cdi": {"nvidiaHookPath": request.flags.nvidia_ctk_path},
        "mps": {"root": request.mps_root},
        "gfd": {"enabled": request.feature_discovery},
        # node-feature-discovery is left to the administrator.
        "nfd": {"enabled": False},
    }
    if request.feature_discovery:
        values["gfd"]["securityContext"] = discovery_security_context(request)
    return values


def _flag_values(flags: Flags) -> Object:
    strategy = as_file(flags.device_list_strategy)
    return {
        "migStrategy": flags.mig_strategy,
        "failOnInitError": flags.fail_on_init_error,
        "compatWithCPUManager": flags.pass_device_specs,
        "deviceListStrategy": strategy if isinstance(strategy, str) else ",".join(strategy),
        "deviceIDStrategy": flags.device_id_strategy,
        "gdsEnabled": flags.gds_enabled,
        "mofedEnabled": flags.mofed_enabled,
    }


def _check_chart(request: Request) -> None:
    """Check that NVIDIA's chart supports the request.

    :raises InputError: it does not.
    """
    if request.mps_configs and not request.feature_discovery:
        raise InputError(
            "NVIDIA's chart starts the MPS control daemon only where GPU feature discovery has "
            "labelled the node nvidia.com/mps.capable",
            next_step="Set nvidia_device_plugin_feature_discovery: true, or use "
            "nvidia_device_plugin_method: manifest, which does not need it.",
        )
    # The chart mounts this fixed path.
    only, given = Flags.container_driver_root, request.flags.container_driver_root
    if given != only:
        raise InputError(
            f"NVIDIA's chart knows {only} only, and nvidia_device_plugin_container_driver_root is "
            f"{given}",
            next_step="Use nvidia_device_plugin_method: manifest.",
        )
