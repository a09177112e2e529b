# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of labels, annotations and what may be in them. Pure.

The desired labels of a node are in ``desired.py``, which needs the facts of its hardware.
"""

from __future__ import annotations

import re

PREFIX = "kubegpu.nodes"
#: The label that marks a node with GPUs, and selects those of NVIDIA's device plugin; its value is
#: the vendor.
MARKER = f"{PREFIX}/gpu"
#: Annotation of a node in maintenance: the run, and what the node was before.
MAINTENANCE = f"{PREFIX}/maintenance"
#: Annotation with which cluster-autoscaler does not remove a node. One that is drained is unneeded
#: for it. github.com/kubernetes/autoscaler, cluster-autoscaler/FAQ.md, read 2026-11-27.
KEEP_NODE = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
#: The label of each vendor of a node, ``true``: a node can have GPUs of two vendors.
VENDOR_MARKER = f"{PREFIX}/gpu-{{vendor}}"
#: NVIDIA's device plugin reads the name of the node's config from this label.
PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
LONGEST = 63

# Labels that GPU feature discovery writes (2026-11-21), without those that users set to configure
# it or other programs.
_DISCOVERED = re.compile(
    r"""nvidia\.com/(?:
        gfd\.timestamp
      | gpu\.(?:product|count|memory|family|machine|replicas|mode|sharing-strategy|clique
               |compute\.(?:major|minor)|slices\.(?:gi|ci)|multiprocessors|engines\..+)
      | gpu-driver-upgrade.*
      | cuda\..+
      | mig\.(?:capable|strategy)
      | mig-.+
      | vgpu\..+
      | mps\.capable
    )$""",
    re.VERBOSE,
)
_FEATURES = "feature.node.kubernetes.io/"


def is_discovered(name: str) -> bool:
    """Return whether a label name belongs to GPU or node feature discovery."""
    return bool(_DISCOVERED.match(name)) or name.startswith(_FEATURES)


def label_text(value: object) -> str:
    """Return a YAML value as text of a label: ``true``, not ``True``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
