# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of NVIDIA's device plugin and its discovery, and of pods that ask for GPUs. Data."""

from __future__ import annotations

from ..types import Rule

DEVICE_PLUGINS = (
    Rule(
        "could_not_reach_nvml",
        r"Detected non-NVML platform|could not load NVML library|ERROR_LIBRARY_NOT_FOUND"
        r"|Incompatible (?:platform|strategy) detected",
        "the device plugin's log",
        "The plugin found no NVML in its container: nvidia is not the default runtime and its pod "
        "has no runtimeClassName; or the node has no driver; or it has no GPU.",
        "Give the DaemonSet runtimeClassName: nvidia, or make nvidia the default runtime and "
        "delete the pod; keep the plugin off nodes without a GPU (label kubegpu.nodes/gpu). "
        "kubegpu.nodes.verify shows the cause.",
        "Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1: cannot open "
        "shared object file: No such file or directory\n"
        "Incompatible platform detected\nNo devices found. Waiting indefinitely.",
        covers=("no_plugin_devices", "plugin_gave_up"),
        # internal/plugin/manager/factory.go of v0.14.5 to v0.15.1; since v0.16.0 "strategy".
        outdated=(
            ("detected non-nvml platform", "the device plugin up to v0.15"),
            ("incompatible platform detected", "the device plugin up to v0.15"),
        ),
    ),
    Rule(
        "no_plugin_devices",
        r"No devices found\. Waiting indefinitely",
        "the device plugin's log",
        "The plugin runs, but found no GPU that it may offer.",
        "Keep it off nodes without a GPU (label kubegpu.nodes/gpu). On a GPU node, check "
        "nvidia-smi -L there, and at the plugin's MIG strategy.",
        "No devices found. Waiting indefinitely.",
        "github.com/NVIDIA/k8s-device-plugin/issues/1080",
        covers=("plugin_gave_up",),
    ),
    Rule(
        "plugin_gave_up",
        r"invalid device discovery strategy",
        "the device plugin's log",
        "The plugin ended, as it found neither NVML nor a Tegra system.",
        "Give the DaemonSet runtimeClassName: nvidia, or make nvidia the default runtime.",
        "error starting plugins: error getting plugins: unable to create plugins: failed to "
        "construct resource managers: invalid device discovery strategy",
        "github.com/NVIDIA/k8s-device-plugin/issues/1220",
    ),
    Rule(
        "discovery_no_token",
        r"failed to create clientsets:[^\n]{0,300}serviceaccount/token",
        "GPU feature discovery's log",
        "GPU feature discovery is to hand its labels over by the NodeFeature API, which is its "
        "default since v0.19, and its pod has no token for the API server.",
        "Run kubegpu.nodes.site (tag device_plugin), which says how labels are handed over; "
        "elsewhere, set USE_NODE_FEATURE_API=false in its container, or mount a token.",
        "failed to create clientsets: create client configuration: create in-cluster client "
        "configuration: open /var/run/secrets/kubernetes.io/serviceaccount/token: no such file or "
        "directory",
        "k8s-device-plugin v0.20.0, cmd/gpu-feature-discovery/main.go",
    ),
    Rule(
        "discovery_no_rights",
        r"failed to (?:get|create|update) NodeFeature object[^\n]{0,300}is forbidden",
        "GPU feature discovery's log",
        "GPU feature discovery may not write NodeFeature objects in its namespace.",
        "Give its service account get, list, watch, create and update on nodefeatures of "
        "nfd.k8s-sigs.io; nvidia_device_plugin_feature_discovery_api: true makes the Role.",
        "failed to get NodeFeature object: nodefeatures.nfd.k8s-sigs.io "
        '"nvidia-features-for-gpu1" is forbidden: User "system:serviceaccount:kubegpu:plugin" '
        'cannot get resource "nodefeatures" in API group "nfd.k8s-sigs.io"',
        "k8s-device-plugin v0.20.0, internal/lm/output.go, and the API server's own words",
    ),
    Rule(
        "discovery_no_api",
        r"failed to (?:get|create|update) NodeFeature object[^\n]{0,300}"
        r"could not find the requested resource",
        "GPU feature discovery's log",
        "The cluster has no NodeFeature API: node-feature-discovery is not installed, or is older "
        "than 0.12.",
        "Install node-feature-discovery, or let labels be handed over by a file: "
        "nvidia_device_plugin_feature_discovery_api: false.",
        'failed to create NodeFeature object "nvidia-features-for-gpu1": the server could not find '
        "the requested resource (post nodefeatures.nfd.k8s-sigs.io)",
        "k8s-device-plugin v0.20.0, internal/lm/output.go, and the API server's own words",
    ),
    Rule(
        "discovery_no_nvml",
        r"failed to create resource manager: unsupported strategy",
        "GPU feature discovery's log",
        "GPU feature discovery found no NVML in its container: the nvidia runtime did not start "
        "it, or the node has no driver.",
        "Check the device plugin's pod on the same node, which needs the same; "
        "kubegpu.nodes.verify shows what is missing.",
        "failed to create resource manager: unsupported strategy auto",
        "k8s-device-plugin v0.20.0, internal/resource/factory.go",
    ),
    Rule(
        "insufficient_gpu",
        r"(?:(?<!\d)(?P<count>\d{1,9}) )?Insufficient (?P<resource>(?:[\w-]+\.)+com/[\w.-]*\w)",
        "the scheduler, in a pod's events",
        "No node has {resource} to spare: all are taken, or no device plugin offers any.",
        "Compare capacity, allocatable and what pods have: kubegpu.nodes.verify says which of the "
        "two it is, and names the pods.",
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        "github.com/NVIDIA/k8s-device-plugin/issues/430",
        # In the events of one pod, which was placed later.
        over=r"default-scheduler\s{1,20}Successfully assigned",
    ),
    Rule(
        "allocation_failed",
        r"requested number of devices unavailable for (?P<resource>[\w./-]+\w)\.? "
        r"Requested: (?P<requested>\d+), Available: (?P<available>\d+)",
        "kubelet, in a pod's events (UnexpectedAdmissionError)",
        "The scheduler gave the pod a node on which kubelet has {available} of {requested} "
        "{resource} left: the device plugin went, or a GPU became unhealthy, in between.",
        "Check the device plugin's log on that node; delete the pod, and it is scheduled again.",
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 1, Available: 0, which is unexpected",
        "kubelet's own words",
    ),
    Rule(
        "gpu_limit_missing",
        r"Limit must be set for non overcommitable resources",
        "the API server",
        "A GPU is given in requests alone, which Kubernetes refuses.",
        "Give it in limits (requests may be left out, or must be equal). The filter "
        "kubegpu.nodes.gpu_resources_check checks a pod.",
        "spec.containers[0].resources.limits: Required value: Limit must be set for non "
        "overcommitable resources",
        "the API server's own words",
    ),
    Rule(
        "gpu_request_differs",
        r"must be equal to (?P<resource>(?:[\w-]+\.)+com/[\w.-]+) limit",
        "the API server",
        "Request and limit of {resource} differ, which Kubernetes refuses.",
        "Leave the request out, or make it equal to the limit.",
        'spec.containers[0].resources.requests: Invalid value: "1": must be equal to '
        "nvidia.com/gpu limit",
        "the API server's own words",
    ),
    Rule(
        "kubelet_socket_denied",
        r"device-plugins/kubelet\.sock[^\n]{0,40}permission denied",
        "a device plugin's log",
        "The device plugin may not open kubelet's socket: it does not run as root, or SELinux "
        "refuses it because kubelet runs with another label.",
        "Run the pod's container as root. With SELinux see ps -AZ | grep kubelet and ausearch -m "
        "avc -ts recent: a kubelet of type unconfined_service_t was started from a program with "
        "another label; restorecon its program and restart it, or update OpenShift.",
        "dial unix /var/lib/kubelet/device-plugins/kubelet.sock: connect: permission denied",
        "github.com/intel/intel-technology-enabling-for-openshift/issues/225",
        "2026-11-28",
    ),
)
