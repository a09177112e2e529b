# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of tools when a GPU container does not run, and their causes. Data, not code.

Each row names its source. Rows are in order of precedence, the most specific ones first.
"""

from __future__ import annotations

from ..._nvidia.toolkit_paths import OPERATOR_CONFIG
from ..types import Rule
from .container_cli import CONTAINER_CLI
from .cuda import CUDA
from .device_plugins import DEVICE_PLUGINS
from .engines import ENGINES
from .nvidia_kernel import MISMATCHES
from .xids_data import REBOOT_STEP

_NO_NVML = ("could_not_reach_nvml", "no_plugin_devices", "plugin_gave_up")
_READ_REPORTS = "2026-11-28"
_NO_LIBRARY = (
    r"nvidia-container-cli(?:\.real)?: initialization error: load library failed: "
    r"(?P<library>[\w.-]+)"
)
_RUNTIME_STEP = (
    "Run kubegpu.nodes.site (or the role nvidia_container_toolkit) for this node: it installs the "
    "toolkit and configures the runtimes."
)

#: In the order of precedence.
GENERAL = (
    *CUDA,
    Rule(
        "docker_no_gpu_driver",
        r"could not select device driver \W{0,16} with capabilities"
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
        "docker_no_gpu_driver",
        r"AMD CDI spec not found",
        "docker run --gpus (Docker 29)",
        "dockerd found nothing of NVIDIA's container toolkit when it started, so that it takes "
        "--gpus for AMD GPUs.",
        "For an NVIDIA GPU install the toolkit and configure Docker (role "
        "nvidia_container_toolkit), then: systemctl restart docker. Where its runtime is "
        "configured, --runtime=nvidia instead of --gpus works too.",
        "docker: Error response from daemon: AMD CDI spec not found",
        "github.com/stevezau/media_preview_generator/issues/260; github.com/moby/moby/pull/52048",
        _READ_REPORTS,
        when=("has_nvidia",),
        family="docker_amd_cdi",
    ),
    Rule(
        "cdi_missing",
        r"AMD CDI spec not found",
        "docker run --gpus (Docker 29)",
        "The node has no CDI specification of its AMD GPUs.",
        "For an AMD GPU install AMD's container toolkit, and make the specification: amd-ctk cdi "
        "generate --output=/etc/cdi/amd.json (module amd_cdi_specification).",
        "docker: Error response from daemon: AMD CDI spec not found",
        "github.com/moby/moby/pull/52048",
        _READ_REPORTS,
        when=("has_amd",),
        family="docker_amd_cdi",
        fix="amd-ctk cdi generate --output=/etc/cdi/amd.json",
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
        "image_without_glibc",
        # BusyBox's shell names no line; that of Debian says "sh: 1: nvidia-smi: not found".
        r"(?<![a-z])sh: nvidia-smi: not found"
        r"|exec [^\s:]{0,200}nvidia-smi: no such file or directory"
        r"|Error relocating [^\s:]{0,200}(?:nvidia|libcuda)[^\s:]{0,80}: \w{1,80}: "
        r"symbol not found",
        "a container of Alpine or another image with musl",
        "The driver's programs and libraries that come into the container need glibc, and the "
        "image has musl (Alpine): what is not found is their loader.",
        "Use an image with glibc (Debian, Ubuntu, UBI). In Alpine the package gcompat and the "
        "folders of the driver's libraries in /etc/ld-musl-ARCH.path may do.",
        "/bin/sh: nvidia-smi: not found",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1526",
        _READ_REPORTS,
        family="nvidia_smi_not_found",
    ),
    Rule(
        "nvidia_smi_missing",
        r"exec: \W{0,16}nvidia-smi\W{0,16}: executable file not found"
        r"|nvidia-smi: (?:command )?not found"
        # What shells say in other languages.
        r"|nvidia-smi ?[:\uff1a] ?(?:(?:Kommando|Befehl) nicht gefunden|comm?and[eo] "
        r"(?:introuvable|non "
        r"trouvée|non trovato)|orden no encontrada|comando não encontrado|未找到命令|找不到命令"
        r"|команда не найдена|コマンドが見つかりません)",
        "container start",
        "The container was started without --gpus or without the nvidia runtime, so that nothing "
        "of the driver was put into it; or the node has no nvidia-smi.",
        "Start it with --gpus all (Docker), runtimeClassName: nvidia or nvidia as the default "
        "runtime (Kubernetes). See that nvidia-smi works on the node itself, and that "
        "NVIDIA_DRIVER_CAPABILITIES has utility.",
        'exec: "nvidia-smi": executable file not found in $PATH',
        "github.com/NVIDIA/nvidia-docker/issues/1668",
        family="nvidia_smi_not_found",
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
        when=("not just_started", "not no_cgroups", "not static_cpu_manager"),
        family="container_devices",
    ),
    Rule(
        "cpu_manager_static",
        r"Failed to initialize NVML: Unknown Error",
        "nvidia-smi in a pod, some seconds after its start",
        "The container lost its devices: kubelet's CPU manager has the policy static and changes "
        "the control group of each container, by which the runtime writes its device rules again, "
        "without the GPU that the nvidia runtime added.",
        "Have the device plugin pass the device nodes to kubelet: "
        "nvidia_device_plugin_pass_device_specs: true (PASS_DEVICE_SPECS, compatWithCPUManager of "
        "the chart), or give devices by CDI (nvidia_device_plugin_device_list_strategy: "
        "[cdi-cri]); then start the pod again.",
        "Failed to initialize NVML: Unknown Error",
        "github.com/NVIDIA/k8s-device-plugin/issues/145; github.com/kubernetes/kubernetes/issues/"
        "77073",
        _READ_REPORTS,
        when=("not just_started", "not no_cgroups", "static_cpu_manager"),
        family="container_devices",
        fix="nvidia_device_plugin_pass_device_specs: true",
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
        # Other drivers are "not loaded" in the same words.
        r"couldn'?t communicate with the NVIDIA driver|NVML: DriverNotLoaded"
        r"|\b(?:nvml|nvidia)[^\n]{0,160}?\bdriver not loaded",
        "nvidia-smi, nvidia-container-cli",
        "NVIDIA's kernel module is not loaded on the node.",
        "Run kubegpu.nodes.site for this node: role nvidia_driver loads it, or says why it cannot.",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1269",
    ),
    Rule(
        "driver_libraries_missing",
        _NO_LIBRARY,
        "nvidia-container-cli, when a container starts",
        "The driver's library {library} is not on the node, or not in its loader's cache: no "
        "driver is installed.",
        "Run kubegpu.nodes.site for this node (role nvidia_driver); with a driver in another "
        "place, set nvidia-container-cli.root in the toolkit's config.toml.",
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
        "cannot open shared object file: no such file or directory",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/154",
        covers=_NO_NVML,
        when=("not toolkit_root_elsewhere", "not operator_root_elsewhere"),
        family="driver_libraries",
    ),
    Rule(
        "toolkit_root_elsewhere",
        _NO_LIBRARY,
        "nvidia-container-cli, when a container starts",
        "The toolkit searches the driver's library {library} in another folder than the node's: "
        "nvidia-container-cli.root in /etc/nvidia-container-runtime/config.toml is "
        "/run/nvidia/driver or the like, which is for a driver that a container brings, while the "
        "driver is the node's own.",
        'Set root = "/" in the section nvidia-container-cli of that file, or remove the line.',
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
        "cannot open shared object file: no such file or directory",
        "github.com/NVIDIA/nvidia-docker/issues/1711",
        _READ_REPORTS,
        covers=_NO_NVML,
        when=("toolkit_root_elsewhere",),
        family="driver_libraries",
        fix="nvidia_container_toolkit_settings: {{nvidia-container-cli.root: /}}",
    ),
    Rule(
        "operator_root_elsewhere",
        _NO_LIBRARY,
        "nvidia-container-cli of the GPU operator, when a container starts",
        "The GPU operator's toolkit searches the driver's library {library} in /run/nvidia/driver, "
        "where a driver container puts it, while the driver is the node's own.",
        "Set driver.enabled: false in the operator's values, so that the root of its toolkit is /; "
        f"it writes {OPERATOR_CONFIG} again.",
        "nvidia-container-cli.real: initialization error: load library failed: libnvidia-ml.so.1: "
        "cannot open shared object file: no such file or directory",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/154; "
        "github.com/canonical/microk8s-core-addons/issues/251",
        _READ_REPORTS,
        covers=_NO_NVML,
        when=("operator_root_elsewhere",),
        family="driver_libraries",
    ),
    *DEVICE_PLUGINS,
    Rule(
        "handler_missing",
        r"unknown or invalid runtime name: (?P<name>[\w.-]{0,80}\w)",
        "dockerd, when a container starts",
        "dockerd knows no handler {name}: it is not configured, or dockerd was not restarted "
        "since. Docker of a snap has a configuration and a container toolkit in the snap.",
        _RUNTIME_STEP + " For Docker of a snap (snap list docker): snap refresh docker; snap logs "
        "docker.nvidia-container-toolkit says why the runtime is not configured.",
        "docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
        "github.com/canonical/docker-snap/issues/180",
        _READ_REPORTS,
    ),
    Rule(
        "handler_missing",
        r"no runtime for \W{0,8}(?P<one>[\w.-]+)\W{0,8} is configured"
        r"|RuntimeHandler \W{0,8}(?P<two>[\w.-]+)\W{0,8} not supported"
        r"|unknown runtime specified (?P<three>[\w.-]+)"
        # CRI-O, internal/oci/oci.go:115 of 1.36; "from runtime list map[crun:... runc:...]".
        r"|failed to find runtime handler (?P<four>[\w.-]+) from runtime list",
        "containerd, CRI-O, dockerd or kubelet, when a pod or container starts",
        "The container runtime of the node knows no handler {one}{two}{three}{four}: it is "
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
        r"unresolvable CDI devices?\s+(?P<device>(?!nvidia\.com/pgpu)[\w./=:-]+\w)",
        "the nvidia runtime, containerd or dockerd",
        "The container engine finds the device {device} in no CDI specification: there is none, or "
        "it was made for other GPUs or another driver.",
        "Run nvidia-ctk cdi list. If it lacks the device, make the specification again: nvidia-ctk "
        "cdi generate --output=/var/run/cdi/nvidia.yaml (module cdi_specification).",
        "could not apply required modification to OCI specification: error modifying OCI spec: "
        "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all: unknown",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/434",
        family="cdi_device_unknown",
    ),
    Rule(
        "cdi_device_unknown",
        r"Error response from daemon: CDI device injection failed: unresolvable CDI devices?\s+"
        r"(?P<device>[\w./=:-]+\w)",
        "dockerd without root (rootless)",
        "Docker runs rootless, and dockerd does not see the specification of {device} in /etc/cdi "
        "or /var/run/cdi.",
        "Upgrade a rootless Docker to a release whose dockerd-rootless.sh shows both folders to "
        "dockerd (moby pull request 48541), or name a folder of the user, with a copy of the "
        "specification, in cdi-spec-dirs of ~/.config/docker/daemon.json.",
        "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices "
        "nvidia.com/gpu=all.",
        "github.com/moby/moby/issues/47676; github.com/moby/moby/pull/48541",
        _READ_REPORTS,
        when=("cdi_spec", "rootless"),
        family="cdi_device_unknown",
    ),
    Rule(
        "cdi_stale",
        r"failed to stat CDI host device \W{0,8}(?P<node>/dev/[\w./-]{1,120})\W{0,8}: "
        r"no such file or directory",
        "podman, containerd, CRI-O, dockerd",
        "The CDI specification names {node}, which the node does not have: it was made when the "
        "node had other GPUs, or the GPUs other numbers.",
        "Make it again in the file that has it (grep -rl {node} /etc/cdi /var/run/cdi): nvidia-ctk "
        "cdi generate --output=FILE, or amd-ctk cdi generate for AMD GPUs.",
        "Error: setting up CDI devices: failed to inject devices: failed to stat CDI host device "
        '"/dev/dri/renderD129": no such file or directory',
        "github.com/NVIDIA/nvidia-container-toolkit/issues/885",
        _READ_REPORTS,
    ),
    Rule(
        "device_unknown",
        r"nvidia-container-cli(?:\.real)?: device error: "
        r"(?P<device>[^\n]{0,40}?[${}][^\n]{0,80}?): unknown device",
        "nvidia-container-cli, when a container starts",
        "The container asks for the GPU {device}, which is a variable that nothing replaced.",
        "Write it as the compose file or the shell replaces it ($ and the name in braces), with an "
        "index or a UUID of nvidia-smi -L as its value.",
        "nvidia-container-cli: device error: $GPU_ID: unknown device",
        "github.com/MaskAnyone/MaskAnyone/pull/61",
        _READ_REPORTS,
    ),
    Rule(
        "device_unknown",
        r"nvidia-container-cli(?:\.real)?: device error: (?P<device>[^\n]{1,120}?): unknown device",
        "nvidia-container-cli, when a container starts",
        "The container asks for the GPU {device}, which this node does not have.",
        "Compare with nvidia-smi -L; after a GPU was changed, its UUID is another one.",
        "nvidia-container-cli: device error: GPU-5ca1ab1e-0000-4000-8000-000000000009: unknown "
        "device",
        "libnvidia-container's own words",
    ),
    *CONTAINER_CLI,
    Rule(
        "no_devices",
        r"No devices were found",
        "nvidia-smi",
        "The driver is loaded and found no GPU that it can drive: a virtual GPU, a GPU that is too "
        "old for the driver's branch, or one that does not start.",
        "Check dmesg | grep NVRM: it names the GPU and the reason; kubegpu.nodes.plan names the "
        "driver that it needs.",
        "No devices were found",
        "github.com/NVIDIA/open-gpu-kernel-modules/issues/862",
    ),
    Rule(
        "gpu_lost",
        # Also of a GPU that does not answer when its driver starts (osapi.c), in three lines.
        r"GPU is lost|\b(?:GPU|NVRM|Xid)\b(?:[^\n]{0,60}?\b(?P<address>(?:[0-9a-f]{4,8}:)"
        r"[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)\b)?(?:[^\n]{0,120}?\n?[^\n]{0,120}?installed in "
        r"this "
        r"system has(?:[^\n]{0,100}?\n)?)?[^\n]{0,120}?fallen off the bus|\bXid=79\b"
        r"|Unable to determine the device handle for GPU[^\n]{0,60}(?:Unknown Error|is lost)",
        "nvidia-smi, the kernel's log (Xid 79)",
        "The GPU {address} does not answer on the bus any more.",
        REBOOT_STEP,
        "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
        "NVIDIA's Xid catalogue (79)",
    ),
    Rule(
        "secure_boot",
        # The same error of a file system is of its own keys.
        r"(?<!mount error\(126\): )Required key not available|Key was rejected by service",
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
        "github.com/NVIDIA/gpu-operator/issues/8",
        driver=True,
    ),
    *ENGINES,
)

# They count only where nothing else is known.
LAST_RESORTS = (
    Rule(
        "nvml_failed",
        r"Failed to initialize NVML: (?P<what>[^\n\\\"]{1,80})",
        "nvidia-smi, the device plugin",
        "The driver does not answer: {what}.",
        "Check: nvidia-smi; dmesg | grep -i -e NVRM -e Xid.",
        "Failed to initialize NVML: Not Found",
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
