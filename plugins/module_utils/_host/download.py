# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a server sends, which can be hostile: no more bytes and no longer than allowed."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import signal
import tempfile
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.parse import urlsplit

from ansible.module_utils.urls import ConnectionError as UrlError
from ansible.module_utils.urls import open_url

from .._core.errors import KubegpuError
from .._core.redact import addresses, redact

# Seconds for one answer of the server.
_TIMEOUT = 60
_CHUNK = 1 << 16
# Answers to HEAD of a server that may still give the file to a GET, as with signed links.
_NO_HEAD = (403, 405, 501)
ERRORS = (OSError, ValueError, UrlError, http.client.HTTPException)


class WrongChecksum(KubegpuError):
    """The file is not the one that was meant; ``found`` is its sha256."""

    def __init__(self, cause: str, found: str) -> None:
        super().__init__(cause)
        self.found = found


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what runs inside after so many seconds. For the main thread alone.

    A timeout of the socket is for one read: a server that sends a byte of its headers now and then
    keeps a client for weeks, before there is an answer to be read.

    :raises ValueError: in what runs inside.
    """

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise ValueError(f"it was not complete after {seconds:.0f} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limited(answer: Any, size: int) -> Iterator[bytes]:
    """Yield what the server sends, as it comes.

    :param answer: of :func:`open_url`.
    :param size: bytes that it may send.
    :raises ValueError: it sends more, or ends too early.
    """
    left = size
    while chunk := answer.read1(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise ValueError(f"it has more than {size} bytes")
        yield chunk
    # What is left of the length that the server has named; Python's read1 does not look at it.
    missing = getattr(answer, "length", None)
    if missing:
        raise ValueError(f"{missing} bytes of it did not come")


def see(url: str, seconds: float) -> None:
    """See that there is a file at an address, as far as the server answers a HEAD.

    :raises KubegpuError: there is none.
    """
    with contextlib.suppress(_Unanswered), _opened(url, seconds, "HEAD"):
        pass


def read_text(url: str, size: int, seconds: float) -> str:
    """Return the text at an address; bytes that are not UTF-8 are replaced.

    :raises KubegpuError: it cannot be read, is too large, or is read from another scheme.
    """
    with _opened(url, seconds) as answer:
        scheme = urlsplit(answer.geturl()).scheme
        if scheme != urlsplit(url).scheme.lower():
            raise ValueError(f"it is redirected to {scheme}://")
        return b"".join(limited(answer, size)).decode("utf-8", "replace")


def save(url: str, path: str, sha256: str, size: int, seconds: float, folder: str) -> None:
    """Make ``path`` be the file at an address, with mode 0700; nothing is left of another one.

    :param folder: where the file is until it was compared; on the same file system.
    :raises WrongChecksum: it is another file.
    :raises KubegpuError: it cannot be read or written, or is too large.
    """
    digest = hashlib.sha256()
    partial = None
    try:
        with _opened(url, seconds) as answer:
            descriptor, partial = tempfile.mkstemp(dir=folder)
            with os.fdopen(descriptor, "wb") as handle:
                for chunk in limited(answer, size):
                    digest.update(chunk)
                    handle.write(chunk)
                os.fchmod(handle.fileno(), 0o700)
                handle.flush()
                os.fsync(handle.fileno())
            if digest.hexdigest() != sha256:
                raise WrongChecksum(
                    f"{addresses(url, True)} is not the file that was meant.", digest.hexdigest()
                )
            os.replace(partial, path)
            partial = None
    finally:
        if partial is not None:
            with contextlib.suppress(OSError):
                os.unlink(partial)


class _Unanswered(Exception):
    """The server does not answer this method."""


@contextlib.contextmanager
def _opened(url: str, seconds: float, method: str = "GET") -> Iterator[Any]:
    # A password in the address is sent at once, as apt and dnf do.
    given = {"timeout": _TIMEOUT, "force": True, "force_basic_auth": True, "method": method}
    try:
        with time_limit(seconds), open_url(url, **given) as answer:
            yield answer
    except ERRORS as error:
        if method == "HEAD" and isinstance(error, HTTPError) and error.code in _NO_HEAD:
            raise _Unanswered from error
        raise KubegpuError(
            f"{addresses(url, True)} cannot be brought to the node.",
            evidence=redact(str(error) or type(error).__name__),
            next_step="See that this node reaches the address (proxy, certificate authority), and "
            "that there is space for it.",
        ) from error
