# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the lines of the kernel's log that tell of GPUs, and count equal ones. Pure.

The log is read in parts, of any length and in any order, and memory is bounded: what is kept
depends on the number of devices and kinds of messages, not on the number of lines. Each message is
read for itself, so that any order of them gives the same events; lines with an indented NVRM and
without a time stamp belong to the message before them. What a message of a driver means is asked of
the known faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from .._core.printable import printable
from .._core.redact import redact
from .._known_faults.codes import MISMATCH
from .._known_faults.drm_events import code_of
from .._known_faults.explain import explain
from .._known_faults.xids import needs_nothing
from .data import KERNEL_DRIVERS, NVIDIA_TASKS, RECOVERY_XID
from .types import Event

#: Names of programs, MIG instances and versions that are kept of an event.
MOST_NAMES = 8
#: Events that are kept of one boot. A board with 16 GPUs and each Xid once has 2,700.
MOST_EVENTS = 4000
_MOST_LINE = 4096
_MOST_SAMPLE = 300
# What a line of interest has in it.
_MARKS = re.compile(
    rb"NVRM: |SXid \(|blocked for more than|RIP: |(?:nvidia|%s) [0-9a-f]{4,8}:|\[drm:\w"
    rb"|: probe of " % "|".join(KERNEL_DRIVERS).encode()
)
_CONTINUED = re.compile(rb"\s{2,80}NVRM: ")
# journalctl -o short-unix and dmesg. A line of a message with several has neither.
_STAMP = re.compile(
    r"(?:<\d{1,3}>)?(?:(?P<unix>\d{1,12}\.\d{1,9}) \S{1,255} \S{1,64}: "
    r"|\[\s*(?P<up>\d{1,12}\.\d{1,9})\](?:\[\s*[A-Z]\d+\])? )"
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
    rf"\b(?:{'|'.join(KERNEL_DRIVERS)})(?:(?:: probe of)? "
    r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])|\]\] )"
)
_TASK = re.compile(r"INFO: task (?P<name>[^:\n]{1,64}):\d+ blocked for more than ")

_Key = tuple[str, str, int, str]


@dataclass(frozen=True)
class _Note:
    """What a line says.

    :param key: kind, address, number and variant of the event.
    :param counts: whether it is a line of its own, not a further line of a message.
    """

    key: _Key
    programs: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    counts: bool = True


@dataclass
class _Tally:
    """What is kept of equal lines."""

    count: int = 0
    first: float | None = None
    last: float | None = None
    sample: str = ""
    programs: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    processes: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)

    def add(self, note: _Note, time: float | None, line: str) -> None:
        for kept, names in (
            (self.programs, note.programs),
            (self.instances, note.instances),
            (self.versions, note.versions),
            (self.processes, note.processes),
            (self.places, note.places),
        ):
            for name in names:
                _add_name(kept, printable(name))
        if not note.counts:
            return
        self.count += 1
        # Of lines of one time the last by its text, so that their order does not matter.
        if (_or_zero(time), line) >= (_or_zero(self.last), self.sample):
            self.sample = line
        if time is not None:
            self.first = time if self.first is None else min(self.first, time)
            self.last = time if self.last is None else max(self.last, time)


def _or_zero(time: float | None) -> float:
    return -1.0 if time is None else time


def _add_name(names: set[str], name: str) -> None:
    """Keep the first names of the alphabet."""
    names.add(name)
    if len(names) > MOST_NAMES:
        names.remove(max(names))


class KernelLog:
    """Collects the events of one boot.

    :param boot: 0 is the present one, -1 the one before.
    :param booted: Unix time of this boot, for lines with the time since boot.
    """

    def __init__(self, boot: int = 0, booted: float | None = None) -> None:
        self.boot = boot
        self._booted = booted
        self._rest = b""
        self._open: tuple[str, float | None] | None = None
        self._tallies: dict[_Key, _Tally] = {}
        self._bound: _Key | None = None
        self.lines = 0

    @property
    def overflowed(self) -> bool:
        """Return whether there were more events than are kept."""
        return self._bound is not None or len(self._tallies) > MOST_EVENTS

    def feed(self, part: bytes) -> None:
        """Read a part of the log, which may end within a line."""
        begin = 0
        while True:
            end = part.find(b"\n", begin)
            if end < 0:
                break
            self._line(self._rest + part[begin:end] if self._rest else part[begin:end])
            self._rest = b""
            begin = end + 1
        # Of a line without end only the beginning is kept.
        if len(self._rest) < _MOST_LINE:
            self._rest += part[begin : begin + _MOST_LINE]

    def close(self) -> None:
        """Read the last line, which may have no end."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self._finish()

    def events(self) -> tuple[Event, ...]:
        """Return the events, sorted."""
        self._prune()
        return tuple(
            Event(
                self.boot,
                *key,
                tally.count,
                tally.first,
                tally.last,
                redact(printable(tally.sample)),
                tuple(sorted(tally.programs)),
                tuple(sorted(tally.instances)),
                tuple(sorted(tally.versions)),
                tuple(sorted(tally.processes)),
                tuple(sorted(tally.places)),
            )
            for key, tally in sorted(self._tallies.items(), key=lambda one: one[0])
            if tally.count
        )

    def _line(self, raw: bytes) -> None:
        self.lines += 1
        if self._open is not None and _CONTINUED.match(raw):
            line, time = self._open
            if len(line) < _MOST_LINE:
                more = raw[:_MOST_LINE].decode("utf-8", "replace").strip()
                self._open = (f"{line}\n{more}", time)
            return
        self._finish()
        if not _MARKS.search(raw, 0, _MOST_LINE):
            return
        line = raw[:_MOST_LINE].decode("utf-8", "replace")
        stamp = _STAMP.match(line)
        time = None
        if stamp:
            line = line[stamp.end() :]
            if stamp["unix"]:
                time = float(stamp["unix"])
            elif self._booted is not None:
                time = self._booted + float(stamp["up"])
        self._open = (line.strip(), time)

    def _finish(self) -> None:
        """Count the message whose lines are complete."""
        if self._open is not None:
            self._message(*self._open)
            self._open = None

    def _message(self, line: str, time: float | None) -> None:
        for note in _notes(line):
            tally = self._tallies.get(note.key)
            if tally is None:
                if self._bound is not None and note.key > self._bound:
                    continue
                if len(self._tallies) >= 2 * MOST_EVENTS:
                    self._prune()
                tally = self._tallies[note.key] = _Tally()
            tally.add(note, time, line[:_MOST_SAMPLE])

    def _prune(self) -> None:
        """Keep the first events in their order; any order of lines keeps the same ones."""
        if len(self._tallies) <= MOST_EVENTS:
            return
        kept = sorted(self._tallies)[:MOST_EVENTS]
        self._bound = kept[-1]
        self._tallies = {key: self._tallies[key] for key in kept}


def address_of(text: str) -> str:
    """Return an address of the log as sysfs writes it: ``0000:05:00`` is ``0000:05:00.0``."""
    parts = text.lower().split(":")
    domain = parts[0][-4:].zfill(4) if len(parts) == 3 else "0000"
    place = ":".join((domain, *parts[-2:]))
    return place if "." in place else f"{place}.0"


def _notes(line: str) -> Iterator[_Note]:
    xid = _XID.match(line)
    if xid:
        number = int(xid["number"])
        program = _PROGRAM.search(xid["text"])
        process, place = _PROCESS.search(xid["text"]), _PLACE.search(xid["text"])
        yield _Note(
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
        yield _Note(
            ("sxid", address_of(sxid["address"]), int(sxid["number"]), _fatal(sxid["text"]))
        )
        return
    if _FAULT.match(line):
        yield from _driver(line)
        return
    kernel = _KERNEL.search(line)
    code = code_of(line[:_MOST_SAMPLE]) if kernel else ""
    if kernel and code:
        address = address_of(kernel["address"]) if kernel["address"] else ""
        yield _Note(("kernel_driver", address, 0, code))
    task = _TASK.search(line)
    if task and task["name"].startswith(NVIDIA_TASKS):
        yield _Note(("hung_task", "", 0, ""), (task["name"],))


def _driver(line: str) -> Iterator[_Note]:
    """Yield what a line of NVIDIA's driver says that is no Xid."""
    key = ("mismatch", "", 0, "")
    client = _CLIENT.match(line)
    if client:
        yield _Note(key, (client["name"],) if client["name"] else ())
    for part in line.split("\n"):
        for pattern, what in ((_CLIENT_VERSION, "libraries"), (_MODULE_VERSION, "module")):
            version = pattern.search(part)
            if version:
                yield _Note(key, versions=(f"{what} {version['version']}",), counts=False)
    code = "" if client else _meaning(_NUMBERS.sub(_zeros, line[:_MOST_SAMPLE]))
    if code:
        gpu = _GPU.search(line)
        yield _Note(("driver", address_of(gpu["address"]) if gpu else "", 0, code))


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
