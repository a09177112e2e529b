# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and check the options of the monitoring."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.checks import check_at_least, wrong_value
from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._device_plugin.config import plain
from .._exporter.options import PREFIX, check_interval
from .._kube.image import check_pinned
from .._kube.pod_parts import check_max_unavailable
from .types import ANNOTATIONS, AUTO, NONE, SCRAPES, Request

#: Every option that ``read_request`` takes.
OPTIONS = argument_spec(
    Request,
    counters={"type": "raw"},
    image_pull_policy={"choices": ["IfNotPresent", "Always", "Never"]},
    scrape={"choices": [AUTO, *SCRAPES, ANNOTATIONS, NONE]},
    tolerations={"elements": "dict"},
)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_LISTEN = re.compile(r"(?:|[0-9.]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})\Z")


def read_request(options: Mapping[str, Any]) -> Request:
    """Return the request.

    :param options: by the role's names without its prefix; missing ones have their default.
    :raises InputError: an option is unknown or invalid.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InputError(
            f"the monitoring has no option {', '.join(unknown)}",
            next_step=f"It has {', '.join(sorted(OPTIONS))}.",
        )
    request = Request(**plain(read_arguments(OPTIONS, options, PREFIX)))
    for name in ("namespace", "image"):
        if not getattr(request, name):
            raise InputError(f"{PREFIX}{name} is empty")
    if not request.kubelet_directory.startswith("/"):
        raise wrong_value(
            f"{PREFIX}kubelet_directory", "an absolute path", request.kubelet_directory
        )
    check_pinned(PREFIX, request.image, request.version, request.digest, Request.version)
    check_max_unavailable(PREFIX, request.max_unavailable)
    match = _LISTEN.match(request.listen)
    if not match or not 0 < int(match["port"]) < 65536:
        raise wrong_value(f"{PREFIX}listen", "an address and a port, such as :9400", request.listen)
    check_interval(request.interval)
    check_at_least(f"{PREFIX}temperature", request.temperature)
    for label in request.pod_labels:
        _check_expression(label)
    for label in request.alert_labels:
        if not _LABEL.match(str(label)):
            raise wrong_value(
                f"{PREFIX}alert_labels", "a mapping whose keys are names of labels", label
            )
    # Read once, so that a wrong entry is refused before anything else.
    for name in ("collected", "xid_table"):
        getattr(request, name)
    return request


def _check_expression(text: str) -> None:
    if "," in text:
        raise InputError(
            f"{PREFIX}pod_labels has {text!r}, and the exporter splits the list at commas",
            next_step="Give each expression as its own item, without commas.",
        )
    try:
        re.compile(text)
    except re.error as error:
        raise InputError(
            f"{PREFIX}pod_labels has {text!r}, which is not a regular expression: {error}"
        ) from error
