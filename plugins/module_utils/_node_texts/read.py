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
from .._core.redact import redact, redact_data, redact_lines, redact_yaml
from .._formats.toml_redact import redact as redact_toml
from .data import COMMAND_LINE, KERNEL_LINE, PLACES, PLUGIN_POD, POD_LOGS, UNITS
from .types import CONF, JSON, LOG, TOML, YAML, Place, Request, Text

if TYPE_CHECKING:
    from .._host.bounded import Stream
    from .._host.reader import NodeReader

# Of one file, and of one folder.
_MOST_FILE = 128 * 1024
_MOST_FILES = 20
_MOST_LINE = 600
_MOST_LOG = 64 * 1024 * 1024
# Seconds that a log gets if those before it took all of the time.
_LEAST = 2.0
_LOG_NAME = re.compile(r"\d{1,6}\.log")
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
    deadline = clock() + request.timeout
    logs = _Logs(stream, request.lines, lambda: max(deadline - clock(), _LEAST), unseen)
    yield from logs.kernel()
    yield from _files(reader, unseen)
    for unit in UNITS:
        yield from logs.of_unit(unit)
    yield from _plugin_logs(reader, request.lines)


def _files(reader: NodeReader, unseen: list[dict[str, str]]) -> Iterator[Text]:
    seen = set()
    for place in (*PLACES, *_generated()):
        for path in _paths(reader, place):
            if path in seen:
                continue
            seen.add(path)
            content = reader.read_bytes(path, _MOST_FILE + 1)
            if content is None:
                if not reader.absent(path):
                    unseen.append({"what": path, "why": "it cannot be read"})
                continue
            status = reader.status(path)
            size = status.st_size if status else len(content)
            shown = content[:_MOST_FILE].decode("utf-8", "replace")
            cut = size > _MOST_FILE
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


def _paths(reader: NodeReader, place: Place) -> list[str]:
    if not place.names:
        return [place.path]
    pattern = re.compile(place.names)
    names = [name for name in reader.list_dir(place.path) if pattern.match(name)]
    return [f"{place.path}/{name}" for name in names[:_MOST_FILES]]


def without_secrets(text: str, form: str) -> str:
    """Return a text without secrets and without control characters, by its form."""
    return printable(_redacted(text, form))


def _redacted(text: str, form: str) -> str:
    if form == LOG:
        return redact(text)
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
        self.left_out = 0

    def feed(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._take(line)
        # A line without an end is not kept whole.
        self._rest = self._rest[: _MOST_LINE * 4]

    def text(self) -> str:
        self._take(self._rest)
        self._rest = b""
        return "".join(f"{line}\n" for line in self._lines)

    def _take(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "replace")
        if not line or COMMAND_LINE.search(line[: _MOST_LINE * 4]):
            return
        if self._interest is not None and not self._interest.search(line[:_MOST_LINE]):
            return
        self.left_out += len(self._lines) == self._lines.maxlen
        # Redacted before it is cut: half a secret is one.
        shown = without_secrets(line, LOG)
        self._lines.append(shown[:_MOST_LINE])


class _Logs:
    """Reads the logs of the kernel and of units."""

    def __init__(
        self,
        stream: Stream,
        lines: int,
        left: Callable[[], float],
        unseen: list[dict[str, str]],
    ) -> None:
        self._stream = stream
        self._count = lines
        self._left = left
        self._unseen = unseen

    def kernel(self) -> Iterator[Text]:
        """Yield the lines of the kernel's log that concern GPUs."""
        reasons = []
        for argv in (
            ("journalctl", "-k", "-b", "0", "-q", "--no-pager", "-o", "short-iso"),
            ("dmesg", "--color=never"),
        ):
            tail = _Tail(self._count, KERNEL_LINE)
            ended = self._stream(argv, tail.feed, self._left(), _MOST_LOG)
            if ended.size:
                yield self._text("logs/kernel.log", argv, tail)
                return
            said = printable(redact(ended.stderr.strip()[-200:]))
            reasons.append(f"{argv[0]}: {said or 'it printed nothing'}")
        self._unseen.append({"what": "kernel log", "why": "; ".join(reasons)})

    def of_unit(self, unit: str) -> Iterator[Text]:
        """Yield the last lines of a unit since boot; nothing for one that has none."""
        argv = (
            *("journalctl", "-b", "0", "-u", unit, "-n", str(self._count), "-q", "--no-pager"),
            *("-o", "short-iso"),
        )
        tail = _Tail(self._count)
        ended = self._stream(argv, tail.feed, self._left(), _MOST_LOG)
        if ended.hang is not None:
            self._unseen.append({"what": f"journal of {unit}", "why": "journalctl took too long"})
        elif ended.size:
            yield self._text(f"logs/{unit}.log", argv, tail)

    @staticmethod
    def _text(name: str, argv: tuple[str, ...], tail: _Tail) -> Text:
        text = tail.text()
        return Text(name, " ".join(argv), text, tail.left_out > 0)


def _plugin_logs(reader: NodeReader, lines: int) -> Iterator[Text]:
    """Yield the last lines of the device plugins' containers, as kubelet keeps them."""
    pods = [name for name in reader.list_dir(POD_LOGS) if PLUGIN_POD.match(name)]
    for pod in pods[:_MOST_FILES]:
        for container in reader.list_dir(f"{POD_LOGS}/{pod}")[:_MOST_FILES]:
            folder = f"{POD_LOGS}/{pod}/{container}"
            names = [name for name in reader.list_dir(folder) if _LOG_NAME.fullmatch(name)]
            for name in sorted(names, key=lambda one: int(one[:-4]))[-1:]:
                path = f"{folder}/{name}"
                status = reader.status(path)
                begin = max(0, (status.st_size if status else 0) - _MOST_FILE)
                tail = _Tail(lines)
                tail.feed(reader.read_bytes(path, _MOST_FILE, begin) or b"")
                text = tail.text()
                if text:
                    yield Text(
                        f"logs{path[len('/var/log') :]}", path, text, begin > 0 or tail.left_out > 0
                    )
