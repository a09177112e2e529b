# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the numbers of Xid and SXid errors mean, and what to do. Data, not code.

Sources, read 2026-11-28: NVIDIA's Xid catalogue for Ampere and newer, as of 2025-10-29
(docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html), and appendix D of the fabric manager
user guide DU-09883-001 v1.3, both through github.com/leptonai/gpud 4a8de33
(components/accelerator/nvidia). The catalogue's column of the immediate resolution decides the
action; ``ACTIONS`` names its words. It has no word for 162 to 172: their actions are a choice of
this collection, marked (u), as are the severities of the numbers that the catalogue calls unused.
"""

from __future__ import annotations

READ = "2026-11-28"
SOURCE = (
    "NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors), through github.com/leptonai/gpud: "
    "components/accelerator/nvidia/xid/catalog_generated.go"
)

ERROR = "error"
WARNING = "warning"
INFO = "info"

IGNORE = "ignore"
PROGRAM = "program"
FOLLOW = "follow"
RESET = "reset"
REBOOT = "reboot"
RESTART_VM = "restart_vm"
POWER = "power"
UPDATE = "update"
SUPPORT = "support"
MEMORY = "memory"
NVLINK = "nvlink"
NVLINK5 = "nvlink5"
LATER = "later"
RECOVERY = "recovery"

# What findings about single Xids say too.
RESET_STEP = (
    "Drain the node, then reset the GPU (nvidia-smi --gpu-reset -i ...) or reboot. Where the log "
    "has Xid 154 after it, do what that names."
)
REBOOT_STEP = (
    "Drain the node and power it off and on. If it comes again: seat, power and cooling of the "
    "card, then the card itself."
)
NVLINK_STEP = (
    "Check nvidia-smi nvlink -s and -e, and the same counters on the other end of the link. "
    "Drain the node and reset all GPUs of the board; if it comes again: the link, then the card."
)
FOLLOW_STEP = "Look for another Xid of the same GPU before it, and go by that."

# Action: the catalogue's word, severity, next step.
ACTIONS: dict[str, tuple[str, str, str]] = {
    IGNORE: ("IGNORE", INFO, "Nothing, unless it comes often."),
    PROGRAM: (
        "RESTART_APP",
        INFO,
        "Start the program again. If other programs have it on the same GPU too, test the GPU.",
    ),
    FOLLOW: ("WORKFLOW_XID_45, CHECK_UVM", INFO, FOLLOW_STEP),
    RESET: ("RESET_GPU", ERROR, RESET_STEP),
    REBOOT: ("RESTART_BM", ERROR, REBOOT_STEP),
    RESTART_VM: ("RESTART_VM", ERROR, "Restart the virtual machine."),
    POWER: (
        "CHECK_MECHANICALS",
        ERROR,
        "Drain the node, switch it off, and check the card's power cables and its seat.",
    ),
    UPDATE: (
        "UPDATE_SWFW",
        ERROR,
        "In a guest with a virtual GPU compare its driver with the host's: kubegpu.nodes.plan "
        "names both. Otherwise update the driver and the card's firmware.",
    ),
    SUPPORT: (
        "CONTACT_SUPPORT",
        ERROR,
        "Drain the node, collect nvidia-bug-report.sh, and ask the maker of the machine.",
    ),
    MEMORY: ("WORKFLOW_XID_48", ERROR, RESET_STEP),
    NVLINK: ("WORKFLOW_NVLINK_ERR", ERROR, NVLINK_STEP),
    NVLINK5: (
        "WORKFLOW_NVLINK5_ERR",
        WARNING,
        "Go by the line in the kernel's log: after Fatal reset the GPU, after Nonfatal nothing is "
        "to be done unless Xid 154 follows.",
    ),
    LATER: (
        "XID_154_EVAL",
        WARNING,
        "If an Xid 154 follows, do what it names. Without one start the program again, and check "
        "nvidia-smi nvlink -s and -e and the fabric manager's log if it comes again.",
    ),
    RECOVERY: (
        "XID_154",
        WARNING,
        "Drain the node and do what the line in the kernel's log names. The Xid before it is the "
        "error.",
    ),
}

_CE = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_NVDEC = (68, 83, 84, 88, 89, 96, 97, 98)
_NVJPG = (82, *range(99, 106))

UNUSED_MEANING = "not used according to NVIDIA's catalogue for Ampere and newer"
UNKNOWN_MEANING = "not in NVIDIA's catalogue for Ampere and newer"

# Numbers, meaning, action; where it differs from the action's: severity.
XIDS: tuple[tuple[tuple[int, ...], str, str, str | None], ...] = (
    ((8,), "a queue of the GPU did not empty in time", PROGRAM, None),
    ((11, 25, 32), "invalid commands in a program's push buffer", PROGRAM, None),
    ((13,), "graphics engine exception, such as an access out of bounds", PROGRAM, None),
    ((31,), "memory page fault of a program", PROGRAM, None),
    ((37, 38), "error of the firmware that switches contexts", IGNORE, None),
    (_CE, "copy engine exception", PROGRAM, None),
    ((43,), "a program's channel was reset", IGNORE, None),
    ((44,), "graphics engine fault during a context switch", IGNORE, None),
    ((45,), "a program was ended because of an earlier error", FOLLOW, None),
    ((46,), "the GPU stopped processing", RESET, None),
    ((48,), "memory error that could not be corrected (double-bit ECC)", MEMORY, None),
    ((54,), "auxiliary power is not connected to the card", POWER, None),
    ((60,), "video processor exception", PROGRAM, None),
    ((62,), "an internal micro-controller halted", RESET, None),
    ((63,), "a memory row (before Ampere: page) is retired at the next reset", IGNORE, None),
    ((64,), "a bad memory row could not be taken out of use", RESET, None),
    ((66, 67), "illegal access by the driver", IGNORE, None),
    (_NVDEC, "video decoder exception", PROGRAM, None),
    ((69,), "graphics engine class error", PROGRAM, None),
    ((74,), "NVLink error", NVLINK, None),
    ((78,), "a virtual GPU could not start", UPDATE, None),
    ((79,), "the GPU has fallen off the bus", REBOOT, None),
    ((80,), "corrupted data was sent to the GPU", PROGRAM, None),
    (_NVJPG, "JPEG engine error", PROGRAM, None),
    ((86, 139), "optical flow engine exception", PROGRAM, None),
    ((92,), "many single-bit memory errors", IGNORE, None),
    ((93,), "the infoROM is written too often", IGNORE, None),
    ((94,), "contained memory error: only the program that used it was ended", PROGRAM, None),
    ((95,), "uncontained memory error", RESET, None),
    ((106, 107), "test message of the management controller", IGNORE, None),
    ((109,), "switching between contexts took too long", RESET, None),
    ((110,), "security fault", RESET, None),
    ((119,), "the GSP firmware does not answer", RESET, None),
    ((120,), "the GSP firmware failed", RESET, None),
    ((121,), "error on the link between chips (C2C)", IGNORE, None),
    ((136,), "an NVLink did not train", RESET, None),
    ((137,), "an NVLink access without the right to it", IGNORE, None),
    ((140,), "memory error that was not recovered", RESET, None),
    ((141,), "CUDA fast path error", IGNORE, None),
    ((142,), "video encoder error", SUPPORT, None),
    ((143,), "the GPU did not initialize", RESET, None),
    (tuple(range(144, 151)), "NVLink error; its text says whether it is fatal", NVLINK5, None),
    ((151,), "key rotation error", RESTART_VM, None),
    ((152, 153), "deep learning accelerator error", IGNORE, None),
    ((154,), "the driver says what the GPU needs after an earlier error", RECOVERY, None),
    ((155,), "NVLink error that the software reports", RESET, None),
    ((156,), "a resource of the GPU is retired", RESET, None),
    ((157,), "a bad resource of the GPU could not be taken out of use", IGNORE, None),
    ((158,), "fatal timeout", RESET, None),
    ((159,), "error on the interface to the processor's memory (CHI)", FOLLOW, WARNING),
    ((160, 161), "a memory channel is to be taken out of use", IGNORE, None),
    ((162, 163), "power smoothing was switched on or off", IGNORE, None),  # (u)
    ((164, 165), "the circuit for power smoothing is worn", IGNORE, None),  # (u)
    ((166, 170), "event of confidential computing", IGNORE, None),  # (u)
    ((167,), "fatal timeout on PCI Express", REBOOT, None),  # (u)
    ((168,), "errors in the protected part of the memory", SUPPORT, None),  # (u)
    ((169,), "an internal micro-controller (SEC2) halted", REBOOT, None),  # (u)
    # Unused too, but the catalogue's word is not that of the other unused ones.
    ((14, 108), UNUSED_MEANING, IGNORE, None),
    ((171, 172), "which memory the error of Xid 48 was in", FOLLOW, None),  # (u)
)

#: The Xid by which the driver says what a GPU needs.
RECOVERY_XID = 154

# Unused according to the catalogue. Some meant something on older GPUs.
UNUSED: tuple[int, ...] = (
    *(*range(1, 8), 9, 10, 12, *range(15, 25), *range(26, 31), *range(33, 37), 42, 47),
    *(*range(49, 54), *range(55, 60), 61, 65, 73, 81, 87, 90, 91, *range(111, 119)),
    *(*range(122, 126), 138),
)
# SXid, the errors of NVSwitches. What is always fatal stops the fabric of the whole board.
SXIDS_ALWAYS_FATAL: tuple[int, ...] = (10003, 12020, 22003, 22011, *range(23001, 23018))
SXIDS_FATAL: tuple[int, ...] = (
    *(11001, 11009, 11013, 11018, 11019, 11020, 12001, 12002, 12022, 12024, 12025, 12026, 12027),
    *(12030, 12031, 12032, 14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054),
    *(19056, 19058, 19060, 19061, 19063, 19064, 19066, 19067, 19069, 19070, 20034, 22012),
    *(24004, 24005, 24006, 24007),
)
# Not called fatal, but traffic of a GPU stops, and a reset is called for.
SXIDS_STALL: tuple[int, ...] = (12028,)
SXID_STEPS = {
    ERROR: "Drain the node, reset all GPUs of the board or reboot, and check the log of the fabric "
    "manager; what the number means, its user guide says (appendix D).",
    WARNING: "Check the log of the fabric manager (/var/log/fabricmanager.log); what the number "
    "means, its user guide says (appendix D).",
    INFO: "Nothing: it can be ignored unless programs fail at the same time.",
}
# Registers that could not be accessed, and heat, which slows the links down.
SXIDS_NOTABLE: tuple[int, ...] = (10001, 10002, 10004)
SXIDS_NOT_FATAL: tuple[int, ...] = (
    *(10005, 11004, 11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 19055),
    *(19057, 19059, 19062, 19065, 19068, 19071, 19084, 20001, 20009, 20012, 22013),
    *(24001, 24002, 24003),
)
