# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the AMD and Intel GPUs of a node: driver of the kernel, device nodes, firmware. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._hardware.vendors import DRIVERS, IN_KERNEL, NAMES, gpu_vendors
from .._known_faults.drm import find_unbound, reported, vendor_gpus
from .._known_faults.drm_devices import find_device_nodes, find_not_loaded, own_nodes
from .._toolkit.amd_cdi_checks import stale
from .evidence import count_of, failed, from_finding, untried, works
from .types import DEVICES, MODULE, PCI, TOOLKIT, LayerResult, Request


def judge_in_kernel(node: Mapping[str, Any], request: Request) -> list[LayerResult]:
    """Return the results of the layers pci, module and devices for each of these vendors.

    On a node with GPUs of two vendors, each result names its vendor.
    """
    vendors = [one for one in gpu_vendors(node["gpus"]) if vendor_gpus(node, one)]
    found = []
    for vendor in vendors:
        if vendor in IN_KERNEL:
            subject = NAMES[vendor] if len(vendors) > 1 else ""
            expected = request.gpus if len(vendors) == 1 else None
            found += _judge_vendor(node, vendor, expected, subject)
    if "amd" in vendors:
        found += _toolkit(node, NAMES["amd"] if len(vendors) > 1 else "")
    return found


def _toolkit(node: Mapping[str, Any], subject: str) -> list[LayerResult]:
    """Return whether AMD's container toolkit, where it is, has the node's devices."""
    toolkit = node["amd_container_toolkit"] or {}
    spec = toolkit.get("cdi_spec")
    if not toolkit.get("version") or not spec:
        return []
    why = stale(spec["nodes"], spec["made_for"], toolkit["render_nodes"])
    if why is None:
        proof = f"AMD's toolkit {toolkit['version']}, {spec['path']} fits the devices"
        return [works(TOOLKIT, proof, subject=subject)]
    return [
        failed(
            TOOLKIT,
            "amd_cdi_outdated",
            f"The CDI specification of the AMD GPUs does not fit the node: {why}.",
            str(spec["path"]),
            "Run kubegpu.nodes.site for this node with amd_container_toolkit_enabled: true, or "
            "amd-ctk cdi generate as root.",
            subject=subject,
        )
    ]


def _judge_vendor(
    node: Mapping[str, Any], vendor: str, expected: int | None, subject: str
) -> list[LayerResult]:
    pci = _pci(node, vendor, expected, subject)
    module = _module(node, vendor, subject)
    if module.ok is False or pci.ok is False:
        first = pci if module.ok else module
        devices = untried(
            DEVICES,
            "waits",
            f"It depends on the layer {first.layer}, which failed.",
            subject=subject,
        )
        return [pci, module, devices]
    return [pci, module, _devices(node, vendor, subject)]


def _pci(node: Mapping[str, Any], vendor: str, expected: int | None, subject: str) -> LayerResult:
    gpus = vendor_gpus(node, vendor)
    if expected is not None and len(gpus) != expected:
        return failed(
            PCI,
            "gpu_count",
            f"{count_of(len(gpus), f'{NAMES[vendor]} GPU')} on the PCI bus, and {expected} should "
            "be there.",
            ", ".join(str(gpu["address"]) for gpu in gpus),
            "Check that all cards are seated and powered, and check dmesg | grep -i pciehp; or "
            "correct the expected number.",
            subject=subject,
        )
    unbound = find_unbound(node, vendor)
    if unbound is not None:
        return from_finding(PCI, unbound, subject=subject)
    drivers = dict.fromkeys(str(gpu["kernel_driver"]) for gpu in gpus)
    return works(
        PCI,
        f"{count_of(len(gpus), 'GPU')} bound to the driver {' and '.join(drivers)}",
        subject=subject,
    )


def _module(node: Mapping[str, Any], vendor: str, subject: str) -> LayerResult:
    missing = find_not_loaded(node, vendor)
    logged = reported(node, vendor)
    if logged:
        # A GPU whose firmware is missing may stay bound, and does not compute.
        return from_finding(MODULE, logged[0], subject=subject)
    if missing is not None:
        return from_finding(MODULE, missing, subject=subject)
    loaded = [
        f"{name} {node['kernel_drivers'][name]['version'] or 'of the kernel'}"
        for name in DRIVERS[vendor]
        if name in node["kernel_drivers"]
    ]
    return works(MODULE, f"{' and '.join(loaded)} is loaded", subject=subject)


def _devices(node: Mapping[str, Any], vendor: str, subject: str) -> LayerResult:
    wrong = find_device_nodes(node, vendor)
    if wrong is not None:
        return from_finding(DEVICES, wrong, subject=subject)
    shown = dict.fromkeys(
        f"group {one['group']}, mode {one['mode']}" for one in own_nodes(node, vendor)
    )
    paths = ", ".join(one["path"] for one in own_nodes(node, vendor))
    return works(DEVICES, f"{paths} ({'; '.join(shown)})", subject=subject)
