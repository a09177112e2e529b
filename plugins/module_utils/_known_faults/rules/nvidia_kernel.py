# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Error messages of the kernel and nvidia-smi about GPUs, memory and NVLink. Data, not code.

Xid lines are those of NVIDIA's kernel modules (kernel_rc.c), ``NVRM: Xid (PCI:0000:05:00): 48,
pid=...``; with MIG the parentheses also have ``GPU-I:02``. The device plugin prints ``Xid=48 on
Device=GPU-...`` for the same (internal/rm/health.go of k8s-device-plugin v0.20.0). What to do after
an Xid is in ``_nvidia/xids_data.py``. Only those that call for something have a row here.
"""

from __future__ import annotations

from ..._nvidia.xids import XIDS
from ..._nvidia.xids_data import (
    ACTIONS,
    FOLLOW_STEP,
    NVLINK_STEP,
    POWER,
    READ,
    RESET,
    RESET_STEP,
    SOURCE,
)
from ..codes import VGPU_BRANCH
from ..common import GUEST_DRIVER_STEP
from ..types import Rule

_MODULES = "github.com/NVIDIA/open-gpu-kernel-modules 595.45.04: "
_KERNEL = "the kernel's log"
_GPU = "GPU {address}{device}"
# The Xids that have a row of their own; gpu_lost is in containers.py.
_OWN_ROWS = (48, 63, 64, 74, 79, 94, 95, 119, 120, 154, 155, 159)
# NVLink 5: the line says whether the error is fatal; otherwise nothing is to be done.
_NVLINK5_FATAL = r"(?:14[4-9]|150)\b(?=[^\n]{0,200}?(?<!non-)\bfatal\b)"
_RESETS = tuple(
    number for number, xid in XIDS.items() if xid.action == RESET and number not in _OWN_ROWS
)


def _xid(
    code: str,
    numbers: tuple[int | str, ...],
    cause: str,
    next_step: str,
    example: str,
    covers: tuple[str, ...] = (),
) -> Rule:
    pattern = (
        r"(?:\bXid \((?:PCI:)?(?P<address>[0-9a-f:.]{4,16})[^)\n]{0,40}\): |\bXid=)"
        rf"(?P<number>{'|'.join(map(str, numbers))})\b(?: on Device=(?P<device>[\w-]{{1,80}}))?"
    )
    where = f"{_KERNEL}, the device plugin's log"
    return Rule(code, pattern, where, cause, next_step, example, SOURCE, READ, covers=covers)


KERNEL = (
    _xid(
        "gpu_memory_error",
        (48, 95),
        f"{_GPU} had a memory error that it could not correct (Xid {{number}}): programs that use "
        "it were ended, and it may give wrong results until it is reset.",
        f"{RESET_STEP} Then check nvidia-smi -q -d ECC,ROW_REMAPPER.",
        "NVRM: Xid (PCI:0000:07:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double "
        "bit error (DBE) has been detected on GPU in the framebuffer",
    ),
    _xid(
        "row_remap_failed",
        (64,),
        f"{_GPU} could not take a bad row of its memory out of use (Xid 64).",
        f"{RESET_STEP} If it comes again, the card has to be replaced.",
        "NVRM: Xid (PCI:0000:0f:00): 64, pid='<unknown>', name=<unknown>, Row Remapper Error: "
        "(0x00000002eebc4100) - All reserved rows for bank are remapped",
        covers=("gpu_memory_error",),
    ),
    _xid(
        "gpu_memory_contained",
        (94,),
        f"{_GPU} had a memory error that was contained (Xid 94): only the program that used this "
        "memory was ended.",
        "Start the program again; reset the GPU or reboot when the node is free, so that the row "
        "is remapped (nvidia-smi -q -d ROW_REMAPPER).",
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: "
        "No, D-RST: No",
    ),
    _xid(
        "row_remap_pending",
        (63,),
        f"{_GPU} has recorded a bad row (before Ampere: page) of its memory, which the next reset "
        "takes out of use (Xid 63).",
        "Reset the GPU or reboot when the node is free; work may continue until then.",
        "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping, "
        "reset gpu to activate.",
    ),
    _xid(
        "nvlink_error",
        (74, _NVLINK5_FATAL, 155),
        f"{_GPU} had an error on NVLink (Xid {{number}}).",
        NVLINK_STEP,
        "NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error "
        "detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
    ),
    _xid(
        "power_cable",
        (54,),
        f"{_GPU} has no external power (Xid 54).",
        ACTIONS[POWER][2],
        # Only the number is known to be so (NVIDIA's catalogue); no line of it was found in public.
        "NVRM: Xid (PCI:0000:05:00): 54, pid='<unknown>', name=<unknown>",
    ),
    _xid(
        "gsp_timeout",
        (119, 120),
        f"{_GPU}: its GSP firmware does not answer, or failed (Xid {{number}}).",
        f"{RESET_STEP} If it comes again, take a newer version of the driver's branch.",
        "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of "
        "waiting for RPC response from GPU4 GSP! Expected function 10 (FREE) (0xa55a0090 0x0).",
    ),
    _xid(
        "coherent_memory_error",
        (159,),
        f"{_GPU} had an error on the interface to the processor's memory (CHI, Xid 159).",
        f"{FOLLOW_STEP} Without one, look for a fault of unified memory (dmesg | grep -i uvm), and "
        "reboot.",
        # Only the number is known to be so (nverror.h); no line of it was found in public.
        "NVRM: Xid (PCI:0009:01:00): 159, pid='<unknown>', name=<unknown>",
    ),
    _xid(
        "gpu_needs_reset",
        _RESETS,
        f"{_GPU} had an error after which it has to be reset (Xid {{number}}).",
        RESET_STEP,
        "NVRM: Xid (PCI:0000:05:00): 62, pid='<unknown>', name=<unknown>, 0000(0000) 00000000",
    ),
    Rule(
        "recovery_action",
        r"\bXid \((?:PCI:)?(?P<address>[0-9a-f:.]{4,16})[^)\n]{0,40}\): 154, [^\n]{0,60}?recovery "
        r"action changed from 0x[0-9a-f]{1,8} \([^)\n]{0,60}\) to 0x[0-9a-f]{1,8} "
        r"\((?!None\))(?P<action>[^)\n]{1,60})\)",
        _KERNEL,
        "The driver says what GPU {address} needs after an error before it (Xid 154): {action}.",
        "Drain the node and do that. The Xid before it in the kernel's log (dmesg | grep Xid) is "
        "the error.",
        "NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node "
        "Reboot Required)",
        "github.com/leptonai/gpud: components/accelerator/nvidia/xid/kmsg_test.go",
        READ,
    ),
    Rule(
        "nvswitch_error",
        r"\bSXid \(PCI:(?P<address>[0-9a-f:.]{4,16})\): (?P<number>\d{1,6}), Fatal, "
        r"(?P<what>[^\n]{1,120})",
        _KERNEL,
        "The NVSwitch {address} had a fatal error (SXid {number}): {what}.",
        "Drain the node, reset all GPUs of the board or reboot, and check the log of the fabric "
        "manager; what the number means, its user guide says (appendix D).",
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "access.redhat.com/solutions/6619941, through github.com/leptonai/gpud",
        READ,
    ),
    Rule(
        "bar_not_assigned",
        r"This PCI I/O region assigned to your NVIDIA device is invalid"
        r"(?:.{0,40}?\(PCI:(?P<address>[0-9a-f:.]{4,16})\))?",
        _KERNEL,
        "The firmware (BIOS) gave the GPU {address} no room in the address space.",
        "Turn on 'Above 4G Decoding' and 'Resizable BAR' in the firmware, or boot with "
        "pci=realloc; in a virtual machine give it a larger 64-bit MMIO window.",
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:41:00.0)",
        f"{_MODULES}kernel-open/nvidia/nv-pci.c",
        READ,
        covers=("no_devices", "gpu_init_failed", "gpu_probe_failed"),
    ),
    Rule(
        "gsp_firmware_failed",
        r"Cannot initialize GSP firmware RM",
        _KERNEL,
        "The GSP firmware of a GPU did not start: its file is missing or of another version than "
        "the driver, or the GPU does not work.",
        "See that /lib/firmware/nvidia/VERSION/ has gsp_*.bin for the version that is loaded (a "
        "package nvidia-firmware-* or the driver's own); then drain the node and power it off and "
        "on.",
        "NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM",
        f"{_MODULES}src/nvidia/arch/nvalloc/unix/src/osinit.c",
        READ,
        covers=("no_devices", "gpu_init_failed", "gpu_probe_failed"),
    ),
    Rule(
        VGPU_BRANCH,
        r"(?:\bXid \((?:PCI:)?(?P<address>[0-9a-f:.]{4,16})[^)\n]{0,40}\): 78\b[^\n]{0,80}?)?"
        r"Guest driver is incompatible with host driver",
        _KERNEL,
        "The driver of this guest does not fit the driver of the vGPU host: the virtual GPU "
        "{address} does not start.",
        GUEST_DRIVER_STEP,
        "NVRM: Xid (PCI:0002:00:00): 78, pid='<unknown>', name=<unknown>, Guest driver is "
        "incompatible with host driver",
        "github.com/skypilot-org/skypilot/issues/10468",
        "2026-11-27",
        covers=("no_devices", "gpu_init_failed", "gpu_probe_failed"),
    ),
    Rule(
        "gpu_init_failed",
        r"(?:\bGPU (?P<address>[0-9a-f:.]{4,16}): )?(?:RmInitAdapter failed! "
        r"\(0x[0-9a-f]{1,8}:0x[0-9a-f]{1,8}:\d{1,6}\)|rm_init_adapter failed)",
        _KERNEL,
        "The driver could not start the GPU {address}.",
        "The lines of the kernel's log before it say why (dmesg | grep NVRM). Power the machine "
        "off and on; see that the GPU is seated and powered; with the open modules take a newer "
        "version of the branch.",
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0xffff:1482)",
        f"{_MODULES}src/nvidia/arch/nvalloc/unix/src/osinit.c, kernel-open/nvidia/nv.c",
        READ,
        covers=("no_devices", "gpu_probe_failed"),
    ),
    Rule(
        "gpu_probe_failed",
        r"NVIDIA probe routine (?:was not called|failed) for -?\d{1,6} device"
        r"|None of the NVIDIA devices were initialized",
        _KERNEL,
        "NVIDIA's module did not get hold of a GPU: another driver has it, or it did not start.",
        "See lspci -k -d 10de: for the driver that has it, and the lines of NVRM before it in the "
        "kernel's log.",
        "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
        f"{_MODULES}kernel-open/nvidia/nv.c",
        READ,
        last_resort=True,
    ),
    Rule(
        "inforom_corrupt",
        r"infoROM is corrupted at gpu (?P<address>[0-9a-f:.]{4,20})",
        "nvidia-smi (exit status 14)",
        "The infoROM of GPU {address}, where the card keeps its data, is corrupted.",
        "Drain the node and power it off and on; if it persists, the card has to be replaced.",
        "WARNING: infoROM is corrupted at gpu 0000:3B:00.0",
        "nvidia-smi's own words; github.com/utkuozdemir/nvidia_gpu_exporter",
        READ,
    ),
    Rule(
        "gpu_access_blocked",
        r"GPU access blocked by the operating system",
        "nvidia-smi (exit status 17)",
        "The operating system does not let this process reach the GPU: its control group has no "
        "rule for the device, or it is WSL without a working driver of Windows.",
        "Start the container through the nvidia runtime or CDI; under WSL: wsl --shutdown on "
        "Windows, then again.",
        "Failed to initialize NVML: GPU access blocked by the operating system",
        "nvidia-smi's own words",
        READ,
    ),
    Rule(
        "driver_hangs",
        r"driver rpc error: timed out",
        "nvidia-container-cli, when a container starts",
        "The driver did not answer in time: a GPU hangs, or starting all of them takes too long "
        "without the persistence daemon.",
        "See whether nvidia-smi answers on the node, and dmesg | grep -i xid; systemctl enable "
        "--now nvidia-persistenced. CDI starts containers without asking the driver.",
        "nvidia-container-cli: initialization error: driver rpc error: timed out",
        "github.com/NVIDIA/nvidia-container-toolkit, libnvidia-container's own words",
        READ,
    ),
    Rule(
        "cuda_driver_mismatch",
        r"unsupported display driver / cuda driver combination",
        "a CUDA program (error 803)",
        "The CUDA driver library that the program loads is not the one of the driver on the node: "
        "usually the image's own (cuda-compat) is found before it.",
        "Take cuda-compat (/usr/local/cuda/compat) out of the image or of LD_LIBRARY_PATH; where "
        "the driver was upgraded on the node, reboot it.",
        "Error 803: system has unsupported display driver / cuda driver combination",
        "NVIDIA's CUDA runtime errors (803)",
        READ,
    ),
    Rule(
        "mps_not_reachable",
        r"MPS client failed to connect to the MPS control daemon",
        "a CUDA program (error 805)",
        "The program is to share the GPU by MPS, and reaches no MPS daemon.",
        "In a pod: see that the MPS control daemon's pod runs on the node. Elsewhere unset "
        "CUDA_MPS_PIPE_DIRECTORY, or start nvidia-cuda-mps-control -d.",
        "Error 805: MPS client failed to connect to the MPS control daemon or the MPS server",
        "NVIDIA's CUDA runtime errors (805)",
        READ,
    ),
)
