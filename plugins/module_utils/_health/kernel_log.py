# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the messages of the kernel's log that say the same of the same device. Pure.

The log is read in parts, and memory is bounded: what is kept depends on the number of devices and
kinds of messages, not on the number of lines. Each message is read for itself, so that any order of
them gives the same events. What a message is about is asked of the known faults.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .._core.printable import printable
from .._core.redact import redact
from .._known_faults.kernel_events import MARKS, Key, Note, notes
from .._known_faults.reader import LogReader
from .types import Event

#: Names of programs, MIG instances and versions that are kept of an event.
MOST_NAMES = 8
#: Events that are kept of one boot. A board with 16 GPUs and each Xid once has 2,700.
MOST_EVENTS = 4000
_MOST_SAMPLE = 300


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

    def add(self, note: Note, time: float | None, line: str) -> None:
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
        self._reader = LogReader(self._message, MARKS, booted)
        self._tallies: dict[Key, _Tally] = {}
        self._bound: Key | None = None

    @property
    def lines(self) -> int:
        """Return how many lines were read."""
        return self._reader.lines

    @property
    def overflowed(self) -> bool:
        """Return whether there were more events than are kept."""
        return self._bound is not None or len(self._tallies) > MOST_EVENTS

    def feed(self, part: bytes) -> None:
        """Read a part of the log, which may end within a line."""
        self._reader.feed(part)

    def close(self) -> None:
        """Read the last line, which may have no end."""
        self._reader.close()

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

    def _message(self, line: str, time: float | None) -> None:
        for note in notes(line):
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
