# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run printed. Check mode writes no file, so that its report is read from the output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def report_of(output: str, fact: str, path: Path) -> Any:
    """Return the report that a run wrote, or set as a fact in check mode; None without one.

    :param output: of a run with ``-v``, or with results as JSON.
    """
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    _before, found, rest = output.partition(f'"{fact}": ')
    return json.JSONDecoder().raw_decode(rest)[0] if found else None
