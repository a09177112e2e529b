# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA's device plugin in Kubernetes: its objects, made from wishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from .config import (
    GPU,
    Config,
    Flags,
    as_file,
)
from .daemonsets import (
    CONFIG_LABEL,
    CONFIG_NAME,
    MANAGED_BY,
    MANAGED_LABEL,
    MARKER,
    Object,
    config_data,
    config_files,
    discovery_security,
    discovery_set,
    metadata,
    mps_set,
    plugin_set,
)
from .names import DISCOVERY_NAME, HANDLER, MPS_NAME, NAME
from .options import Wish, plain, read_wish
from .settings import Release, at_least, chart_values, read_release
from .sharing import Refusal, check_sharing, expected

__all__ = [
    "CONFIG_LABEL",
    "GPU",
    "HANDLER",
    "MANAGED_BY",
    "MANAGED_LABEL",
    "NAME",
    "Config",
    "Flags",
    "Object",
    "Refusal",
    "Wish",
    "absent",
    "check_sharing",
    "expected",
    "helm_values",
    "identity",
    "manifests",
    "read_wish",
]

# Not the name of our own DaemonSet: its selector is another one, and cannot be changed.
CHART_NAME = f"{NAME}-chart"
# Since then feature discovery in the chart uses the NodeFeature API, unless its config says no.
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


def identity(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return kind, namespace and name."""
    data = item["metadata"]
    return str(item["kind"]), str(data.get("namespace") or ""), str(data["name"])


def manifests(wish: Wish) -> list[Object]:
    """Return the objects, in the order in which they are applied."""
    objects = [_namespace(wish), _runtime_class()]
    objects.append(_service_account(wish))
    objects.extend(_rights(wish))
    if wish.configs:
        objects.append(_config_map(wish))
    objects.append(plugin_set(wish))
    if wish.mps_configs:
        objects.append(mps_set(wish))
    if wish.feature_discovery:
        objects.append(discovery_set(wish))
    return objects


def absent(wish: Wish, wanted: Sequence[Mapping[str, Any]] = ()) -> list[Object]:
    """Return what of ours must not be there, in the order in which it is removed.

    Namespace and RuntimeClass are not among it: they may be somebody else's.
    """
    there = {identity(item) for item in wanted}
    found = []
    for version, kind, name in _KINDS:
        data = {"name": name}
        if kind not in _CLUSTER_WIDE:
            data["namespace"] = wish.namespace
        item = {"apiVersion": version, "kind": kind, "metadata": data}
        if identity(item) not in there:
            found.append(item)
    return found


def _namespace(wish: Wish) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": wish.namespace,
            "labels": {
                MANAGED_LABEL: MANAGED_BY,
                # Device plugins need folders of the host, which the stricter levels forbid.
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        },
    }


def _runtime_class() -> Object:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": HANDLER, "labels": {MANAGED_LABEL: MANAGED_BY}},
        "handler": HANDLER,
    }


def _service_account(wish: Wish) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(wish, NAME),
        # Only pods that speak to the API server ask for the token.
        "automountServiceAccountToken": False,
    }


def _rights(wish: Wish) -> list[Object]:
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": wish.namespace}
    found: list[Object] = []
    if wish.by_label:
        # config-manager lists and watches its own node by a field selector; names of nodes that
        # are to come cannot be in a rule.
        found += [
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRole",
                "metadata": metadata(None, NAME),
                "rules": [
                    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
                ],
            },
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": metadata(None, NAME),
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME},
                "subjects": [subject],
            },
        ]
    if wish.feature_discovery_api:
        found += [
            {
                "apiVersion": f"{group}/v1",
                "kind": "Role",
                "metadata": metadata(wish, NAME),
                "rules": [
                    {
                        "apiGroups": ["nfd.k8s-sigs.io"],
                        "resources": ["nodefeatures"],
                        "verbs": ["get", "list", "watch", "create", "update"],
                    },
                    # It makes the NodeFeature its pod's, so that it goes with that.
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                ],
            },
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": metadata(wish, NAME),
                "roleRef": {"apiGroup": group, "kind": "Role", "name": NAME},
                "subjects": [subject],
            },
        ]
    return found


def _config_map(wish: Wish) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(wish, CONFIG_NAME),
        "data": config_files(wish),
    }


def helm_values(wish: Wish, chart_version: str = "") -> Object:
    """Return the values of NVIDIA's chart for the same wish.

    :param chart_version: the chart's, by which it is known which values it has.
    :raises InputError: where the chart cannot do it.
    """
    _check_chart(wish)
    flags = wish.flags
    values: Object = {
        "fullnameOverride": CHART_NAME,
        "image": {
            "repository": wish.image,
            "tag": f"{wish.version}@{wish.digest}" if wish.digest else wish.version,
            "pullPolicy": wish.image_pull_policy,
        },
        "imagePullSecrets": [{"name": wish.pull_secret}] if wish.pull_secret else [],
        "priorityClassName": wish.priority_class,
        "runtimeClassName": wish.runtime_class or None,
        "nodeSelector": {**MARKER, **wish.node_selector},
        # The chart's own affinity wants labels of node-feature-discovery.
        "affinity": {"nodeAffinity": None},
        "tolerations": [dict(one) for one in wish.tolerations],
        "resources": plain(wish.resources),
        "podAnnotations": dict(wish.annotations),
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {
                "maxUnavailable": int(wish.max_unavailable)
                if wish.max_unavailable.isdigit()
                else wish.max_unavailable
            },
        },
        "nvidiaDriverRoot": flags.driver_root,
        "cdi": {"nvidiaHookPath": flags.nvidia_ctk_path},
        "mps": {"root": wish.mps_root},
        "gfd": {"enabled": wish.feature_discovery},
        # It is the admin's, if it is there.
        "nfd": {"enabled": False},
    }
    if wish.feature_discovery:
        values["gfd"]["securityContext"] = discovery_security(wish)
    release = read_release(chart_version)
    for name, value in chart_values(wish.environment, release).items():
        values[name] = {**values.get(name, {}), **value} if isinstance(value, dict) else value
    configs = {name: dict(config.data) for name, config in wish.configs.items()}
    if not at_least(release, _CHART_WITHOUT_API):
        values["nfd"]["enableNodeFeatureApi"] = wish.feature_discovery_api
    elif wish.feature_discovery and not wish.feature_discovery_api:
        # The chart has no value for it any more, but a config has; feature discovery's default is
        # the API.
        configs = configs or {"default": dict(wish.all_configs[0].data)}
        for config in configs.values():
            config["flags"] = {**config["flags"], "useNodeFeatureAPI": False}
    if configs:
        values["config"] = {"map": config_data(configs), "default": wish.chosen or "default"}
        return values
    strategy = as_file(flags.device_list_strategy)
    return {
        **values,
        "migStrategy": flags.mig_strategy,
        "failOnInitError": flags.fail_on_init_error,
        "compatWithCPUManager": flags.pass_device_specs,
        "deviceListStrategy": strategy if isinstance(strategy, str) else ",".join(strategy),
        "deviceIDStrategy": flags.device_id_strategy,
        "gdsEnabled": flags.gds_enabled,
        "mofedEnabled": flags.mofed_enabled,
    }


def _check_chart(wish: Wish) -> None:
    """See that NVIDIA's chart has values for all that is wished.

    :raises InputError: where it has not.
    """
    if wish.mps_configs and not wish.feature_discovery:
        raise InputError(
            "NVIDIA's chart starts the MPS control daemon only where GPU feature discovery has "
            "labelled the node nvidia.com/mps.capable",
            next_step="Set nvidia_device_plugin_feature_discovery: true, or use "
            "nvidia_device_plugin_method: manifest, which does not need it.",
        )
    # It mounts these paths, whatever a variable says.
    for option, only, given in (
        ("kubelet_directory", Wish.kubelet_directory, wish.kubelet_directory),
        ("container_driver_root", Flags.container_driver_root, wish.flags.container_driver_root),
    ):
        if given != only:
            raise InputError(
                f"NVIDIA's chart knows {only} only, and nvidia_device_plugin_{option} is {given}",
                next_step="Use nvidia_device_plugin_method: manifest.",
            )
