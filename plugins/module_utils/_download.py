# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a server sends, which can be hostile: no more bytes and no longer than allowed."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.urls import ConnectionError as UrlError
from ansible.module_utils.urls import open_url

from ._errors import KubegpuError
from ._redact import addresses, redact

# Seconds for one answer of the server.
_TIMEOUT = 60
_CHUNK = 1 << 16
ERRORS = (OSError, ValueError, UrlError, http.client.HTTPException)


class WrongChecksum(KubegpuError):
    """The file is not the one that was meant; ``found`` is its sha256."""

    def __init__(self, cause: str, found: str) -> None:
        super().__init__(cause)
        self.found = found


def limited(
    answer: Any, size: int, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[bytes]:
    """Yield what the server sends, as it comes.

    :param answer: of :func:`open_url`.
    :param size: bytes that it may send.
    :param seconds: that it may take.
    :raises ValueError: it sends more, takes longer, or ends too early.
    """
    ends = clock() + seconds
    left = size
    while chunk := answer.read1(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise ValueError(f"it has more than {size} bytes")
        if clock() > ends:
            raise ValueError(f"it was not complete after {seconds:.0f} seconds")
        yield chunk
    # What is left of the length that the server has named; Python's read1 does not look at it.
    missing = getattr(answer, "length", None)
    if missing:
        raise ValueError(f"{missing} bytes of it did not come")


def read_text(url: str, size: int, seconds: float) -> str:
    """Return the text at an address; bytes that are not UTF-8 are replaced.

    :raises KubegpuError: it cannot be read, is too large, or is read from another scheme.
    """
    with _opened(url) as answer:
        scheme = urlsplit(answer.geturl()).scheme
        if scheme != urlsplit(url).scheme.lower():
            raise ValueError(f"it is redirected to {scheme}://")
        return b"".join(limited(answer, size, seconds)).decode("utf-8", "replace")


def save(url: str, path: str, sha256: str, size: int, seconds: float, folder: str) -> None:
    """Make ``path`` be the file at an address, with mode 0700; nothing is left of another one.

    :param folder: where the file is until it was compared; on the same file system.
    :raises WrongChecksum: it is another file.
    :raises KubegpuError: it cannot be read or written, or is too large.
    """
    digest = hashlib.sha256()
    partial = None
    try:
        with _opened(url) as answer:
            descriptor, partial = tempfile.mkstemp(dir=folder)
            with os.fdopen(descriptor, "wb") as handle:
                for chunk in limited(answer, size, seconds):
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


@contextlib.contextmanager
def _opened(url: str) -> Iterator[Any]:
    try:
        # A password in the address is sent at once, as apt and dnf do.
        with open_url(url, timeout=_TIMEOUT, force=True, force_basic_auth=True) as answer:
            yield answer
    except ERRORS as error:
        raise KubegpuError(
            f"{addresses(url, True)} cannot be brought to the node.",
            evidence=redact(str(error) or type(error).__name__),
            next_step="See that this node reaches the address (proxy, certificate authority), and "
            "that there is space for it.",
        ) from error
