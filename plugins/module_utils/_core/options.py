# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the values of options. Inventories and ``-e hold=false`` pass booleans as strings."""

from __future__ import annotations

from typing import Any

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1", "y", "t"), True),
    **dict.fromkeys(("false", "no", "off", "0", "n", "f"), False),
}


def truth(value: Any) -> bool | None:
    """Return the boolean that Ansible reads from the value, or None if it is neither."""
    return value if isinstance(value, bool) else _WORDS.get(str(value).strip().lower())
