# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings that the facts of a node alone can show, used by the facts and by the diagnosis. Pure.

``gpu_node_facts`` ships this file to each node and compiles it there, so it imports little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._distro.upstream import package_base
from .._hardware.kernel_drivers import kernel_drivers
from .._hardware.vgpu_licence import GRACE, unlicensed
from .codes import BUILD_FAILED, MISMATCH, NOUVEAU, VGPU_GUEST
from .evidence_types import Evidence, Gpu, find_line

_MISMATCH = re.compile(
    r"Driver/library version mismatch|NVRM: API mismatch", re.IGNORECASE
)  # fmt: skip
# Since 595 the client is named: "the client 'nvidia-smi' (pid 4242)" and, in the next line, "has
# the version ..." (open-gpu-kernel-modules 595.45.04, osapi.c:1221).
_MISMATCH_VERSIONS = re.compile(
    r"API mismatch: the client(?: '[^'\n]{0,64}' \(pid \d{1,10}\))?\s{1,4}has the version "
    r"(\S{1,40}?), but.{0,200}?kernel module has\s{1,4}the version (\d{1,5}\.[\d.]{0,20}\d)",
    re.DOTALL,
)


VGPU_UNLICENSED = "vgpu_unlicensed"
#: What to read where a guest gets no licence.
LICENCE_FILES = (
    "Check the token in /etc/nvidia/ClientConfigToken (or, with a legacy licence server, "
    "ServerAddress) and FeatureType in /etc/nvidia/gridd.conf, the node's clock (timedatectl), and "
    "that the licence server is reachable from the node and has a licence left. The role "
    "nvidia_driver writes both files (nvidia_driver_licence)."
)
#: The same where nothing of the journal was read yet.
LICENCE_STEP = f"Check journalctl --unit nvidia-gridd. {LICENCE_FILES}"
#: How to get the driver that fits the host's.
GUEST_DRIVER_STEP = (
    "Run kubegpu.nodes.plan for this node: it names the host's driver. Install the GRID guest "
    "driver of the host's branch (nvidia_driver_source: runfile, nvidia_driver_runfile), from the "
    "licence portal or the cloud provider, or have the host's vGPU manager updated."
)
#: Where it is not known whether a GPU is virtual.
BECOME_STEP = (
    "If this machine is a guest, its GPU may be a virtual one: run with become, so that the PCI "
    "configuration can be read, and see gpu_node.gpus[].vgpu."
)
#: What else makes a driver refuse a GPU that its branch serves.
SERVED_STEP = (
    "In a guest check confidential computing (CC mode) and the memory regions of the GPU (BAR) in "
    "the host's configuration; on the machine itself the GPU's firmware. Then take a newer version "
    "of the branch."
)
NO_RUNTIME = Finding(
    "no_container_runtime",
    "No container runtime is on this node.",
    "neither containerd, dockerd nor crio was found",
    "Install containerd, CRI-O or Docker (this collection does not), then run again.",
)


def evidence_of_node(node: Mapping[str, Any], **more: Any) -> Evidence:
    """Return the evidence that the fact ``gpu_node`` contains, with further fields."""
    driver = node["driver"]
    return Evidence(
        kernel=node["os"]["kernel"],
        os_id=package_base(node["os"])["id"] or "",
        family=node["os"].get("family") or "",
        arch=node["os"].get("arch") or "",
        loaded=driver["loaded"],
        installed=driver["installed"],
        userland=driver["userland"],
        nouveau_loaded=bool(node["nouveau"]["loaded"]),
        nouveau_blocked=bool(node["nouveau"]["blocked"]),
        kernel_driver=kernel_drivers(node),
        blocked=node.get("blocked_modules") or {},
        gpus=tuple(_gpu(gpu) for gpu in node["gpus"] if gpu["vendor"] == "nvidia"),
        **more,
    )


def _gpu(gpu: Mapping[str, Any]) -> Gpu:
    vgpu = gpu["vgpu"]
    return Gpu(
        gpu["address"],
        gpu["product"] or f"NVIDIA GPU {gpu['device_id']}",
        gpu["generation"],
        vgpu["guest"],
        vgpu["host_driver_version"],
        vgpu["host_driver_branch"],
    )


def vgpu_guest(evidence: Evidence, reported: str = "") -> Finding | None:
    """Return the finding for a virtual GPU without a GRID driver.

    :param reported: the line in which the driver reports it; needed if ``grid`` is unknown.
    """
    guests = [gpu for gpu in evidence.gpus if gpu.vgpu]
    if not guests or evidence.grid or (evidence.grid is None and not reported):
        return None
    gpu = guests[0]
    host = gpu.host_version or "unknown without root"
    branch = f" ({gpu.host_branch})" if gpu.host_branch else ""
    return Finding(
        VGPU_GUEST,
        f"{gpu.name} at {gpu.address} is a virtual GPU of this guest: the data-centre driver "
        "cannot work here, only a GRID driver of the host's branch.",
        f"the host's driver is {host}{branch}" + (f"; {reported}" if reported else ""),
        "Get NVIDIA-Linux-<arch>-<version>-grid.run of that branch from the licence portal or the "
        "cloud provider, and give it as runfile.",
    )


def missing_licence(name: str, licence: Mapping[str, Any]) -> Finding:
    """Return the finding for a guest's GPU without a licence."""
    if licence["state"] == GRACE:
        return Finding(
            VGPU_UNLICENSED,
            f"The virtual GPU {name} has no licence. It still has its full performance; some time "
            "after the driver was loaded (20 minutes according to NVIDIA's documentation) the "
            "driver reduces it.",
            licence_evidence(licence),
            LICENCE_STEP,
        )
    return Finding(
        VGPU_UNLICENSED,
        f"The virtual GPU {name} has no licence: the driver reduces its performance, and CUDA "
        "programs can fail with 'busy or unavailable'.",
        licence_evidence(licence),
        LICENCE_STEP,
    )


def unlicensed_guest(gpus: Sequence[Mapping[str, Any]]) -> Finding | None:
    """Return the finding for the first GPU of the fact ``gpus`` that has no licence."""
    found = unlicensed(gpus)
    return missing_licence(found[0]["address"], found[0]["vgpu"]["licence"]) if found else None


def licence_evidence(licence: Mapping[str, Any]) -> str:
    product = f" ({licence['product']})" if licence["product"] else ""
    return f"nvidia-smi: License Status: {licence['status']}{product}"


def kernel_driver_loaded(evidence: Evidence) -> Finding | None:
    """Return the finding for a driver of the kernel (nouveau, nova) that holds the GPU."""
    reported = find_line(
        f"{evidence.output}\n{evidence.kernel_log}",
        r"(?i)nouveau kernel driver is currently in use|GPU \S+ is already bound to nouveau",
    )
    name = evidence.kernel_driver
    if evidence.loaded or not (evidence.nouveau_loaded or reported):
        return None
    line = reported or find_line(
        evidence.kernel_log, r"NVIDIA probe routine was not called|nouveau"
    )
    if evidence.container and not (line or "No such device" in evidence.modprobe):
        return None
    return Finding(
        NOUVEAU,
        f"The {name} driver is loaded and holds the GPU; NVIDIA's driver cannot be loaded until it "
        "is unloaded.",
        (f"{line}; " if line else "")
        + f"{name} is loaded"
        + (", and blocked for the next boot" if evidence.nouveau_blocked else ""),
        f"Reboot the node: {name} is blocked already."
        if evidence.nouveau_blocked
        else f"Block it (blacklist {name} in /etc/modprobe.d), rebuild the initramfs, reboot; "
        "the role nvidia_driver does it.",
    )


def driver_hangs(hang: Mapping[str, Any], more: str = "") -> Finding:
    """Return the finding for a driver that did not answer in time.

    :param hang: the fact ``gpu_node.driver_hang``.
    :param more: further evidence.
    """
    waits = f", waits in {hang['wchan']}" if hang["wchan"] else ""
    state = f"state {hang['state']}{waits}" if hang["state"] else "its state is unknown"
    after = "is still there after SIGKILL" if hang["left"] else "was ended"
    took = f"no answer in {hang['seconds']:.0f} s" if hang["seconds"] else "left by an earlier run"
    pid = f" (pid {hang['pid']})" if hang["pid"] else ""
    evidence = f"{hang['program']}{pid}: {took}, {state}, {after}"
    return Finding(
        "driver_hangs",
        "The driver does not answer nvidia-smi: a GPU hangs, or starting all of them takes too "
        "long without the persistence daemon.",
        "; ".join(filter(None, (evidence, more))),
        "Drain the node and reboot it; a reboot may hang too, then power it off and on by its "
        "management controller. Without any Xid: systemctl enable --now nvidia-persistenced, "
        "and a longer timeout.",
    )


def library_mismatch(evidence: Evidence) -> Finding | None:
    """Return the finding for a loaded module and libraries of different versions."""
    text = f"{evidence.nvml}\n{evidence.output}\n{evidence.kernel_log}"
    line = find_line(text, _MISMATCH)
    loaded, library = evidence.loaded, evidence.userland
    if loaded is None and not line:
        return None
    if not line and (library is None or library == loaded):
        return None
    if loaded and library == loaded and "mismatch" not in evidence.nvml:
        # An old line: module and libraries match now.
        return None
    reported = _MISMATCH_VERSIONS.search(text.replace("NVRM: ", ""))
    if reported:
        library, loaded = library or reported[1], loaded or reported[2]
    if library == loaded:
        # The libraries that a program loads are not those that the facts name.
        library = None
    return Finding(
        MISMATCH,
        f"The module that is loaded is {loaded or 'of another version'}, but the libraries are "
        f"{library or 'not of it'}: every new CUDA program and container fails.",
        line or f"loaded {loaded}, libraries {library}",
        "Reload the module while nothing uses a GPU, or reboot; then hold the whole set (hold: "
        "true) and keep it out of unattended upgrades."
        + (f" In use by: {evidence.describe_users()}." if evidence.users else ""),
    )


def build_failed(
    builder: str,
    version: str,
    kernel: str,
    evidence: str,
    *,
    fix: tuple[str, str] = ("", ""),
    details: Mapping[str, str] | None = None,
) -> Finding:
    """Return the finding for kernel modules that could not be built.

    :param builder: what built them, as the subject of a sentence.
    :param fix: the known cause, as the end of a sentence, and its next step.
    """
    why, step = fix
    because = f": {why}" if why else ""
    return Finding(
        BUILD_FAILED,
        f"{builder} could not build driver {version or 'modules'} for kernel {kernel}{because}.",
        evidence,
        step
        if step
        else "Read the first error in the log; install the kernel's headers, or take a newer "
        "version, another branch, the other kind of kernel modules, or the kernel that was there "
        "before.",
        dict(details or {}),
    )
