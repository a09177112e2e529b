# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods of NVIDIA's device plugin: plugin, MPS control daemon, GPU feature discovery."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .._kube.pod_parts import (
    Object,
    environment,
    from_field,
    host_path,
    mount,
    unprivileged,
)
from .._labels.pause import away_from_paused
from .config import plain
from .names import DISCOVERY_NAME, MPS_NAME, NAME, PREFIX
from .objects import SOCKETS, daemonset, not_paused
from .types import Request

CONFIG_NAME = f"{NAME}-config"
CONTAINER = "nvidia-device-plugin"
MARKER = {"kubegpu.nodes/gpu": "nvidia"}
CONFIG_LABEL = "nvidia.com/device-plugin.config"
CHECKSUM = "kubegpu.nodes/config-checksum"

_CONFIGS = "/available-configs"
_CONFIG_FILE = "/config/config.yaml"
_CDI = "/var/run/cdi"
_FEATURES = "/etc/kubernetes/node-feature-discovery/features.d"


def config_data(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return configs as the files of a ConfigMap."""
    # JSON is valid YAML, and its text is reproducible.
    return {
        name: json.dumps(config, indent=2, sort_keys=True) + "\n"
        for name, config in configs.items()
    }


def config_files(request: Request) -> dict[str, str]:
    """Return the ConfigMap's files by name."""
    return config_data({name: config.data for name, config in request.configs.items()})


def _daemonset(
    request: Request, name: str, app: str, spec: Mapping[str, Any], node_selector: Mapping[str, str]
) -> Object:
    annotations = dict(request.annotations)
    if request.configs:
        # The plugin reads its config only at startup.
        data = json.dumps(config_files(request), sort_keys=True)
        annotations[CHECKSUM] = hashlib.sha256(data.encode()).hexdigest()
    pods = {
        "runtimeClassName": request.runtime_class,
        "serviceAccountName": NAME,
        "affinity": not_paused(),
        **spec,
    }
    return daemonset(request, name, app, pods, node_selector, annotations)


def _flag_environment(request: Request) -> dict[str, Any]:
    """Return the plugin's flags as variables, without those that configs set.

    A variable would override the config file.
    """
    flags = request.flags
    paths = {
        "NVIDIA_DRIVER_ROOT": flags.driver_root,
        "CONTAINER_DRIVER_ROOT": flags.container_driver_root,
        "NVIDIA_CTK_PATH": flags.nvidia_ctk_path,
    }
    if request.configs:
        file = _CONFIG_FILE if request.by_label else f"{_CONFIGS}/{request.chosen}"
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


def driver_environment(request: Request) -> dict[str, str]:
    """Return the variables that make the container toolkit inject NVML into the container."""
    found = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    if request.with_mig:
        found["NVIDIA_MIG_MONITOR_DEVICES"] = "all"
    return found


def _plugin_security_context(request: Request) -> Object:
    """Return the context that the requested strategies need, as NVIDIA's chart decides it.

    Passing device specs needs a privileged container, according to NVIDIA's documentation.
    Monitoring MIG devices, and injecting the driver where only volume mounts may request devices,
    need SYS_ADMIN. Unlike the chart, all configs are known here, so that it is added only if one
    of them needs it.
    """
    if request.with_device_specs:
        return {"privileged": True}
    if request.with_mig or "volume-mounts" in request.strategies:
        return unprivileged("SYS_ADMIN")
    return unprivileged()


def _config_volumes(request: Request) -> list[Object]:
    found: list[Object] = []
    if request.configs:
        found.append({"name": "available-configs", "configMap": {"name": CONFIG_NAME}})
    if request.by_label:
        found.append({"name": "config", "emptyDir": {}})
    return found


def _config_mounts(request: Request) -> list[Object]:
    found = [mount("available-configs", _CONFIGS, True)] if request.configs else []
    return [*found, mount("config", "/config")] if request.by_label else found


def _container(
    request: Request, name: str, command: Sequence[str], more: Mapping[str, Any]
) -> Object:
    container: Object = {
        "name": name,
        "image": request.reference,
        "imagePullPolicy": request.image_pull_policy,
        "command": list(command),
        **more,
    }
    if request.resources:
        container["resources"] = plain(request.resources)
    return container


def _manager(
    request: Request, name: str, process: str, once: bool, security: Mapping[str, Any]
) -> Object:
    """Return the container that follows the node's label, or reads it once before startup."""
    pairs = {
        "ONESHOT": once,
        "KUBECONFIG": "",
        "NODE_LABEL": CONFIG_LABEL,
        "CONFIG_FILE_SRCDIR": _CONFIGS,
        "CONFIG_FILE_DST": _CONFIG_FILE,
        "DEFAULT_CONFIG": request.chosen,
        "SEND_SIGNAL": not once,
        "SIGNAL": "" if once else "1",
        "PROCESS_TO_SIGNAL": "" if once else process,
    }
    return _container(
        request,
        name,
        ["config-manager"],
        {
            "env": [
                from_field("NODE_NAME", "spec.nodeName"),
                *environment({key: value for key, value in pairs.items() if value != ""}),
            ],
            "volumeMounts": _config_mounts(request),
            "securityContext": dict(security),
        },
    )


def _with_manager(request: Request, spec: Object, process: str, *, share: bool = True) -> Object:
    """Return the pod spec with the containers that select the config by the node's label."""
    if not request.by_label:
        return spec
    first, security = (spec["containers"][0][key] for key in ("name", "securityContext"))
    return {
        **spec,
        "automountServiceAccountToken": True,
        # The manager signals the other container's process.
        **({"shareProcessNamespace": True} if share else {}),
        "initContainers": [
            *spec.get("initContainers", ()),
            _manager(request, f"{first}-config-init", process, True, unprivileged()),
        ],
        "containers": [
            *spec["containers"],
            # The context of the container that it signals: AppArmor's profile for containers lets
            # one send signals to its own profile only, and a privileged one has none
            # (containerd, contrib/apparmor/template.go). NVIDIA's chart does the same.
            _manager(request, f"{first}-config", process, False, security),
        ],
    }


def plugin_daemonset(request: Request) -> Object:
    volumes = [host_path("device-plugins", SOCKETS, "Directory")]
    mounts = [mount("device-plugins", SOCKETS)]
    pairs = {**_flag_environment(request), **driver_environment(request)}
    if request.with_cdi:
        volumes += [
            host_path("cdi", _CDI, "DirectoryOrCreate"),
            host_path("driver-root", request.flags.driver_root, "Directory"),
        ]
        mounts += [
            mount("cdi", _CDI),
            mount("driver-root", request.flags.container_driver_root, True),
        ]
    if request.mps_configs:
        pairs["MPS_ROOT"] = request.mps_root
        # The plugin checks through shared memory and pipes whether the daemon is ready.
        volumes += [
            host_path("mps-root", request.mps_root, "DirectoryOrCreate"),
            host_path("mps-shm", f"{request.mps_root}/shm"),
        ]
        mounts += [mount("mps-root", "/mps"), mount("mps-shm", "/dev/shm")]
    spec: Object = {
        "containers": [
            _container(
                request,
                CONTAINER,
                ["nvidia-device-plugin"],
                {
                    "env": environment({**pairs, **request.environment}),
                    "volumeMounts": [*mounts, *_config_mounts(request)],
                    "securityContext": _plugin_security_context(request),
                },
            )
        ],
        "volumes": [*volumes, *_config_volumes(request)],
    }
    return _daemonset(
        request, NAME, CONTAINER, _with_manager(request, spec, "nvidia-device-plugin"), MARKER
    )


def _mps_affinity(request: Request) -> Object:
    """Return the affinity to the nodes whose label selects a config with MPS."""
    if not request.by_label:
        return not_paused()
    configs = request.mps_configs
    chosen = {"key": CONFIG_LABEL, "operator": "In", "values": configs}
    terms: list[list[Object]] = [[chosen]]
    if request.chosen in configs:
        terms.append([{"key": CONFIG_LABEL, "operator": "DoesNotExist"}])
    return {"nodeAffinity": away_from_paused(*terms)}


def mps_daemonset(request: Request) -> Object:
    """Return the MPS control daemon's DaemonSet, for the nodes whose config shares by MPS.

    Unlike the chart's, it does not need a label of GPU feature discovery.
    """
    flags = {
        key: value
        for key, value in _flag_environment(request).items()
        if key in ("CONFIG_FILE", "MIG_STRATEGY")
    }
    privileged = {"privileged": True}
    spec: Object = {
        # An MPS server finds its process ID in the host's /proc.
        "hostPID": True,
        "affinity": _mps_affinity(request),
        "initContainers": [
            _container(
                request,
                "mps-control-daemon-mounts",
                ["mps-control-daemon", "mount-shm"],
                {
                    "securityContext": privileged,
                    "volumeMounts": [
                        {**mount("mps-root", "/mps"), "mountPropagation": "Bidirectional"}
                    ],
                },
            )
        ],
        "containers": [
            _container(
                request,
                "mps-control-daemon",
                ["mps-control-daemon"],
                {
                    "env": [
                        from_field("NODE_NAME", "spec.nodeName"),
                        *environment({**flags, **driver_environment(request)}),
                    ],
                    "volumeMounts": [
                        mount("mps-shm", "/dev/shm"),
                        mount("mps-root", "/mps"),
                        *_config_mounts(request),
                    ],
                    "securityContext": privileged,
                },
            )
        ],
        "volumes": [
            host_path("mps-root", request.mps_root, "DirectoryOrCreate"),
            host_path("mps-shm", f"{request.mps_root}/shm"),
            *_config_volumes(request),
        ],
    }
    # hostPID makes a shared process namespace unnecessary.
    spec = _with_manager(request, spec, "mps-control-daemon", share=False)
    return _daemonset(request, MPS_NAME, MPS_NAME.removeprefix(PREFIX), spec, MARKER)


def discovery_security_context(request: Request) -> Object:
    """Return the context of GPU feature discovery's container."""
    if request.feature_discovery_privileged:
        return {"privileged": True}
    return unprivileged("SYS_ADMIN") if request.with_mig else unprivileged()


def discovery_daemonset(request: Request) -> Object:
    volumes = [host_path("host-sys", "/sys", "Directory")]
    mounts = [mount("host-sys", "/sys", True)]
    if not request.feature_discovery_api:
        volumes.insert(0, host_path("output-dir", _FEATURES, "DirectoryOrCreate"))
        mounts.insert(0, mount("output-dir", _FEATURES))
    flags = {
        key: value
        for key, value in _flag_environment(request).items()
        if key in ("CONFIG_FILE", "MIG_STRATEGY", "FAIL_ON_INIT_ERROR")
    }
    # Set either way: since v0.19 the default is the API (the plugin's CHANGELOG, #1504), and the
    # pod does not start without a token for it.
    flags["USE_NODE_FEATURE_API"] = request.feature_discovery_api
    spec: Object = {
        "containers": [
            _container(
                request,
                "gpu-feature-discovery",
                ["gpu-feature-discovery"],
                {
                    "env": [
                        from_field("NODE_NAME", "spec.nodeName"),
                        from_field("NAMESPACE", "metadata.namespace"),
                        from_field("POD_NAME", "metadata.name"),
                        *environment({**flags, **driver_environment(request)}),
                    ],
                    "volumeMounts": [*mounts, *_config_mounts(request)],
                    "securityContext": discovery_security_context(request),
                },
            )
        ],
        "volumes": [*volumes, *_config_volumes(request)],
    }
    if request.feature_discovery_api:
        spec["automountServiceAccountToken"] = True
    spec = _with_manager(request, spec, "gpu-feature-discovery")
    return _daemonset(request, DISCOVERY_NAME, DISCOVERY_NAME.removeprefix(PREFIX), spec, MARKER)
