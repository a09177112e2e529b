# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the problems of a node from its facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._hardware.kernel_drivers import kernel_drivers
from .._hardware.pci import UNKNOWN, is_legacy

# Their newest Python is too old for every supported ansible-core.
_OLD_SYSTEMS = {"centos": "7", "rhel": "7", "ol": "7", "scientific": "7"}


def find_problems(
    node: Mapping[str, Any], nvml_error: str, rpm_error: str = ""
) -> list[dict[str, str]]:
    """Return the problems of a node, each with code, cause, evidence and next step.

    :param node: the fact ``gpu_node`` without its problems.
    :param nvml_error: the error of NVML or ``nvidia-smi``, or an empty string.
    :param rpm_error: the error of rpm if it cannot read its database, or an empty string.
    """
    found = [_os(node), _packages(rpm_error)]
    gpus = [gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia"]
    if gpus:
        found.extend(_unknown(gpu) for gpu in gpus)
        found.extend(_legacy(gpu) for gpu in gpus)
        found.extend(_vgpu(gpu, node) for gpu in gpus)
        found.extend((_nouveau(node), *_driver(node, nvml_error), _dkms(node)))
    if node["gpus"]:
        found.append(_runtime(node))
    unique: dict[tuple[str, str], dict[str, str]] = {}
    for problem in found:
        if problem is not None:
            # Eight GPUs of one kind are one problem.
            unique.setdefault((problem["code"], problem["cause"]), problem)
    return list(unique.values())


def _problem(code: str, cause: str, evidence: str, next_step: str) -> dict[str, str]:
    return {"code": code, "cause": cause, "evidence": evidence, "next_step": next_step}


def _os(node: Mapping[str, Any]) -> dict[str, str] | None:
    identity, version = node["os"]["id"], node["os"]["version"] or ""
    if _OLD_SYSTEMS.get(identity) != version.partition(".")[0]:
        return None
    return _problem(
        "os_unsupported",
        f"{identity} {version} has no Python that a supported ansible-core can manage.",
        f"ID={identity} VERSION_ID={version} in /etc/os-release",
        "Move the node to release 8 or later.",
    )


def _packages(rpm_error: str) -> dict[str, str] | None:
    if not rpm_error:
        return None
    return _problem(
        "packages_unreadable",
        "rpm cannot read its database: what is installed on this node is not known.",
        rpm_error,
        "rpm --rebuilddb as root, then run again.",
    )


def _name(gpu: Mapping[str, Any]) -> str:
    return f"{gpu['product'] or 'NVIDIA GPU'} ({gpu['vendor_id']}:{gpu['device_id']})"


def _unknown(gpu: Mapping[str, Any]) -> dict[str, str] | None:
    if gpu["generation"] != UNKNOWN or is_legacy(gpu["vendor"], gpu["device_id"]):
        return None
    return _problem(
        "unknown_gpu",
        f"The NVIDIA GPU {gpu['vendor_id']}:{gpu['device_id']} is not in this release's table.",
        f"{gpu['address']}: class {gpu['class']}",
        "Ask for a driver branch and kind of kernel modules by name, and report the id.",
    )


def _legacy(gpu: Mapping[str, Any]) -> dict[str, str] | None:
    if not is_legacy(gpu["vendor"], gpu["device_id"]):
        return None
    return _problem(
        "legacy_gpu",
        f"{_name(gpu)} is of a generation before Maxwell: no driver that is still maintained "
        "serves it.",
        f"{gpu['address']}: device {gpu['device_id']}",
        "Use the last driver of its own branch (Kepler: 470) by hand, or take the card out.",
    )


def _vgpu(gpu: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, str] | None:
    if not gpu["vgpu"]["guest"] or node["driver"]["loaded"]:
        return None
    version, branch = gpu["vgpu"]["host_driver_version"], gpu["vgpu"]["host_driver_branch"]
    host = f"{version} ({branch})" if version else "unknown without root"
    return _problem(
        "vgpu_guest_without_grid_driver",
        f"{_name(gpu)} is a virtual GPU of this guest: only a GRID driver of the host's branch "
        "works, never the data-centre driver.",
        f"{gpu['address']}: subsystem {gpu['subsystem_vendor_id']}:{gpu['subsystem_device_id']}, "
        f"host driver {host}",
        "Get the GRID guest driver (NVIDIA-Linux-...-grid.run) for that host driver from the "
        "licence portal or the cloud provider.",
    )


def _nouveau(node: Mapping[str, Any]) -> dict[str, str] | None:
    if not node["nouveau"]["loaded"] or node["driver"]["loaded"]:
        return None
    name = kernel_drivers(node)
    return _problem(
        "nouveau_loaded",
        f"The kernel's driver {name} is loaded, and NVIDIA's driver cannot be loaded beside it.",
        f"/sys/module/{name.partition(' ')[0]} is there"
        + ("" if node["nouveau"]["blocked"] else "; no setting of modprobe blocks it"),
        "Reboot: it is blocked already."
        if node["nouveau"]["blocked"]
        else f"Block it (blacklist {name} in /etc/modprobe.d), rebuild the initramfs, reboot.",
    )


def _driver(node: Mapping[str, Any], nvml_error: str) -> list[dict[str, str]]:
    driver = node["driver"]
    found = []
    loaded, installed, userland = driver["loaded"], driver["installed"], driver["userland"]
    if (loaded and userland and loaded != userland) or "version mismatch" in nvml_error.lower():
        found.append(
            _problem(
                "driver_library_mismatch",
                "The kernel module that is loaded and the driver's libraries are of different "
                "versions: every new CUDA program and container fails.",
                nvml_error or f"module {loaded}, libraries {userland}",
                "Reboot, or unload and load the module, while no program uses a GPU.",
            )
        )
    elif nvml_error and loaded:
        found.append(
            _problem(
                "driver_not_answering",
                f"The driver {loaded} is loaded, but does not answer.",
                nvml_error,
                "Look at: dmesg | grep -i -e NVRM -e Xid",
            )
        )
    if driver["pending_reboot"]:
        found.append(
            _problem(
                "pending_reboot",
                f"Driver {installed} is installed, but {loaded} is still loaded.",
                f"/proc/driver/nvidia/version says {loaded}",
                "Reboot the node, or reload the module while no program uses a GPU.",
            )
        )
    return found


def _dkms(node: Mapping[str, Any]) -> dict[str, str] | None:
    running = node["os"]["kernel"]
    failed = [
        entry
        for entry in node["driver"]["dkms"]
        if entry["state"] == "failed" and entry["kernel"] in (running, None)
    ]
    if not failed:
        return None
    version = failed[0]["version"]
    return _problem(
        "dkms_build_failed",
        f"DKMS could not build driver {version} for the running kernel {running}.",
        f"make.log is left in /var/lib/dkms/nvidia*/{version}/build",
        "Read its first error; install the kernel's headers, or another driver or kernel.",
    )


def _runtime(node: Mapping[str, Any]) -> dict[str, str] | None:
    if any(node["runtimes"].values()):
        return None
    return _problem(
        "no_container_runtime",
        "No container runtime is on this node.",
        "neither containerd, dockerd nor crio was found",
        "Install containerd, CRI-O or Docker (this collection never does), then run again.",
    )
