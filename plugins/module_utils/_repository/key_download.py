# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Download of a repository's key to the node, with the repository's proxy and CA."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.urls import open_url

from .._core.errors import KubegpuError
from .._core.redact import redact
from .._formats.openpgp import MAX_SIZE
from .._host.download import ERRORS, limited, time_limit

# Seconds for one answer of the server, and in total.
_TIMEOUT = 10
_TOTAL = 60.0


def download_key(
    url: str, proxies: Mapping[str, str], ca_file: str = "", *, seconds: float = _TOTAL
) -> bytes:
    """Return what is at ``url``: a key is at most :data:`~._openpgp.MAX_SIZE` bytes.

    :param proxies: ``http_proxy``, ``https_proxy`` and ``no_proxy``, as far as they are given; the
        node's own environment counts for the others.
    :param ca_file: certificates to trust in addition; empty: those of the node.
    :param seconds: how long it may take in all.
    :raises KubegpuError: the key cannot be read, is too large, or takes longer.
    """
    if ca_file and not os.access(ca_file, os.R_OK):
        raise _failure(url, f"the file {ca_file} with the certificate authority cannot be read")
    # A password in the address is sent at once, as apt and dnf do.
    given: dict[str, Any] = {"timeout": _TIMEOUT, "force": True, "force_basic_auth": True}
    given["ca_path"] = ca_file or None
    try:
        with time_limit(seconds), _environment(proxies), open_url(url, **given) as answer:
            return b"".join(limited(answer, MAX_SIZE))
    except ERRORS as error:
        raise _failure(url, str(error) or type(error).__name__) from error


@contextlib.contextmanager
def _environment(proxies: Mapping[str, str]) -> Iterator[None]:
    """Set the proxies in the environment, where Python looks for them."""
    before = dict(os.environ)
    for name, value in proxies.items():
        if value:
            # Python prefers the lower-case name.
            os.environ[name] = value
    try:
        yield
    finally:
        for name in proxies:
            if name in before:
                os.environ[name] = before[name]
            else:
                os.environ.pop(name, None)


def _failure(url: str, why: str) -> KubegpuError:
    return KubegpuError(
        f"The repository's key cannot be read from {redact(url)}; nothing was changed.",
        evidence=why,
        next_step="See that this node reaches the address (proxy, certificate authority), name "
        "another one, such as a mirror's, or give the key as a file of the controller.",
    )
