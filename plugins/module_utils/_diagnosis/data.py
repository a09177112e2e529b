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

from .._core.commands import playbook
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
    Rule,
)

_SITE = f"{playbook('site')} --limit {{limit}}"
_DRIVER = f"{_SITE} --tags driver"
#: Where a fix that the role of the driver does begins: in front of its command, or of its
#: variables. A variable of the host that lets the role do nothing comes there (``fixes.Fix``).
SWITCH_THEN, SWITCH_AND = "{switch_then}", "{switch_and}"
_RUN = f"{SWITCH_THEN}{_DRIVER}"
_TOOLKIT = f"{_SITE} --tags toolkit,runtime"
# A driver that somebody else installed is kept as it is unless it is requested.
_OWN_DRIVER = f"{SWITCH_AND}nvidia_driver_branch, then: {_DRIVER}"
_OR_BRANCH = f"or {SWITCH_AND}nvidia_driver_branch and: {_DRIVER}"
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
_LABELS = f"{playbook('site')} --tags labels"
_PLUGIN = f"{playbook('site')} --tags device_plugin"
#: Stands for the command by which a node is rebooted, in a cluster after a drain.
REBOOT = "{reboot}"
_RESTART_POD = "kubectl --namespace {namespace} delete pod {name}"

_BELOW_NVML = (BUS, MODULE, GPU)
#: Faults of a GPU with which the driver answers anyway: they explain nothing of its answer.
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
    Rule("gpu_lost", BUS),
    Rule("gpu_missing", BUS, ("gpu_lost",)),
    Rule("gpu_count", BUS, ("gpu_lost", "gpu_missing")),
    Rule("bar_not_assigned", BUS),
    Rule("power_cable", BUS),
    Rule(
        "gpu_bound_to_other_driver",
        BUS,
        fix="take the GPU's id out of vfio-pci.ids (kernel command line, /etc/modprobe.d) of "
        "{host}, then: {reboot}",
    ),
    Rule("legacy_gpu", BUS),
    Rule("unknown_gpu", BUS, severity=WARNING, fix="nvidia_driver_branch, "
          "nvidia_driver_kernel_module"),
    Rule("os_unsupported", BUS, severity=WARNING),
    Rule("packages_unreadable", BUS, fix="rpm --rebuilddb", severity=WARNING),
)  # fmt: skip

_OF_MODULE = (
    Rule(
        "vgpu_guest_without_grid_driver",
        MODULE,
        fix="nvidia_driver_source: runfile, nvidia_driver_runfile: {{url: ..., checksum: ...}} "
        "(docs/driver.md, vGPU)",
    ),
    Rule(
        "vgpu_driver_incompatible",
        MODULE,
        fix=f"{SWITCH_AND}nvidia_driver_source: runfile, nvidia_driver_runfile: {{{{url: ..., "
        f"checksum: ...}}}} (docs/driver.md, vGPU), then: {_DRIVER}",
    ),
    Rule(
        "grid_driver_on_whole_gpu",
        MODULE,
        fix=f"{SWITCH_AND}nvidia_driver_source: nvidia, nvidia_driver_replace_source: true, then: "
        f"{_DRIVER}",
    ),
    Rule("gpu_unsupported", MODULE, (BUS,), fix=_OWN_DRIVER),
    Rule(
        "wrong_kernel_modules",
        MODULE,
        fix=f"{SWITCH_AND}nvidia_driver_kernel_module: open or proprietary, then: {_DRIVER}",
    ),
    Rule("disk_full", MODULE, fix="free space (df -h / /var /boot /tmp), then run again"),
    Rule("driver_missing", MODULE, fix=_RUN),
    Rule("secure_boot", MODULE, fix="docs/docsite/rst/guide_secure_boot.rst"),
    Rule("module_blocked", MODULE, ("driver_missing",)),
    Rule(
        "nouveau_loaded", MODULE, ("driver_missing",), fix=f"{_RUN} && {REBOOT}"
    ),
    Rule("kernel_headers_missing", MODULE, fix=_RUN),
    Rule("dkms_build_failed", MODULE, ("kernel_headers_missing", "disk_full"), fix=_RUN),
    Rule(
        "module_for_other_kernel", MODULE, ("kernel_headers_missing", "dkms_build_failed"),
        fix=_RUN,
    ),
    Rule(
        "module_missing",
        MODULE,
        ("driver_missing", "kernel_headers_missing", "dkms_build_failed"),
        fix=_RUN,
    ),
    Rule("modules_cannot_be_loaded_here", MODULE),
    Rule("upgraded_unattended", MODULE, fix=f"nvidia_driver_hold: true, then: {REBOOT}",
          confidence=LIKELY),
    Rule("driver_library_mismatch", MODULE, ("upgraded_unattended",), fix=REBOOT),
    Rule("pending_reboot", MODULE, ("upgraded_unattended", "driver_library_mismatch"),
          fix=REBOOT),
    Rule("driver_in_use", MODULE, fix=REBOOT),
    Rule("other_driver", MODULE, fix=f"{SWITCH_AND}nvidia_driver_version, then: {_DRIVER}"),
    Rule("gsp_firmware_failed", MODULE, (BUS,),
          fix=f"{SWITCH_AND}another nvidia_driver_version, then: {_DRIVER}"),
    Rule("drm_firmware_missing", MODULE, fix="install the distribution's firmware package"),
    Rule("drm_firmware_failed", MODULE, ("drm_firmware_missing",)),
    Rule("drm_gpu_not_supported", MODULE),
    Rule(
        "drm_probe_failed",
        MODULE,
        (BUS, "drm_firmware_missing", "drm_firmware_failed", "drm_gpu_not_supported"),
    ),
    Rule("module_not_loaded", MODULE, (BUS, MODULE)),
    Rule("driver_not_loaded", MODULE, (BUS, MODULE), fix=_RUN),
    Rule("drm_driver_not_loaded", MODULE, (BUS, MODULE), fix="modprobe {module}"),
    Rule("gpu_not_bound", MODULE, (BUS, MODULE)),
    Rule("device_nodes_missing", MODULE, (BUS, MODULE),
          fix="nvidia-smi -L && nvidia-modprobe -c 0 -u"),
    Rule("no_module_for_next_kernel", MODULE, ("driver_missing",), fix=_OWN_DRIVER,
          severity=WARNING, confidence=LIKELY),
    Rule("drm_firmware_optional", MODULE, severity=INFO),
    Rule("device_node_missing", MODULE, (BUS, MODULE)),
    Rule("device_node_wrong", MODULE, (BUS, MODULE)),
    Rule("device_node_rights", MODULE),
)  # fmt: skip

_OF_GPU = (
    Rule("fabric_manager_not_running", GPU, (BUS, MODULE), fix=_OWN_DRIVER),
    Rule("fabric_manager_version", GPU, (BUS, MODULE), fix=_OWN_DRIVER),
    Rule("fabric_nothing_to_do", GPU, (BUS, MODULE), fix=_OWN_DRIVER, confidence=LIKELY),
    Rule("imex_failed", GPU, (BUS, MODULE), fix="systemctl restart nvidia-imex"),
    Rule("fabric_not_ready", GPU, (BUS, MODULE, "fabric_manager_not_running",
                                    "fabric_manager_version", "fabric_nothing_to_do",
                                    "imex_failed")),
    Rule("fabric_degraded", GPU, (BUS, MODULE, "fabric_manager_not_running",
                                   "fabric_manager_version")),
    Rule("gpu_memory_error", GPU, (BUS,), fix=REBOOT),
    Rule("gsp_timeout", GPU, (BUS,), fix=REBOOT),
    Rule("coherent_memory_error", GPU, (BUS,), fix=REBOOT, confidence=LIKELY),
    Rule("nvlink_error", GPU, (BUS,), fix=REBOOT),
    Rule("nvswitch_error", GPU, (BUS,), fix=REBOOT),
    Rule("nvswitch_event", GPU, (BUS,)),
    Rule("row_remap_failed", GPU, (BUS,)),
    Rule("sram_threshold", GPU, (BUS,)),
    Rule("inforom_corrupt", GPU, (BUS,)),
    Rule("row_remap_pending", GPU, (BUS, "gpu_memory_error", "row_remap_failed"), fix=REBOOT),
    Rule("page_retirement_pending", GPU, (BUS, "gpu_memory_error"), fix=REBOOT),
    Rule("gpu_memory_contained", GPU, (BUS, "gpu_memory_error"), fix=REBOOT),
    Rule("ecc_pending", GPU, (BUS,), fix=REBOOT),
    Rule("mig_pending", GPU, (BUS,), fix=REBOOT),
    Rule(
        "mig_without_instances",
        GPU,
        (BUS, MODULE, "mig_pending"),
        fix=f"nvidia_mig_config, then: {_SITE} --tags mig",
        confidence=LIKELY,
    ),
    Rule(
        "mixed_mig_driver_bug",
        GPU,
        fix=_OWN_DRIVER,
        severity=WARNING,
        confidence=POSSIBLE,
    ),
    Rule("compute_mode", GPU, (BUS, MODULE), fix="nvidia-smi -c 0", confidence=LIKELY),
    Rule("persistence_off", GPU, (BUS, MODULE), severity=INFO,
          fix="systemctl enable --now nvidia-persistenced"),
    Rule("vgpu_unlicensed", GPU, (BUS, MODULE),
          fix=f"{SWITCH_AND}nvidia_driver_licence, then: {_DRIVER}"),
    Rule("vgpu_licence_expired", GPU, (BUS, MODULE), severity=WARNING, confidence=LIKELY,
          fix="systemctl restart nvidia-gridd"),
    Rule("hw_slowdown", GPU, (BUS,)),
    Rule("pcie_width", GPU, (BUS,)),
    Rule("pcie_errors", GPU, (BUS,)),
    Rule("pcie_errors_nonfatal", GPU, (BUS,)),
    Rule("pcie_errors_corrected", GPU, (BUS,)),
    Rule("amd_ras_uncorrected", GPU, (BUS,), fix=REBOOT),
    Rule("drm_wedged", GPU, (BUS, MODULE), fix=REBOOT),
    Rule("drm_resume_failed", GPU, (BUS, MODULE), fix=REBOOT),
    Rule("drm_reset_failed", GPU, (BUS, MODULE), fix=REBOOT),
    Rule("drm_ring_reset_failed", GPU, (BUS, MODULE), fix=REBOOT),
    Rule("kernel_driver_errors", GPU, (BUS, MODULE)),
    Rule("xid", GPU, (BUS,)),
    Rule("gpu_needs_reset", GPU, (BUS, GPU), fix=REBOOT),
    Rule("recovery_action", GPU, (BUS, GPU), fix=REBOOT),
    Rule("gpu_init_failed", GPU, (BUS, MODULE, GPU), fix=REBOOT),
    Rule("gpu_probe_failed", GPU, (BUS, MODULE, GPU)),
    Rule("driver_message", GPU, (BUS, MODULE, GPU)),
    Rule("driver_oops", GPU, (BUS,), fix=REBOOT),
    Rule("xid_again", GPU, (BUS, GPU)),
    Rule("xid_history", GPU, (BUS, GPU)),
    Rule("gpu_values_unreadable", GPU, (BUS, MODULE, GPU)),
    Rule("nvlink_down", GPU, (BUS, MODULE, GPU), severity=WARNING, confidence=LIKELY),
    Rule("gpu_test_failed", GPU, (BUS, MODULE, GPU), confidence=LIKELY),
    Rule("kfd_not_opened", GPU, (BUS, MODULE, GPU), confidence=LIKELY),
    Rule("gpu_mapping_failed", GPU, (BUS, MODULE, GPU), confidence=LIKELY),
)  # fmt: skip

_OF_NVML = (
    Rule("driver_hangs", NVML, _BELOW_NVML, fix=REBOOT),
    Rule("nvidia_smi_missing", NVML, _BELOW_NVML, fix=_OWN_DRIVER),
    Rule("nvml_failed", NVML, _BELOW_NVML),
    Rule("gpu_access_blocked", NVML, _BELOW_NVML),
    Rule("no_devices", NVML, _BELOW_NVML),
    Rule("gpu_missing_in_nvml", NVML, (*_BELOW_NVML, NVML)),
    Rule("driver_not_answering", NVML, (*_BELOW_NVML, NVML), fix=REBOOT, confidence=LIKELY),
)

_OF_TOOLKIT = (
    Rule("toolkit_missing", TOOLKIT, fix=_TOOLKIT),
    Rule("toolkit_config_invalid", TOOLKIT, fix=f"nvidia_container_toolkit_settings, then: "
          f"{_TOOLKIT}"),
    Rule("cdi_missing", TOOLKIT, fix=_TOOLKIT),
    Rule("cdi_stale", TOOLKIT, fix=_TOOLKIT),
    Rule("cdi_invalid", TOOLKIT, _BELOW_TOOLKIT, fix=_NEW_CDI),
    Rule("amd_cdi_outdated", TOOLKIT, fix=f"amd_container_toolkit_enabled: true, then: "
          f"{_TOOLKIT}"),
    Rule("container_cli_missing", TOOLKIT, ("toolkit_missing",), fix=_TOOLKIT_AGAIN),
    Rule("hook_missing", TOOLKIT, ("toolkit_missing",), fix=_TOOLKIT_AGAIN),
    Rule("runtime_missing", TOOLKIT, ("toolkit_missing",), fix=_TOOLKIT_AGAIN),
    Rule("toolkit_broken", TOOLKIT, (*_BELOW_TOOLKIT, TOOLKIT), fix=_TOOLKIT_AGAIN),
)  # fmt: skip

_OF_RUNTIME = (
    Rule("no_container_runtime", RUNTIME),
    Rule("containerd_config_invalid", RUNTIME),
    Rule("docker_config_invalid", RUNTIME),
    Rule("crio_config_invalid", RUNTIME),
    Rule("cri_disabled", RUNTIME),
    Rule("containerd_not_running", RUNTIME, ("containerd_config_invalid",),
          fix="systemctl restart containerd"),
    Rule("docker_not_running", RUNTIME, ("docker_config_invalid",),
          fix="systemctl restart docker"),
    Rule("cri_not_ready", RUNTIME, ("containerd_config_invalid", "cri_disabled")),
    Rule("cri_missing", RUNTIME, ("containerd_config_invalid", "cri_disabled")),
    Rule("crio_monitor_missing", RUNTIME, fix=_TOOLKIT),
    Rule("k3s_template_other_version", RUNTIME, ("toolkit_missing",), fix=_TOOLKIT),
    Rule("runtime_lost", RUNTIME, ("k3s_template_other_version",), fix=_TOOLKIT),
    Rule("handler_missing", RUNTIME, ("toolkit_missing", "k3s_template_other_version"),
          fix=_TOOLKIT),
    Rule("wrong_program", RUNTIME, ("toolkit_missing",), fix=_TOOLKIT),
    Rule("restart_required", RUNTIME, fix=_TOOLKIT),
    Rule("docker_reload_required", RUNTIME, fix="systemctl reload docker"),
    Rule("docker_restart_required", RUNTIME, ("toolkit_missing",), fix="systemctl restart docker"),
    Rule("not_default", RUNTIME, ("toolkit_missing",
          "k3s_template_other_version", "runtime_lost", "handler_missing"),
          fix=_DEFAULT),
    # A pod gets its devices as the plugin's strategy says, not as the runtime's setting does.
    Rule("nvml_unknown_error", RUNTIME, _BELOW_TOOLKIT,
          fix=f"nvidia_container_toolkit_runtime_cdi: true, then: {_TOOLKIT}",
          pod_fix=f"nvidia_device_plugin_device_list_strategy: [cdi-cri], then: {_TOOLKIT},"
          "device_plugin"),
    Rule("container_no_cgroups", RUNTIME, _BELOW_TOOLKIT, fix="nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-cli.no-cgroups: false}}}}, then: {_TOOLKIT}"),
    Rule("cpu_manager_static", RUNTIME, _BELOW_TOOLKIT,
          fix=f"nvidia_device_plugin_pass_device_specs: true, then: {_PLUGIN}"),
    # What allows it loosens the policy of the node, or of a container: the next step has both.
    Rule("selinux_denies_devices", RUNTIME, _BELOW_RUNTIME),
    Rule("toolkit_root_elsewhere", RUNTIME, _BELOW_TOOLKIT,
          fix="nvidia_container_toolkit_settings: {{{{nvidia-container-cli.root: /}}}}, "
          f"then: {_TOOLKIT}"),
    Rule("driver_libraries_missing", RUNTIME, _BELOW_RUNTIME, fix=_OWN_DRIVER,
          confidence=LIKELY),
    Rule("docker_no_gpu_driver", RUNTIME, _BELOW_RUNTIME, fix=_TOOLKIT),
    Rule("hook_called_directly", RUNTIME, _BELOW_RUNTIME, fix="docker run --runtime=nvidia "
          "-e NVIDIA_VISIBLE_DEVICES=all, or nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-runtime.mode: auto}}}}, then: {_TOOLKIT}"),
    Rule("cdi_device_unknown", RUNTIME, _BELOW_RUNTIME,
          fix=_NEW_CDI),
    Rule("cdi_version", RUNTIME, _BELOW_RUNTIME),
    Rule("cdi_automatic_failed", RUNTIME, _BELOW_RUNTIME),
    Rule("ldconfig_failed", RUNTIME, _BELOW_RUNTIME, fix="nvidia_container_toolkit_settings: "
          "{{nvidia-container-cli.ldconfig: '@/sbin/ldconfig'}} (Ubuntu: '@/sbin/ldconfig.real'), "
          f"then: {_TOOLKIT}"),
    Rule("cgroup_rootless", RUNTIME, _BELOW_RUNTIME, fix="nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-cli.no-cgroups: true}}}}, then: {_TOOLKIT}"),
    Rule("cgroup_rules", RUNTIME, _BELOW_RUNTIME,
          fix=f"nvidia_container_toolkit_version: 1.8 or later, then: {_TOOLKIT}"),
    Rule("nothing_injected", RUNTIME, _BELOW_RUNTIME, fix="nvidia_container_toolkit_settings: "
          f"{{{{nvidia-container-runtime.mode: auto}}}}, then: {_TOOLKIT}"),
    Rule("gpu_count_in_container", RUNTIME, (*_BELOW_RUNTIME, RUNTIME)),
    Rule("container_failed", RUNTIME, (*_BELOW_RUNTIME, RUNTIME), confidence=LIKELY),
)  # fmt: skip

_OF_NODE = (
    Rule("cluster_not_asked", NODE, fix="kubegpu_kube"),
    Rule("node_unknown", NODE, fix="gpu_node_labels_node_name"),
    Rule("node_uncertain", NODE, fix="gpu_node_labels_node_name"),
    Rule("node_not_ready", NODE, (RUNTIME,)),
)

_OF_PLUGIN = (
    Rule("no_plugin", PLUGIN, fix=_PLUGIN),
    Rule("two_allocators", PLUGIN),
    Rule("operator_conflict", PLUGIN, fix="take the label kubegpu.nodes/gpu off the node of "
          "{host}, or switch the other owner's plugin off"),
    Rule("plugin_selects_not", PLUGIN, fix=_LABELS),
    Rule("plugin_tolerates_not", PLUGIN,
          fix=f"{{vendor}}_device_plugin_pods.tolerations, then: {_PLUGIN}"),
    # A pod of a user can name a class that is not NVIDIA's.
    Rule("runtime_class_missing", PLUGIN, fix=_PLUGIN, pod_fix=""),
    Rule("pod_security", PLUGIN, fix="kubectl label namespace {namespace} "
          "pod-security.kubernetes.io/enforce=privileged", pod_fix=""),
    Rule("quota_exceeded", PLUGIN, fix="raise it (kubectl --namespace {namespace} edit "
          "resourcequota), or end pods that hold GPUs in that namespace"),
    Rule("priority_class_quota", PLUGIN),
    Rule("image_missing", PLUGIN),
    Rule("image_pull_failed", PLUGIN, (NODE,)),
    Rule("wrong_architecture", PLUGIN),
    Rule("container_config", PLUGIN),
    Rule("out_of_memory", PLUGIN),
    Rule("default_runtime", PLUGIN, (), fix=_PLUGIN),
    Rule("plugin_without_gpu", PLUGIN),
    Rule("plugin_without_driver", PLUGIN, _BELOW_NODE, fix=_RUN),
    Rule("could_not_reach_nvml", PLUGIN, _BELOW_NODE, fix=_DEFAULT),
    Rule("plugin_gave_up", PLUGIN, _BELOW_PLUGIN, fix=_DEFAULT),
    Rule("mig_not_uniform", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_mig_strategy: mixed, then: {_PLUGIN}"),
    Rule("mig_strategy_unknown", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_mig_strategy: none, single or mixed, then: {_PLUGIN}"),
    Rule("discovery_no_token", PLUGIN, _BELOW_PLUGIN, fix=_PLUGIN),
    Rule("discovery_no_rights", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_feature_discovery_api: true, then: {_PLUGIN}"),
    Rule("discovery_no_api", PLUGIN, _BELOW_PLUGIN,
          fix=f"nvidia_device_plugin_feature_discovery_api: false, then: {_PLUGIN}"),
    Rule("runtime_changed", PLUGIN, _BELOW_NODE, fix=_RESTART_POD),
    Rule("plugin_crash_loop", PLUGIN, _BELOW_PLUGIN,
          fix="correct what kubectl --namespace {namespace} logs --previous {name} says"),
    Rule("not_registered", PLUGIN, _BELOW_PLUGIN, fix=_RESTART_POD, confidence=LIKELY),
    Rule("gpu_unhealthy", PLUGIN, _BELOW_TOOLKIT, fix=f"after a repair: {_RESTART_POD}"),
    Rule("wrong_count", PLUGIN, _BELOW_PLUGIN, fix=_PLUGIN, confidence=LIKELY),
)  # fmt: skip

_OF_POD = (
    Rule("pod_unknown", POD),
    Rule("pod_not_created", POD),
    Rule("asks_no_gpu", POD, fix="resources.limits of a container: {{nvidia.com/gpu: 1}}"),
    Rule("gpu_limit_missing", POD,
          fix="resources.limits of a container: {{nvidia.com/gpu: 1}}"),
    Rule("gpu_request_differs", POD),
    Rule("gpu_not_offered", POD, _BELOW_POD),
    Rule("asks_too_many", POD),
    Rule("held_by_upgrade", POD, fix=f"{playbook('upgrade')} "
          "-e gpu_upgrade_run={run} -e gpu_upgrade_release=true"),
    Rule("held_by_acceptance", POD, fix=playbook("accept")),
    Rule("node_not_accepted", POD, fix=playbook("accept")),
    Rule("no_node_matches", POD, fix="kubectl uncordon {cordoned}"),
    Rule("not_scheduled", POD, confidence=LIKELY),
    Rule("all_taken", POD, severity=WARNING),
    Rule("admission_failed", POD, _BELOW_POD, fix=_RESTART_POD),
    Rule("no_healthy_devices", POD, _BELOW_POD, fix=_RESTART_POD),
    Rule("taken_at_admission", POD, _BELOW_POD, fix=_RESTART_POD),
    Rule("allocation_failed", POD, _BELOW_POD, fix=_RESTART_POD),
    Rule("unmet_requirement", POD, (MODULE,), fix=f"an older image, {_OR_BRANCH}"),
    Rule("cuda_driver_insufficient", POD, (MODULE,), fix=f"an older image, {_OR_BRANCH}"),
    Rule("ptx_toolchain", POD, fix=f"an older image, {_OR_BRANCH}"),
    Rule("cuda_driver_mismatch", POD, (MODULE,), fix="an image without cuda-compat, or "
          "LD_LIBRARY_PATH without /usr/local/cuda/compat"),
    Rule("forward_compatibility", POD, (MODULE,),
          fix=f"an image without cuda-compat, {_OR_BRANCH}"),
    Rule("no_kernel_image", POD),
    Rule("hsa_invalid_isa", POD),
    Rule("image_for_other_vendor", POD),
    Rule("image_glibc_too_old", POD),
    Rule("image_without_glibc", POD),
    Rule("mps_not_reachable", POD),
    Rule("no_cuda_device", POD, (*_BELOW_POD, "asks_no_gpu")),
    Rule("pod_failed", POD, FOLLOWS[POD], confidence=LIKELY),
    Rule("pod_waits", POD, FOLLOWS[POD], confidence=LIKELY),
)  # fmt: skip

#: All rows, in the order in which one can cause another.
CAUSES: Mapping[str, Rule] = {
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
