# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a node in Slurm, and whether its drain is ours. Pure.

Read from the text of ``scontrol``: its JSON needs a plugin that distributions leave out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .._core.finding import Finding
from .._core.printable import printable
from .._known_faults.answers import gpus_are_missing, is_of_slurm
from .types import Record, SlurmNode

_OURS = "kubegpu.nodes maintenance "
_MAX_REASON = 120
# Each is written once in a line, before the texts of users.
_FIELD = re.compile(r"(?:^|\s)(\w+)=(\S*)")
# Until the name and the time that Slurm adds, or the end of the line.
_REASON = re.compile(r"\sReason=(.*?)(?:\s\[[^\]]*\@[^\]]*\])?\s*(?:\sComment=.*|\sExtra=.*)?$")
_MARKS = "*~#!%$@^-+"


def reason_of(run: str) -> str:
    """Return the reason of a drain by a run."""
    return f"{_OURS}{run}"


def read_nodes(text: str) -> list[SlurmNode]:
    """Return the nodes in the output of ``scontrol --oneliner show nodes``."""
    return [node for line in text.splitlines() if (node := _read_node(line)) is not None]


def _read_node(line: str) -> SlurmNode | None:
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(line):
        fields.setdefault(name, value)
    if "NodeName" not in fields or "State" not in fields:
        return None
    base, *flags = fields["State"].split("+")
    marked = {"NOT_RESPONDING"} if "*" in fields["State"] else set()
    reason = _REASON.search(line)
    allocated = fields.get("CPUAlloc", "0")
    return SlurmNode(
        name=fields["NodeName"],
        base=base.rstrip(_MARKS),
        flags=frozenset({flag.rstrip(_MARKS) for flag in flags} | marked),
        reason=reason[1].strip() if reason else "",
        hostname=fields.get("NodeHostName", ""),
        allocated=int(allocated) if allocated.isdigit() else 0,
    )


def find_nodes(nodes: Iterable[SlurmNode], hostname: str) -> list[SlurmNode]:
    """Return the nodes that are this host, by the host names that Slurm knows."""
    names = (hostname, hostname.partition(".")[0])
    return [node for node in nodes if (node.hostname or node.name) in names]


def is_ours(node: SlurmNode, run: str) -> bool:
    """Return whether a run of this module drained the node."""
    ours = reason_of(run)
    # Slurm adds a reason of its own after a colon.
    return node.reason == ours or node.reason.startswith(f"{ours} : ")


def holder(node: SlurmNode) -> str:
    """Return the run whose drain the node has; empty for none."""
    if not node.drained or not node.reason.startswith(_OURS):
        return ""
    return node.reason[len(_OURS) :].partition(" : ")[0]


def needs_resume(node: SlurmNode, record: Record) -> bool:
    """Return whether the node is to take jobs again: it is drained, and by this maintenance."""
    if record.was_drained or not node.drained:
        return False
    back = node.registered and gpus_are_missing(node.reason)
    return is_ours(node, record.run) or is_of_slurm(node.reason) or back


def other_drain(node: SlurmNode, record: Record) -> str:
    """Return a note if somebody else drained the node in the meantime; empty if not."""
    if record.was_drained or not node.drained or needs_resume(node, record):
        return ""
    return (
        f"The Slurm node {node.name} remains drained, because somebody else drained it meanwhile: "
        f"{printable(node.reason[:_MAX_REASON]) or 'no reason'}."
    )


def not_registered(node: SlurmNode) -> Finding:
    """Return the finding of a node whose registration Slurm refuses."""
    ours = node.reason.startswith(_OURS)
    reason = "" if ours or not node.reason else f", Reason={node.reason[:_MAX_REASON]}"
    return Finding(
        "slurm_registration_invalid",
        f"Slurm refuses what slurmd reports of the node {node.name}, and gives it no jobs.",
        printable(f"State={node.state}{reason}"),
        "See journalctl -u slurmd. What slurmd -C and slurmd -G print on the host has to agree "
        "with slurm.conf and gres.conf. If GPUs are missing, nvidia-smi -L has to name them all. "
        "Then restart slurmd.",
    )


def not_found(hostname: str, found: Iterable[SlurmNode]) -> Finding:
    """Return the finding of a host that is not exactly one node of Slurm."""
    names = ", ".join(node.name for node in found)
    return Finding(
        "slurm_node_unknown",
        f"It is not certain which node {hostname} is in Slurm.",
        f"nodes with this NodeHostName: {names or 'none'}",
        "Set gpu_upgrade_slurm_node (slurm_node) to its NodeName, or the scheduler to none.",
    )
