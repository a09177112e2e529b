# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a message of the kernel's log is about: kind, device, and what tells it from others. Pure.

Messages that say the same of the same device have the same key, by which the health of a node
counts them. What a message of a driver means is asked of :func:`.explain`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .codes import MISMATCH
from .drm_events import code_of
from .explain import explain
from .rules.xids_data import RECOVERY_XID
from .xids import needs_nothing

#: The drivers of AMD and Intel.
_DRIVERS = ("amdgpu", "i915", "xe", "habanalabs")
# Names with which tasks of NVIDIA's driver and its programs begin.
_TASKS = ("nvidia", "nv_", "nvgpu", "dcgm", "nv-")
_MOST_SAMPLE = 300
#: What a line of interest has in it.
MARKS = re.compile(
    rb"NVRM: |SXid \(|blocked for more than|RIP: |(?:nvidia|%s) [0-9a-f]{4,8}:|\[drm:\w"
    rb"|: probe of " % "|".join(_DRIVERS).encode()
)
_ADDRESS = r"(?P<address>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
_XID = re.compile(
    rf"NVRM: Xid \((?:PCI:)?{_ADDRESS}(?P<instance>(?: GPU-C?I:[0-9a-fA-F]{{1,4}})*)\): "
    r"(?P<number>\d{1,4}), (?P<text>.*)"
)
_SXID = re.compile(
    rf"\S{{1,40}}: SXid \((?:PCI:)?{_ADDRESS}\): (?P<number>\d{{1,6}}), (?P<text>.*)"
)
_PROGRAM = re.compile(r"\bname=(?P<name>[^,<>\n]{1,32})[,\n]")
_PROCESS = re.compile(r"\bpid=(?P<pid>\d{1,10})\b")
_PLACE = re.compile(r"\bGPC \d{1,3}, TPC \d{1,3}")
_FATAL = re.compile(r"\b(?P<not>non-?)?fatal\b", re.IGNORECASE)
_NVLINK5 = range(144, 151)
_GPU = re.compile(rf"\b(?:GPU |PCI:|nvidia ){_ADDRESS}")
_FAULT = re.compile(r"NVRM: |RIP: .{1,120}\[nvidia|nvidia [0-9a-f]{4,8}:")
_NUMBERS = re.compile(r"(?<![A-Za-z])\d+")
_MOST_MEANINGS = 4096
# Since 595 the client is named, and its version is in the next line.
_CLIENT = re.compile(r"NVRM: API mismatch: the client(?: '(?P<name>[^'\n]{0,64})')?")
_CLIENT_VERSION = re.compile(
    r"NVRM: (?:API mismatch: the client )?has the version (?P<version>\d[\w.]{0,38}\w), but"
)
_MODULE_VERSION = re.compile(
    r"NVRM: this kernel module has the version (?P<version>\d[\w.]{0,38}\w)"
)
_KERNEL = re.compile(
    rf"\b(?:{'|'.join(_DRIVERS)})(?:(?:: probe of)? "
    r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])|\]\] )"
)
_TASK = re.compile(r"INFO: task (?P<name>[^:\n]{1,64}):\d+ blocked for more than ")


Key = tuple[str, str, int, str]


@dataclass(frozen=True)
class Note:
    """What a line says.

    :param key: kind, address, number and variant of the event.
    :param counts: whether it is a line of its own, not a further line of a message.
    """

    key: Key
    programs: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    counts: bool = True


def address_of(text: str) -> str:
    """Return an address of the log as sysfs writes it: ``0000:05:00`` is ``0000:05:00.0``."""
    parts = text.lower().split(":")
    domain = parts[0][-4:].zfill(4) if len(parts) == 3 else "0000"
    place = ":".join((domain, *parts[-2:]))
    return place if "." in place else f"{place}.0"


def notes(line: str) -> Iterator[Note]:
    """Yield what a message says; its lines are joined by line breaks, without time stamps."""
    xid = _XID.match(line)
    if xid:
        number = int(xid["number"])
        program = _PROGRAM.search(xid["text"])
        process, place = _PROCESS.search(xid["text"]), _PLACE.search(xid["text"])
        yield Note(
            (
                "xid",
                address_of(xid["address"]),
                number,
                _variant(number, xid["text"]),
            ),
            (program["name"],) if program else (),
            (xid["instance"].strip(),) if xid["instance"] else (),
            processes=(process["pid"],) if process else (),
            places=(place.group(),) if place else (),
        )
        return
    sxid = _SXID.match(line)
    if sxid:
        yield Note(("sxid", address_of(sxid["address"]), int(sxid["number"]), _fatal(sxid["text"])))
        return
    if _FAULT.match(line):
        yield from _driver(line)
        return
    kernel = _KERNEL.search(line)
    code = code_of(line[:_MOST_SAMPLE]) if kernel else ""
    if kernel and code:
        address = address_of(kernel["address"]) if kernel["address"] else ""
        yield Note(("kernel_driver", address, 0, code))
    task = _TASK.search(line)
    if task and task["name"].startswith(_TASKS):
        yield Note(("hung_task", "", 0, ""), (task["name"],))


def _driver(line: str) -> Iterator[Note]:
    """Yield what a line of NVIDIA's driver says that is no Xid."""
    key = ("mismatch", "", 0, "")
    client = _CLIENT.match(line)
    if client:
        yield Note(key, (client["name"],) if client["name"] else ())
    for part in line.split("\n"):
        for pattern, what in ((_CLIENT_VERSION, "libraries"), (_MODULE_VERSION, "module")):
            version = pattern.search(part)
            if version:
                yield Note(key, versions=(f"{what} {version['version']}",), counts=False)
    code = "" if client else _meaning(_NUMBERS.sub(_zeros, line[:_MOST_SAMPLE]))
    if code:
        gpu = _GPU.search(line)
        yield Note(("driver", address_of(gpu["address"]) if gpu else "", 0, code))


def _zeros(number: re.Match[str]) -> str:
    return "0" * len(number.group())


@lru_cache(maxsize=_MOST_MEANINGS)
def _meaning(line: str) -> str:
    """Return the code of what a message means; of those that differ in numbers only, once."""
    return next((one.code for one in explain(line) if one.code != MISMATCH), "")


def _variant(number: int, text: str) -> str:
    """Return what tells Xids of one number apart."""
    if number == RECOVERY_XID:
        return "none" if needs_nothing(text) else ""
    return _fatal(text) if number in _NVLINK5 else ""


def _fatal(text: str) -> str:
    word = _FATAL.search(text)
    return ("non-fatal" if word["not"] else "fatal") if word else ""
