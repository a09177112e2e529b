# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Kubernetes and NVIDIA's DRA driver need of each other. Data, not code.

Read 2026-11-23. Sources: github.com/kubernetes-sigs/dra-driver-nvidia-gpu 9593204 (v0.5.0):
site/content/docs/{prerequisites,install}.md, reference/feature-gates.md, pkg/featuregates, the
chart's values and templates, api/nvidia.com/resource/v1beta1; k8s.io/api/resource.
"""

from __future__ import annotations

from collections.abc import Mapping

Version = tuple[int, ...]

#: The first Kubernetes with each version of resource.k8s.io. Only v1 is enabled by default.
API_SINCE: Mapping[str, Version] = {"v1": (1, 34), "v1beta2": (1, 33), "v1beta1": (1, 32)}
#: The oldest Kubernetes of the chart (kubeVersion), and the one that the documentation asks for.
KUBERNETES: Version = (1, 32)
KUBERNETES_DOCUMENTED: Version = (1, 34, 2)
#: The first Kubernetes with ValidatingAdmissionPolicy v1, enabled by default.
POLICY_SINCE: Version = (1, 30)
POLICY_KIND = "ValidatingAdmissionPolicy"

#: The oldest driver for GPUs, and for compute domains (feature gate IMEXDaemonsWithDNSNames).
DRIVER_GPUS: Version = (565,)
DRIVER_DOMAINS: Version = (570, 158, 1)

#: The first releases with CDI, and with CDI enabled by default.
CONTAINERD_CDI: Version = (1, 7)
CONTAINERD_CDI_ON: Version = (2, 0)
CRIO_CDI_ON: Version = (1, 27)

DNS_NAMES = "IMEXDaemonsWithDNSNames"
CLIQUE_OBJECTS = "ComputeDomainCliques"
HOST_IMEX = "HostManagedIMEXDaemon"
MPS = "MPSSupport"
DYNAMIC_MIG = "DynamicMIG"
SHARES = "ConsumableShares"
_HEALTH = "NVMLDeviceHealthCheck"
_METADATA = "DeviceMetadata"
_PASSTHROUGH = "PassthroughSupport"

#: The driver's feature gates, and whether each is on by default.
FEATURE_GATES: Mapping[str, bool] = {
    CLIQUE_OBJECTS: True,
    SHARES: False,
    "CrashOnNVLinkFabricErrors": True,
    _METADATA: False,
    "DRAListTypeAttributes": False,
    DYNAMIC_MIG: False,
    "FabricManagerPartitioning": False,
    HOST_IMEX: False,
    DNS_NAMES: True,
    MPS: False,
    _HEALTH: False,
    _PASSTHROUGH: False,
    "TimeSlicingSettings": False,
    # Of Kubernetes' logging (component-base), which the driver registers too; read 2026-11-28.
    "ContextualLogging": True,
    "LoggingAlphaOptions": False,
    "LoggingBetaOptions": True,
}
#: What the gate of shares does is in this variable (cmd/gpu-kubelet-plugin; read 2026-11-28):
#: ``disabled`` (its default), ``memory``, ``unlimited`` or the number of shares of each GPU.
SHARES_VARIABLE = "CONSUMABLE_SHARES"
SHARES_DISABLED = "disabled"
SHARES_CHOICES = (SHARES_DISABLED, "memory", "unlimited")
#: Variables of the pods that follow from other options, or that Kubernetes fills in.
VARIABLES = frozenset(
    (
        *("CDI_ROOT", "CD_DAEMON_IMAGE_PULL_SECRET_NAMES", "FEATURE_GATES"),
        *("GPU_CLIQUE_LABEL_ENABLED", "HEALTHCHECK_PORT", "IMAGE_NAME", "IMAGE_PULL_POLICY"),
        *("IMAGE_PULL_SECRETS", "IMEX_ISOLATION", "IMEX_MODE", "KUBELET_PLUGINS_DIRECTORY_PATH"),
        *("KUBELET_REGISTRAR_DIRECTORY_PATH", "LOG_VERBOSITY", "LOG_VERBOSITY_CD_DAEMON"),
        *("NAMESPACE", "NODE_NAME", "NVIDIA_DRIVER_ROOT", "NVIDIA_MIG_CONFIG_DEVICES"),
        *("NVIDIA_VISIBLE_DEVICES", "POD_NAME", "SERVICE_ACCOUNT_NAME"),
    )
)
#: Gates that the driver refuses to start with together.
GATE_CONFLICTS = ((DYNAMIC_MIG, _HEALTH), (DYNAMIC_MIG, MPS), (MPS, _HEALTH))
#: A gate, and the one that it needs.
GATE_NEEDS = ((CLIQUE_OBJECTS, DNS_NAMES),)
#: Gates that need more of the host than this collection's manifests mount.
UNSUPPORTED_GATES = (_PASSTHROUGH, _METADATA)

#: Labels of nodes: NVLink clique (GPU feature discovery), and those of feature discovery that the
#: chart selects nodes by.
CLIQUE_LABEL = "nvidia.com/gpu.clique"
PRESENT_LABELS = ("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present")

#: IMEX_MODE: the driver starts IMEX for each compute domain, or uses the node's service.
DRIVER_MANAGED, HOST_MANAGED = "driverManaged", "hostManaged"
HEALTH_PORTS: Mapping[str, int] = {"gpus": 51516, "compute-domains": 51515}
