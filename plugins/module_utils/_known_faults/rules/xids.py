# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Xid and SXid lines of NVIDIA's kernel modules. Data, not code.

They are those of kernel_rc.c, ``NVRM: Xid (PCI:0000:05:00): 48, pid=...``; with MIG the parentheses
also have ``GPU-I:02``. The device plugin prints ``Xid=48 on Device=GPU-...`` for the same
(internal/rm/health.go of k8s-device-plugin v0.20.0). What a number means and what to do after it is
in ``xids_data.py``; those that call for more have a row here, and :data:`OTHER_XID` has the
others.
"""

from __future__ import annotations

from ..types import Rule
from ..xids import XIDS
from .xids_data import (
    ACTIONS,
    FOLLOW_STEP,
    INFO,
    NVLINK_STEP,
    POWER,
    READ,
    RESET,
    RESET_STEP,
    SOURCE,
    WARNING,
)

RECOVERY = "recovery_action"
#: A number without a row of its own, and an error of an NVSwitch: their tables decide.
XID, SWITCH = "xid", "nvswitch_error"
_CASES_READ = "2026-11-28"
_KERNEL = "the kernel's log"
_GPU = "GPU {address}{device}"
# People take the addresses out of what they publish.
_LINE = r"\bXid \((?:PCI:)?(?P<address>[0-9a-f:.]{3,16})[^)\n]{0,40}\): "
# The Xids that have a row of their own; gpu_lost is in containers.py.
_OWN_ROWS = (48, 63, 64, 74, 79, 94, 95, 119, 120, 154, 155, 159)
# NVLink 5: the line says whether the error is fatal; otherwise it needs no action. Two events of
# a link are none although they are called fatal (subcodes 38 and 40, bits 20 to 25 of the first
# number).
_NVLINK5_FATAL = (
    r"(?:14[4-9]|150)\b(?![^\n]{0,60}?NETIR_LINK_EVT[^\n]{0,60}?\(0x[0-9a-f][26ae][68])"
    r"(?=[^\n]{0,200}?(?<!non)(?<!non-)\bfatal\b)"
)
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
        rf"(?:{_LINE}|\bXid=)"
        rf"(?P<number>{'|'.join(map(str, numbers))})\b(?: on Device=(?P<device>[\w-]{{1,80}}))?"
    )
    where = f"{_KERNEL}, the device plugin's log"
    return Rule(code, pattern, where, cause, next_step, example, SOURCE, READ, covers=covers)


XID_RULES = (
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
    Rule(
        "nvlink_error",
        _LINE + r"(?P<number>14[4-9]|150)\b, (?:pid=[^\n]{1,80}?, )?(?P<unit>\w{2,24}) Non-?fatal"
        r"(?:[^\n]{0,24}?\bLink (?P<link>\d{1,3}))?",
        _KERNEL,
        f"{_GPU} had an error on NVLink that is not fatal (Xid {{number}}, {{unit}}, link "
        f"{{link}}).",
        "If an Xid 154 follows, do what it names. Without one, where programs on several GPUs "
        "hang: "
        "check nvidia-smi nvlink -s and -e, and the fabric manager's log, and start the program "
        "again.",
        "NVRM: Xid (PCI:0000:c5:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 (0x04084507 "
        "0x00000004 0x00000000 0x00000000 0x00000000 0x00000000)",
        "github.com/NVIDIA/NVSentinel/issues/1357",
        _CASES_READ,
        # Other errors on NVLink need a reboot.
        fix="start the program again",
        severity=WARNING,
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
        RECOVERY,
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
        # It overrides what the Xid before it calls for.
        covers=("gpu_needs_reset",),
        over=r"\bXid \((?:PCI:)?ADDRESS[^)\n]{0,40}\): 154, [^\n]{0,60}?to 0x0 \(None\)",
    ),
    Rule(
        SWITCH,
        r"\bSXid \(PCI:(?P<address>[0-9a-f:.]{4,16})\): (?P<number>\d{1,6}), [^\n]{1,120}",
        _KERNEL,
        "The NVSwitch {address} had an error (SXid {number}).",
        "",
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "access.redhat.com/solutions/6619941, through github.com/leptonai/gpud",
        READ,
    ),
    Rule(
        XID,
        _LINE + r"\d{1,4}, ",
        _KERNEL,
        "GPU {address} had an Xid.",
        "",
        "NVRM: Xid (PCI:0000:01:00): 31, pid=13705, name=UnrealEditor, channel 0x0000000c, intr "
        "00000000. MMU Fault: ENGINE GRAPHICS GPC2 GPCCLIENT_PROP_0 faulted @ 0x0_00000000. Fault "
        "is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
        "github.com/NVIDIA/open-gpu-kernel-modules/issues/1030",
        _CASES_READ,
        severity=INFO,
        last_resort=True,
    ),
)
