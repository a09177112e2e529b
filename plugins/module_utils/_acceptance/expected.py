# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the hardware of a node with what is expected of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.finding import Finding, Subject
from .._core.printable import printable

Object = Mapping[str, Any]


def devices(gpu_node: Object) -> Sequence[Object]:
    """Return the GPUs that NVIDIA's driver tells."""
    found: Sequence[Object] = (gpu_node.get("nvml") or {}).get("devices") or ()
    return found


def gpu_set(gpu_node: Object) -> list[str]:
    """Return what identifies the GPUs of a node: another card has another UUID."""
    return sorted(str(one.get("uuid") or one.get("address")) for one in devices(gpu_node))


def product(gpu_node: Object) -> str:
    """Return the product of the node's GPUs; empty if they differ."""
    names = {str(one.get("name") or "") for one in devices(gpu_node)}
    return names.pop() if len(names) == 1 else ""


def compare(gpu_node: Object, health: Object, expect: Object) -> list[Finding]:
    """Return in what the node differs.

    :param health: the result of ``gpu_node_health``.
    :param expect: ``gpus``, ``product``, ``ecc`` and ``link_width``, each only if it is given.
    """
    found: list[Finding] = []
    gpus = devices(gpu_node)
    count = expect.get("gpus")
    if count is not None and len(gpus) != count:
        found.append(
            Finding(
                "gpu_count_differs",
                f"The driver has {len(gpus)} GPUs, and {count} are expected.",
                ", ".join(str(one.get("address")) for one in gpus),
                "Look for the others on the bus (lspci -d 10de:) and at their seat and power, "
                "or correct gpu_acceptance_expect.gpus.",
            )
        )
    wanted = expect.get("product")
    for gpu in gpus:
        name = str(gpu.get("name") or "")
        if wanted and str(wanted).lower() not in name.lower():
            finding = Finding(
                "product_differs",
                printable(f"A GPU is {name}, and {wanted} is expected."),
                str(gpu.get("address")),
                "See what was delivered, or correct gpu_acceptance_expect.product.",
            )
            found.append(_of(gpu, finding))
        ecc = gpu.get("ecc_mode")
        if expect.get("ecc") is not None and ecc != ("enabled" if expect["ecc"] else "disabled"):
            finding = Finding(
                "ecc_differs",
                f"ECC is {ecc or 'not there'}, and {'on' if expect['ecc'] else 'off'} is expected.",
                f"nvidia-smi: ecc_mode {ecc}",
                "nvidia-smi --ecc-config=1 (or 0) and a reboot, or correct "
                "gpu_acceptance_expect.ecc.",
            )
            found.append(_of(gpu, finding))
    least = expect.get("link_width")
    for seen in health.get("gpus") or ():
        width = (seen.get("link") or {}).get("width")
        if least is not None and width is not None and width < least:
            finding = Finding(
                "link_narrow",
                f"The PCI Express link has {width} lanes, and {least} are expected.",
                f"current_link_width is {width}",
                "Check the seat of the card, its riser, and the slot's setting in the firmware, "
                "or correct gpu_acceptance_expect.link_width.",
            )
            found.append(_of(seen, finding))
    return found


def _of(gpu: Object, finding: Finding) -> Finding:
    return replace(finding, subject=Subject(gpu=str(gpu.get("address") or "")))
