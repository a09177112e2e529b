# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of a node's facts that no other part of the collection judges. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._core.finding import ERROR, INFO, WARNING, Finding, Subject
from .._core.versions import version_numbers
from .._driver.plan.kernels import relevant_kernels
from .data import MIXED_MIG_BUG
from .types import Object

_PERSISTENCE = "nvidia-persistenced"


def judge_facts(node: Object) -> Iterator[Finding]:
    """Yield findings with their severity."""
    yield from _reserved(node)
    if not node["driver"]["loaded"]:
        if not node["driver"]["installed"] and _wanted(node):
            yield _no_driver(node)
        return
    yield from _next_kernel(node)
    devices = (node["nvml"] or {}).get("devices") or ()
    yield from _modes(devices)
    yield from _mixed_mig(node, devices)
    daemon = node["driver"]["services"].get(_PERSISTENCE)
    off = [one for one in devices if one.get("persistence_mode") == "disabled"]
    if off and daemon != "active":
        yield Finding(
            "persistence_off",
            "The driver forgets its GPUs when no program uses them: each program starts slowly.",
            f"persistence mode is off on {len(off)} of {len(devices)} GPUs, {_PERSISTENCE} is "
            f"{daemon or 'not installed'}",
            "Enable the persistence daemon: systemctl enable --now nvidia-persistenced.",
            severity=INFO,
        )


def _wanted(node: Object) -> Sequence[Object]:
    """Return the GPUs that NVIDIA's driver is to have."""
    return [
        gpu
        for gpu in node["gpus"]
        if gpu["vendor"] == "nvidia"
        and not gpu.get("virtual_function")
        and gpu["kernel_driver"] != "vfio-pci"
    ]


def _reserved(node: Object) -> Iterator[Finding]:
    for gpu in node["gpus"]:
        if gpu["vendor"] == "nvidia" and gpu["kernel_driver"] == "vfio-pci":
            yield Finding(
                "gpu_bound_to_other_driver",
                f"{gpu['product'] or 'The GPU'} at {gpu['address']} is bound to vfio-pci: reserved "
                "for virtual machines.",
                f"/sys/bus/pci/devices/{gpu['address']}/driver is vfio-pci",
                "Leave this GPU to virtual machines, or take it back: remove it from vfio-pci.ids "
                "(kernel command line, modprobe.d) and reboot.",
                severity=ERROR,
                subject=Subject(gpu=str(gpu["address"])),
            )


def _no_driver(node: Object) -> Finding:
    bound = sorted({str(gpu["kernel_driver"]) for gpu in _wanted(node) if gpu["kernel_driver"]})
    has = f"; {' and '.join(bound)} has the GPU" if bound else ""
    return Finding(
        "driver_missing",
        "The NVIDIA driver is not installed.",
        f"/proc/driver/nvidia/version does not exist, and no kernel has its module{has}",
        "Run kubegpu.nodes.site for this node: role nvidia_driver blocks other drivers, installs "
        "NVIDIA's and loads it.",
        severity=ERROR,
    )


def _next_kernel(node: Object) -> Iterator[Finding]:
    running = next((one for one in node["kernels"] if one["running"]), None)
    if running is None or not running.get("driver"):
        # Where the module of the running kernel is not seen, none of the next one is missed.
        return
    for kernel in relevant_kernels(node):
        if not kernel["running"] and not kernel.get("driver"):
            headers = "are" if kernel.get("headers") else "are not"
            version = kernel["version"]
            yield Finding(
                "no_module_for_next_kernel",
                f"The kernel of the next boot, {version}, has no module of the driver: after a "
                "reboot the GPUs are gone.",
                f"/lib/modules/{version} has no nvidia.ko, {running['version']} is running; "
                f"the headers of {version} {headers} installed",
                f"Before the reboot: install the headers of {version}, then dkms autoinstall "
                f"-k {version}; or install the package with its modules.",
                severity=WARNING,
            )


def _modes(devices: Sequence[Object]) -> Iterator[Finding]:
    for device in devices:
        gpu = str(device.get("address") or device.get("uuid") or "")
        if device.get("mig_mode") == "enabled" and not device.get("mig_devices"):
            yield Finding(
                "mig_without_instances",
                f"GPU {gpu} has its MIG mode on and no MIG device: CUDA programs find no device.",
                "nvidia-smi: MIG mode enabled, no MIG devices",
                "Make instances (nvidia_mig_config, or nvidia-smi mig -cgi ... -C), or turn "
                "the mode off (nvidia-smi -mig 0).",
                severity=ERROR,
                subject=Subject(gpu=gpu),
            )
        mode = device.get("compute_mode")
        if mode in ("prohibited", "exclusive_process"):
            many = "no program" if mode == "prohibited" else "one program at a time"
            yield Finding(
                "compute_mode",
                f"GPU {gpu} is set to the compute mode {mode}: {many} may use it.",
                f"nvidia-smi: compute mode {mode}",
                "If nobody wants that: nvidia-smi -c 0 as root.",
                severity=ERROR if mode == "prohibited" else WARNING,
                subject=Subject(gpu=gpu),
            )


def _mixed_mig(node: Object, devices: Sequence[Object]) -> Iterator[Finding]:
    loaded = str(node["driver"]["loaded"])
    first, last = MIXED_MIG_BUG
    profiles = {
        str(one.get("name")) for device in devices for one in device.get("mig_devices") or ()
    }
    if len(profiles) > 1 and first <= version_numbers(loaded) <= last:
        yield Finding(
            "mixed_mig_driver_bug",
            f"The driver {loaded} has a fault with MIG devices of several profiles: the device "
            "plugin may not offer them.",
            f"driver {loaded}; MIG devices {', '.join(sorted(profiles))}",
            "Install a newer driver of the branch (nvidia_driver_version), or use one profile.",
            severity=WARNING,
        )
