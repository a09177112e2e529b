# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the objects of this collection's device plugin are called.

Apart from what makes them, so that a module that only looks for them need not carry that.
"""

from __future__ import annotations

#: DaemonSets; without the prefix it is their pods' ``app.kubernetes.io/name``.
PREFIX = "kubegpu-"
NAME = f"{PREFIX}nvidia-device-plugin"
MPS_NAME = f"{PREFIX}nvidia-mps-control-daemon"
DISCOVERY_NAME = f"{PREFIX}gpu-feature-discovery"
#: What the container toolkit's handler is called, and the RuntimeClass for it.
HANDLER = "nvidia"
