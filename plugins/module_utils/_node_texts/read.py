# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the texts of a node that a diagnosis is judged by, without secrets, and not too many.

Each text passes the redactor here, so that no secret leaves the node. Reader and stream are passed
in.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .._containerd.distributions import DISTRIBUTIONS
from .._core.errors import KubegpuError
from .._core.printable import printable
from .._core.redact import first_words, redact, redact_data
from .._core.redact_lines import redact_lines, redact_yaml
from .._formats.toml_redact import redact as redact_toml
from .._host.command import NOT_FOUND
from .data import (
    COMMAND_LINE,
    DOCKER_LOG,
    KERNEL_LINE,
    NAMESPACES,
    PLACES,
    PLUGIN_POD,
    POD_LOGS,
    UNITS,
)
from .types import CONF, JSON, LOG, TOML, YAML, Place, Request, Text

if TYPE_CHECKING:
    from .._host.bounded import Ended, Stream
    from .._host.reader import NodeReader

# Of one file, and of one folder.
_MOST_FILE = 128 * 1024
_MOST_FILES = 20
_MOST_LINE = 600
# Of a line, before it is redacted and cut.
_MOST_RAW = 16 * 1024
_MOST_LOG = 64 * 1024 * 1024
# Of the kernel's log of a boot, the last lines.
_MOST_KERNEL = 50_000
_NO_TIME = "the time for all logs ({} seconds) is over"
_MORE = "there are more than {} in {}"
_NO_FOLDER = "the folder cannot be read"
_NOT_OWN = (
    "it cannot be read, or is not a log file of its own: a link to another place, or one of "
    "several names of a file"
)
_STRANGER = (
    "a pod with the name of a plugin is in another namespace than those of plugins; if it is one, "
    "add its namespace to namespaces"
)
_KEY = re.compile(r"-----(BEGIN|END)[A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_LOG_NAME = re.compile(r"\d{1,6}\.log")
_ANY_NAME = re.compile("")
_LONG_WORD = f"[... a line of more than {_MOST_RAW} bytes without a blank is left out ...]"
_LEFT_OUT = "[... {} bytes are left out ...]\n"


def read_texts(
    reader: NodeReader,
    stream: Stream,
    request: Request,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Return the result of the module: the texts, and what could not be read."""
    found: list[Text] = []
    unseen: list[dict[str, str]] = []
    left = request.most
    for text in _all(reader, stream, request, clock, unseen):
        size = len(text.text.encode())
        if size > left:
            unseen.append(
                {"what": text.source, "why": f"the texts have more than {request.most} bytes"}
            )
            continue
        left -= size
        found.append(text)
    return {"changed": False, "texts": [text.to_json() for text in found], "unseen": unseen}


def _all(
    reader: NodeReader,
    stream: Stream,
    request: Request,
    clock: Callable[[], float],
    unseen: list[dict[str, str]],
) -> Iterator[Text]:
    """Yield the texts, the most important ones first."""
    logs = _Logs(stream, request, clock, unseen)
    yield from logs.kernel()
    yield from _files(reader, request.lines, unseen)
    yield from logs.units()
    yield from _plugin_logs(reader, request, unseen)


def _files(reader: NodeReader, lines: int, unseen: list[dict[str, str]]) -> Iterator[Text]:
    seen = set()
    for place in (*PLACES, *_generated()):
        for path in _paths(reader, place, unseen):
            if path in seen:
                continue
            seen.add(path)
            if place.form == LOG:
                folder, _slash, name = path.rpartition("/")
                own = _own_log(f"{reader.real_path(folder)}/{name}")
                yield from _end_of_log(reader, path, lines, unseen, own)
                continue
            content = reader.read_bytes(path, _MOST_FILE + 1)
            if content is None:
                if not reader.absent(path):
                    unseen.append({"what": path, "why": "it cannot be read"})
                continue
            status = reader.status(path)
            size = status.st_size if status else len(content)
            cut = size > _MOST_FILE
            shown = content[:_MOST_FILE].decode("utf-8", "replace")
            if cut:
                # Without the last line, which is not whole.
                lines_before = shown.rpartition("\n")[0]
                shown = lines_before or first_words(shown, len(shown) - 1)
            text = without_secrets(shown, CONF if cut and place.form == JSON else place.form)
            if cut:
                text += "\n" + _LEFT_OUT.format(size - _MOST_FILE)
            yield Text(f"config{path}", path, text, cut)


def _generated() -> Iterator[Place]:
    """Yield the configurations of containerd of Kubernetes' distributions, and their templates."""
    for one in DISTRIBUTIONS:
        yield Place(one.config_path, TOML)
        for path in (*one.templates.values(), *one.drop_ins.values()):
            yield Place(path, CONF)


def _paths(reader: NodeReader, place: Place, unseen: list[dict[str, str]]) -> list[str]:
    if not place.names:
        return [place.path]
    pattern = re.compile(place.names)
    return [f"{place.path}/{name}" for name in _listed(reader, place.path, pattern, unseen)]


def _listed(
    reader: NodeReader,
    folder: str,
    pattern: re.Pattern[str],
    unseen: list[dict[str, str]],
    namespaces: set[str] | None = None,
) -> list[str]:
    """Return the first names in a folder that match; what is left out is named.

    :param namespaces: of pods; those of others are named as well.
    """
    if reader.hidden(folder):
        unseen.append({"what": folder, "why": _NO_FOLDER})
    names = [name for name in reader.list_dir(folder) if pattern.match(name)]
    if namespaces is not None:
        others = [name for name in names if name.partition("_")[0] not in namespaces]
        if others:
            what = ", ".join(map(printable, others[:_MOST_FILES]))
            unseen.append({"what": what, "why": _STRANGER})
        names = [name for name in names if name.partition("_")[0] in namespaces]
    if len(names) > _MOST_FILES:
        why = _MORE.format(_MOST_FILES, folder)
        unseen.append({"what": ", ".join(map(printable, names[_MOST_FILES:])), "why": why})
    return names[:_MOST_FILES]


def without_secrets(text: str, form: str) -> str:
    """Return a text without secrets and without control characters, by its form.

    The syntax of YAML covers most: it is that of lines, and what is indented below them.
    """
    return redact_yaml(printable(_redacted(text, form)))


def _redacted(text: str, form: str) -> str:
    if form == LOG:
        # The output of programs, and configurations in it.
        return redact_lines(redact(text))
    try:
        if form == JSON:
            return json.dumps(redact_data(json.loads(text)), indent=2) + "\n"
        if form == TOML:
            # What its syntax does not show, such as an address in a string of a comment.
            return redact_lines(redact_toml(text))
    except (KubegpuError, ValueError, RecursionError):
        # It is not whole: by its lines.
        pass
    return redact_yaml(text) if form in (YAML, JSON) else redact_lines(text)


class _Tail:
    """The last lines of a log that matter, from its parts."""

    def __init__(self, lines: int, interest: re.Pattern[str] | None = None) -> None:
        self._lines: deque[str] = deque(maxlen=lines)
        self._interest = interest
        self._rest = b""
        self._in_long = False
        self._in_key = False
        self.count = 0
        self.left_out = 0

    def feed(self, part: bytes) -> None:
        if self._in_long:
            _rest, newline, part = part.partition(b"\n")
            if not newline:
                return
            self._in_long = False
            part = self._rest + newline + part
        else:
            part = self._rest + part
        *lines, self._rest = part.split(b"\n")
        for line in lines:
            self._take(line)
        # A line without an end is not kept whole: one more byte shows that it was cut.
        if len(self._rest) > _MOST_RAW:
            self._rest, self._in_long = self._rest[: _MOST_RAW + 1], True

    def text(self) -> str:
        self._take(self._rest)
        self._rest = b""
        # Redacted before they are cut: half a secret is one. Only the lines that are kept.
        lines = (redact_lines(redact(line)).rstrip("\n") for line in self._lines)
        whole = redact_yaml(printable("".join(f"{line}\n" for line in lines)))
        return "".join(f"{line[:_MOST_LINE]}\n" for line in whole.splitlines())

    def _take(self, raw: bytes) -> None:
        if not raw:
            return
        line = raw[: _MOST_RAW + 1].decode("utf-8", "replace")
        if len(raw) > _MOST_RAW:
            line = first_words(line, len(line) - 1) or _LONG_WORD
        self.count += 1
        if self._is_of_key(line) or COMMAND_LINE.search(line):
            return
        if self._interest is not None and not self._interest.search(line[:_MOST_LINE]):
            return
        self.left_out += len(self._lines) == self._lines.maxlen
        self._lines.append(line)

    def _is_of_key(self, line: str) -> bool:
        """Return whether the line is of a private key, whose own lines no word marks."""
        inside = self._in_key
        for mark in _KEY.finditer(line):
            if mark[1] == "END" and not self._in_key:
                # What was read begins within a key.
                self.left_out += len(self._lines)
                self._lines.clear()
                inside = True
            self._in_key = mark[1] == "BEGIN"
        return inside or self._in_key


class _Logs:
    """Reads the logs of the kernel and of units, until the time for all of them is over."""

    def __init__(
        self,
        stream: Stream,
        request: Request,
        clock: Callable[[], float],
        unseen: list[dict[str, str]],
    ) -> None:
        self._stream = stream
        self._count = request.lines
        self._clock = clock
        self._deadline = clock() + request.timeout
        self._no_time = _NO_TIME.format(request.timeout)
        self._unseen = unseen

    def kernel(self) -> Iterator[Text]:
        """Yield the lines of the kernel's log that concern GPUs."""
        reasons = []
        for argv in (
            *(("journalctl", "-k", "-b", "0", "-n", str(_MOST_KERNEL), "-q", "--no-pager",
               "-o", "short-iso"),),
            ("dmesg", "--color=never"),
        ):  # fmt: skip
            left = self._deadline - self._clock()
            if left <= 0:
                reasons.append(self._no_time)
                break
            tail = _Tail(self._count, KERNEL_LINE)
            ended = self._stream(argv, tail.feed, left, _MOST_LOG)
            if ended.size:
                why = _cut_off(ended)
                if why:
                    # The oldest lines come first.
                    self._tell("kernel log", f"{argv[0]} {why}: its newest lines are missing")
                yield _text("logs/kernel.log", argv, tail, bool(why) or tail.count >= _MOST_KERNEL)
                return
            said = _cut_off(ended) or printable(redact(ended.stderr.strip())[-200:])
            reasons.append(f"{argv[0]}: {said or 'it printed nothing'}")
        self._tell("kernel log", "; ".join(reasons))

    def units(self) -> Iterator[Text]:
        """Yield the last lines of each unit since boot; nothing for one that has none."""
        told = len(self._unseen)
        found = False
        for number, unit in enumerate(UNITS):
            left = self._deadline - self._clock()
            if left <= 0:
                self._tell(f"journals of {', '.join(UNITS[number:])}", self._no_time)
                return
            argv = (
                *("journalctl", "-b", "0", "-u", unit, "-n", str(self._count), "-q"),
                *("--no-pager", "-o", "short-iso"),
            )
            tail = _Tail(self._count)
            ended = self._stream(argv, tail.feed, left, _MOST_LOG)
            if ended.rc == NOT_FOUND:
                self._tell("journals of units", "journalctl is not on this node")
                return
            why = _cut_off(ended)
            if why:
                self._tell(f"journal of {unit}", f"journalctl {why}")
            elif ended.rc and ended.stderr.strip():
                said = printable(redact(ended.stderr.strip())[-200:])
                self._tell(f"journal of {unit}", f"journalctl: {said}")
            if ended.size:
                found = True
                yield _text(f"logs/{unit}.log", argv, tail, bool(why))
        if not found and len(self._unseen) == told:
            # journalctl does not say so: it shows a user what that one may read.
            why = "journalctl shows none of this boot: without root, they cannot be read"
            self._tell("journals of units", why)

    def _tell(self, what: str, why: str) -> None:
        self._unseen.append({"what": what, "why": why})


def _cut_off(ended: Ended) -> str:
    """Return how the output of a program was cut off; empty for a whole one."""
    if ended.hang is not None:
        return "took too long"
    return f"printed more than {_MOST_LOG >> 20} MiB" if ended.too_long else ""


def _text(name: str, argv: tuple[str, ...], tail: _Tail, cut: bool) -> Text:
    text = tail.text()
    return Text(name, " ".join(argv), text, cut or tail.left_out > 0)


def _plugin_logs(
    reader: NodeReader, request: Request, unseen: list[dict[str, str]]
) -> Iterator[Text]:
    """Yield the last lines of the device plugins' containers, as kubelet keeps them.

    Who writes to /var/log, such as the container of a collector of logs, can put a link to any file
    in the place of one: a log is read below the real path of its own folder only.
    """
    namespaces = {*NAMESPACES, *request.namespaces}
    for pod in _listed(reader, POD_LOGS, PLUGIN_POD, unseen, namespaces):
        for container in _listed(reader, f"{POD_LOGS}/{pod}", _ANY_NAME, unseen):
            folder = f"{POD_LOGS}/{pod}/{container}"
            if reader.hidden(folder):
                unseen.append({"what": folder, "why": _NO_FOLDER})
            names = [name for name in reader.list_dir(folder) if _LOG_NAME.fullmatch(name)]
            for name in sorted(names, key=lambda one: int(one[:-4]))[-1:]:
                own = _own_log(f"{reader.real_path(POD_LOGS)}/{pod}/{container}/{name}")
                yield from _end_of_log(reader, f"{folder}/{name}", request.lines, unseen, own)


def _own_log(place: str) -> Callable[[str], bool]:
    """Return whether a real path is that of a container's log: its place, or Docker's file."""
    return lambda real: real == place or DOCKER_LOG.match(real) is not None


def _end_of_log(
    reader: NodeReader,
    path: str,
    lines: int,
    unseen: list[dict[str, str]],
    own: Callable[[str], bool],
) -> Iterator[Text]:
    """Yield the last lines of a file; nothing without one.

    :param own: whether the real path of the file may be read.
    """
    found = reader.read_end(path, _MOST_FILE, own)
    if found is None:
        if reader.is_link(path) or not reader.absent(path):
            unseen.append({"what": printable(path), "why": _NOT_OWN})
        return
    content, size = found
    begin = size > len(content)
    if begin:
        # Half a line: the name that marks a secret can be in the other half.
        content = content.partition(b"\n")[2]
    tail = _Tail(lines)
    tail.feed(content)
    text = tail.text()
    if text:
        yield Text(f"logs{path[len('/var/log') :]}", path, text, begin or tail.left_out > 0)
