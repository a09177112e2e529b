# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of ``gpu_node_texts``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import check_at_least, wrong_value
from .types import Request

MOST_KIB = 16 * 1024
ARGUMENTS: dict[str, dict[str, Any]] = {
    "most_kib": {"type": "int", "default": 1024},
    "lines": {"type": "int", "default": 300},
    "timeout": {"type": "int", "default": 60},
    "namespaces": {"type": "list", "elements": "str", "default": []},
}


def read_options(given: Mapping[str, Any]) -> Request:
    """Return the request.

    :raises InputError: an option has a wrong value.
    """
    for name in ("most_kib", "lines", "timeout"):
        check_at_least(name, given[name])
    if given["most_kib"] > MOST_KIB:
        raise wrong_value("most_kib", f"at most {MOST_KIB}", given["most_kib"])
    return Request(
        given["most_kib"] * 1024, given["lines"], given["timeout"], tuple(given["namespaces"])
    )
