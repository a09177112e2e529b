# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words for true and false, as Ansible knows them: inventories and ``-e hold=false`` give words."""

from __future__ import annotations

from typing import Any

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1", "y", "t"), True),
    **dict.fromkeys(("false", "no", "off", "0", "n", "f"), False),
}


def truth(value: Any) -> bool | None:
    """Return what the value means, None where it is neither true nor false."""
    return value if isinstance(value, bool) else _WORDS.get(str(value).strip().lower())
