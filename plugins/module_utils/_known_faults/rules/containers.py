# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of tools when a GPU container does not run, and their causes. Data, not code.

Each row names its source. Rows are in order of precedence, the most specific ones first.
"""

from __future__ import annotations

from ..._core.finding import ERROR, WARNING
from ..._nvidia.xids_data import REBOOT_STEP
from ..types import Rule
from .nvidia_kernel import MISMATCHES

_NO_NVML = ("could_not_reach_nvml", "no_plugin_devices", "plugin_gave_up")
_RUNTIME_STEP = (
    "Run kubegpu.nodes.site (or the role nvidia_container_toolkit) for this node: it installs the "
    "toolkit and configures the runtimes."
)

CUDA_CONDITION = "unmet_requirement"
CUDA_RUNTIME = "cuda_driver_insufficient"
#: In a guest whose virtual GPU has no licence, that is the cause.
BUSY = "gpu_busy"


def _fabric_nothing_to_do(
    cause: str, next_step: str, when: tuple[str, ...], severity: str = ERROR, fix: str = ""
) -> Rule:
    return Rule(
        "fabric_nothing_to_do",
        r"NV_WARN_NOTHING_TO_DO",
        "the log of NVIDIA's fabric manager",
        cause,
        next_step,
        "request to query NVSwitch device information from NVSwitch driver failed with "
        "error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
        "github.com/data-infra/cube-studio/issues/29",
        severity=severity,
        when=when,
        family="fabric_nothing_to_do",
        fix=fix,
        covers=("fabric_not_ready",),
    )


GENERAL = (
    Rule(
        CUDA_CONDITION,
        r"unsatisfied condition:\s*(?P<condition>[^\s,\\:()]+(?:\s*[<>=!]+\s*[^\s,\\:()]+)?)",
        "nvidia-container-cli or the nvidia runtime, when a container starts",
        "The image demands {condition}, which this node does not meet.",
        "Use an image whose demands the node meets: they are in the image's NVIDIA_REQUIRE_CUDA.",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.3, please update "
        "your driver to a newer version, or use an earlier cuda container",
    ),
    Rule(
        CUDA_RUNTIME,
        r"CUDA driver version is insufficient for CUDA runtime version",
        "a CUDA program (cudaErrorInsufficientDriver)",
        "The program was built with a newer CUDA than the node's driver runs.",
        "Use an image with an older CUDA, or install a newer driver.",
        "CUDA driver version is insufficient for CUDA runtime version",
        "github.com/NVIDIA/nvidia-docker/issues/317",
    ),
    Rule(
        "ptx_toolchain",
        r"provided PTX was compiled with an unsupported toolchain",
        "a CUDA program",
        "The driver runs this CUDA by minor-version compatibility only, and the program brings "
        "code (PTX) that the driver would have to compile: for that it is too old.",
        "Install the driver that this CUDA came with, or use an image with the driver's own CUDA.",
        "the provided PTX was compiled with an unsupported toolchain",
        "NVIDIA's CUDA compatibility guide",
    ),
    Rule(
        "no_kernel_image",
        r"no kernel image is available for execution on the device",
        "a CUDA program",
        "The program has no code for this generation of GPU: its CUDA is too old for the GPU, or "
        "has dropped it.",
        "Use an image that was built for this GPU's generation; the filter "
        "kubegpu.nodes.driver_required_by names the generations that a CUDA dropped.",
        "no kernel image is available for execution on the device",
        "NVIDIA's CUDA runtime errors (209)",
    ),
    Rule(
        "fabric_manager_version",
        r"interface version (?P<own>[\d.]+\d) do(?:es)?n['\u2019]t match with (?:the )?"
        r"driver version (?P<loaded>[\d.]+\d)",
        "the log of NVIDIA's fabric manager",
        "The fabric manager is {own}, and the driver that is loaded is {loaded}: the "
        "versions must match exactly; otherwise CUDA reports error 802.",
        "Run kubegpu.nodes.site for this node with the requested driver (nvidia_driver_branch): "
        "role nvidia_driver keeps both at one version. By hand: install nvidia-fabricmanager in "
        "version {loaded}, or reboot where the driver's packages are {own}.",
        "fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver "
        "version 550.120. Please update with matching NVIDIA driver package.",
        "github.com/akash-network/website/pull/632",
        covers=("fabric_not_ready",),
    ),
    _fabric_nothing_to_do(
        "The fabric manager found no NVSwitch: it is a board with NVLink 5 (B200, B300), and what "
        "reaches its switches is missing.",
        "Install nvlsm and infiniband-diags, and modprobe ib_umad (linux-modules-extra-<kernel> on "
        "Ubuntu has it); role nvidia_driver does it.",
        ("has_nvswitch",),
    ),
    _fabric_nothing_to_do(
        "The fabric manager found no NVSwitch: this machine has none and needs no fabric manager.",
        "Turn it off: systemctl disable --now nvidia-fabricmanager (nvidia_driver_fabric: false).",
        ("not has_nvswitch",),
        severity=WARNING,
        fix="nvidia_driver_fabric: false; systemctl disable --now nvidia-fabricmanager",
    ),
    Rule(
        "fabric_not_ready",
        r"system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY",
        "a CUDA program (error 802)",
        "GPUs behind NVSwitch cannot be used before the fabric manager has set up the switches, "
        "and it does not run or is of another version than the driver.",
        "Install nvidia-fabricmanager in the driver's very version, then: systemctl enable --now "
        "nvidia-fabricmanager.",
        "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not "
        "yet initialized",
        "github.com/dstackai/dstack/issues/2348",
    ),
    Rule(
        "forward_compatibility",
        r"forward compatibility was attempted on non supported HW",
        "a CUDA program (error 804)",
        "The image brings its own newer CUDA driver library (cuda-compat), which works on "
        "data-centre GPUs only.",
        "Install a newer driver on the node, or remove cuda-compat from the image.",
        "Error 804: forward compatibility was attempted on non supported HW",
        "github.com/gpustack/gpustack/issues/1254",
    ),
    Rule(
        BUSY,
        r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy",
        "a CUDA program",
        "Another program holds the GPU alone, its compute mode is exclusive or prohibited, or its "
        "MIG mode is on without an instance.",
        "Check nvidia-smi -q -d COMPUTE and the processes that nvidia-smi lists.",
        "Failed to allocate device vector A (error code CUDA-capable device(s) is/are busy or "
        "unavailable)!",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/614",
    ),
    Rule(
        "no_cuda_device",
        r"no CUDA-capable device is detected",
        "a CUDA program",
        "The container has the driver's libraries, but no GPU was given to it.",
        "Ask for a GPU: limits: {{nvidia.com/gpu: 1}} in Kubernetes, --gpus or "
        "NVIDIA_VISIBLE_DEVICES elsewhere.",
        "Failed to allocate device vector A (error code no CUDA-capable device is detected)!",
        "NVIDIA's CUDA runtime errors (100)",
    ),
    Rule(
        "docker_no_gpu_driver",
        r"could not select device driver \W{0,16}(?:cdi)?\W{0,16} with capabilities"
        # Docker 29 says it where NVIDIA's driver was not registered when dockerd started.
        r"|failed to discover GPU vendor from CDI: no known GPU vendor found",
        "docker run --gpus, or --device nvidia.com/gpu",
        "The container toolkit is not installed, or dockerd was not restarted since it was: "
        "dockerd looks for it once, when it starts.",
        "Install the toolkit and configure Docker (role nvidia_container_toolkit), then: systemctl "
        "restart docker.",
        'docker: Error response from daemon: could not select device driver "" with capabilities: '
        "[[gpu]].",
    ),
    Rule(
        "hook_missing",
        r"nvidia-container-(?:runtime-hook|toolkit)\W{0,16}: "
        r"(?:executable file not found|no such file or directory)",
        "runc, when a container starts",
        "The nvidia runtime calls its hook (nvidia-container-runtime-hook), which is not there: "
        "the toolkit is only partly installed.",
        "Install the package nvidia-container-toolkit (it has the hook; "
        "nvidia-container-toolkit-base has not). " + _RUNTIME_STEP,
        'exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
        "github.com/NVIDIA/nvidia-docker/issues/1190 (the same for the runtime)",
    ),
    Rule(
        "runtime_missing",
        r"(?:exec(?:ute)?:? [^\w/.-]{0,16}|fork/exec |stat )"
        r"(?P<path>[\w/.-]{0,200}?nvidia-container-runtime(?!-hook)[\w.-]{0,40})[^\w.-]{0,16}: "
        r"(?:executable file not found|no such file or directory)"
        r"|(?<![\w/.-])(?P<other>[\w/.-]{0,200}?nvidia-container-runtime(?!-hook)[\w.-]{0,40})"
        r"[^\w.-]{0,16}: (?:not found|no such program)",
        "containerd's shim or dockerd, when a container starts",
        "The nvidia runtime is configured, but its program {path}{other} is not on this node.",
        "Install the container toolkit. " + _RUNTIME_STEP,
        "OCI runtime create failed: unable to retrieve OCI runtime error: exec: "
        '"nvidia-container-runtime": executable file not found in $PATH: unknown',
        "github.com/NVIDIA/nvidia-docker/issues/1190",
    ),
    Rule(
        "container_cli_missing",
        r"exec: [^\w/.-]{0,16}[\w/.-]{0,200}?nvidia-container-cli[^\w.-]{0,16}: "
        r"(?:executable file not found|no such file or directory)",
        "the toolkit's hook",
        "The toolkit's hook calls nvidia-container-cli, which is not on this node.",
        "Install the package libnvidia-container-tools in the toolkit's version. " + _RUNTIME_STEP,
        'exec: "nvidia-container-cli": executable file not found in $PATH',
        "the toolkit's own words",
    ),
    Rule(
        "nvidia_smi_missing",
        r"exec: \W{0,16}nvidia-smi\W{0,16}: executable file not found"
        r"|nvidia-smi: (?:command )?not found",
        "container start",
        "The container was started without --gpus or without the nvidia runtime, so that nothing "
        "of the driver was put into it; or the node has no nvidia-smi.",
        "Start it with --gpus all (Docker), runtimeClassName: nvidia or nvidia as the default "
        "runtime (Kubernetes). See that nvidia-smi works on the node itself, and that "
        "NVIDIA_DRIVER_CAPABILITIES has utility.",
        'exec: "nvidia-smi": executable file not found in $PATH',
    ),
    *MISMATCHES,
    Rule(
        "nvml_unknown_error",
        r"Failed to initialize NVML: Unknown Error",
        "nvidia-smi in a container that worked before",
        "The container lost its devices: systemctl daemon-reload rewrote the device rules of its "
        "control group.",
        "Start the container again. To keep it from happening: give devices by CDI, or make links "
        "in /dev/char (nvidia-ctk system create-dev-char-symlinks --create-all).",
        "Failed to initialize NVML: Unknown Error",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1227",
        when=("not just_started", "not no_cgroups"),
        family="container_devices",
    ),
    Rule(
        "container_no_cgroups",
        r"Failed to initialize NVML: Unknown Error",
        "nvidia-smi in a container that was started by root",
        "The toolkit gives a container no right to its devices: no-cgroups is true in "
        "/etc/nvidia-container-runtime/config.toml, which suits engines without root only.",
        "Set no-cgroups = false in the section nvidia-container-cli of "
        "/etc/nvidia-container-runtime/config.toml, and start the container again. An engine "
        "without root uses CDI instead.",
        "Failed to initialize NVML: Unknown Error",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/580",
        when=("no_cgroups",),
        family="container_devices",
        fix="nvidia_container_toolkit_settings: {{nvidia-container-cli.no-cgroups: false}}",
    ),
    Rule(
        "container_devices_denied",
        r"Failed to initialize NVML: Unknown Error",
        "nvidia-smi in a container that has only just started",
        "The container has only just started, and its control group does not allow the GPU's "
        "device files: it was started without them.",
        "Check no-cgroups in /etc/nvidia-container-runtime/config.toml (false for an engine with "
        "root), and give devices by CDI.",
        "Failed to initialize NVML: Unknown Error",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/580",
        when=("just_started", "not no_cgroups"),
        family="container_devices",
    ),
    Rule(
        "driver_not_loaded",
        r"couldn'?t communicate with the NVIDIA driver|driver not loaded"
        r"|NVML: DriverNotLoaded",
        "nvidia-smi, nvidia-container-cli",
        "NVIDIA's kernel module is not loaded on the node.",
        "Run kubegpu.nodes.site for this node: role nvidia_driver loads it, or says why it cannot.",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1269",
    ),
    Rule(
        "driver_libraries_missing",
        r"nvidia-container-cli(?:\.real)?: initialization error: load library failed: "
        r"(?P<library>[\w.-]+)",
        "nvidia-container-cli, when a container starts",
        "The driver's library {library} is not on the node, or not in its loader's cache: no "
        "driver is installed.",
        "Run kubegpu.nodes.site for this node (role nvidia_driver); with a driver in another "
        "place, set nvidia-container-cli.root in the toolkit's config.toml. The toolkit of the GPU "
        "operator (nvidia-container-cli.real) may search /run/nvidia/driver: if the driver is the "
        "node's, set driver.enabled: false in the operator's values, so that the root is /.",
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
        "cannot open shared object file: no such file or directory",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/154",
        covers=_NO_NVML,
    ),
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
        r"(?:(?<!\d)(?P<count>\d{1,9}) )?Insufficient (?P<resource>(?:[\w-]+\.)+com/[\w.-]+)",
        "the scheduler, in a pod's events",
        "No node has {resource} to spare: all are taken, or no device plugin offers any.",
        "Compare capacity, allocatable and what pods have: kubegpu.nodes.verify says which of the "
        "two it is, and names the pods.",
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
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
        "handler_missing",
        r"no runtime for \W{0,8}(?P<one>[\w.-]+)\W{0,8} is configured"
        r"|RuntimeHandler \W{0,8}(?P<two>[\w.-]+)\W{0,8} not supported"
        r"|unknown or invalid runtime name: (?P<three>[\w.-]+)"
        r"|unknown runtime specified (?P<four>[\w.-]+)"
        # CRI-O, internal/oci/oci.go:115 of 1.36; "from runtime list map[crun:... runc:...]".
        r"|failed to find runtime handler (?P<five>[\w.-]+) from runtime list",
        "containerd, CRI-O, dockerd or kubelet, when a pod or container starts",
        "The container runtime of the node knows no handler {one}{two}{three}{four}{five}: it is "
        "not configured, or the runtime was not restarted since.",
        _RUNTIME_STEP,
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox "
        'runtime: no runtime for "nvidia" is configured',
        "github.com/NVIDIA/gpu-operator/issues/730",
        outdated=(
            ("runtimehandler", "kubelet's dockershim, which Kubernetes had up to 1.23"),
            ("unknown runtime specified", "Docker up to 20.10"),
        ),
    ),
    Rule(
        "runtime_class_missing",
        r"RuntimeClass(?:\.node\.k8s\.io)? \W{0,8}(?P<name>[\w.-]+?)\W{0,8} not found",
        "the API server or kubelet",
        "The cluster has no RuntimeClass {name}.",
        "Run the role nvidia_device_plugin: it creates it; or apply one with handler: {name}.",
        'pod rejected: RuntimeClass "nvidia" not found',
        "the API server's own words",
    ),
    Rule(
        "cdi_device_unknown",
        r"unresolvable CDI devices?\s+(?P<device>[\w./=:-]+\w)",
        "the nvidia runtime, containerd or dockerd",
        "The container engine finds the device {device} in no CDI specification: there is none, it "
        "was made for other GPUs or another driver, or the engine is too old for its version.",
        "Run nvidia-ctk cdi list. If it lacks the device, make the specification again: nvidia-ctk "
        "cdi generate --output=/var/run/cdi/nvidia.yaml (module cdi_specification). If it lists "
        "the device, compare cdiVersion in that file with what the engine reads (0.7.0 needs a "
        "newer engine), and upgrade the engine.",
        "could not apply required modification to OCI specification: error modifying OCI spec: "
        "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all: unknown",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/434",
    ),
    Rule(
        "device_unknown",
        r"nvidia-container-cli(?:\.real)?: device error: (?P<device>[\w.:-]+): unknown device",
        "nvidia-container-cli, when a container starts",
        "The container asks for the GPU {device}, which this node does not have.",
        "Compare with nvidia-smi -L; after a GPU was changed, its UUID is another one.",
        "nvidia-container-cli: device error: GPU-5ca1ab1e-0000-4000-8000-000000000009: unknown "
        "device",
        "libnvidia-container's own words",
    ),
    Rule(
        "ldconfig_failed",
        r"nvidia-container-cli(?:\.real)?: ldcache error",
        "nvidia-container-cli, when a container starts",
        "The toolkit could not run ldconfig for the container.",
        "Set nvidia-container-cli.ldconfig in /etc/nvidia-container-runtime/config.toml to the "
        "node's own: @/sbin/ldconfig, or @/sbin/ldconfig.real on Ubuntu.",
        "nvidia-container-cli: ldcache error: process /usr/sbin/ldconfig failed with error code: 1",
        "github.com/NVIDIA/libnvidia-container/issues/177",
    ),
    Rule(
        "cgroup_rootless",
        r"failed to add device rules: .{0,200}?(?:operation not permitted|permission denied)",
        "nvidia-container-cli, when a container starts",
        "The container engine runs without root and may not change the devices of a control group.",
        "Set no-cgroups = true in the section nvidia-container-cli of the toolkit's configuration "
        "(nvidia_container_toolkit_settings), or use CDI, which needs no such rule.",
        "nvidia-container-cli: mount error: failed to add device rules: unable to generate new "
        "device filter program from existing programs: load program: operation not permitted",
        "NVIDIA's container toolkit: rootless mode",
        covers=("cgroup_rules",),
    ),
    Rule(
        "cgroup_rules",
        r"cgroup subsystem devices not found|failed to add device rules",
        "nvidia-container-cli, when a container starts",
        "The toolkit is older than the node's control groups (version 2).",
        "Upgrade the container toolkit to 1.8 or later.",
        "nvidia-container-cli: container error: cgroup subsystem devices not found: unknown",
        "libnvidia-container's own words",
    ),
    Rule(
        "no_devices",
        r"No devices were found",
        "nvidia-smi",
        "The driver is loaded and found no GPU that it can drive: a virtual GPU, a GPU that is too "
        "old for the driver's branch, or one that does not start.",
        "Check dmesg | grep NVRM: it names the GPU and the reason; kubegpu.nodes.plan names the "
        "driver that it needs.",
        "No devices were found",
    ),
    Rule(
        "gpu_lost",
        r"GPU is lost|fallen off the bus|Unable to determine the device handle for GPU|\bXid=79\b",
        "nvidia-smi, the kernel's log (Xid 79)",
        "A GPU does not answer on the bus any more.",
        REBOOT_STEP,
        "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
        "NVIDIA's Xid catalogue (79)",
    ),
    Rule(
        "secure_boot",
        r"Required key not available|Key was rejected by service",
        "modprobe, the driver's installer",
        "Secure Boot is on, and the module is not signed with a key that the firmware trusts.",
        "Enrol the key that signs the module (mokutil --import, then reboot), or use the "
        "distribution's signed modules, or turn Secure Boot off.",
        "modprobe: ERROR: could not insert 'nvidia': Required key not available",
        covers=("module_not_loaded",),
        driver=True,
    ),
    Rule(
        "module_not_loaded",
        r"Unable to load the kernel module '?nvidia\.ko",
        "the driver's installer",
        "The driver's module does not load: this is a vGPU guest given the data-centre driver, or "
        "Secure Boot refuses it, or it was built for another kernel, or nouveau is loaded.",
        "Run kubegpu.nodes.site for this node: role nvidia_driver looks and says which of the four "
        "it is.",
        "ERROR: Unable to load the kernel module 'nvidia.ko'.",
        driver=True,
    ),
    Rule(
        "image_missing",
        r"Unable to find image \W{0,8}(?P<one>[\w./:@-]+)\W{0,8} locally"
        r"|No such image: (?P<two>[\w./:@-]+)"
        r"|image \W{0,8}(?P<three>[\w./:@-]+)\W{1,8}not found"
        r"|Container image \W{0,8}(?P<four>[\w./:@-]+)\W{0,8} is not present with pull policy"
        r"|ErrImageNeverPull",
        "docker, ctr, kubelet",
        "The image {one}{two}{three}{four} is not on this node.",
        "Bring it there (an archive, or a registry that the node reaches), or allow the pull.",
        "Unable to find image 'nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0' locally",
        "docker's own words",
    ),
    Rule(
        "image_pull_failed",
        r"ErrImagePull|ImagePullBackOff|failed to resolve reference \W{0,16}(?P<image>[\w./:@-]+)"
        r"|pull access denied for (?P<other>[\w./:@-]+)|failed to pull and unpack image",
        "kubelet, docker, ctr",
        "The image {image}{other} cannot be pulled: the registry does not answer, does not have "
        "it, or wants a login.",
        "Name an image that the node can pull (a mirror, a pull secret), or bring it there before.",
        'Failed to pull image "nvcr.io/nvidia/k8s-device-plugin:v0.20.0": failed to resolve '
        'reference "nvcr.io/nvidia/k8s-device-plugin:v0.20.0": dial tcp: i/o timeout',
        "kubelet's own words",
        covers=("image_missing",),
    ),
    Rule(
        "wrong_architecture",
        r"exec format error|no match for platform in manifest",
        "container start",
        "The image was built for another kind of processor than the node's.",
        "Use an image for the node's architecture (gpu_node.os.arch).",
        "exec /bin/sh: exec format error",
        "runc's own words",
    ),
    Rule(
        "cri_missing",
        r"unknown service runtime\.v1(?:alpha2)?\.RuntimeService",
        "kubelet, crictl",
        "containerd runs without its CRI plugin: it is disabled in its configuration, or could not "
        "start.",
        "Take cri out of disabled_plugins (containerd_enable_cri of the role "
        "nvidia_container_toolkit), then restart containerd; ctr plugins ls names its error.",
        "rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService",
        "containerd's own words",
    ),
    Rule(
        "containerd_not_running",
        r"(?:dial(?:ing)? [^\w/]{0,16}(?:unix [^\w/]{0,16})?|stat [^\w/]{0,16})"
        r"(?P<socket>/[\w./-]{0,200}?containerd[\w.-]{0,60}?\.sock)",
        "ctr, crictl, kubelet",
        "containerd does not answer at {socket}.",
        "Check: systemctl status containerd; journalctl --unit containerd. Check the configuration "
        "with: containerd config dump.",
        'ctr: failed to dial "/run/containerd/containerd.sock": connection error: desc = '
        '"transport: error while dialing: dial unix /run/containerd/containerd.sock: connect: no '
        'such file or directory"',
        "ctr's own words",
    ),
    Rule(
        "docker_not_running",
        r"Cannot connect to the Docker daemon",
        "docker",
        "dockerd does not answer.",
        "Check: systemctl status docker; journalctl --unit docker.",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
        "running?",
        "docker's own words",
    ),
)

# They count only where nothing else is known.
LAST_RESORTS = (
    Rule(
        "nvml_failed",
        r"Failed to initialize NVML: (?P<what>[^\n\\\"]{1,80})",
        "nvidia-smi, the device plugin",
        "The driver does not answer: {what}.",
        "Check: nvidia-smi; dmesg | grep -i -e NVRM -e Xid. In a container only, while nvidia-smi "
        "answers on the node: check getenforce. If it says Enforcing, SELinux denies the device "
        "files: setsebool -P container_use_devices on, or start the container with "
        "--security-opt label=disable.",
        "Failed to initialize NVML: Insufficient Permissions",
        "NVML's own words",
        last_resort=True,
    ),
    Rule(
        "container_cli",
        r"nvidia-container-cli(?:\.real)?: (?P<what>[^\n\\\"]{1,160})",
        "nvidia-container-cli, when a container starts",
        "The container toolkit could not prepare the container: {what}.",
        "Run on the node: nvidia-container-cli --load-kmods --debug=/dev/stderr info.",
        "nvidia-container-cli: initialization error: driver error: failed to process request",
        "github.com/NVIDIA/nvidia-docker/issues/726",
        last_resort=True,
    ),
)

#: In the order of precedence.

_PLUGIN_SOURCE = "github.com/NVIDIA/k8s-device-plugin v0.20.0: "
_TOOLKIT_SOURCE = "github.com/NVIDIA/nvidia-container-toolkit v1.20.0: "
_READ_CDI = "2026-11-23"
CONTAINER = (
    Rule(
        "hook_called_directly",
        r"NVIDIA Container Runtime Hook directly .{0,80}?is not supported",
        "the toolkit's hook, with docker run --gpus or a hook of the runtime",
        "The toolkit's mode is not legacy, and its hook was called without the nvidia runtime, "
        "which it does not allow then.",
        "Start the container with --runtime=nvidia (with -e NVIDIA_VISIBLE_DEVICES=all) instead of "
        "--gpus, or set nvidia-container-runtime.mode = legacy or auto in the toolkit's "
        "config.toml (nvidia_container_toolkit_settings).",
        "invoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus "
        "flag) is not supported. Please use the NVIDIA Container Runtime (e.g. specify the "
        "--runtime=nvidia flag) instead",
        f"{_TOOLKIT_SOURCE}cmd/nvidia-container-runtime-hook/hook_config.go",
        _READ_CDI,
    ),
    Rule(
        "cdi_uuid_unknown",
        r"failed to get device handle from UUID(?: \W{0,8}(?P<uuid>[\w-]{1,80})\W{0,8})?: "
        r"(?P<what>[^\n\\\"]{1,80})",
        "the nvidia runtime in mode jit-cdi, nvidia-ctk cdi generate",
        "The container asks for a GPU {uuid} that the driver does not have ({what}): another card, "
        "MIG devices that were recreated, or a GPU that is lost.",
        "Compare with nvidia-smi -L; after a change of cards or of MIG delete the device plugin's "
        "pod, so that it offers what is there now.",
        'failed to get device handle from UUID "GPU-5ca1ab1e-0000-4000-8000-000000000009": Not '
        "Found",
        f"{_TOOLKIT_SOURCE}pkg/nvcdi/lib-nvml.go, lib-csv.go",
        _READ_CDI,
    ),
    Rule(
        "cdi_conflict",
        r"conflicting device \W{0,8}(?P<device>[\w./=:-]{1,200}\w)\W{0,8} "
        r"\(specs \W{0,8}(?P<one>/[\w./-]{1,200})\W{1,12}(?P<other>/[\w./-]{1,200})",
        "containerd, dockerd, CRI-O, nvidia-ctk cdi list",
        "Two CDI specifications have the device {device}, {one} and {other}, so that neither "
        "counts.",
        "Remove the one that is not kept up to date: nvidia-cdi-refresh writes "
        "/var/run/cdi/nvidia.yaml, while a file that a user made in /etc/cdi is left unchanged.",
        'conflicting device "nvidia.com/gpu=0" (specs "/etc/cdi/nvidia.yaml", '
        '"/etc/cdi/nvidia-old.yaml")',
        "github.com/cncf-tags/container-device-interface: pkg/cdi/cache.go",
        _READ_CDI,
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "imex_channel_missing",
        r"requested IMEX channel (?P<one>channel\d{1,5}) does not exist"
        r"|IMEX channel (?P<two>\d{1,5}) not found at",
        "the device plugin's log, nvidia-ctk cdi generate, the nvidia runtime",
        "The device node of the IMEX channel {one}{two} is not on the node "
        "(/dev/nvidia-caps-imex-channels).",
        "Load the module nvidia with NVreg_CreateImexChannel0=1, which makes channel 0, and see "
        "that nvidia-imex runs (systemctl status nvidia-imex). Without IMEX leave imex.channelIDs "
        "out of the device plugin's configuration, or set imex.required: false.",
        "error querying IMEX channels: requested IMEX channel channel0 does not exist",
        f"{_PLUGIN_SOURCE}internal/imex/imex.go; {_TOOLKIT_SOURCE}pkg/nvcdi/lib-imex.go",
        _READ_CDI,
    ),
    Rule(
        "cdi_dra_device",
        r"unresolvable CDI devices?\s+(?P<device>k8s\.gpu\.nvidia\.com/[\w./=:-]{0,200}\w)",
        "containerd, CRI-O, when a pod with a DRA claim starts",
        "The container engine does not find {device}. The kubelet plugin of NVIDIA's DRA driver "
        "writes that specification for each claim; the container toolkit does not.",
        "See that the engine has CDI enabled and reads the folder of that plugin (/var/run/cdi), "
        "read the log of the DRA driver's kubelet plugin on this node, and delete its pod, so that "
        "it starts again.",
        "Error: failed to create containerd container: CDI device injection failed: unresolvable "
        "CDI devices k8s.gpu.nvidia.com/device=gpu-1",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/736",
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "cdi_operator_device",
        r"unresolvable CDI devices?\s+(?P<device>management\.nvidia\.com/[\w./=:-]{0,200}\w)",
        "the nvidia runtime, containerd",
        "The container engine does not find {device}. The GPU operator's toolkit writes that "
        "specification, for its own containers only.",
        "Use the RuntimeClass nvidia instead of nvidia-cdi, or a newer toolkit, and read the log "
        "of the operator's toolkit pod on this node.",
        "failed to inject CDI devices: unresolvable CDI devices "
        "management.nvidia.com/gpu=GPU-5ca1ab1e-0000-4000-8000-000000000001",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1239",
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "cdi_vendor_device",
        r"unresolvable CDI devices?\s+"
        r"(?P<device>(?P<vendor>(?:[\w-]{1,63}\.){0,4}(?:amd|intel)\.com)/[\w./=:-]{0,200}\w)",
        "containerd, CRI-O, dockerd",
        "The container engine does not find {device}: the node has no CDI specification of "
        "{vendor} with it.",
        "See which specifications are in /etc/cdi and /var/run/cdi. The toolkit or the DRA driver "
        "of {vendor} writes this one: read its log on this node.",
        "unresolvable CDI devices amd.com/gpu=0",
        "github.com/cncf-tags/container-device-interface: pkg/cdi/cache.go",
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "cdi_empty_edits",
        r"invalid device, empty device edits",
        "nvidia-ctk cdi generate, the kubelet plugin of NVIDIA's DRA driver",
        "The CDI specification cannot be written: no device file was found for one of its devices.",
        "Check ls -l /dev/nvidia* on the node. The device plugin runs with the toolkit's mode "
        "legacy meanwhile (nvidia-container-runtime.mode). After the toolkit or the driver was "
        "replaced, delete the pod of the DRA driver's kubelet plugin, so that it starts again.",
        "failed to save CDI spec: failed to validate CDI spec: failed to validate device: invalid "
        "device, empty device edits",
        "github.com/kaito-project/kaito/issues/2326",
        covers=("no_plugin_devices",),
    ),
)
