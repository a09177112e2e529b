# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a text of any size and form for the rules: plain lines, as many as can be searched. Pure.

Time stamps and prefixes of the kernel's log go, so that a rule can join lines of one message. A
short text is kept as a whole. Of a long one the lines that are about GPUs, containers, packages and
builds are kept, of equal ones the first and the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

#: Characters that are searched, and those that are read at most: the end of a text counts.
MOST_TEXT = 256 * 1024
MOST_READ = 64 * 1024 * 1024
_MOST_LINE = 16 * 1024
_EQUAL = 2
_MOST_SHAPES = 20_000
# How far around a line without an address the address of its device is looked for.
_NEAR = 2000
_DATE = r"\d{4}-\d\d-\d\d[T ][\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)?"
# dmesg with its options -r, -T and -x, journalctl -k with its formats, talosctl dmesg, and the log
# of a container as the CRI writes it.
_PREFIX = re.compile(
    r"<\d{1,3}>"
    r"|\[\s{0,12}\d{1,12}\.\d{1,9}\](?:\[\s{0,6}[A-Z]\d{1,9}\])?[ \t]?"
    r"|\[(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\][ \t]?"
    r"|kern {1,3}:[a-z]{2,6} {1,4}: "
    rf"|(?:[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d|{_DATE}|\d{{9,12}}\.\d{{1,9}}) "
    r"(?:\S{1,255} )?kernel: "
    rf"|(?:\S{{1,64}}: )?kern: {{1,6}}[a-z]{{2,8}}: \[{_DATE}\]: "
    rf"|{_DATE} (?:stdout|stderr) [FP] "
    rf"|{_DATE} (?=NVRM|nvidia|amdgpu|i915|xe |\[drm)"
)
_PREFIXES = 3
# Words of lines of interest: a search for each is faster than one expression for all.
_INTEREST = (
    *("nvidia", "nvrm", "xid", "cuda", "nvml", "nccl", "amdgpu", "amdkcl", "rocm", "hip", "hsa"),
    *("kfd", "i915", "xe ", "habana", "drm", "gpu", "cdi", "nouveau", "nova", "vfio", "amd-vi"),
    *("fabric", "dkms", "make", "gcc", "dpkg", "apt", "dnf", "zypp", "rpm", "modprobe", "insmod"),
    *("module", "firmware", "kubelet", "container", "device", "plugin", "driver", "slurm", "gres"),
    *("error", "fail", "fatal", "e: ", "w: ", "problem"),
)
_DIGITS = re.compile(r"\d+|0x[0-9a-f]+")
_DEVICE = re.compile(
    r"\b(?:amdgpu|i915|xe|habanalabs|nouveau)(?:: probe of)? "
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
)


# Of a log that is read in parts: its longest line, a further line of a message, and the time stamps
# of journalctl -o short-unix and dmesg, which a further line has not.
_MOST_MESSAGE = 4096
_CONTINUED = re.compile(rb"\s{2,80}NVRM: ")
_STAMP = re.compile(
    r"(?:<\d{1,3}>)?(?:(?P<unix>\d{1,12}\.\d{1,9}) \S{1,255} \S{1,64}: "
    r"|\[\s*(?P<up>\d{1,12}\.\d{1,9})\](?:\[\s*[A-Z]\d+\])? )"
)


class LogReader:
    """Reads the kernel's log in parts of any length, and passes on each message of interest.

    Lines with an indented NVRM and without a time stamp belong to the message before them. No more
    than one message is kept.

    :param take: gets a message without its time stamp, and its Unix time; None if it is not known.
    :param marks: what the first line of a message of interest has in it.
    :param booted: Unix time of the boot, for lines with the time since boot.
    """

    def __init__(
        self,
        take: Callable[[str, float | None], None],
        marks: re.Pattern[bytes],
        booted: float | None = None,
    ) -> None:
        self._take = take
        self._marks = marks
        self._booted = booted
        self._rest = b""
        self._open: tuple[str, float | None] | None = None
        self.lines = 0

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
        if len(self._rest) < _MOST_MESSAGE:
            self._rest += part[begin : begin + _MOST_MESSAGE]

    def close(self) -> None:
        """Read the last line, which may have no end."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self._finish()

    def _line(self, raw: bytes) -> None:
        self.lines += 1
        if self._open is not None and _CONTINUED.match(raw):
            line, time = self._open
            if len(line) < _MOST_MESSAGE:
                more = raw[:_MOST_MESSAGE].decode("utf-8", "replace").strip()
                self._open = (f"{line}\n{more}", time)
            return
        self._finish()
        if not self._marks.search(raw, 0, _MOST_MESSAGE):
            return
        line = raw[:_MOST_MESSAGE].decode("utf-8", "replace")
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
        """Pass on the message whose lines are complete."""
        if self._open is not None:
            message, self._open = self._open, None
            self._take(*message)


def plain(line: str) -> str:
    """Return a line without time stamps and prefixes of the kernel's log."""
    start = 0
    for _number in range(_PREFIXES):
        match = _PREFIX.match(line, start)
        if match is None:
            break
        start = match.end()
    return line[start:]


def read(text: str) -> str:
    """Return the lines that are searched."""
    text = text[-MOST_READ:]
    if len(text) <= MOST_TEXT:
        return "\n".join(_lines(text))
    return _newest(list(_of_interest(text)))


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield plain(line.rstrip("\r"))


def _of_interest(text: str) -> Iterator[str]:
    """Yield the lines of interest, of equal ones the first ones; numbers do not count."""
    seen: dict[str, int] = {}
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = _cut(text, start, end)
        start = end + 1
        low = line.lower()
        if not any(word in low for word in _INTEREST):
            continue
        line = plain(line)
        shape = _DIGITS.sub("#", line[:200])
        count = seen.get(shape, 0)
        if count < _EQUAL:
            yield line
        if count or len(seen) < _MOST_SHAPES:
            seen[shape] = count + 1


def _cut(text: str, start: int, end: int) -> str:
    """Return a line; of a very long one both ends."""
    if end - start <= _MOST_LINE:
        return text[start:end].rstrip("\r")
    half = _MOST_LINE // 2
    return f"{text[start : start + half]} ... {text[end - half : end]}"


def _newest(lines: list[str]) -> str:
    """Return the last lines, as many as are searched."""
    size, first = 0, len(lines)
    while first and size + len(lines[first - 1]) < MOST_TEXT:
        first -= 1
        size += len(lines[first]) + 1
    return "\n".join(lines[first:])


def near_address(text: str, place: int) -> str:
    """Return the address of the device that the lines before a place are about, or after it."""
    before = [one["address"] for one in _DEVICE.finditer(text, max(0, place - _NEAR), place)]
    if before:
        return before[-1]
    after = _DEVICE.search(text, place, place + _NEAR)
    return after["address"] if after else ""
