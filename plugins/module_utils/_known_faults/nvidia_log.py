# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lines of NVIDIA's kernel modules say, where a table or the facts decide. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .._core.finding import Finding, Subject
from .._hardware.pci import generation, product
from .._nvidia.driver_branches import BRANCHES, GENERATIONS
from .codes import GPU_UNSUPPORTED, VGPU_GUEST, WRONG_MODULES
from .predicates import Facts
from .rules.xids_data import ERROR, INFO, RECOVERY_XID, WARNING
from .types import Rule
from .xids import (
    Xid,
    in_line,
    needs_nothing,
    previous_xid,
    recovery_action,
    sxid_next_step,
    sxid_severity,
)

_GPU_LINE = re.compile(
    r"The NVIDIA v?GPU (?P<address>[0-9a-fA-F:.]{4,16}) \(PCI ID: 10de:(?P<id>[0-9a-fA-F]{4})\)"
)
# What the open kernel modules say of a GPU that they do not drive; the lines begin with NVRM.
_OPEN = re.compile(
    r"The NVIDIA (?P<virtual>v)?GPU [^\n]{4,80}\n[^\n]{0,40}?NVRM: installed in this "
    r"(?P<host>vGPU host )?system is not supported by\s{1,4}(?:[^\n]{0,40}?NVRM: )?open\b"
)
_RELEASE = re.compile(r"NVIDIA\s{1,9}(?:NVRM: )?(?P<version>\d{3}\.\d+(?:\.\d+)?) driver release")
_XID = re.compile(
    r"\bXid \((?:PCI:)?(?P<address>[0-9a-f:.]{3,16})[^)\n]{0,40}\): (?P<number>\d{1,4}), "
    r"(?P<line>[^\n]{0,400})",
    re.IGNORECASE,
)
_PROGRAM = re.compile(r"\bname=(?P<name>[^,<>\n]{1,32})")
_SXID = re.compile(
    r"\bSXid \(PCI:(?P<address>[0-9a-f:.]{4,16})\): (?P<number>\d{1,6}), (?P<line>[^\n]{0,400})",
    re.IGNORECASE,
)
_WORST = (ERROR, WARNING, INFO)
_MOST_LINES = 2000
# More than a node has.
_MOST_GPUS = 32
# What the driver's words ask for.
_RECOVERIES = {
    "gpu reset required": "Drain the node, then reset the GPU (nvidia-smi --gpu-reset -i ...) or "
    "reboot.",
    "node reboot required": "Drain the node and reboot it. A reset of the GPU does not suffice.",
    "drain and reset": "Take no new programs on this GPU, wait for those that run, then reset it "
    "(nvidia-smi --gpu-reset -i ...).",
    "drain p2p": "Stop the programs that use several GPUs together (peer-to-peer), then start them "
    "again.",
}


def worst_xids(text: str) -> list[Finding]:
    """Return the worst Xid of each GPU in a text, by the table of Xids; the worst one first."""
    worst: dict[str, tuple[Xid, re.Match[str]]] = {}
    for match, _count in zip(_XID.finditer(text), range(_MOST_LINES)):
        row, address = in_line(int(match["number"]), match["line"]), match["address"].lower()
        known = worst.get(address)
        if known is None and len(worst) >= _MOST_GPUS:
            continue
        if known is None or _WORST.index(row.severity) < _WORST.index(known[0].severity):
            worst[address] = (row, match)
    ordered = sorted(worst.items(), key=lambda one: _WORST.index(one[1][0].severity))
    return [
        xid_finding(row, address, match["line"], match.group()) for address, (row, match) in ordered
    ]


def recovery(found: Finding, match: re.Match[str]) -> Finding:
    """Return what a GPU needs after an error, with the error that its log has before.

    The driver raises what it asks for, so that its last line counts.
    """
    address, first, action, before = match["address"], match.start(), match["action"], 0
    for line, _count in zip(_XID.finditer(match.string), range(_MOST_LINES)):
        if line["address"].lower() != address.lower():
            continue
        number = int(line["number"])
        if number == RECOVERY_XID and line.start() >= first and not needs_nothing(line["line"]):
            said = recovery_action(line["line"])
            place = line["line"].lower().find(said)
            action = line["line"][place : place + len(said)] or action
            before = previous_xid(line["line"]) or before
        if number != RECOVERY_XID and line.start() < first:
            before = number
    cause = f"GPU {address.lower()} needs after an error (Xid 154): {action}."
    if before:
        why = in_line(before, "").meaning
        cause = f"GPU {address.lower()} needs after Xid {before} ({why}): {action} (Xid 154)."
    return replace(
        found,
        cause=cause,
        next_step=_RECOVERIES.get(action.lower(), found.next_step),
        details={**found.details, "action": action},
    )


def xid_finding(row: Xid, address: str, line: str, evidence: str) -> Finding:
    """Return what an Xid means that has no rule of its own."""
    program = _PROGRAM.search(line)
    who = f", program {program['name']}" if program else ""
    return Finding(
        "xid",
        f"GPU {address}: {row.meaning} (Xid {row.number}{who}).",
        evidence[:320],
        row.next_step,
        {"address": address, "number": str(row.number)},
        row.severity,
        Subject(gpu=address),
    )


def switch_errors(found: Finding, text: str) -> list[Finding]:
    """Return the worst error of each NVSwitch in a text, by the table of SXids.

    Of switches with events only the first one is said.
    """
    lines: dict[tuple[str, int], list[re.Match[str]]] = {}
    for match, _count in zip(_SXID.finditer(text), range(_MOST_LINES)):
        lines.setdefault((match["address"].lower(), int(match["number"])), []).append(match)
    worst: dict[str, tuple[str, int]] = {}
    for (address, number), of_number in lines.items():
        severity = sxid_severity(number, "\n".join(one["line"] for one in of_number))
        known = worst.get(address, (INFO, 0))
        if address not in worst or _WORST.index(severity) < _WORST.index(known[0]):
            worst[address] = (severity, number)
    ordered = sorted(worst.items(), key=lambda one: _WORST.index(one[1][0]))
    said = [one for one in ordered if one[1][0] == ERROR][:_MOST_GPUS] or ordered[:1]
    return [
        _switch_error(found, address, number, severity, lines[address, number])
        for address, (severity, number) in said
    ]


def _switch_error(
    found: Finding, address: str, number: int, severity: str, lines: Sequence[re.Match[str]]
) -> Finding:
    # A line with Data has numbers only; another line of the error has its words.
    shown = min(lines, key=lambda one: one["line"].startswith("Data "))
    words = "" if shown["line"].startswith("Data ") else f": {shown['line'][:120]}"
    kind = "an error that is not fatal" if severity == INFO else "an error"
    return replace(
        found,
        code=found.code if severity == ERROR else "nvswitch_event",
        cause=f"The NVSwitch {address} had {kind} (SXid {number}){words}.",
        evidence=shown.group()[:320],
        next_step=sxid_next_step(severity),
        details={"address": address, "number": str(number)},
        severity=severity,
        subject=Subject(gpu=address),
    )


def mismatch(found: Finding, facts: Facts) -> Finding:
    """Return a mismatch with the versions that the facts have."""
    driver = facts.get("driver") or {}
    names = (
        ("the module that is loaded", "loaded"),
        ("the module on the disk", "installed"),
        ("the libraries of the node", "userland"),
    )
    known = [f"{name} is {driver[key]}" for name, key in names if driver.get(key)]
    known = [one.replace("libraries of the node is", "libraries of the node are") for one in known]
    return replace(found, evidence="; ".join([found.evidence, *known])) if known else found


def serves(version: str, kind: str) -> bool:
    """Return whether the branch of a driver serves a generation; of an unknown one, it does not."""
    known = GENERATIONS.get(kind, {})
    branch = version.partition(".")[0]
    if not known.get("first") or not branch.isdecimal():
        return False
    return int(known["first"]) <= int(branch) <= int(known["last"] or branch)


def unsupported(row: Rule, text: str, evidence: str) -> Finding:
    """Return whether a GPU is virtual or not supported by the branch, by the PCI id in the text."""
    place, release = _GPU_LINE.search(text), _RELEASE.search(text)
    if not place:
        return Finding(row.code, row.cause, evidence, row.next_step)
    device = place["id"].lower()
    kind = generation("nvidia", device)
    name = product("nvidia", (device, None, None)) or "The NVIDIA GPU"
    what = f"{name} (10de:{device}, {kind}) at {place['address'].lower()}"
    version = release["version"] if release else None
    details = {"address": place["address"].lower(), "device_id": device, "generation": kind}
    by_open = _OPEN.search(text)
    if by_open:
        return Finding(*_by_open(by_open, what, kind, evidence), details)
    first, last = (GENERATIONS[kind].get(end) for end in ("first", "last"))
    driver = f"driver {version}" if version else "the driver that is loaded"
    branch = int(version.partition(".")[0]) if version else None
    if last and (branch is None or branch > int(last)):
        return Finding(
            row.code,
            f"{driver[:1].upper()}{driver[1:]} does not support {what}: {last} is the last branch "
            "for it.",
            evidence,
            f"Install a driver of branch {last} (nvidia_driver_branch: {last}).",
            details,
        )
    if first and branch is not None and branch < int(first):
        return Finding(
            row.code,
            f"{driver[:1].upper()}{driver[1:]} does not support {what}: {first} is the first "
            "branch for it.",
            evidence,
            f"Install a driver of branch {first} or later (nvidia_driver_branch).",
            details,
        )
    if not first or branch is None:
        return Finding(row.code, row.cause, evidence, row.next_step, details)
    return Finding(
        row.code,
        f"{driver[:1].upper()}{driver[1:]} refuses {what}, a generation that its branch serves: "
        "most likely this machine is a guest and has a virtual GPU, which wants a GRID driver of "
        "its host's branch.",
        evidence,
        "Run kubegpu.nodes.plan for this node: it says whether the GPU is a virtual one and which "
        "driver the host has. If it is a whole one, take a newer version of the branch.",
        details,
    )


def _by_open(
    match: re.Match[str], what: str, kind: str, evidence: str
) -> tuple[str, str, str, str]:
    """Return code, cause, evidence and next step if the open kernel modules reject a GPU."""
    if match["virtual"]:
        return (
            VGPU_GUEST,
            f"{what} is a virtual GPU of this guest, which these open kernel modules do not drive.",
            evidence,
            "Install the GRID driver of the host's branch, with the proprietary modules where this "
            "generation needs them (nvidia_driver_kernel_module: proprietary).",
        )
    if match["host"]:
        return (
            WRONG_MODULES,
            f"{what} is in a host of virtual GPUs, where these open kernel modules do not drive "
            "it.",
            evidence,
            "Install the vGPU manager of NVIDIA's licence portal on this host; it is not a "
            "driver for containers.",
        )
    last = GENERATIONS[kind].get("last")
    if not last:
        return (
            GPU_UNSUPPORTED,
            f"The open kernel modules found no GSP in {what}, or the GPU does not answer on the "
            "bus.",
            evidence,
            "Power the machine off and on, and see that the GPU is seated and powered. If it is "
            "older than Turing, install the proprietary modules (nvidia_driver_kernel_module: "
            "proprietary).",
        )
    return (
        WRONG_MODULES if BRANCHES[last]["supported"] else GPU_UNSUPPORTED,
        f"{what} has no GSP, and the open kernel modules cannot drive it.",
        evidence,
        f"Install the proprietary modules of branch {last}, the last one for it "
        f"(nvidia_driver_kernel_module: proprietary, nvidia_driver_branch: {last}).",
    )
