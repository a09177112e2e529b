# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of nvidia-container-cli about the linker and control groups. Data, not code."""

from __future__ import annotations

from ..types import Rule

_READ_REPORTS = "2026-11-28"

CONTAINER_CLI = (
    Rule(
        "ldconfig_failed",
        r"ldcache error: process (?P<program>/[\w./-]{1,120}) terminated with signal "
        r"(?P<signal>\d{1,3})",
        "nvidia-container-cli, when a container starts",
        "ldconfig ({program}), which the hook of the mode legacy runs for the container, was "
        "killed by signal {signal}.",
        "Have the nvidia runtime use CDI, which does not need that hook: nvidia-ctk cdi generate "
        "--output=/var/run/cdi/nvidia.yaml, and nvidia-container-runtime.mode = cdi in "
        "/etc/nvidia-container-runtime/config.toml (nvidia_container_toolkit_settings).",
        "nvidia-container-cli: ldcache error: process /sbin/ldconfig terminated with signal 9",
        "github.com/NVIDIA/k8s-device-plugin/issues/1400",
        _READ_REPORTS,
        fix="nvidia_container_toolkit_settings: {{nvidia-container-runtime.mode: cdi}}",
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
)
