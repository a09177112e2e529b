# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of a node's GPUs: what is read, and what is found. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from .._core.finding import Finding
from .._host.bounded import Hang
from .._known_faults.documents.nvidia_smi import SmiGpu
from .._known_faults.xids import XIDS, Xid

# What became of nvidia-smi.
ANSWERED = "answered"
FAILED = "failed"
HUNG = "hung"
MISSING = "missing"
NOT_ASKED = "not_asked"


@dataclass(frozen=True)
class Request:
    """The options of the module; it documents each of them."""

    timeout: int = 60
    boots: int = 3
    thresholds: Mapping[str, float | None] = field(default_factory=dict)
    xids: Mapping[int, Xid] = field(default_factory=lambda: XIDS)
    baseline: Mapping[str, Any] | None = None
    #: How the driver hung when another module asked it; then it is not asked.
    hang: Hang | None = None


@dataclass(frozen=True)
class Narrow:
    """A link on the way to a GPU that has fewer lanes than both of its ends."""

    address: str
    width: int
    width_max: int


@dataclass(frozen=True)
class PciGpu:
    """A GPU as sysfs shows it, of any vendor. ``values`` is grouped as those of nvidia-smi.

    :param lost: whether its configuration space reads as ones only: it is off the bus.
    """

    address: str
    vendor: str
    product: str | None
    kernel_driver: str | None
    lost: bool = False
    narrow: tuple[Narrow, ...] = ()
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Smi:
    """The answer of ``nvidia-smi -q -x``.

    :param text: what it printed besides its document, which names processes.
    :param error: why its document could not be read.
    """

    status: str
    rc: int | None = None
    driver: str | None = None
    gpus: tuple[SmiGpu, ...] = ()
    text: str = ""
    error: str = ""
    hang: Hang | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Event:
    """Lines of the kernel's log that say the same of the same device, in one boot.

    :param boot: 0 is the present one, -1 the one before.
    :param kind: ``xid``, ``sxid``, ``driver`` (other lines of NVIDIA's driver), ``mismatch``
        (libraries of another version), ``kernel_driver`` (of AMD and Intel) or ``hung_task``.
    :param variant: what else distinguishes lines: fatal or not, or the code of what the message
        means.
    :param first: Unix time, as ``last``; None where no line has a time.
    :param sample: the latest of the lines.
    :param programs: names of programs in the lines, at most :data:`.kernel_log.MOST_NAMES`.
    :param processes: numbers of processes in the lines; as many at most.
    :param places: parts of the GPU that the lines name, such as ``GPC 3, TPC 1``.
    :param versions: versions of libraries and of the module, for ``mismatch``.
    """

    boot: int
    kind: str
    address: str
    number: int = 0
    variant: str = ""
    count: int = 0
    first: float | None = None
    last: float | None = None
    sample: str = ""
    programs: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class BootLog:
    """How much of the kernel's log of one boot was read.

    :param incomplete: why not all of it was read; empty if it was.
    """

    boot: int
    source: str
    size: int
    seconds: float
    incomplete: str = ""


@dataclass(frozen=True)
class Node:
    """All that was read.

    :param blocked: the fact ``gpu_node.blocked_modules``; empty if it could not be read.
    """

    gpus: tuple[PciGpu, ...]
    smi: Smi
    events: tuple[Event, ...] = ()
    logs: tuple[BootLog, ...] = ()
    unseen: tuple[tuple[str, str], ...] = ()
    boot_id: str | None = None
    blocked: Mapping[str, Any] = field(default_factory=dict)
    #: Unix time of the node; 0 is unknown.
    now: float = 0.0


@dataclass(frozen=True)
class Seen:
    """What is counted of a finding.

    :param xids: the Xids that it is about.
    :param count: what is counted since boot; None for a state.
    :param last: Unix time of the last event.
    """

    xids: tuple[int, ...] = ()
    count: int | None = None
    last: float | None = None


STATE = Seen()


@dataclass(frozen=True)
class Judged(Finding):
    """A finding of a GPU, an NVSwitch or a link, whose address it has, or of the node."""

    seen: Seen = STATE


def judged(finding: Finding, severity: str, address: str = "", seen: Seen = STATE) -> Judged:
    """Return a finding with its severity and its address."""
    own = {"severity": severity, "subject": replace(finding.subject, gpu=address), "seen": seen}
    return Judged(**{**vars(finding), **own})


def shown_time(seconds: float | None) -> str | None:
    """Return Unix time as ``2026-11-23T15:04:05+00:00``."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(int(seconds), timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat()
