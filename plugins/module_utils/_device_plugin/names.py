# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of the Kubernetes objects of this collection's device plugins.

They are separate from the manifests, so that a module that only reads objects ships a small file.
"""

from __future__ import annotations

#: Names of DaemonSets; without the prefix, the ``app.kubernetes.io/name`` of their pods.
PREFIX = "kubegpu-"
NAME = f"{PREFIX}nvidia-device-plugin"
MPS_NAME = f"{PREFIX}nvidia-mps-control-daemon"
DISCOVERY_NAME = f"{PREFIX}gpu-feature-discovery"
#: The DaemonSet of each vendor's plugin.
PLUGINS = {
    "nvidia": NAME,
    "amd": f"{PREFIX}amd-device-plugin",
    "intel": f"{PREFIX}intel-device-plugin",
}
LABELLER_NAME = f"{PREFIX}amd-node-labeller"
#: Name of the container toolkit's runtime handler and of its RuntimeClass.
HANDLER = "nvidia"
