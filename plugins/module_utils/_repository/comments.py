# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of a source file that are commented out, and how they are taken back.

A line that is removed becomes a comment that begins with ``#kubegpu:NAME:- ``; an added line stands
below a comment ``#kubegpu:NAME:+``.
"""

from __future__ import annotations

import re


def marks(name: str) -> tuple[str, str]:
    return f"#kubegpu:{name}:- ", f"#kubegpu:{name}:+"


def enabled_again(text: str, name: str, added: re.Pattern[str]) -> str:
    """Take back what was commented out in the text for ``name``.

    :param added: the line that was written in its place, below the mark that says so.
    """
    minus, plus = marks(name)
    result: list[str] = []
    ours_follows = False
    for line in text.splitlines(keepends=True):
        if ours_follows:
            ours_follows = False
            if added.match(line):
                continue
        if line.rstrip("\r\n") == plus:
            ours_follows = True
        elif line.startswith(minus):
            result.append(line[len(minus) :])
        else:
            result.append(line)
    return "".join(result)


def gone(name: str, line: str) -> str:
    return marks(name)[0] + line
