# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a node's acceptance in its record, as the facts have it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Key in the node's record.
ACCEPTANCE = "acceptance"
_TEXTS = ("at", "level", "driver")
_LISTS = ("gpus", "tests", "causes")


def read_acceptance(record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the last result, None without one.

    What was not written by this collection counts as none: the node is tested again.

    :param record: the node's record; None if it cannot be read.
    """
    data = ((record or {}).get("values") or {}).get(ACCEPTANCE)
    if not isinstance(data, Mapping) or not isinstance(data.get("passed"), bool):
        return None
    if not all(isinstance(data.get(name), str) for name in _TEXTS):
        return None
    # What is missing has no influence on what the result says.
    given = {**{name: data.get(name) for name in _LISTS}, "missing": data.get("missing", [])}
    lists = {name: one for name, one in given.items() if isinstance(one, list)}
    if len(lists) < len(given):
        return None
    return {
        "passed": data["passed"],
        **{name: data[name] for name in _TEXTS},
        **{name: [str(one) for one in found] for name, found in lists.items()},
    }
