# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the problems of a node from its facts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._hardware.pci import UNKNOWN, is_legacy
from .._hardware.vendors import IN_KERNEL, gpu_vendors

# Their newest Python is too old for every supported ansible-core.
_OLD_SYSTEMS = {"centos": "7", "rhel": "7", "ol": "7", "scientific": "7"}


def find_problems(
    node: Mapping[str, Any], nvml_error: str, rpm_error: str = "", silent: Sequence[str] = ()
) -> list[Finding]:
    """Return the problems of a node.

    :param node: the fact ``gpu_node`` without its problems.
    :param nvml_error: the error of NVML or ``nvidia-smi``, or an empty string.
    :param rpm_error: the error of rpm if it cannot read its database, or an empty string.
    :param silent: the addresses of NVIDIA's GPUs whose PCI configuration space reads as ones only.
    """
    found = [_os(node), _packages(rpm_error)]
    if node["gpus"]:
        found += _of_gpus(node, nvml_error, silent)
    unique: dict[tuple[str, str], Finding] = {}
    for finding in found:
        if finding is not None:
            # Eight GPUs of one kind are one problem.
            unique.setdefault((finding.code, finding.cause), finding)
    return list(unique.values())


def _of_gpus(
    node: Mapping[str, Any], nvml_error: str, silent: Sequence[str]
) -> list[Finding | None]:
    # Imported only with a GPU: the node compiles each imported file.
    from .._known_faults import common  # noqa: PLC0415

    no_runtime = None if any(node["runtimes"].values()) else common.NO_RUNTIME
    others = _unbound(node)
    gpus = [gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia"]
    if not gpus:
        return [*others, no_runtime]
    # Without a loaded driver, no GRID driver is in use.
    grid = bool(node["driver"]["loaded"])
    evidence = common.evidence_of_node(node, grid=grid, nvml=nvml_error)
    return [
        *others,
        *(_unknown(gpu) for gpu in gpus),
        *(_legacy(gpu) for gpu in gpus),
        common.vgpu_guest(evidence),
        common.unlicensed_guest(gpus),
        common.kernel_driver_loaded(evidence),
        common.library_mismatch(evidence) or _not_answering(node, nvml_error, silent),
        _pending_reboot(node),
        _failed_build(node, common.build_failed),
        no_runtime,
    ]


def _unbound(node: Mapping[str, Any]) -> list[Finding | None]:
    """Return the GPUs of AMD and Intel that no driver for containers serves."""
    vendors = [vendor for vendor in gpu_vendors(node["gpus"]) if vendor in IN_KERNEL]
    if not vendors:
        return []
    # Imported only with such a GPU: the node compiles each imported file.
    from .._known_faults.drm import find_unbound  # noqa: PLC0415

    return [find_unbound(node, vendor) for vendor in vendors]


def _os(node: Mapping[str, Any]) -> Finding | None:
    identity, version = node["os"]["id"], node["os"]["version"] or ""
    if _OLD_SYSTEMS.get(identity) != version.partition(".")[0]:
        return None
    return Finding(
        "os_unsupported",
        f"{identity} {version} has no Python that a supported ansible-core can manage.",
        f"ID={identity} VERSION_ID={version} in /etc/os-release",
        "Move the node to release 8 or later.",
    )


def _packages(rpm_error: str) -> Finding | None:
    if not rpm_error:
        return None
    return Finding(
        "packages_unreadable",
        "rpm cannot read its database: what is installed on this node is not known.",
        rpm_error,
        "rpm --rebuilddb as root, then run again.",
    )


def _name(gpu: Mapping[str, Any]) -> str:
    return f"{gpu['product'] or 'NVIDIA GPU'} ({gpu['vendor_id']}:{gpu['device_id']})"


def _unknown(gpu: Mapping[str, Any]) -> Finding | None:
    if gpu["generation"] != UNKNOWN or is_legacy(gpu["vendor"], gpu["device_id"]):
        return None
    return Finding(
        "unknown_gpu",
        f"The NVIDIA GPU {gpu['vendor_id']}:{gpu['device_id']} is not in this release's table.",
        f"{gpu['address']}: class {gpu['class']}",
        "Ask for a driver branch and kind of kernel modules by name, and report the id.",
    )


def _legacy(gpu: Mapping[str, Any]) -> Finding | None:
    if not is_legacy(gpu["vendor"], gpu["device_id"]):
        return None
    return Finding(
        "legacy_gpu",
        f"{_name(gpu)} is of a generation before Maxwell: no driver that is still maintained "
        "serves it.",
        f"{gpu['address']}: device {gpu['device_id']}",
        "Install the last driver of its own branch (Kepler: 470) manually, or take the card out.",
    )


def _not_answering(
    node: Mapping[str, Any], nvml_error: str, silent: Sequence[str]
) -> Finding | None:
    if not node["driver"]["loaded"]:
        return None
    if nvml_error or silent:
        # Imported only with such an error: the node compiles each imported file.
        from .._known_faults.broken_gpus import broken_gpu  # noqa: PLC0415

        broken = broken_gpu(node, nvml_error, silent)
        if broken is not None:
            return broken
    if node.get("driver_hang"):
        # Imported only with a driver that hangs: the node compiles each imported file.
        from .._known_faults.common import driver_hangs  # noqa: PLC0415

        return driver_hangs(node["driver_hang"])
    if not nvml_error:
        return None
    return Finding(
        "driver_not_answering",
        f"The driver {node['driver']['loaded']} is loaded, but does not answer.",
        nvml_error,
        "Check: dmesg | grep -i -e NVRM -e Xid",
    )


def _pending_reboot(node: Mapping[str, Any]) -> Finding | None:
    driver = node["driver"]
    if not driver["pending_reboot"]:
        return None
    return Finding(
        "pending_reboot",
        f"Driver {driver['installed']} is installed, but {driver['loaded']} is still loaded.",
        f"/proc/driver/nvidia/version says {driver['loaded']}",
        "Reboot the node, or reload the module while no program uses a GPU.",
    )


def _failed_build(node: Mapping[str, Any], build_failed: Callable[..., Finding]) -> Finding | None:
    running = node["os"]["kernel"]
    failed = [
        entry
        for entry in node["driver"]["dkms"]
        if entry["state"] == "failed" and entry["kernel"] in (running, None)
    ]
    if not failed:
        return None
    version = failed[0]["version"]
    return build_failed(
        "DKMS",
        version,
        running,
        f"make.log is left in /var/lib/dkms/nvidia*/{version}/build",
    )
