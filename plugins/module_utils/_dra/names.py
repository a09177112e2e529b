# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of the Kubernetes objects of NVIDIA's DRA driver, as this collection makes them.

They are separate from the manifests, so that a module that only reads objects ships a small file.
"""

from __future__ import annotations

#: ``app.kubernetes.io/name`` of all objects.
APPLICATION = "nvidia-dra-driver"
NAME = f"kubegpu-{APPLICATION}"
PLUGIN_NAME = f"{NAME}-kubelet-plugin"
CONTROLLER_NAME = f"{NAME}-controller"
POLICY_NAME = f"{NAME}-own-slices"
#: The pods that the controller makes for a compute domain use these names, which are fixed in the
#: driver (templates/compute-domain-daemon.tmpl.yaml).
DAEMON_ACCOUNT = "compute-domain-daemon-service-account"
DAEMON_NAME = f"{NAME}-compute-domain-daemon"

#: The device classes, whose names are those of the driver's chart.
GPU_CLASS = "gpu.nvidia.com"
MIG_CLASS = "mig.nvidia.com"
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
DAEMON_CLASS = "compute-domain-daemon.nvidia.com"

#: The names of all objects but the namespace and the definitions of compute domains.
NAMES = (
    PLUGIN_NAME,
    CONTROLLER_NAME,
    POLICY_NAME,
    DAEMON_ACCOUNT,
    DAEMON_NAME,
    GPU_CLASS,
    MIG_CLASS,
    CHANNEL_CLASS,
    DAEMON_CLASS,
)

#: The API group of compute domains, and its version.
DOMAIN_GROUP = "resource.nvidia.com"
DOMAIN_VERSION = "v1beta1"
DOMAINS = f"computedomains.{DOMAIN_GROUP}"
CLIQUES = f"computedomaincliques.{DOMAIN_GROUP}"
