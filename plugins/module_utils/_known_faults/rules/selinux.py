# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of programs that may not open a GPU: SELinux, and the rights of files. Data."""

from __future__ import annotations

from ..types import Rule

_READ = "2026-11-28"
_DENIED = r"avc: {1,2}denied {1,2}\{ (?P<what>[\w ]{1,60}) \}[^\n]{0,200}?"
_NO_NVML = r"Failed to initialize NVML: Insufficient Permissions"
_TOOLKIT_ISSUE = "github.com/NVIDIA/nvidia-container-toolkit/issues/33"

SELINUX = (
    Rule(
        "selinux_denies_devices",
        _DENIED + r"\b(?:path=\"(?P<file>/dev/(?:nvidia|dri|kfd)[^\"\n]{0,100})\""
        r"|name=\"(?P<name>(?:nvidia|renderD|card|kfd)[^\"\n]{0,40})\")"
        r"[^\n]{0,300}?tclass=chr_file",
        "the audit log",
        "SELinux does not let a container use the GPU's device file {file}{name} ({what}).",
        "Allow it to all containers of the node: setsebool -P container_use_devices on (newer "
        "policies also have container_use_xserver_devices for /dev/nvidia* and "
        "container_use_dri_devices for /dev/dri), and update the package container-selinux. Or "
        "start this container alone with --security-opt label=disable (Kubernetes: "
        "securityContext.seLinuxOptions.type), which turns SELinux off for it.",
        'avc:  denied  { map } for  pid=1 comm="vainfo" path="/dev/dri/renderD128" dev="devtmpfs" '
        "scontext=system_u:system_r:container_t:s0:c1,c2 "
        "tcontext=system_u:object_r:dri_device_t:s0 tclass=chr_file permissive=0",
        "github.com/containers/podman/issues/18497; github.com/containers/container-selinux/issues/"
        "269, pull/289, pull/306",
        _READ,
        covers=("nvml_failed", "nvml_permissions", "device_node_rights"),
    ),
    Rule(
        "selinux_denies_devices",
        _NO_NVML,
        "nvidia-smi, in a container",
        "SELinux is enforcing on the node and does not let the container use the device files of "
        "the GPU; NVML answers on the node itself.",
        "See the denial with ausearch -m avc -ts recent. Allow it to all containers of the node: "
        "setsebool -P container_use_devices on (or container_use_xserver_devices, where the policy "
        "has it). Or start this container alone with --security-opt label=disable, which turns "
        "SELinux off for it.",
        "Failed to initialize NVML: Insufficient Permissions",
        _TOOLKIT_ISSUE,
        _READ,
        when=("selinux_enforcing", "not on_host"),
        family="nvml_permissions",
    ),
    Rule(
        "nvml_permissions",
        _NO_NVML,
        "nvidia-smi, the device plugin",
        "The user of the program may not open the device files of the GPU (/dev/nvidiactl, "
        "/dev/nvidia0).",
        "See ls -l /dev/nvidia*: where the driver gives them to a group (NVreg_DeviceFileGID and "
        "NVreg_DeviceFileMode of the module nvidia), the user needs that group: --group-add with "
        "its number for Docker, --group-add keep-groups for Podman without root, "
        "supplementalGroups in Kubernetes.",
        "Failed to initialize NVML: Insufficient Permissions",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/210",
        _READ,
        when=("not selinux_enforcing", "not on_host"),
        family="nvml_permissions",
    ),
)
