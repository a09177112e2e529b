# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Row of the result table for a node that a run did not bring to its plan: what its facts have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .drivers import present_driver
from .nodes import cuda_text, handlers_text, toolkit_text, unknown_row

# The file of handlers and the default of each runtime, in the fact ``runtimes``.
_RUNTIMES = {
    "containerd": ("handlers", "default_handler"),
    "docker": ("runtimes", "default_runtime"),
    "crio": ("runtimes", "default_runtime"),
}
_BEFORE = "its row shows what was read before; the run may have changed the node since"


def kept_row(
    name: str, node: Mapping[str, Any] | None, reason: str, *, changed: bool
) -> dict[str, Any]:
    """Return the row of a node that was refused, failed, is lost or waits.

    :param node: the fact ``gpu_node``; None if the node was not read.
    :param reason: why it is not as planned.
    :param changed: whether the node may have been changed after it was read.
    """
    row = unknown_row(name, reason)
    if node is None:
        return row
    return {
        **row,
        "driver": [
            *(text.partition(" ")[2] for text in present_driver(node)),
            *(f"{kernel} {one['version'] or 'of the kernel'}"
              for kernel, one in node["kernel_drivers"].items()),
        ],
        "cuda": cuda_text(node, {}, predicted=False),
        "toolkit": toolkit_text(node, {}, done=False),
        **{
            engine: handlers_text(runtime[handlers], runtime[default])
            for engine, (handlers, default) in _RUNTIMES.items()
            if (runtime := node["runtimes"][engine]) and runtime[handlers] is not None
        },
        "open": [*row["open"], *([_BEFORE] if changed else [])],
    }  # fmt: skip
