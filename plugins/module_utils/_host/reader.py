# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a node, or a directory tree of one. Reading never fails: None is missing or unreadable.

Everything is read below ``root``, and symbolic links are followed inside it. With another root than
``/`` no command is run, no socket is opened and no library is imported.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import stat
import time
from collections.abc import Callable, Sequence
from typing import Any

from .._core.errors import KubegpuError
from .bounded import Hang, Stream, run_bounded
from .command import TIMED_OUT, Result, Runner
from .fingerprint import file_signature, process_start_id

_MAX_LINKS = 40
_MAX_BYTES = 32 * 1024 * 1024
# The kernel refuses to read files below /proc/sys for a buffer of more than 4 MiB.
_LINE_BYTES = 64 * 1024


class NodeReader:
    """Reads files below ``root``. If that is ``/``, also runs commands with ``run``.

    With ``stream``, a command that may hang in the kernel (:meth:`ask`) is not waited for.
    """

    def __init__(
        self, root: str = "/", run: Runner | None = None, stream: Stream | None = None
    ) -> None:
        self.root = os.path.realpath(root)
        self.live = self.root == "/"
        self._run = run if self.live else None
        self._stream = stream if self.live else None

    @property
    def as_root(self) -> bool | None:
        """Whether root reads the node; None for a tree, whose owner may be anybody."""
        return os.geteuid() == 0 if self.live else None

    def files_only(self) -> NodeReader:
        """Return a reader of the same files that runs no commands and opens no sockets."""
        return _FilesOnly(self.root)

    def read_bytes(self, path: str, limit: int = _MAX_BYTES, offset: int = 0) -> bytes | None:
        """Return at most ``limit`` bytes of the regular file from ``offset``, or None."""
        try:
            with open(self._place(path), "rb", opener=_open_nonblocking) as handle:
                # A pipe may have no content, and a device no end.
                if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                    return None
                if offset:
                    handle.seek(offset)
                return handle.read(limit)
        except (OSError, ValueError):
            return None

    def read_end(
        self, path: str, limit: int, own: Callable[[str], bool]
    ) -> tuple[bytes, int] | None:
        """Return the last bytes of a regular file that has one name, and its size, or None.

        For folders in which others than root may write. The file is opened once, without any effect
        (a device may act when it is opened), and looked at by its descriptor, so that no link can
        be put in its place meanwhile.

        :param own: whether the real path, which is given, may be read.
        """
        try:
            found = os.open(self._place(path), os.O_PATH | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(found)
            real = os.readlink(f"/proc/self/fd/{found}")
            if not self.live:
                real = "/" + os.path.relpath(real, self.root)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or not own(real):
                return None
            with open(f"/proc/self/fd/{found}", "rb") as handle:
                handle.seek(max(0, status.st_size - limit))
                return handle.read(limit), status.st_size
        except OSError:
            return None
        finally:
            os.close(found)

    def read_text(self, path: str, limit: int = _MAX_BYTES) -> str | None:
        """Return the file as text, or None; bytes that are not UTF-8 are replaced."""
        content = self.read_bytes(path, limit)
        return None if content is None else content.decode("utf-8", "replace")

    def read_line(self, path: str) -> str | None:
        """Return the stripped first line; None if it is empty."""
        text = self.read_text(path, _LINE_BYTES)
        lines = text.split("\n", 1) if text else [""]
        return lines[0].strip() or None

    def list_dir(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._place(path)))
        except OSError:
            return []

    def hidden(self, folder: str) -> bool:
        """Return whether there is such a folder, or may be one, and its names cannot be read."""
        try:
            os.listdir(self._place(folder))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return False

    def exists(self, path: str) -> bool:
        return os.path.exists(self._place(path))

    def absent(self, path: str) -> bool:
        """Return whether the file certainly does not exist; False if its folder cannot be read."""
        try:
            os.stat(self._place(path))
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            pass
        return False

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(self._place(path))

    def is_file(self, path: str) -> bool:
        return os.path.isfile(self._place(path))

    def is_link(self, path: str) -> bool:
        folder, name = os.path.split(path)
        return os.path.islink(os.path.join(self._place(folder), name))

    def link_name(self, path: str) -> str | None:
        """Return the last part of the link's target, or None if it is not a link."""
        folder, name = os.path.split(path)
        try:
            return os.path.basename(os.readlink(os.path.join(self._place(folder), name))) or None
        except OSError:
            return None

    def link_target(self, path: str) -> str | None:
        """Return the link's target, unresolved, or None if it is not a link."""
        folder, name = os.path.split(path)
        try:
            return os.readlink(os.path.join(self._place(folder), name))
        except OSError:
            return None

    def real_path(self, path: str) -> str | None:
        """Return the path with links resolved, relative to the root; None if it does not exist."""
        if self.live:
            return os.path.realpath(path) if os.path.exists(path) else None
        place = self._place(path)
        return "/" + os.path.relpath(place, self.root) if os.path.exists(place) else None

    def times(self, path: str) -> tuple[float, float] | None:
        """Return modification time and change time of the file in Unix time, or None."""
        try:
            status = os.stat(self._place(path))
        except OSError:
            return None
        return status.st_mtime, status.st_ctime

    def status(self, path: str) -> os.stat_result | None:
        """Return type, owner and mode of the file, or None if it does not exist."""
        try:
            return os.stat(self._place(path))
        except OSError:
            return None

    def file_signature(self, path: str) -> str | None:
        """Return the signature of the file; None if it does not exist."""
        return file_signature(self._place(path))

    def process_start_id(self, pid: int) -> str | None:
        """Return the start ID of a process of this node, or None."""
        return process_start_id(pid) if self.live else None

    def first(self, paths: Sequence[str]) -> str | None:
        """Return the first of the paths that exists."""
        return next((path for path in paths if self.exists(path)), None)

    def run(self, argv: Sequence[str], timeout: int = 30) -> Result | None:
        """Return the command's result, or None if the reader runs no commands.

        :param timeout: seconds after which the command is stopped.
        """
        return None if self._run is None else self._run(list(argv), timeout=timeout)

    def ask(self, argv: Sequence[str], seconds: int) -> tuple[Result | None, Hang | None]:
        """Return the result of a command that asks a driver, and how it hangs if it does.

        :param seconds: after which it is killed, and left behind if it cannot be.
        """
        if self._stream is not None:
            return run_bounded(self._stream, argv, seconds, _MAX_BYTES)
        answer = self.run(argv, timeout=seconds)
        hung = answer is not None and answer.rc == TIMED_OUT
        return answer, Hang(argv[0], 0, float(seconds), None, None, False) if hung else None

    def kernel_value(self, name: str) -> str | None:
        """Return ``arch``, ``osrelease`` or ``hostname`` of the kernel."""
        value = self.read_line(f"/proc/sys/kernel/{name}")
        if value is None and self.live:
            names = os.uname()
            return {"arch": names.machine, "osrelease": names.release}.get(name, names.nodename)
        return value

    def ask_http(self, socket_path: str, resource: str, timeout: float = 5.0) -> bytes | None:
        """Return the body of a GET request over the Unix socket, or None.

        With HTTP 1.0 the response ends with the connection and is not chunked, so that a socket is
        all that has to be imported.

        :param timeout: seconds for each read.
        """
        if not self.live:
            return None
        request = f"GET {resource} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()
        response = b""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(timeout)
                connection.connect(socket_path)
                connection.sendall(request)
                while len(response) < _MAX_BYTES:
                    part = connection.recv(65536)
                    if not part:
                        break
                    response += part
        except OSError:
            return None
        head, _separator, body = response.partition(b"\r\n\r\n")
        status_line = head.split(None, 2)
        return body if status_line[1:2] == [b"200"] else None

    def python_package(self, module: str, distribution: str) -> str | None:
        """Return the version of a Python library without importing it; '' if it is unknown."""
        if not self.live:
            return None
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
        if spec is None or not spec.origin:
            return None
        folder = os.path.dirname(spec.origin)
        if os.path.basename(spec.origin) == "__init__.py":
            folder = os.path.dirname(folder)
        prefix = distribution.replace("-", "_").lower() + "-"
        try:
            names = os.listdir(folder)
        except OSError:
            return ""
        for name in names:
            plain = name.lower().replace("-", "_", prefix.count("_"))
            if plain.startswith(prefix) and plain.endswith((".dist-info", ".egg-info")):
                return name[len(prefix) :].rsplit(".", 1)[0].split("-")[0]
        return ""

    def import_library(self, module: str) -> Any | None:
        """Return the imported library, or None if it is missing or cannot be loaded."""
        if not self.live:
            return None
        try:
            return importlib.import_module(module)
        except Exception:
            # A broken library on the node must not break the facts.
            return None

    def in_child(self, seconds: float, ask: Callable[[], Any]) -> Any:
        """Return what ``ask`` returns (JSON values), run in a child process with a time limit.

        Needed for libraries whose calls into the kernel cannot be interrupted. A child that cannot
        be killed is left behind.

        :param seconds: the time limit.
        :raises TimeoutError: the limit was exceeded.
        :raises KubegpuError: ``ask`` raised an exception, or the child died.
        """
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _run_child(reading, writing, ask)
        os.close(writing)
        try:
            output = _read_until(reading, time.monotonic() + seconds)
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        try:
            result = json.loads(output)
        except ValueError as error:
            cause = "The library of the node ended the process that asked it."
            raise KubegpuError(cause) from error
        if "error" in result:
            raise KubegpuError(result["error"])
        return result["value"]

    def _place(self, path: str) -> str:
        """Return the path on this machine of ``path`` of the node."""
        if self.live:
            return path
        # Links are resolved as if the root were /, so that nothing outside is read.
        pending = [part for part in path.split("/") if part not in ("", ".")]
        place = self.root
        links = 0
        while pending:
            part = pending.pop(0)
            if part == "..":
                place = place if place == self.root else os.path.dirname(place)
                continue
            candidate = os.path.join(place, part)
            if links < _MAX_LINKS and os.path.islink(candidate):
                links += 1
                target = os.readlink(candidate)
                if target.startswith("/"):
                    place = self.root
                pending = [name for name in target.split("/") if name not in ("", ".")] + pending
                continue
            place = candidate
        return place


def _run_child(reading: int, writing: int, ask: Callable[[], Any]) -> None:
    """In the child: write the result into the pipe, and exit."""
    try:
        os.close(reading)
        # A reader of our output must not wait for a hung child.
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        try:
            result = {"value": ask()}
        except BaseException as error:
            result = {"error": str(error) or type(error).__name__}
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(result).encode())
    finally:
        os._exit(0)


def _read_until(number: int, deadline: float) -> bytes:
    """Return all output of a pipe.

    :param deadline: seconds of the monotonic clock.
    :raises TimeoutError: the pipe is still open at the deadline.
    """
    output = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([number], [], [], left)[0]:
            raise TimeoutError
        part = os.read(number, 65536)
        if not part:
            return output
        output += part


def _open_nonblocking(path: str, flags: int) -> int:
    # Opening a pipe without a writer would block.
    return os.open(path, flags | os.O_NONBLOCK)


class _FilesOnly(NodeReader):
    """Reads only the files of a node."""

    def ask_http(self, socket_path: str, resource: str, timeout: float = 5.0) -> bytes | None:
        return None
