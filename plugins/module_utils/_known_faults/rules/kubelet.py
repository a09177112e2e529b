# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of kubelet, of the runtimes below it, and of what an operator deploys. Data, not "
"code."""

from __future__ import annotations

from ..._core.finding import POSSIBLE
from ..codes import WRONG_MODULES
from ..types import Rule

READ = "2026-11-28"
_KUBELET = "kubelet's log, the events of a pod"

KUBELET = (
    Rule(
        "container_without_devices",
        r"couldn'?t communicate with the NVIDIA driver",
        "nvidia-smi in a container",
        "NVIDIA's kernel module is loaded on the node, and /dev/nvidiactl cannot be opened where "
        "the message was printed: the container was started without the device files, or its CDI "
        "specification was made before /dev/nvidia* existed. Or the message is older than the "
        "module.",
        "Run nvidia-smi on the node, which makes /dev/nvidia0, /dev/nvidiactl and "
        "/dev/nvidia-uvm (nvidia-modprobe -c0 -u); then delete the pod and its resource claim and "
        "make them again, so that the CDI specification is written again.",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1380",
        READ,
        when=("nvidia_known_loaded",),
        confidence=POSSIBLE,
        covers=("driver_not_loaded",),
    ),
    Rule(
        "containerd_drop_in_version",
        r"drop-in config version (?P<higher>\d) higher than root config version (?P<root>\d)",
        "containerd's journal",
        "containerd does not start: a file of its conf.d (the GPU operator's toolkit writes "
        "99-nvidia.toml) has the config version {higher}, and config.toml has the older version "
        "{root}.",
        "Migrate config.toml (containerd config migrate), or have the operator's toolkit write the "
        "version of the file: RUNTIME_CONFIG_SOURCE=file in toolkit.env.",
        "containerd: drop-in config version 4 higher than root config version 2",
        "github.com/NVIDIA/gpu-operator/issues/2646",
        READ,
        covers=("handler_missing", "cri_missing", "containerd_not_running"),
    ),
    Rule(
        "toolkit_too_old",
        r"unable to load config: unsupported config version: (?P<version>\d)",
        "the container nvidia-container-toolkit of the GPU operator",
        "The operator's container toolkit does not know config version {version} of this "
        "containerd: the toolkit is older than the runtime.",
        "Remove a pinned toolkit.version from the operator's values, or set a newer toolkit; "
        "1.18.1 reads version 3.",
        "Error: unable to load config: unsupported config version: 3",
        "github.com/NVIDIA/gpu-operator/issues/2060",
        READ,
    ),
    Rule(
        "cri_missing",
        r"CRI v1 runtime API is not implemented for endpoint (?P<endpoint>\S{1,120})",
        _KUBELET,
        "The container runtime at {endpoint} offers no CRI: containerd's CRI plugin is in "
        "disabled_plugins, or it did not load because of an error in config.toml, such as options "
        "of two config versions in one file.",
        "Check journalctl --unit containerd for 'failed to load plugin io.containerd.grpc.v1.cri', "
        "and correct config.toml (containerd config dump).",
        "validate service connection: CRI v1 runtime API is not implemented for endpoint "
        "unix:///run/containerd/containerd.sock",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/410",
        READ,
    ),
    Rule(
        "handler_missing",
        r"failed to find runtime handler (?P<handler>\S{1,60}) from runtime list map",
        "CRI-O, in the events of a pod",
        "CRI-O has no handler {handler}, which the runtimeClassName of the pod asks for. With "
        "CRI-O NVIDIA's operator uses OCI hooks, and no handler.",
        "Take runtimeClassName out of the pod, or give CRI-O the handler: the role "
        "nvidia_container_toolkit configures it.",
        "failed to find runtime handler nvidia from runtime list map [crun:0x0004dd5f0 runc: "
        "0xc0004dd790]",
        "github.com/NVIDIA/gpu-operator/issues/1298",
        READ,
        confidence=POSSIBLE,
    ),
    Rule(
        "taint_not_tolerated",
        r"(?:untolerated taint|had taint) "
        r"\{(?P<key>(?:nvidia\.com|amd\.com|gpu\.intel\.com)/[\w.-]{1,63})"
        r"(?:: ?(?P<value>[\w.-]{0,63}))?\}",
        "the scheduler, in the events of a pod (FailedScheduling)",
        "Nodes with GPUs have the taint {key}, which the pod does not tolerate, so that it is "
        "placed on none of them.",
        "Give the pod a toleration (key: {key}, operator: Exists). Some clusters, such as GKE, add "
        "it only to pods that ask for a GPU in limits.",
        "1 node(s) had untolerated taint {nvidia.com/gpu: present}",
        "github.com/vllm-project/aibrix/pull/909",
        READ,
    ),
    Rule(
        "topology_affinity",
        r"TopologyAffinityError|Resources cannot be allocated with Topology locality",
        _KUBELET,
        "kubelet refuses the pod: its GPUs and CPUs are not free on one NUMA node, as its "
        "topologyManagerPolicy demands. The scheduler does not know NUMA nodes.",
        "Delete the pod, so that it is scheduled again; keep small pods off the nodes of large "
        "ones, "
        "or "
        "take a weaker topologyManagerPolicy (restricted, best-effort).",
        "TopologyAffinityError: Resources cannot be allocated with Topology locality",
        "Kubernetes, pkg/kubelet/cm/topologymanager",
        READ,
    ),
    Rule(
        "smt_alignment",
        r"SMTAlignmentError|SMT Alignment Error",
        _KUBELET,
        "kubelet (cpuManagerPolicy static with full-pcpus-only) has not as many whole cores free "
        "as "
        "the pod asks for. After a restart of kubelet it may be that the pod's own CPUs were not "
        "counted.",
        "Delete the pod: its successor is admitted if the cores are free. Otherwise ask for a "
        "multiple of the threads of a core, or update kubelet (kubernetes PR 129079).",
        'reason="SMTAlignmentError" message="SMT Alignment Error: not enough free physical CPUs"',
        "github.com/kubernetes/kubernetes/issues/129078",
        READ,
        confidence=POSSIBLE,
    ),
    Rule(
        "kubelet_state_file",
        r"delete pod allocation checkpoint file \\?\"(?P<file>[\w./-]{1,120})",
        "kubelet's log",
        "kubelet does not start: its state file {file} is damaged.",
        "Drain the node, stop kubelet, delete only {file}, and start kubelet.",
        "please drain this node and delete pod allocation checkpoint file "
        '"/var/lib/kubelet/pod_status_manager_state" before restarting Kubelet',
        "github.com/kubernetes/kubernetes/issues/135711",
        READ,
    ),
    Rule(
        "inotify_limit",
        r"Failed to serve (?P<resource>[\w./-]{1,100}): too many open files"
        r"|inotify_init1?: too many open files",
        "the log of a device plugin",
        "The node has no inotify instance left, so that the device plugin cannot watch kubelet's "
        "socket.",
        "Raise fs.inotify.max_user_instances on the node (sysctl, for example 512), then restart "
        "the pod of the plugin.",
        "Failed to serve gpu.intel.com/i915_monitoring: too many open files",
        "github.com/intel/intel-device-plugins-for-kubernetes/issues/1915",
        READ,
    ),
    Rule(
        "pod_level_gpu",
        r"spec\.(?:template\.spec\.)?resources\.(?:limits|requests)"
        r"\[(?P<resource>[\w./-]{1,100})\]: Unsupported value",
        "the API server",
        "{resource} is asked for in the resources of the pod; there only cpu, memory and hugepages "
        "are allowed.",
        "Ask for {resource} in resources.limits of a container.",
        "spec.template.spec.resources.limits[gpu.intel.com/i915]: Unsupported value: "
        '"gpu.intel.com/i915"',
        "Kubernetes, pkg/apis/core/validation",
        READ,
    ),
    Rule(
        "device_class_missing",
        r"device class (?P<name>[\w.-]{1,100}) does not exist",
        "the scheduler, in the events of a pod with a resource claim",
        "The claim asks for the device class {name}, which the cluster does not have: the DRA "
        "driver "
        "is not installed, or it does not serve GPUs.",
        "Check kubectl get deviceclasses. NVIDIA's DRA driver makes {name} with "
        "resources.gpus.enabled: true, in some releases with "
        "gpuResourcesEnabledOverride: true as well (nvidia_dra_driver_enabled).",
        "request gpu: device class gpu.nvidia.com does not exist",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/338",
        READ,
    ),
    Rule(
        "gpu_operator_too_old",
        r"failed to determine major: invalid device node",
        "the validator of the GPU operator",
        "The GPU operator is older than the host's driver: it does not find the device number of "
        "nvidiactl in the form that the driver writes. The device files of the host are right.",
        "Update the GPU operator (24.3 or later; MicroK8s: microk8s enable gpu --version).",
        "failed to create device node nvidiactl: failed to determine major: invalid device node",
        "github.com/canonical/microk8s/issues/4556",
        READ,
    ),
    Rule(
        "mps_daemon_missing",
        r"using MPS requires --mps-root to be specified",
        "the log of NVIDIA's device plugin",
        "The device plugin is configured for MPS, and it is not told where the MPS control daemon "
        "works (--mps-root): that daemon is not deployed.",
        "Deploy the MPS control daemon and GPU feature discovery with the plugin: the role "
        "nvidia_device_plugin and NVIDIA's chart do it.",
        "unable to validate flags: using MPS requires --mps-root to be specified",
        "github.com/NVIDIA/k8s-device-plugin/issues/1132",
        READ,
    ),
    Rule(
        "could_not_reach_nvml",
        r"(?:nvml init failed: |Cannot init NVML library; err: )ERROR_LIBRARY_NOT_FOUND",
        "the log of NVIDIA's device plugin or dcgm-exporter",
        "libnvidia-ml.so.1 is not in the container: the pod does not run with the runtime "
        "nvidia, or "
        "the toolkit refuses NVIDIA_VISIBLE_DEVICES to unprivileged containers "
        "(accept-nvidia-visible-devices-envvar-when-unprivileged = false).",
        "Set runtimeClassName: nvidia for the pod, or make nvidia the default runtime. Where the "
        "toolkit refuses the variable: a release of the plugin that runs privileged (0.16.2 or "
        "later), or device lists by volume mounts.",
        'level=ERROR msg="Cannot init NVML library; err: ERROR_LIBRARY_NOT_FOUND"',
        "github.com/NVIDIA/k8s-device-plugin/issues/856, "
        "github.com/NVIDIA/dcgm-exporter/issues/612",
        READ,
        confidence=POSSIBLE,
    ),
    Rule(
        "amd_plugin_no_kfd",
        r"AMD GPU device plugin for Kubernetes(?:[^\n]{0,300}\n){1,8}[^\n]{0,200}Registering for "
        r"system signal notifications\s{0,20}\Z",
        "the log of AMD's device plugin",
        "AMD's device plugin has found no /sys/class/kfd and waits and logs nothing more: the "
        "driver "
        "amdgpu "
        "is not loaded on the node, or its kernel has no KFD.",
        "Check ls /sys/class/kfd and lsmod | grep amdgpu on the node. Without KFD take a kernel "
        "with "
        "CONFIG_HSA_AMD, or amdgpu-dkms.",
        "AMD GPU device plugin for Kubernetes\nStarting device plugin manager\nRegistering for "
        "system "
        "signal notifications",
        "github.com/ROCm/k8s-device-plugin/issues/42",
        READ,
        confidence=POSSIBLE,
    ),
    Rule(
        WRONG_MODULES,
        r"is not preferred driver: (?P<chosen>[\w-]{1,40})(?:[^\n]{0,200}\n){1,6}?[^\n]{0,120}"
        r"nvidia-smi' failed",
        "ghostdog, on Bottlerocket",
        "Bottlerocket has chosen the kernel modules {chosen}, with which nvidia-smi fails. "
        "Blackwell "
        "and later GPUs are served by the open modules only.",
        "Take a newer version or another variant of the Bottlerocket image, which knows this GPU; "
        "no package can be installed there.",
        "ghostdog[2337]: Error: open-gpu is not preferred driver: tesla\nnvidia-migmanager[2755]: "
        "'/usr/bin/nvidia-smi' failed - stderr:",
        "github.com/bottlerocket-os/bottlerocket/issues/4889",
        READ,
        confidence=POSSIBLE,
    ),
)
