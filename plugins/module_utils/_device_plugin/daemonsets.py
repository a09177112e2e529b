# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods of NVIDIA's device plugin: plugin, MPS control daemon, GPU feature discovery."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .names import DISCOVERY_NAME, MPS_NAME, NAME, PREFIX
from .options import Wish, plain, text

CONFIG_NAME = f"{NAME}-config"
CONTAINER = "nvidia-device-plugin"
MANAGED_BY = "kubegpu.nodes"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
MARKER = {"kubegpu.nodes/gpu": "nvidia"}
CONFIG_LABEL = "nvidia.com/device-plugin.config"
CHECKSUM = "kubegpu.nodes/config-checksum"

_CONFIGS = "/available-configs"
_CONFIG_FILE = "/config/config.yaml"
_CDI = "/var/run/cdi"
_FEATURES = "/etc/kubernetes/node-feature-discovery/features.d"

Object = dict[str, Any]


def labels(name: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": "kubegpu",
        MANAGED_LABEL: MANAGED_BY,
    }


def metadata(wish: Wish | None, name: str, app: str = CONTAINER) -> Object:
    data: Object = {"name": name, "labels": labels(app)}
    if wish is not None:
        data["namespace"] = wish.namespace
    return data


def config_data(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return configs as the files of a ConfigMap."""
    # JSON is YAML, and is the same text each time.
    return {
        name: json.dumps(config, indent=2, sort_keys=True) + "\n"
        for name, config in configs.items()
    }


def config_files(wish: Wish) -> dict[str, str]:
    """Return the ConfigMap's files by name."""
    return config_data({name: config.data for name, config in wish.configs.items()})


def daemon_set(
    wish: Wish, name: str, app: str, spec: Mapping[str, Any], node_selector: Mapping[str, str]
) -> Object:
    annotations = dict(wish.annotations)
    if wish.configs:
        # The plugin reads its config at start only.
        data = json.dumps(config_files(wish), sort_keys=True)
        annotations[CHECKSUM] = hashlib.sha256(data.encode()).hexdigest()
    pod: Object = {
        "priorityClassName": wish.priority_class,
        "runtimeClassName": wish.runtime_class,
        "imagePullSecrets": [{"name": wish.pull_secret}] if wish.pull_secret else [],
        "nodeSelector": {**node_selector, **wish.node_selector},
        "tolerations": [dict(one) for one in wish.tolerations],
        "serviceAccountName": NAME,
        **spec,
    }
    unavailable: str | int = wish.max_unavailable
    if wish.max_unavailable.isdigit():
        unavailable = int(wish.max_unavailable)
    selector = {key: value for key, value in labels(app).items() if key != MANAGED_LABEL}
    template: Object = {"labels": labels(app)}
    if annotations:
        template["annotations"] = annotations
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(wish, name, app),
        "spec": {
            "selector": {"matchLabels": selector},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": unavailable},
            },
            # An empty field would be one that somebody else may not set.
            "template": {
                "metadata": template,
                "spec": {key: value for key, value in pod.items() if value not in ("", [], {})},
            },
        },
    }


def environment(pairs: Mapping[str, Any]) -> list[Object]:
    return [{"name": key, "value": text(value)} for key, value in pairs.items()]


def _from_field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _flag_environment(wish: Wish) -> dict[str, Any]:
    """Return the plugin's flags as variables; those that a config has are there and only there.

    A variable would win over the config file.
    """
    flags = wish.flags
    paths = {
        "NVIDIA_DRIVER_ROOT": flags.driver_root,
        "CONTAINER_DRIVER_ROOT": flags.container_driver_root,
        "NVIDIA_CTK_PATH": flags.nvidia_ctk_path,
    }
    if wish.configs:
        file = _CONFIG_FILE if wish.by_label else f"{_CONFIGS}/{wish.chosen}"
        return {"CONFIG_FILE": file, **paths}
    return {
        "FAIL_ON_INIT_ERROR": flags.fail_on_init_error,
        "MIG_STRATEGY": flags.mig_strategy,
        "PASS_DEVICE_SPECS": flags.pass_device_specs,
        "DEVICE_LIST_STRATEGY": ",".join(flags.device_list_strategy),
        "DEVICE_ID_STRATEGY": flags.device_id_strategy,
        "GDS_ENABLED": flags.gds_enabled,
        "MOFED_ENABLED": flags.mofed_enabled,
        **paths,
    }


def driver_environment(wish: Wish) -> dict[str, str]:
    """Return what tells the container toolkit to bring NVML into the container."""
    found = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    if wish.with_mig:
        found["NVIDIA_MIG_MONITOR_DEVICES"] = "all"
    return found


def unprivileged(*capabilities: str) -> Object:
    """Return the smallest context; with capabilities it may not deny itself new privileges."""
    context: Object = {
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if capabilities:
        context["capabilities"]["add"] = list(capabilities)
    else:
        context["allowPrivilegeEscalation"] = False
    return context


def _security(wish: Wish) -> Object:
    """Return the context that the wished strategies need, as NVIDIA's chart decides it.

    Passing device specs needs a privileged container, as NVIDIA's documentation says. Monitoring
    MIG devices, and getting the driver where only volume mounts may ask for devices, need
    SYS_ADMIN. Unlike the chart we know all configs, and add it only where one needs it.
    """
    if wish.with_device_specs:
        return {"privileged": True}
    if wish.with_mig or "volume-mounts" in wish.strategies:
        return unprivileged("SYS_ADMIN")
    return unprivileged()


def _host_path(name: str, path: str, kind: str = "") -> Object:
    volume: Object = {"path": path}
    if kind:
        volume["type"] = kind
    return {"name": name, "hostPath": volume}


def _mount(name: str, path: str, read_only: bool = False) -> Object:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def _config_volumes(wish: Wish) -> list[Object]:
    found: list[Object] = []
    if wish.configs:
        found.append({"name": "available-configs", "configMap": {"name": CONFIG_NAME}})
    if wish.by_label:
        found.append({"name": "config", "emptyDir": {}})
    return found


def _config_mounts(wish: Wish) -> list[Object]:
    found = [_mount("available-configs", _CONFIGS, True)] if wish.configs else []
    return [*found, _mount("config", "/config")] if wish.by_label else found


def _container(wish: Wish, name: str, command: Sequence[str], more: Mapping[str, Any]) -> Object:
    container: Object = {
        "name": name,
        "image": wish.reference,
        "imagePullPolicy": wish.image_pull_policy,
        "command": list(command),
        **more,
    }
    if wish.resources:
        container["resources"] = plain(wish.resources)
    return container


def _manager(
    wish: Wish, name: str, process: str, once: bool, security: Mapping[str, Any]
) -> Object:
    """Return the container that follows the node's label, or reads it once before the start.

    :param security: the context of the container.
    """
    pairs = {
        "ONESHOT": once,
        "KUBECONFIG": "",
        "NODE_LABEL": CONFIG_LABEL,
        "CONFIG_FILE_SRCDIR": _CONFIGS,
        "CONFIG_FILE_DST": _CONFIG_FILE,
        "DEFAULT_CONFIG": wish.chosen,
        "SEND_SIGNAL": not once,
        "SIGNAL": "" if once else "1",
        "PROCESS_TO_SIGNAL": "" if once else process,
    }
    return _container(
        wish,
        name,
        ["config-manager"],
        {
            "env": [
                _from_field("NODE_NAME", "spec.nodeName"),
                *environment({key: value for key, value in pairs.items() if value != ""}),
            ],
            "volumeMounts": _config_mounts(wish),
            "securityContext": dict(security),
        },
    )


def _with_manager(wish: Wish, spec: Object, process: str, *, share: bool = True) -> Object:
    """Return the pod with the containers that choose its config by the node's label."""
    if not wish.by_label:
        return spec
    first, security = (spec["containers"][0][key] for key in ("name", "securityContext"))
    return {
        **spec,
        "automountServiceAccountToken": True,
        # The manager sends a signal to the other container's process.
        **({"shareProcessNamespace": True} if share else {}),
        "initContainers": [
            *spec.get("initContainers", ()),
            _manager(wish, f"{first}-config-init", process, True, unprivileged()),
        ],
        "containers": [
            *spec["containers"],
            # The context of the container that it signals: AppArmor's profile for containers lets
            # one send signals to its own profile only, and a privileged one has none
            # (containerd, contrib/apparmor/template.go). NVIDIA's chart does the same.
            _manager(wish, f"{first}-config", process, False, security),
        ],
    }


def plugin_set(wish: Wish) -> Object:
    sockets = f"{wish.kubelet_directory}/device-plugins"
    volumes = [_host_path("device-plugins", sockets, "Directory")]
    mounts = [_mount("device-plugins", "/var/lib/kubelet/device-plugins")]
    pairs = {**_flag_environment(wish), **driver_environment(wish)}
    if wish.with_cdi:
        volumes += [
            _host_path("cdi", _CDI, "DirectoryOrCreate"),
            _host_path("driver-root", wish.flags.driver_root, "Directory"),
        ]
        mounts += [
            _mount("cdi", _CDI),
            _mount("driver-root", wish.flags.container_driver_root, True),
        ]
    if wish.mps_configs:
        pairs["MPS_ROOT"] = wish.mps_root
        # It asks the daemon whether it is ready, through its memory and pipes.
        volumes += [
            _host_path("mps-root", wish.mps_root, "DirectoryOrCreate"),
            _host_path("mps-shm", f"{wish.mps_root}/shm"),
        ]
        mounts += [_mount("mps-root", "/mps"), _mount("mps-shm", "/dev/shm")]
    spec: Object = {
        "containers": [
            _container(
                wish,
                CONTAINER,
                ["nvidia-device-plugin"],
                {
                    "env": environment({**pairs, **wish.environment}),
                    "volumeMounts": [*mounts, *_config_mounts(wish)],
                    "securityContext": _security(wish),
                },
            )
        ],
        "volumes": [*volumes, *_config_volumes(wish)],
    }
    return daemon_set(
        wish, NAME, CONTAINER, _with_manager(wish, spec, "nvidia-device-plugin"), MARKER
    )


def mps_set(wish: Wish) -> Object:
    """Return the MPS control daemon, on the nodes whose config shares by MPS.

    The chart waits for a label of GPU feature discovery, which need not be there.
    """
    configs = wish.mps_configs
    chosen = {"key": CONFIG_LABEL, "operator": "In", "values": configs}
    terms: list[Object] = [{"matchExpressions": [chosen]}]
    if wish.chosen in configs:
        terms.append({"matchExpressions": [{"key": CONFIG_LABEL, "operator": "DoesNotExist"}]})
    affinity: Object = {}
    if wish.by_label:
        node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        affinity = {"nodeAffinity": node}
    flags = {
        key: value
        for key, value in _flag_environment(wish).items()
        if key in ("CONFIG_FILE", "MIG_STRATEGY")
    }
    privileged = {"privileged": True}
    spec: Object = {
        # An MPS server finds its own process id through /proc of the host.
        "hostPID": True,
        "affinity": affinity,
        "initContainers": [
            _container(
                wish,
                "mps-control-daemon-mounts",
                ["mps-control-daemon", "mount-shm"],
                {
                    "securityContext": privileged,
                    "volumeMounts": [
                        {**_mount("mps-root", "/mps"), "mountPropagation": "Bidirectional"}
                    ],
                },
            )
        ],
        "containers": [
            _container(
                wish,
                "mps-control-daemon",
                ["mps-control-daemon"],
                {
                    "env": [
                        _from_field("NODE_NAME", "spec.nodeName"),
                        *environment({**flags, **driver_environment(wish)}),
                    ],
                    "volumeMounts": [
                        _mount("mps-shm", "/dev/shm"),
                        _mount("mps-root", "/mps"),
                        *_config_mounts(wish),
                    ],
                    "securityContext": privileged,
                },
            )
        ],
        "volumes": [
            _host_path("mps-root", wish.mps_root, "DirectoryOrCreate"),
            _host_path("mps-shm", f"{wish.mps_root}/shm"),
            *_config_volumes(wish),
        ],
    }
    # With the host's processes in sight there is nothing to share.
    spec = _with_manager(wish, spec, "mps-control-daemon", share=False)
    return daemon_set(wish, MPS_NAME, MPS_NAME.removeprefix(PREFIX), spec, MARKER)


def discovery_security(wish: Wish) -> Object:
    """Return the context of GPU feature discovery's container."""
    if wish.feature_discovery_privileged:
        return {"privileged": True}
    return unprivileged("SYS_ADMIN") if wish.with_mig else unprivileged()


def discovery_set(wish: Wish) -> Object:
    volumes = [_host_path("host-sys", "/sys", "Directory")]
    mounts = [_mount("host-sys", "/sys", True)]
    if not wish.feature_discovery_api:
        volumes.insert(0, _host_path("output-dir", _FEATURES, "DirectoryOrCreate"))
        mounts.insert(0, _mount("output-dir", _FEATURES))
    flags = {
        key: value
        for key, value in _flag_environment(wish).items()
        if key in ("CONFIG_FILE", "MIG_STRATEGY", "FAIL_ON_INIT_ERROR")
    }
    # Both ways are said: the default is the API since v0.19 (the plugin's CHANGELOG, #1504), and
    # without a token for it the pod cannot start.
    flags["USE_NODE_FEATURE_API"] = wish.feature_discovery_api
    spec: Object = {
        "containers": [
            _container(
                wish,
                "gpu-feature-discovery",
                ["gpu-feature-discovery"],
                {
                    "env": [
                        _from_field("NODE_NAME", "spec.nodeName"),
                        _from_field("NAMESPACE", "metadata.namespace"),
                        _from_field("POD_NAME", "metadata.name"),
                        *environment({**flags, **driver_environment(wish)}),
                    ],
                    "volumeMounts": [*mounts, *_config_mounts(wish)],
                    "securityContext": discovery_security(wish),
                },
            )
        ],
        "volumes": [*volumes, *_config_volumes(wish)],
    }
    if wish.feature_discovery_api:
        spec["automountServiceAccountToken"] = True
    spec = _with_manager(wish, spec, "gpu-feature-discovery")
    return daemon_set(wish, DISCOVERY_NAME, DISCOVERY_NAME.removeprefix(PREFIX), spec, MARKER)
