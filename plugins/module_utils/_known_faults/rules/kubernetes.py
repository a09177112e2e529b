# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Error messages of kubelet, the API server, the device plugin and the toolkit's CDI. Data.

Messages of the scheduler about nodes (affinity, cordoned nodes) have no row: they summarise all
nodes, so the nodes are inspected instead, and the message is quoted. Only a taint of nodes with
GPUs has one, in the table of kubelet's messages.
"""

from __future__ import annotations

from ..._core.finding import WARNING
from ..types import Rule

READ = "2026-11-23"
_PLUGIN = "the device plugin's log"
_PLUGIN_SOURCE = "github.com/NVIDIA/k8s-device-plugin v0.20.0: "
_TOOLKIT_SOURCE = "github.com/NVIDIA/nvidia-container-toolkit v1.20.0: "
_RESOURCE = r"(?:[\w-]{1,63}\.){1,20}com/[\w.-]{1,63}"

CLUSTER = (
    Rule(
        "mps_daemon_missing",
        r"error waiting for MPS daemon",
        _PLUGIN,
        "The plugin shares GPUs by MPS, and the MPS control daemon on the node does not answer.",
        "See that the DaemonSet of the MPS control daemon has a pod on this node and what its log "
        "says; it has to use the same folder (nvidia_device_plugin_mps_root).",
        "error starting plugins: error waiting for MPS daemon: error checking MPS daemon health: "
        "failed to send command to MPS daemon: exit status 1",
        f"{_PLUGIN_SOURCE}internal/plugin/server.go; issues 983, 1094",
        READ,
        covers=("plugin_gave_up",),
    ),
    Rule(
        "gpu_unhealthy",
        r"Xid=(?P<xid>\d{1,5}) on Device=(?P<one>[\w-]{1,80}); marking device as unhealthy"
        r"|device marked unhealthy: (?P<two>[\w-]{1,80})"
        r"|Marking device (?P<three>[\w-]{1,80}) as unhealthy"
        r"|Marking all devices as unhealthy",
        _PLUGIN,
        "The device plugin no longer offers the GPU {one}{two}{three}: it is unhealthy.",
        "Look for Xid in the kernel's log of the node (dmesg), and at nvidia-smi -q; after a "
        "repair delete the plugin's pod there, as it does not take a GPU back by itself.",
        "XidCriticalError: Xid=69 on Device=GPU-5ca1ab1e-0000-4000-8000-000000000001; marking "
        "device as unhealthy.",
        f"{_PLUGIN_SOURCE}internal/rm/health.go, internal/plugin/server.go",
        READ,
    ),
    Rule(
        "mig_pending",
        r"MIG mode is in pending (?P<what>enable|disable) state for GPU "
        r"(?P<address>[0-9A-F:.]{4,20}\d)"
        r"|Mode change pending: true|At least one mode change pending"
        r"|could not be reset:[^\n]{0,20}\n(?:[^\n]{0,600}\n){1,40}?[^\n]{0,200}Error applying MIG",
        "nvidia-smi -mig, NVIDIA's MIG manager",
        "The MIG mode of the GPU {address} was changed and counts only after the GPU's next reset, "
        "which "
        "did not happen: a program or a module uses the GPU, or the machine is a guest that may "
        "not "
        "reset it.",
        "Stop what uses the GPU (nvidia-smi, DCGM, the device plugin, nvidia-persistenced; "
        "modprobe -r "
        "nvidia_drm), then nvidia-smi --gpu-reset -i GPU. In a virtual machine, or where the reset "
        "is refused, reboot the drained node; the GPU operator's MIG manager does so with the "
        "variable WITH_REBOOT=true.",
        "Warning: MIG mode is in pending enable state for GPU 00000001:00:00.0:In use by another "
        "client",
        "github.com/NVIDIA/gpu-operator/issues/1845, 668; github.com/NVIDIA/mig-parted/issues/181",
        "2026-11-28",
        WARNING,
        covers=("driver_in_use",),
    ),
    Rule(
        "dra_mig_left",
        r"MIG devices found that aren't prepared to any claim",
        "the kubelet plugin of NVIDIA's DRA driver",
        "The GPUs of the node have MIG devices that no claim of the DRA driver made: an "
        "administrator, the MIG manager or an earlier run left them, and the driver does not "
        "start.",
        "On the drained node: nvidia-smi -L lists them; remove them with nvidia-smi mig -dci and "
        "nvidia-smi mig -dgi, and see that no MIG manager makes them again. Then delete the "
        "plugin's pod.",
        "Error: unable to sync prepared devices from CRD: MIG devices found that aren't prepared "
        "to any claim",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/149",
        "2026-11-28",
    ),
    Rule(
        "mig_without_instances",
        r"device (?P<index>\d{1,3}) has no MIG devices configured"
        r"|MIG mode (?:is )?enabled, but no MIG devices (?:were )?found",
        _PLUGIN,
        "The GPU {index} has its MIG mode on and no MIG device; with the strategy single the "
        "plugin stops, with mixed it offers nothing of this GPU.",
        "Make instances (nvidia-smi mig -cgi ... -C), or turn the mode off (nvidia-smi -i {index} "
        "-mig 0).",
        "at least one device with migEnabled=true was not configured correctly: device 0 has no "
        "MIG devices configured",
        f"{_PLUGIN_SOURCE}internal/rm/device_map.go",
        READ,
    ),
    Rule(
        "mig_not_uniform",
        r"more than one MIG device type present on node",
        _PLUGIN,
        "The MIG devices of the node are of several profiles, which the strategy single does not "
        "allow.",
        "Use the strategy mixed (nvidia_device_plugin_mig_strategy, or migStrategy of a config), "
        "or divide all GPUs of the node alike.",
        "invalid MIG configuration: more than one MIG device type present on node",
        f"{_PLUGIN_SOURCE}internal/rm/device_map.go",
        READ,
    ),
    Rule(
        "mig_strategy_unknown",
        r"unknown MIG strategy: (?P<strategy>[^\s\\\"]{1,60})",
        _PLUGIN,
        "The plugin knows no MIG strategy {strategy}.",
        "Write none, single or mixed (nvidia_device_plugin_mig_strategy, or migStrategy of a "
        "config).",
        "unknown MIG strategy: singel",
        f"{_PLUGIN_SOURCE}cmd/nvidia-device-plugin/main.go",
        READ,
    ),
    Rule(
        "plugin_server_crashes",
        r"GRPC server for '(?P<resource>[^'\n]{1,120})' has repeatedly crashed recently",
        _PLUGIN,
        "The plugin's server for {resource} fails again and again, and the plugin ended.",
        "Check the lines before it in the plugin's log, and kubelet's journal on the node; "
        "see that its folder /var/lib/kubelet/device-plugins is there.",
        "GRPC server for 'nvidia.com/gpu' has repeatedly crashed recently. Quitting",
        f"{_PLUGIN_SOURCE}internal/plugin/server.go",
        READ,
    ),
    Rule(
        "no_healthy_devices",
        r"(?:no healthy devices present|previously allocated devices are no longer healthy); "
        rf"cannot allocate unhealthy devices (?P<resource>{_RESOURCE})",
        "kubelet, in a pod's events (UnexpectedAdmissionError)",
        "kubelet had no healthy {resource} when the pod came: the device plugin had not registered "
        "yet, as after a reboot, or all GPUs are unhealthy.",
        "See that the device plugin runs on the node and offers GPUs, then delete the pod: it does "
        "not start by itself again.",
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
        "nvidia.com/gpu, which is unexpected",
        "kubernetes pkg/kubelet/cm/devicemanager/manager.go",
        READ,
    ),
    Rule(
        "taken_at_admission",
        rf"\bOutOf(?P<one>{_RESOURCE})"
        rf"|Node didn't have enough resource: (?P<two>{_RESOURCE})",
        "kubelet, in a pod's status and events",
        "kubelet refused the pod: the node had no {one}{two} left when it came, though the "
        "scheduler had counted one.",
        "Check the device plugin's log on that node (it restarted, or a GPU became "
        "unhealthy); delete the pod, and it is scheduled again.",
        "OutOfnvidia.com/gpu: Node didn't have enough resource: nvidia.com/gpu, requested: 1, "
        "used: 0, capacity: 0",
        "kubernetes pkg/kubelet/lifecycle/predicate.go",
        READ,
    ),
    Rule(
        "pod_security",
        r"violates PodSecurity \W{0,8}(?P<level>[\w.:-]{1,60})\W{0,8}: (?P<what>[^\n]{1,200})",
        "the API server, also in the events of a DaemonSet (FailedCreate)",
        "The namespace's Pod Security level {level} does not allow the pod: {what}.",
        "Label the namespace for what the pod needs: kubectl label namespace ... "
        "pod-security.kubernetes.io/enforce=privileged for a device plugin; or use another one.",
        'pods "kubegpu-nvidia-device-plugin-x" is forbidden: violates PodSecurity '
        '"baseline:latest": hostPath volumes (volume "device-plugins")',
        "kubernetes staging/src/k8s.io/pod-security-admission",
        READ,
    ),
    Rule(
        "quota_exceeded",
        r"exceeded quota: (?P<quota>[\w.-]{1,253}), requested: (?P<requested>[^\n]{1,120}?), used: "
        r"(?P<used>[^\n]{1,120}?), limited: (?P<limited>[^\n\\\"]{1,120})",
        "the API server, also in the events of a DaemonSet (FailedCreate)",
        "The quota {quota} of the namespace is used up: requested {requested}, used {used} of "
        "{limited}.",
        "Raise the quota, free some of it, or use another namespace.",
        'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: '
        "requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4",
        "kubernetes plugin/pkg/admission/resourcequota",
        READ,
    ),
    Rule(
        "quota_needs_limits",
        r"failed quota: (?P<quota>[\w.-]{1,253}): must specify (?P<what>[^\n\\\"]{1,200})",
        "the API server, also in the events of a DaemonSet (FailedCreate)",
        "The quota {quota} of the namespace counts what the pod does not set: {what}.",
        "Set it in the pod, give the namespace a LimitRange with defaults, or use another one.",
        'pods "x" is forbidden: failed quota: q: must specify limits.cpu for: test',
        "kubernetes plugin/pkg/admission/resourcequota",
        READ,
    ),
    Rule(
        "priority_class_quota",
        r"insufficient quota to match these scopes",
        "the API server, also in the events of a DaemonSet (FailedCreate)",
        "The priority class of the pod is limited to namespaces with a quota for it: usually "
        "system-node-critical outside of kube-system, as on GKE.",
        "Make a ResourceQuota in the namespace with a scopeSelector for that priority class, or "
        "choose another one (nvidia_device_plugin_pods.priority_class).",
        'pods "x" is forbidden: error determining quota: insufficient quota to match these scopes: '
        "[{PriorityClass In [system-node-critical system-cluster-critical]}]",
        "kubernetes plugin/pkg/admission/resourcequota",
        READ,
    ),
    Rule(
        "plugin_folder_missing",
        r"hostPath type check failed: (?P<folder>/[\w./-]{1,200}/device-plugins) "
        r"is not a directory",
        "kubelet, in the events of a device plugin's pod",
        "The pod mounts {folder}, which is not on the node: kubelet's folder of device plugins is "
        "/var/lib/kubelet/device-plugins, even if --root-dir is another one (k0s).",
        "Mount /var/lib/kubelet/device-plugins from the node: correct the chart's values or the "
        "manifest. If a role of this collection deployed the pod, run that role again.",
        'MountVolume.SetUp failed for volume "device-plugins" : hostPath type check failed: '
        "/var/lib/k0s/kubelet/device-plugins is not a directory",
        "github.com/k0sproject/k0s/issues/7585",
        READ,
    ),
    Rule(
        "dra_driver_root",
        r"failed to locate driver libraries: error locating \W{0,4}(?P<library>libnvidia-ml[\w.]*)",
        "the kubelet plugin of NVIDIA's DRA driver",
        "The DRA driver's kubelet plugin does not find {library} below its driver root: the node "
        "has no driver, or the root is another one.",
        "See that nvidia-smi works on the node, then set nvidiaDriverRoot in the chart's values: / "
        "for a driver of the node, /run/nvidia/driver for that of the GPU operator.",
        "error creating driver: failed to create device library: failed to locate driver "
        'libraries: error locating "libnvidia-ml.so.1"',
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/65",
        READ,
    ),
    Rule(
        "admission_failed",
        r"UnexpectedAdmissionError",
        "kubelet, in a pod's status and events",
        "kubelet refused the pod when it came to the node: the device plugin did not give it what "
        "the scheduler had counted.",
        "Check the device plugin's log on that node; delete the pod, and it is scheduled again.",
        "UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unavailable",
        "kubernetes pkg/kubelet/cm/devicemanager",
        READ,
        last_resort=True,
    ),
    Rule(
        "dra_api_version",
        r"failed to fetch ResourceClaim (?P<claim>\S{1,253}) referenced by pod \S{1,253}: the "
        r"server could not find the requested resource",
        "kubelet",
        "kubelet cannot read the ResourceClaim {claim}: it asks for a version of resource.k8s.io "
        "that the API server does not serve.",
        "Compare the version of kubelet (kubectl get nodes) with that of the API server (kubectl "
        "version), and kubectl api-versions | grep resource.k8s.io: upgrade kubelet to the "
        "server's release, or let the server serve the older version too (--runtime-config).",
        "Failed to prepare dynamic resources: failed to fetch ResourceClaim x referenced by pod y: "
        "the server could not find the requested resource",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/766",
        "2026-11-28",
    ),
    Rule(
        "dra_driver_not_registered",
        r"DRA driver (?P<driver>[\w.-]{1,253}) is not registered",
        "kubelet",
        "kubelet has no DRA driver {driver}: its kubelet plugin does not run on the node, or has "
        "its socket in another folder.",
        "See the DRA driver's kubelet plugin on that node (kubectl get pods -A -o wide | grep "
        "kubelet-plugin), its log, and that it mounts kubelet's folder plugins_registry. The pod "
        "is tried again by itself.",
        "prepare dynamic resources: DRA driver compute-domain.nvidia.com is not registered",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/814",
        "2026-11-28",
    ),
)
