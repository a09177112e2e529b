# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the JSON in what a program prints. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Each try may read the whole text.
_MOST_TRIES = 64


def find_object(text: str, *keys: str) -> Mapping[str, Any] | None:
    """Return the first object with a key that begins with one of ``keys``; None without one.

    Lines of libraries come before it and after it, and may have braces, too.
    """
    decoder = json.JSONDecoder()
    begin = text.find("{")
    for _try in range(_MOST_TRIES):
        if begin < 0:
            break
        try:
            found, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            end = begin + 1
        else:
            if any(str(name).startswith(keys) for name in found):
                return dict(found)
        begin = text.find("{", end)
    return None
