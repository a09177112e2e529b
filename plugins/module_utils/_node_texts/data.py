# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which texts of a node belong into a support bundle. Data."""

from __future__ import annotations

import re

from .types import CONF, JSON, LOG, TOML, YAML, Place

#: Configurations of the container runtimes, of the toolkit, of kubelet and of the driver's modules.
#: Kubeconfigs, certificates, environments of units and logs of containers are left out.
PLACES: tuple[Place, ...] = (
    Place("/etc/containerd/config.toml", TOML),
    Place("/etc/containerd/conf.d", TOML, r".+\.toml\Z"),
    Place("/etc/docker/daemon.json", JSON),
    Place("/etc/crio/crio.conf", TOML),
    Place("/etc/crio/crio.conf.d", TOML, r".+\.conf\Z"),
    Place("/etc/nvidia-container-runtime/config.toml", TOML),
    Place("/etc/cdi", YAML, r".+\.(?:ya?ml|json)\Z"),
    Place("/var/run/cdi", YAML, r".+\.(?:ya?ml|json)\Z"),
    Place("/etc/rancher/k3s/config.yaml", YAML),
    Place("/etc/rancher/rke2/config.yaml", YAML),
    Place("/var/lib/kubelet/config.yaml", YAML),
    Place("/etc/modprobe.d", CONF, r".*(?:nvidia|nouveau|amdgpu|i915|kubegpu).*\.conf\Z"),
    Place("/var/log/fabricmanager.log", LOG),
)
#: Units whose journal of this boot is read.
UNITS: tuple[str, ...] = (
    "kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "k0scontroller", "k0sworker",
    "snap.microk8s.daemon-kubelite", "snap.microk8s.daemon-containerd", "containerd", "docker",
    "crio", "nvidia-persistenced", "nvidia-fabricmanager", "nvidia-imex", "nvidia-cdi-refresh",
    "nvidia-mig-manager", "kubegpu-metrics",
)  # fmt: skip
#: Where kubelet keeps the logs of containers, as NAMESPACE_POD_UID, and the pods of device plugins
#: and drivers there. A namespace or another pod may have any of these words in its name.
POD_LOGS = "/var/log/pods"
#: The log of a container of Docker, to which kubelet's is a link. Other files of its folder have
#: the environment of the container.
DOCKER_LOG = re.compile(r"/.+/containers/([0-9a-f]{64})/\1-json\.log\Z")
#: Namespaces that the install pages of plugins and drivers name (AMD's GPU operator and Intel's
#: device plugins, read 2026-11-27; NVIDIA's charts), and that of this collection. Who may make pods
#: in another namespace chooses their names.
NAMESPACES: tuple[str, ...] = (
    "kubegpu", "kube-system", "nvidia-device-plugin", "gpu-operator", "nvidia-gpu-operator",
    "nvidia-dra-driver-gpu", "kube-amd-gpu", "inteldeviceplugins-system", "node-feature-discovery",
)  # fmt: skip
PLUGIN_POD = re.compile(
    r"[^_/]+_(?:[a-z0-9.-]+-)?(?:"
    r"nvidia-(?:gpu-)?device-plugin|nvidia-driver-daemonset|nvidia-dra-driver-gpu|k8s-dra-driver|"
    r"dra-driver-nvidia-gpu|gpu-feature-discovery|amdgpu-(?:device-plugin|dp)|amd-device-plugin|"
    r"amd-gpu-device-plugin|intel-gpu-plugin|intel-(?:gpu-)?device-plugin|"
    r"intel-gpu-resource-driver"
    r")(?:-[a-z0-9.-]+)?_[^_/]+\Z"
)
#: Lines of the kernel that concern GPUs, their bus, or a program that hangs.
KERNEL_LINE = re.compile(
    r"NVRM|nvidia|nouveau|nova_core|amdgpu|\bi915\b|\bxe\b|\bdrm\b|SXid|\bXid\b|\bAER\b|pciehp|"
    r"PCIe Bus Error|fallen off|hung_task|blocked for more than|rcu_sched|Out of memory|"
    r"Linux version|\bVFIO\b|vfio|IOMMU|DMAR|Secure ?Boot|lockdown|module verification",
    re.I,
)
#: Command lines and environments, of the kernel, of processes and of containers, are left out with
#: their line: no name shows which word of them is a secret.
COMMAND_LINE = re.compile(
    r"command line|cmdline|COMMAND=|\bargv\b|\bexecve?\b|"
    # What kubelet, containerd and the kernel's audit print of a container or a process.
    r"\bContainer\{|EnvVar\{|\bcmd[\"=:]|with command|\b(?:Command|Args):\[|proctitle=|\ba\d+=\"",
    re.I,
)
