# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which finding is the cause of which, and what fixes it. Data.

A row is listed before those that can follow from it. ``because`` has layers and codes: an error of
one of these on the same host explains the finding. A finding of the same layer that none of its
neighbours can cause names no code of them. Codes without a row are placed by what has seen them
(:data:`FOLLOWS`).
"""

from __future__ import annotations

from collections.abc import Mapping

from .types import (
    BUS,
    GPU,
    INFO,
    LIKELY,
    MODULE,
    NODE,
    NVML,
    PLUGIN,
    POD,
    POSSIBLE,
    RUNTIME,
    TOOLKIT,
    WARNING,
    Cause,
)

_SITE = "ansible-playbook kubegpu.nodes.site --limit {limit}"
_DRIVER = f"{_SITE} --tags driver"
#: The command in the fix of what the role of the driver fixes.
DRIVER_RUN = _DRIVER
_TOOLKIT = f"{_SITE} --tags toolkit,runtime"
# A driver that somebody else installed is kept as it is unless it is asked for.
_OWN_DRIVER = f"nvidia_driver_branch, then: {_DRIVER}"
# Packages that are installed are not installed again.
_TOOLKIT_AGAIN = (
    "reinstall nvidia-container-toolkit, nvidia-container-toolkit-base and "
    "libnvidia-container-tools on {host} (apt-get install --reinstall, dnf reinstall), then: "
    f"{_TOOLKIT}"
)
_DEFAULT = (
    "nvidia_container_toolkit_containerd_set_default: true (crio_set_default, docker_set_default), "
    f"then: {_TOOLKIT}"
)
_NEW_CDI = "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml"
_LABELS = "ansible-playbook kubegpu.nodes.site --tags labels"
_PLUGIN = "ansible-playbook kubegpu.nodes.site --tags device_plugin"
#: Stands for the command by which a node is rebooted, in a cluster after a drain.
REBOOT = "{reboot}"
_RESTART_POD = "kubectl --namespace {namespace} delete pod {name}"

_BELOW_NVML = (BUS, MODULE, GPU)
#: Faults of a GPU with which the driver answers all the same: they explain nothing of its answer.
ANSWERS = frozenset({
    "fabric_manager_not_running", "fabric_manager_version", "fabric_nothing_to_do", "imex_failed",
    "fabric_not_ready", "fabric_degraded", "nvswitch_event",
    "row_remap_failed", "row_remap_pending", "page_retirement_pending", "sram_threshold",
    "inforom_corrupt", "gpu_memory_contained", "ecc_pending", "mig_pending",
    "mig_without_instances", "mixed_mig_driver_bug", "compute_mode", "persistence_off",
    "hw_slowdown", "vgpu_unlicensed", "vgpu_licence_expired",
    "pcie_width", "pcie_errors", "pcie_errors_nonfatal", "pcie_errors_corrected",
})  # fmt: skip
_BELOW_TOOLKIT = (*_BELOW_NVML, NVML)
_BELOW_RUNTIME = (*_BELOW_TOOLKIT, TOOLKIT)
_BELOW_NODE = (*_BELOW_RUNTIME, RUNTIME)
_BELOW_PLUGIN = (*_BELOW_NODE, NODE)
_BELOW_POD = (*_BELOW_PLUGIN, PLUGIN)

#: What explains a finding without a row, by the layer that its source sees.
FOLLOWS: Mapping[str, tuple[str, ...]] = {
    BUS: (),
    MODULE: (BUS,),
    GPU: (BUS, MODULE),
    NVML: _BELOW_NVML,
    TOOLKIT: _BELOW_TOOLKIT,
    RUNTIME: _BELOW_RUNTIME,
    NODE: _BELOW_NODE,
    PLUGIN: _BELOW_PLUGIN,
    POD: _BELOW_POD,
}
#: A pod that asks for no GPU notices these layers as missing in its container.
NOT_IN_CONTAINER = frozenset({MODULE, GPU, NVML, TOOLKIT})

_ON_BUS = (
    Cause("gpu_lost", BUS),
    Cause("gpu_missing", BUS, ("gpu_lost",)),
    Cause("gpu_count", BUS, ("gpu_lost", "gpu_missing")),
    Cause("bar_not_assigned", BUS),
    Cause("power_cable", BUS),
    Cause(
        "gpu_bound_to_other_driver",
        BUS,
        fix="take the GPU's id out of vfio-pci.ids (kernel command line, /etc/modprobe.d) of "
        "{host}, then: {reboot}",
    ),
    Cause("legacy_gpu", BUS),
    Cause("unknown_gpu", BUS, severity=WARNING, fix="nvidia_driver_branch, "
          "nvidia_driver_kernel_module"),
    Cause("os_unsupported", BUS, severity=WARNING),
    Cause("packages_unreadable", BUS, fix="rpm --rebuilddb", severity=WARNING),
)  # fmt: skip

_OF_MODULE = (
    Cause(
        "vgpu_guest_without_grid_driver",
        MODULE,
        fix="nvidia_driver_source: runfile, nvidia_driver_runfile: {{url: ..., checksum: ...}} "
        "(docs/driver.md, vGPU)",
    ),
    Cause(
        "vgpu_driver_incompatible",
        MODULE,
        fix="nvidia_driver_source: runfile, nvidia_driver_runfile: {{url: ..., checksum: ...}} "
        f"(docs/driver.md, vGPU), then: {_DRIVER}",
    ),
    Cause(
        "grid_driver_on_whole_gpu",
        MODULE,
        fix=f"nvidia_driver_source: nvidia, nvidia_driver_replace_source: true, then: {_DRIVER}",
    ),
    Cause(
        "gpu_unsupported", MODULE, (BUS,), fix=f"nvidia_driver_branch, then: {_DRIVER}"
    ),
    Cause(
        "wrong_kernel_modules",
        MODULE,
        fix=f"nvidia_driver_kernel_module: open or proprietary, then: {_DRIVER}",
    ),
    Cause("disk_full", MODULE, fix="free space (df -h / /var /boot /tmp), then run again"),
    Cause("driver_missing", MODULE, fix=_DRIVER),
    Cause("secure_boot", MODULE, fix="docs/docsite/rst/guide_secure_boot.rst"),
    Cause("module_blocked", MODULE, ("driver_missing",)),
    Cause(
        "nouveau_loaded", MODULE, ("driver_missing",), fix=f"{_DRIVER} && {REBOOT}"
    ),
    Cause("kernel_headers_missing", MODULE, fix=_DRIVER),
    Cause("dkms_build_failed", MODULE, ("kernel_headers_missing", "disk_full"), fix=_DRIVER),
    Cause(
        "module_for_other_kernel", MODULE, ("kernel_headers_missing", "dkms_build_failed"),
        fix=_DRIVER,
    ),
    Cause(
        "module_missing",
        MODULE,
        ("driver_missing", "kernel_headers_missing", "dkms_build_failed"),
        fix=_DRIVER,
    ),
    Cause("modules_cannot_be_loaded_here", MODULE),
    Cause("upgraded_unattended", MODULE, fix=f"nvidia_driver_hold: true, then: {REBOOT}",
          confidence=LIKELY),
    Cause("driver_library_mismatch", MODULE, ("upgraded_unattended",), fix=REBOOT),
    Cause("pending_reboot", MODULE, ("upgraded_unattended", "driver_library_mismatch"),
          fix=REBOOT),
    Cause("driver_in_use", MODULE, fix=REBOOT),
    Cause("other_driver", MODULE, fix=f"nvidia_driver_version, then: {_DRIVER}"),
    Cause("gsp_firmware_failed", MODULE, (BUS,),
          fix=f"another nvidia_driver_version, then: {_DRIVER}"),
    Cause("drm_firmware_missing", MODULE, fix="install the distribution's firmware package"),
    Cause("drm_firmware_failed", MODULE, ("drm_firmware_missing",)),
    Cause("drm_gpu_not_supported", MODULE),
    Cause(
        "drm_probe_failed",
        MODULE,
        (BUS, "drm_firmware_missing", "drm_firmware_failed", "drm_gpu_not_supported"),
    ),
    Cause("module_not_loaded", MODULE, (BUS, MODULE)),
    Cause("driver_not_loaded", MODULE, (BUS, MODULE), fix=_DRIVER),
    Cause("drm_driver_not_loaded", MODULE, (BUS, MODULE), fix="modprobe {module}"),
    Cause("gpu_not_bound", MODULE, (BUS, MODULE)),
    Cause("device_nodes_missing", MODULE, (BUS, MODULE),
          fix="nvidia-smi -L && nvidia-modprobe -c 0 -u"),
    Cause("no_module_for_next_kernel", MODULE, ("driver_missing",), fix=_OWN_DRIVER,
          severity=WARNING, confidence=LIKELY),
    Cause("drm_firmware_optional", MODULE, severity=INFO),
    Cause("device_node_missing", MODULE, (BUS, MODULE)),
    Cause("device_node_wrong", MODULE, (BUS, MODULE)),
    Cause("device_node_rights", MODULE),
)  # fmt: skip

_OF_GPU = (
    Cause("fabric_manager_not_running", GPU, (BUS, MODULE), fix=_OWN_DRIVER),
    Cause("fabric_manager_version", GPU, (BUS, MODULE), fix=_OWN_DRIVER),
    Cause("fabric_nothing_to_do", GPU, (BUS, MODULE), fix=_OWN_DRIVER, confidence=LIKELY),
    Cause("imex_failed", GPU, (BUS, MODULE), fix="systemctl restart nvidia-imex"),
    Cause("fabric_not_ready", GPU, (BUS, MODULE, "fabric_manager_not_running",
                                    "fabric_manager_version", "fabric_nothing_to_do",
                                    "imex_failed")),
    Cause("fabric_degraded", GPU, (BUS, MODULE, "fabric_manager_not_running",
                                   "fabric_manager_version")),
    Cause("gpu_memory_error", GPU, (BUS,), fix=REBOOT),
    Cause("gsp_timeout", GPU, (BUS,), fix=REBOOT),
    Cause("coherent_memory_error", GPU, (BUS,), fix=REBOOT, confidence=LIKELY),
    Cause("nvlink_error", GPU, (BUS,), fix=REBOOT),
    Cause("nvswitch_error", GPU, (BUS,), fix=REBOOT),
    Cause("nvswitch_event", GPU, (BUS,)),
    Cause("row_remap_failed", GPU, (BUS,)),
    Cause("sram_threshold", GPU, (BUS,)),
    Cause("inforom_corrupt", GPU, (BUS,)),
    Cause("row_remap_pending", GPU, (BUS, "gpu_memory_error", "row_remap_failed"), fix=REBOOT),
    Cause("page_retirement_pending", GPU, (BUS, "gpu_memory_error"), fix=REBOOT),
    Cause("gpu_memory_contained", GPU, (BUS, "gpu_memory_error"), fix=REBOOT),
    Cause("ecc_pending", GPU, (BUS,), fix=REBOOT),
    Cause("mig_pending", GPU, (BUS,), fix=REBOOT),
    Cause(
        "mig_without_instances",
        GPU,
        (BUS, MODULE, "mig_pending"),
        fix=f"nvidia_mig_config, then: {_SITE} --tags mig",
        confidence=LIKELY,
    ),
    Cause(
        "mixed_mig_driver_bug",
        GPU,
        fix=f"nvidia_driver_branch, then: {_DRIVER}",
        severity=WARNING,
        confidence=POSSIBLE,
    ),
    Cause("compute_mode", GPU, (BUS, MODULE), fix="nvidia-smi -c 0", confidence=LIKELY),
    Cause("persistence_off", GPU, (BUS, MODULE), severity=INFO,
          fix="systemctl enable --now nvidia-persistenced"),
    Cause("vgpu_unlicensed", GPU, (BUS, MODULE), fix=f"nvidia_driver_licence, then: {_DRIVER}"),
    Cause("vgpu_licence_expired", GPU, (BUS, MODULE), severity=WARNING, confidence=LIKELY,
          fix="systemctl restart nvidia-gridd"),
    Cause("hw_slowdown", GPU, (BUS,)),
    Cause("pcie_width", GPU, (BUS,)),
    Cause("pcie_errors", GPU, (BUS,)),
    Cause("pcie_errors_nonfatal", GPU, (BUS,)),
    Cause("pcie_errors_corrected", GPU, (BUS,)),
    Cause("amd_ras_uncorrected", GPU, (BUS,), fix=REBOOT),
    Cause("drm_wedged", GPU, (BUS, MODULE), fix=REBOOT),
    Cause("drm_reset_failed", GPU, (BUS, MODULE), fix=REBOOT),
    Cause("drm_ring_reset_failed", GPU, (BUS, MODULE), fix=REBOOT),
    Cause("kernel_driver_errors", GPU, (BUS, MODULE)),
    Cause("xid", GPU, (BUS,)),
    Cause("gpu_needs_reset", GPU, (BUS, GPU), fix=REBOOT),
    Cause("recovery_action", GPU, (BUS, GPU), fix=REBOOT),
    Cause("gpu_init_failed", GPU, (BUS, MODULE, GPU), fix=REBOOT),
    Cause("gpu_probe_failed", GPU, (BUS, MODULE, GPU)),
    Cause("driver_message", GPU, (BUS, MODULE, GPU)),
    Cause("driver_oops", GPU, (BUS,), fix=REBOOT),
    Cause("xid_again", GPU, (BUS, GPU)),
    Cause("xid_history", GPU, (BUS, GPU)),
    Cause("gpu_values_unreadable", GPU, (BUS, MODULE, GPU)),
)  # fmt: skip

_OF_NVML = (
    Cause("driver_hangs", NVML, _BELOW_NVML, fix=REBOOT),
    Cause("nvidia_smi_missing", NVML, _BELOW_NVML, fix=_OWN_DRIVER),
    Cause("nvml_failed", NVML, _BELOW_NVML),
    Cause("gpu_access_blocked", NVML, _BELOW_NVML),
    Cause("no_devices", NVML, _BELOW_NVML),
    Cause("gpu_missing_in_nvml", NVML, (*_BELOW_NVML, NVML)),
    Cause("driver_not_answering", NVML, (*_BELOW_NVML, NVML), fix=REBOOT, confidence=LIKELY),
)

_OF_TOOLKIT = (
    Cause("toolkit_missing", TOOLKIT, fix=_TOOLKIT),
    Cause("toolkit_config_invalid", TOOLKIT, fix=f"nvidia_container_toolkit_settings, then: "
          f"{_TOOLKIT}"),
    Cause("cdi_missing", TOOLKIT, fix=_TOOLKIT),
    Cause("cdi_stale", TOOLKIT, fix=_TOOLKIT),
    Cause("cdi_invalid", TOOLKIT, _BELOW_TOOLKIT, fix=_NEW_CDI),
    Cause("amd_cdi_outdated", TOOLKIT, fix=f"amd_container_toolkit_enabled: true, then: "
          f"{_TOOLKIT}"),
    Cause("container_cli_missing", TOOLKIT, ("toolkit_missing",), fix=_TOOLKIT_AGAIN),
    Cause("hook_missing", TOOLKIT, ("toolkit_missing",), fix=_TOOLKIT_AGAIN),
    Cause("runtime_missing", TOOLKIT, ("toolkit_missing",), fix=_TOOLKIT_AGAIN),
    Cause("toolkit_broken", TOOLKIT, (*_BELOW_TOOLKIT, TOOLKIT), fix=_TOOLKIT_AGAIN),
)  # fmt: skip

_OF_RUNTIME = (
    Cause("no_container_runtime", RUNTIME),
    Cause("containerd_config_invalid", RUNTIME),
    Cause("docker_config_invalid", RUNTIME),
    Cause("crio_config_invalid", RUNTIME),
    Cause("cri_disabled", RUNTIME),
    Cause("containerd_not_running", RUNTIME, ("containerd_config_invalid",),
          fix="systemctl restart containerd"),
    Cause("docker_not_running", RUNTIME, ("docker_config_invalid",),
          fix="systemctl restart docker"),
    Cause("cri_not_ready", RUNTIME, ("containerd_config_invalid", "cri_disabled")),
    Cause("cri_missing", RUNTIME, ("containerd_config_invalid", "cri_disabled")),
    Cause("k3s_template_other_version", RUNTIME, ("toolkit_missing",), fix=_TOOLKIT),
    Cause("runtime_lost", RUNTIME, ("k3s_template_other_version",), fix=_TOOLKIT),
    Cause("handler_missing", RUNTIME, ("toolkit_missing", "k3s_template_other_version"),
          fix=_TOOLKIT),
    Cause("wrong_program", RUNTIME, ("toolkit_missing",), fix=_TOOLKIT),
    Cause("restart_required", RUNTIME, fix=_TOOLKIT),
    Cause("not_default", RUNTIME, ("toolkit_missing",
          "k3s_template_other_version", "runtime_lost", "handler_missing"),
          fix=_DEFAULT),
    # A pod gets its devices as the plugin's strategy says, not as the runtime's setting does.
    Cause("nvml_unknown_error", RUNTIME, _BELOW_TOOLKIT,
          fix=f"nvidia_container_toolkit_runtime_cdi: true, then: {_TOOLKIT}",
          pod_fix=f"nvidia_device_plugin_device_list_strategy: [cdi-cri], then: {_TOOLKIT},"
          "device_plugin"),
    Cause("container_no_cgroups", RUNTIME, _BELOW_TOOLKIT, fix="nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-cli.no-cgroups: false}}}}, then: {_TOOLKIT}"),
    Cause("driver_libraries_missing", RUNTIME, _BELOW_RUNTIME, fix=_OWN_DRIVER,
          confidence=LIKELY),
    Cause("docker_no_gpu_driver", RUNTIME, _BELOW_RUNTIME, fix=_TOOLKIT),
    Cause("hook_called_directly", RUNTIME, _BELOW_RUNTIME, fix="docker run --runtime=nvidia "
          "-e NVIDIA_VISIBLE_DEVICES=all, or nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-runtime.mode: auto}}}}, then: {_TOOLKIT}"),
    Cause("cdi_device_unknown", RUNTIME, _BELOW_RUNTIME,
          fix=_NEW_CDI),
    Cause("cdi_automatic_failed", RUNTIME, _BELOW_RUNTIME),
    Cause("ldconfig_failed", RUNTIME, _BELOW_RUNTIME, fix="nvidia_container_toolkit_settings: "
          "{{nvidia-container-cli.ldconfig: '@/sbin/ldconfig'}} (Ubuntu: '@/sbin/ldconfig.real'), "
          f"then: {_TOOLKIT}"),
    Cause("cgroup_rootless", RUNTIME, _BELOW_RUNTIME, fix="nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-cli.no-cgroups: true}}}}, then: {_TOOLKIT}"),
    Cause("cgroup_rules", RUNTIME, _BELOW_RUNTIME,
          fix=f"nvidia_container_toolkit_version: 1.8 or later, then: {_TOOLKIT}"),
    Cause("nothing_injected", RUNTIME, _BELOW_RUNTIME, fix="nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-runtime.mode: auto}}}}, then: {_TOOLKIT}"),
    Cause("gpu_count_in_container", RUNTIME, (*_BELOW_RUNTIME, RUNTIME)),
    Cause("container_failed", RUNTIME, (*_BELOW_RUNTIME, RUNTIME), confidence=LIKELY),
)  # fmt: skip

_OF_NODE = (
    Cause("cluster_not_asked", NODE, fix="kubegpu_kube"),
    Cause("node_unknown", NODE, fix="gpu_node_labels_node_name"),
    Cause("node_uncertain", NODE, fix="gpu_node_labels_node_name"),
    Cause("node_not_ready", NODE, (RUNTIME,)),
)

_OF_PLUGIN = (
    Cause("no_plugin", PLUGIN, fix=_PLUGIN),
    Cause("two_allocators", PLUGIN),
    Cause("operator_conflict", PLUGIN, fix="take the label kubegpu.nodes/gpu off the node of "
          "{host}, or switch the other owner's plugin off"),
    Cause("plugin_selects_not", PLUGIN, fix=_LABELS),
    Cause("plugin_tolerates_not", PLUGIN,
          fix=f"{{vendor}}_device_plugin_tolerations, then: {_PLUGIN}"),
    # A pod of a user can name a class that is not NVIDIA's.
    Cause("runtime_class_missing", PLUGIN, fix=_PLUGIN, pod_fix=""),
    Cause("pod_security", PLUGIN, fix="kubectl label namespace {namespace} "
          "pod-security.kubernetes.io/enforce=privileged", pod_fix=""),
    Cause("quota_exceeded", PLUGIN, fix="raise it (kubectl --namespace {namespace} edit "
          "resourcequota), or end pods that hold GPUs in that namespace"),
    Cause("priority_class_quota", PLUGIN),
    Cause("image_missing", PLUGIN),
    Cause("image_pull_failed", PLUGIN, (NODE,)),
    Cause("wrong_architecture", PLUGIN),
    Cause("container_config", PLUGIN),
    Cause("out_of_memory", PLUGIN),
    Cause("default_runtime", PLUGIN, (), fix=_PLUGIN),
    Cause("plugin_without_gpu", PLUGIN),
    Cause("plugin_without_driver", PLUGIN, _BELOW_NODE, fix=_DRIVER),
    Cause("could_not_reach_nvml", PLUGIN, _BELOW_NODE, fix=_DEFAULT),
    Cause("plugin_gave_up", PLUGIN, _BELOW_PLUGIN, fix=_DEFAULT),
    Cause("mig_not_uniform", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_mig_strategy: mixed, then: {_PLUGIN}"),
    Cause("mig_strategy_unknown", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_mig_strategy: none, single or mixed, then: {_PLUGIN}"),
    Cause("discovery_no_token", PLUGIN, _BELOW_PLUGIN, fix=_PLUGIN),
    Cause("discovery_no_rights", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_feature_discovery_api: true, then: {_PLUGIN}"),
    Cause("discovery_no_api", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_feature_discovery_api: false, then: {_PLUGIN}"),
    Cause("runtime_changed", PLUGIN, _BELOW_NODE, fix=_RESTART_POD),
    Cause("plugin_crash_loop", PLUGIN, _BELOW_PLUGIN,
          fix="correct what kubectl --namespace {namespace} logs --previous {name} says"),
    Cause("not_registered", PLUGIN, _BELOW_PLUGIN, fix=_RESTART_POD, confidence=LIKELY),
    Cause("gpu_unhealthy", PLUGIN, _BELOW_TOOLKIT, fix=f"after a repair: {_RESTART_POD}"),
    Cause("wrong_count", PLUGIN, _BELOW_PLUGIN, fix=_PLUGIN, confidence=LIKELY),
)  # fmt: skip

_OF_POD = (
    Cause("pod_unknown", POD),
    Cause("pod_not_created", POD),
    Cause("asks_no_gpu", POD, fix="resources.limits of a container: {{nvidia.com/gpu: 1}}"),
    Cause("gpu_limit_missing", POD,
          fix="resources.limits of a container: {{nvidia.com/gpu: 1}}"),
    Cause("gpu_request_differs", POD),
    Cause("gpu_not_offered", POD, _BELOW_POD),
    Cause("asks_too_many", POD),
    Cause("held_by_upgrade", POD, fix="ansible-playbook kubegpu.nodes.upgrade "
          "-e gpu_upgrade_run={run} -e gpu_upgrade_release=true"),
    Cause("held_by_acceptance", POD, fix="ansible-playbook kubegpu.nodes.accept"),
    Cause("node_not_accepted", POD, fix="ansible-playbook kubegpu.nodes.accept"),
    Cause("no_node_matches", POD, fix="kubectl uncordon {cordoned}"),
    Cause("not_scheduled", POD, confidence=LIKELY),
    Cause("all_taken", POD, severity=WARNING),
    Cause("admission_failed", POD, _BELOW_POD, fix=_RESTART_POD),
    Cause("no_healthy_devices", POD, _BELOW_POD, fix=_RESTART_POD),
    Cause("taken_at_admission", POD, _BELOW_POD, fix=_RESTART_POD),
    Cause("allocation_failed", POD, _BELOW_POD, fix=_RESTART_POD),
    Cause("unmet_requirement", POD, (MODULE,), fix=f"an older image, or nvidia_driver_branch "
          f"and: {_DRIVER}"),
    Cause("cuda_driver_insufficient", POD, (MODULE,), fix=f"an older image, or "
          f"nvidia_driver_branch and: {_DRIVER}"),
    Cause("ptx_toolchain", POD, fix=f"an older image, or nvidia_driver_branch and: {_DRIVER}"),
    Cause("cuda_driver_mismatch", POD, (MODULE,), fix="an image without cuda-compat, or "
          "LD_LIBRARY_PATH without /usr/local/cuda/compat"),
    Cause("forward_compatibility", POD, (MODULE,), fix=f"an image without cuda-compat, or "
          f"nvidia_driver_branch and: {_DRIVER}"),
    Cause("no_kernel_image", POD),
    Cause("hsa_invalid_isa", POD),
    Cause("image_for_other_vendor", POD),
    Cause("image_glibc_too_old", POD),
    Cause("image_without_glibc", POD),
    Cause("mps_not_reachable", POD),
    Cause("no_cuda_device", POD, (*_BELOW_POD, "asks_no_gpu")),
    Cause("pod_failed", POD, FOLLOWS[POD], confidence=LIKELY),
    Cause("pod_waits", POD, FOLLOWS[POD], confidence=LIKELY),
)  # fmt: skip

#: All rows, in the order in which one can cause another.
CAUSES: Mapping[str, Cause] = {
    one.code: one
    for one in (
        *_ON_BUS, *_OF_MODULE, *_OF_GPU, *_OF_NVML, *_OF_TOOLKIT, *_OF_RUNTIME, *_OF_NODE,
        *_OF_PLUGIN, *_OF_POD,
    )
}  # fmt: skip

#: Layers of the verification and the layers here.
VERIFIED: Mapping[str, str] = {
    "pci": BUS,
    "module": MODULE,
    "devices": MODULE,
    "nvml": NVML,
    "toolkit": TOOLKIT,
    "runtime": RUNTIME,
    "allocatable": PLUGIN,
    "pod": POD,
    "metrics": POD,
}
#: Codes of the facts that another user than root gets for want of rights.
ROOT_ONLY = frozenset({"containerd_config_invalid", "docker_config_invalid", "crio_config_invalid"})
#: The releases whose driver fails with several MIG profiles (NVIDIA's GPU operator, its page on
#: troubleshooting, read 2026-11-21).
MIXED_MIG_BUG = ((570, 124, 6), (570, 158, 1))
