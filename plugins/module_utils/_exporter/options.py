# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of the module and the filter of the exporter. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.checks import check_at_least
from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .data import METHODS
from .types import Request

#: The prefix of the role's variables.
PREFIX = "gpu_monitoring_"
#: The options of the filter.
ARGUMENTS = argument_spec(
    Request,
    method={"choices": list(METHODS)},
    repository_key_url={"no_log": False},
    key_fingerprints={"no_log": False},
)
#: Those of the module: packages and their repository have modules of their own.
MODULE_ARGUMENTS = {
    name: rule
    for name, rule in ARGUMENTS.items()
    if "repositor" not in name and name not in ("key_fingerprints", "hold")
}

# Some of these are in a file of systemd, where blanks and quotes separate and % is replaced.
_PATH = re.compile(r"/[\w./@+-]*\Z", re.ASCII)
_LISTEN = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])?:(?P<port>\d{1,5})\Z", re.ASCII)
_VERSION = re.compile(r"\d+(?:\.\d+){1,3}-\d+(?:\.\d+){1,3}\Z", re.ASCII)
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_IMAGE = re.compile(r"[\w./:-]+\Z", re.ASCII)
_DIGEST = re.compile(r"(?:sha256:[0-9a-f]{64})?\Z")
# A comma or a quote in the help would make it another number of fields, with which DCGM's exporter
# does not start.
_FIELD = re.compile(
    r'\s*(?:#.*|[A-Z][A-Z0-9_]*\s*,\s*(?:gauge|counter|label)\s*,\s*[^\s,"][^,"]*)?\Z'
)
# Prometheus takes a sample for stale after five minutes, and DCGM's exporter forgets an Xid then.
MAX_INTERVAL = 120


def read_options(given: Mapping[str, Any]) -> Request:
    """Return the request. An option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    request = Request(**read_arguments(ARGUMENTS, given, PREFIX))
    _check(request)
    return request


def _check(request: Request) -> None:
    listen = _LISTEN.match(request.listen)
    if not listen or not 0 < int(listen["port"]) < 65536:
        raise _wrong("listen", request.listen, "Write :9400, 127.0.0.1:9400 or [::1]:9400.")
    if not _VERSION.match(request.version):
        raise _wrong(
            "version",
            request.version,
            "Write the versions of DCGM and of its exporter, as in the image's tag: 4.6.1-4.8.4.",
        )
    for name in ("web_config", "job_mapping_dir", "textfile_directory"):
        path = getattr(request, name)
        if path and not (_PATH.match(path) and ".." not in path.split("/")):
            raise _wrong(name, path, "Give an absolute path without blanks and quotes.")
    for address in request.expected_gpus:
        if not _ADDRESS.match(address):
            raise _wrong("expected_gpus", address, "Write PCI addresses: 0000:3b:00.0.")
    if not _IMAGE.match(request.image):
        raise _wrong("image", request.image, "Write registry/name, without a tag.")
    if not _DIGEST.match(request.digest):
        raise _wrong("digest", request.digest, "Write sha256: and 64 digits.")
    for number, line in enumerate(request.counters.splitlines(), 1):
        if not _FIELD.match(line):
            raise _wrong(
                "counters",
                f"{line!r} in line {number}",
                "Write DCGM's field, gauge, counter or label, and the help, with commas between "
                "them alone.",
            )
    check_interval(request.interval)
    check_at_least(f"{PREFIX}timeout", request.timeout)


def check_interval(seconds: int) -> None:
    """Check the seconds between two readings.

    :raises InputError: they are none, or too many for the alerts.
    """
    name = f"{PREFIX}interval"
    check_at_least(name, seconds)
    if seconds > MAX_INTERVAL:
        raise InputError(
            f"{name} is {seconds}, and alerts need two readings in five minutes.",
            next_step=f"Set at most {MAX_INTERVAL} seconds.",
        )


def _wrong(name: str, value: str, next_step: str) -> InputError:
    return InputError(f"{PREFIX}{name} is {value!r}.", next_step=next_step)
