# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Download from a server that may be hostile, with limits of size and time."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit

from ansible.module_utils.urls import ConnectionError as UrlError
from ansible.module_utils.urls import open_url

from .._core.errors import KubegpuError
from .._core.redact import addresses, redact

# Seconds for one read from the server.
_TIMEOUT = 60
_CHUNK = 1 << 16
# Status codes of HEAD after which a GET may still succeed, as with signed links.
_NO_HEAD = (403, 405, 501)
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 10
ERRORS = (OSError, ValueError, UrlError, http.client.HTTPException)


class WrongChecksum(KubegpuError):
    """The file has another checksum; ``found`` is its sha256."""

    def __init__(self, cause: str, found: str) -> None:
        super().__init__(cause)
        self.found = found


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block after a number of seconds. For the main thread only.

    A timeout of the socket limits one read: a server that sends single bytes of its headers could
    keep a client for weeks.

    :raises ValueError: inside the block, when the time is over.
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


def limited(response: Any, size: int) -> Iterator[bytes]:
    """Yield the body of a response in chunks.

    :param response: the result of :func:`open_url`.
    :param size: the largest size in bytes.
    :raises ValueError: the body is larger, or incomplete.
    """
    left = size
    while chunk := response.read1(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise ValueError(f"it has more than {size} bytes")
        yield chunk
    # What remains of the Content-Length, which Python's read1 does not check.
    missing = getattr(response, "length", None)
    if missing:
        raise ValueError(f"{missing} bytes of it did not come")


def check_exists(url: str, seconds: float) -> None:
    """Check that a file exists at an address, if the server supports HEAD.

    :raises KubegpuError: it does not exist.
    """
    with contextlib.suppress(_NotSupported), _opened(url, seconds, method="HEAD"):
        pass


def read_text(url: str, size: int, seconds: float, proxy: bool = True) -> str:
    """Return the text at an address; bytes that are not UTF-8 are replaced.

    :param size: the largest size in bytes.
    :param seconds: the time limit.
    :param proxy: whether the proxies of the environment are used.
    :raises KubegpuError: it cannot be read, is too large, or is redirected to another scheme.
    """
    with _opened(url, seconds, _redirected, use_proxy=proxy) as response:
        return b"".join(limited(response, size)).decode("utf-8", "replace")


def _redirected(url: str, **given: Any) -> Any:
    """Open an address, and follow redirections within its scheme only.

    Each step counts: who can change one plain answer on the way sends the client where he likes.
    """
    scheme = urlsplit(url).scheme.lower()
    for _step in range(_MOST_REDIRECTS):
        try:
            return open_url(url, follow_redirects="none", **given)
        except HTTPError as error:
            place = error.headers.get("Location") if error.headers else None
            if error.code not in _REDIRECTS or not place:
                raise
            error.close()
            url = urljoin(url, place)
        other = urlsplit(url).scheme.lower()
        if other != scheme:
            raise ValueError(f"it is redirected to {other}://")
    raise ValueError(f"it is redirected more than {_MOST_REDIRECTS} times")


def save(url: str, path: str, sha256: str, size: int, seconds: float, folder: str) -> None:
    """Download a file to ``path``, with mode 0700, if it has the checksum.

    :param size: the largest size in bytes.
    :param seconds: the time limit.
    :param folder: a directory for the partial file, on the same file system.
    :raises WrongChecksum: the file has another checksum.
    :raises KubegpuError: it cannot be read or written, or is too large.
    """
    digest = hashlib.sha256()
    partial = None
    try:
        with _opened(url, seconds) as response:
            descriptor, partial = tempfile.mkstemp(dir=folder)
            with os.fdopen(descriptor, "wb") as handle:
                for chunk in limited(response, size):
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


class _NotSupported(Exception):
    """The server does not support the method."""


@contextlib.contextmanager
def _opened(
    url: str,
    seconds: float,
    opened: Callable[..., Any] | None = None,
    method: str = "GET",
    **more: Any,
) -> Iterator[Any]:
    # Credentials in the address are sent with the first request, as apt and dnf do.
    given = {"timeout": _TIMEOUT, "force": True, "force_basic_auth": True, "method": method}
    given.update(more)
    try:
        with time_limit(seconds), (opened or open_url)(url, **given) as response:
            yield response
    except ERRORS as error:
        if method == "HEAD" and isinstance(error, HTTPError) and error.code in _NO_HEAD:
            raise _NotSupported from error
        raise KubegpuError(
            f"{addresses(url, True)} cannot be brought to the node.",
            evidence=redact(str(error) or type(error).__name__),
            next_step="See that this node reaches the address (proxy, certificate authority), and "
            "that there is space for it.",
        ) from error
