# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the cause why a driver was not built, not loaded, or does not answer. Pure.

The rules are ordered by the strength of their evidence: a line that names a GPU or a key explains
the others, while 'no such device' alone explains nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .._core.finding import Finding
from .._hardware.module_blocks import MODULES, blocks_of, stops_by_name
from .._nvidia.driver_branches import BRANCHES, GENERATIONS
from .blocked import find_blocked
from .build import BUILD_RULES, NO_MODULE, not_built
from .codes import (
    GPU_UNSUPPORTED,
    IN_USE,
    MISSING,
    NOT_LOADABLE,
    OTHER_DRIVER,
    OTHER_KERNEL,
    SECURE_BOOT,
    VGPU_BRANCH,
    VGPU_GUEST,
    WHOLE_GPU,
    WRONG_MODULES,
)
from .common import (
    BECOME_STEP,
    GUEST_DRIVER_STEP,
    SERVED_STEP,
    kernel_driver_loaded,
    library_mismatch,
    vgpu_guest,
)
from .evidence_types import Evidence, Gpu, find_line
from .nvidia_log import serves

_GPU_LINE = re.compile(
    r"NVRM: The NVIDIA v?GPU (?P<address>[0-9a-fA-F:.]+) \(PCI ID: (?P<id>[0-9a-fA-F:]+)\)"
)
_REJECTED = re.compile(
    r"Required key not available|Key was rejected by service"
    r"|Lockdown: \S+: unsigned module loading is restricted"
    r"|Loading of (?:unsigned module|module with unavailable key) is rejected"
)
_IN_USE = re.compile(
    r"Module \S+ is in use|NVIDIA kernel module '\S+' appears to (?:be )?already (?:be )?loaded"
)
_OTHER_KERNEL = re.compile(r"Invalid module format|version magic '|disagrees about version of")


def find_cause(evidence: Evidence) -> Finding | None:
    """Return the most likely cause; None if the evidence shows none of them."""
    rules: tuple[Callable[[Evidence], Finding | None], ...]
    if not_built(evidence):
        # A module that was not built cannot have been rejected. nouveau may be loaded as well, but
        # a reboot would not help.
        rules = (*_GPU_RULES, *BUILD_RULES, *_LOAD_RULES, *_LAST_RULES)
    else:
        rules = (*_GPU_RULES, *_LOAD_RULES, *BUILD_RULES, *_LAST_RULES)
    for rule in rules:
        finding = rule(evidence)
        if finding is not None:
            return finding
    return None


def mok_steps(os_id: str, key: str | None, enrolled: bool | None) -> str:
    """Return the steps after which Secure Boot accepts the modules that DKMS signs."""
    if enrolled:
        return (
            f"The key {key} is enrolled, but the module is not signed with it: rebuild it (dkms "
            "install --force), or take the distribution's prebuilt signed modules, then run again."
        )
    default = "/var/lib/dkms/mok.pub" if os_id == "debian" else "/var/lib/shim-signed/mok/MOK.der"
    if os_id not in ("debian", "ubuntu"):
        default = "/var/lib/dkms/mok.pub"
    make = "" if key else " (Ubuntu makes it by update-secureboot-policy with the option --new-key)"
    return (
        f"1. mokutil --import {key or default}{make}, and choose a password. 2. Reboot with "
        "the console in sight: in the blue screen 'Perform MOK management' choose Enroll MOK, "
        "Continue, Yes, and give the password. 3. Run again. Without a console: take the "
        "distribution's prebuilt signed modules (Ubuntu's linux-modules-nvidia-*), or turn Secure "
        "Boot off in the firmware."
    )


def _refused_by_host(evidence: Evidence) -> Finding | None:
    text = f"{evidence.output}\n{evidence.kernel_log}"
    line = find_line(text, r"Guest driver is incompatible with host driver")
    if not line:
        return None
    host = next((gpu.host_version for gpu in evidence.gpus if gpu.host_version), None)
    guest = evidence.loaded or evidence.wanted or evidence.installed
    return Finding(
        VGPU_BRANCH,
        f"The guest's driver{f' {guest}' if guest else ''} does not fit the driver"
        f"{f' {host}' if host else ''} of the vGPU host: the virtual GPU does not start.",
        line,
        GUEST_DRIVER_STEP,
    )


def _vgpu(evidence: Evidence) -> Finding | None:
    # A loaded driver that answers is the right one, whatever else is wrong.
    line = _unsupported_line(evidence) or find_line(evidence.nvml, "No devices were found")
    return vgpu_guest(evidence, line)


def _whole_gpu(evidence: Evidence) -> Finding | None:
    whole = [gpu for gpu in evidence.gpus if gpu.vgpu is False]
    if not evidence.grid or not whole or any(gpu.vgpu for gpu in evidence.gpus):
        return None
    line = _unsupported_line(evidence) or find_line(evidence.nvml, "No devices were found")
    if not line and evidence.loaded:
        return None
    gpu = whole[0]
    return Finding(
        WHOLE_GPU,
        f"{gpu.name} at {gpu.address} is a whole GPU (bare metal or passed through), but the "
        f"driver {evidence.wanted or evidence.installed or ''} is a GRID driver for vGPU "
        "guests.".replace("  ", " "),
        line or "no vGPU capability in the PCI configuration",
        "Install the data-centre driver of the same branch instead; the licence service is not "
        "needed.",
    )


def _unsupported_line(evidence: Evidence) -> str:
    """Return the kernel's message about a GPU that the driver does not support, as one line."""
    log = evidence.kernel_log
    match = _GPU_LINE.search(log)
    if not match:
        return ""
    following = log[match.start() :].splitlines()[:9]
    text = re.sub(r"\s+", " ", " ".join(line.replace("NVRM:", "").strip() for line in following))
    match = re.match(
        r"The NVIDIA v?GPU .{0,60}?installed in this (?:vGPU host )?system (?:is not supported by "
        r".*?(?:driver release|\(GSP\)|System Processor|nvidia\.ko)|requires use of the NVIDIA "
        r"open kernel modules)", text.strip()
    )  # fmt: skip
    return "NVRM: " + match.group() if match else ""


def _unsupported(evidence: Evidence) -> Finding | None:
    line = _unsupported_line(evidence)
    if not line:
        return None
    match = _GPU_LINE.search(line)
    address = match["address"].lower() if match else ""
    device = match["id"].lower() if match else ""
    known = [gpu for gpu in evidence.gpus if _same_address(gpu.address, address)]
    gpu = known[0] if known else Gpu(address, f"The NVIDIA GPU {device}")
    return _wrong_modules(gpu, line) or _unsupported_branch(evidence, gpu, line)


def _wrong_modules(gpu: Gpu, line: str) -> Finding | None:
    """Return the finding if the kernel's message names the driver or modules that are needed."""
    if "requires use of the NVIDIA open" in line:
        return Finding(
            WRONG_MODULES,
            f"{gpu.name} at {gpu.address} ({gpu.generation}) works with the open kernel modules "
            "only, and the proprietary ones are installed.",
            line,
            "Ask for kernel_module: open (the same version), then run again.",
        )
    if "NVIDIA vGPU" in line:
        return Finding(
            VGPU_GUEST,
            f"{gpu.name} at {gpu.address} is a virtual GPU of this guest, which these open kernel "
            "modules do not drive.",
            line,
            "Install the GRID driver of the host's branch, as runfile, with the kind of modules "
            "that its documentation names for this GPU (kernel_module).",
        )
    if "vGPU host system" in line:
        return Finding(
            WRONG_MODULES,
            f"{gpu.name} at {gpu.address} is in a host of virtual GPUs, where these open kernel "
            "modules do not drive it.",
            line,
            "Install the vGPU manager of NVIDIA's licence portal on this host; it is not a "
            "driver for containers.",
        )
    return None


def _unsupported_branch(evidence: Evidence, gpu: Gpu, line: str) -> Finding:
    """Return the finding for a GPU that the branch or the open modules do not support."""
    version = evidence.wanted or evidence.loaded or evidence.installed or ""
    last = GENERATIONS.get(gpu.generation, {}).get("last")
    maintained = last is not None and bool(BRANCHES[last]["supported"])
    manual_step = (
        f"{last} is the last branch for this GPU, and is no longer maintained: install it "
        "manually, or take the card out."
    )
    branch_step = (
        f"Ask for branch: {last} and kernel_module: proprietary, then run again; {last} is the "
        "last branch for this GPU."
    )
    if "open nvidia.ko" in line and last:
        return Finding(
            WRONG_MODULES if maintained else GPU_UNSUPPORTED,
            f"{gpu.name} at {gpu.address} ({gpu.generation}) has no GSP: the open kernel modules "
            "cannot drive it, only the proprietary ones.",
            line,
            branch_step if maintained else manual_step,
        )
    if "open nvidia.ko" in line:
        return Finding(
            GPU_UNSUPPORTED,
            f"The open kernel modules cannot reach {gpu.name} at {gpu.address} "
            f"({gpu.generation}): this text also comes where the GPU does not answer on the bus.",
            line,
            "Power the machine off and on; see that the GPU is seated and powered, and that its "
            "memory regions fit (dmesg | grep -i -e 'BAR' -e pciehp).",
        )
    if last:
        step = branch_step if maintained else manual_step
    elif serves(version, gpu.generation):
        return Finding(
            GPU_UNSUPPORTED,
            f"The driver {version} refuses {gpu.name} at {gpu.address}, although its branch serves "
            f"this generation ({gpu.generation}).",
            line,
            f"{BECOME_STEP if gpu.vgpu is None else ''} {SERVED_STEP}".strip(),
        )
    elif gpu.vgpu is None:
        step = f"{BECOME_STEP} Otherwise ask for a newer branch."
    else:
        step = "Ask for a newer branch; this one does not know the GPU yet."
    return Finding(
        GPU_UNSUPPORTED,
        f"The driver {version} does not support {gpu.name} at {gpu.address} ({gpu.generation}).",
        line,
        step,
    )


def _same_address(one: str, other: str) -> bool:
    return one.lower().lstrip("0:") == other.lower().lstrip("0:")


def _secure_boot(evidence: Evidence) -> Finding | None:
    text = f"{evidence.modprobe}\n{evidence.output}\n{evidence.kernel_log}"
    line = find_line(text, _REJECTED)
    refused = re.search(r"could not insert '?nvidia\S* Operation not permitted", evidence.modprobe)
    if evidence.secure_boot and refused and not evidence.container:
        line = line or find_line(text, "Operation not permitted")
    if not line:
        return None
    state = "not readable"
    if evidence.secure_boot is not None:
        state = "on" if evidence.secure_boot else "off, but the kernel asks for signatures"
    key = ""
    if evidence.mok_key:
        trust = "enrolled" if evidence.mok_enrolled else "not enrolled"
        known = "" if evidence.mok_enrolled is None else f", {trust}"
        key = f"; key of DKMS: {evidence.mok_key}{known}"
    return Finding(
        SECURE_BOOT,
        "Secure Boot: the driver's module is installed, but the kernel refuses it, since it is not "
        "signed with a key that the firmware trusts.",
        f"{line}; Secure Boot is {state}{key}",
        mok_steps(evidence.os_id, evidence.mok_key, evidence.mok_enrolled),
    )


def _other_driver(evidence: Evidence) -> Finding | None:
    pattern = r"GPU (\S+) is already bound to (\S+?)\.?$"
    line = find_line(evidence.kernel_log, pattern)
    match = re.search(pattern, line)
    if not match or evidence.loaded:
        return None
    driver = match[2]
    return Finding(
        OTHER_DRIVER,
        f"The GPU {match[1]} belongs to the driver {driver}, not to NVIDIA's.",
        line,
        "Take its id out of vfio-pci's options (/etc/modprobe.d, kernel command line), rebuild "
        "the initramfs, reboot; or leave this node to its virtual machines."
        if driver.startswith("vfio")
        else f"Unbind or block {driver}, then run again.",
    )


def _in_use(evidence: Evidence) -> Finding | None:
    line = find_line(f"{evidence.modprobe}\n{evidence.output}", _IN_USE)
    return _used(evidence, line) if line else None


def _old_in_use(evidence: Evidence) -> Finding | None:
    if not evidence.users or None in (evidence.loaded, evidence.wanted):
        return None
    if evidence.loaded == evidence.wanted:
        return None
    count = len(evidence.users)
    line = f"{count} process{'es have' if count > 1 else ' has'} devices of the driver open"
    return _used(evidence, line)


def _used(evidence: Evidence, line: str) -> Finding:
    users = evidence.describe_users()
    if not users and evidence.holders:
        users = f"by the modules {', '.join(evidence.holders)}"
    version = f" {evidence.loaded}" if evidence.loaded else ""
    return Finding(
        IN_USE,
        f"The driver{version} is in use and cannot be unloaded" + (f": {users}." if users else "."),
        line,
        "Stop these processes (drain the node, stop its GPU containers and monitoring), or reboot "
        "the node; nothing is killed unless requested.",
    )


def _other_kernel(evidence: Evidence) -> Finding | None:
    line = find_line(f"{evidence.modprobe}\n{evidence.kernel_log}", _OTHER_KERNEL)
    if not line:
        return None
    return Finding(
        OTHER_KERNEL,
        f"The module was built for another kernel than the running one, {evidence.kernel}.",
        line,
        f"Rebuild it (dkms install --force -k {evidence.kernel}), or boot the kernel that it was "
        "built for.",
    )


def _environment(evidence: Evidence) -> Finding | None:
    refused = find_line(evidence.modprobe, r"Operation not permitted|Module nvidia\S* not found")
    if evidence.may_load is not False and not (evidence.container and refused):
        return None
    place = f"a container ({evidence.container})" if evidence.container else "this environment"
    return Finding(
        NOT_LOADABLE,
        f"Kernel modules cannot be loaded in {place}: the driver's files can be installed, but "
        "its module belongs to the host.",
        refused
        or "the capability to load modules (CAP_SYS_MODULE) is not there, or "
        "kernel.modules_disabled is 1",
        "Run against the host itself; in tests set load: false.",
    )


def _blocked(evidence: Evidence) -> Finding | None:
    """Return the finding for a module that a setting keeps from being loaded."""
    node = {"blocked_modules": evidence.blocked}
    by_name = stops_by_name(blocks_of(node, MODULES["nvidia"]))
    # A load by name that failed has another cause where only a blacklist is there.
    if evidence.loaded or (evidence.modprobe and not by_name):
        return None
    return find_blocked(node, "nvidia")


def _missing(evidence: Evidence) -> Finding | None:
    line = find_line(evidence.modprobe, NO_MODULE)
    tried = evidence.loaded or evidence.modprobe or evidence.output
    if evidence.on_disk is False and not tried:
        # Nothing was changed or loaded here: the files show it.
        line = f"/lib/modules/{evidence.kernel} has no nvidia.ko"
    if not line:
        return None
    others = sorted(
        {b.kernel for b in evidence.dkms if b.state == "installed" and b.kernel} - {evidence.kernel}
    )
    return Finding(
        MISSING,
        f"No driver module is installed for the running kernel {evidence.kernel}.",
        line + (f"; it is there for {', '.join(others)}" if others else ""),
        f"Boot {others[-1]}, or build it: dkms autoinstall -k {evidence.kernel}."
        if others
        else f"Build it: dkms autoinstall -k {evidence.kernel}; or install the modules' package.",
    )


_GPU_RULES = (_refused_by_host, _vgpu, _whole_gpu, _unsupported)
_LOAD_RULES = (_secure_boot, _blocked, kernel_driver_loaded, _other_driver)
_LAST_RULES = (_in_use, library_mismatch, _old_in_use, _other_kernel, _environment, _missing)
