# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labels, annotation and taint of a node by its acceptance. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .._hardware.vendors import gpu_vendor
from .._labels.names import PREFIX
from .expected import gpu_set

#: Key of label, annotation and taint.
MARK = f"{PREFIX}/acceptance"
TAINT = {"key": MARK, "value": "pending", "effect": "NoSchedule"}


def marks(gpu_node: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    """Return what a node gets: ``labels``, ``annotations``, ``taints``, ``drop_taints``.

    A taint that the kubelet or an administrator set is taken away by a pass, too, and by nothing
    else. Another driver does not put the taint back, other GPUs do.

    :param required: whether a node takes no pods before it is accepted.
    """
    done = gpu_node.get("acceptance")
    if gpu_vendor(gpu_node["gpus"]) != "nvidia":
        return _marks()
    # Without an answer of the driver nothing says that the GPUs are others.
    if done and gpu_set(gpu_node) not in ([], done["gpus"]):
        done = None
    if not done:
        return _marks(taints=[TAINT] if required else [])
    told = {name: done[name] for name in ("at", "level", "driver")}
    return _marks(
        labels={MARK: "passed" if done["passed"] else "failed"},
        annotations={MARK: json.dumps(told, sort_keys=True)},
        taints=[TAINT] if required and not done["passed"] else [],
        drop_taints=[MARK] if done["passed"] else [],
    )


def _marks(**found: Any) -> dict[str, Any]:
    return {"labels": {}, "annotations": {}, "taints": [], "drop_taints": [], **found}
