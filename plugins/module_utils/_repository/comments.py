# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commented lines in source files of others, by which a change can be undone line by line.

A removed line becomes a comment that begins with ``#kubegpu:NAME:- ``; an added line is
below a comment ``#kubegpu:NAME:+``.
"""

from __future__ import annotations

import re


def markers(name: str) -> tuple[str, str]:
    """Return the beginning of a removed line, and the line above an added one."""
    return f"#kubegpu:{name}:- ", f"#kubegpu:{name}:+"


def restore_lines(text: str, name: str, added: re.Pattern[str]) -> str:
    """Restore the lines that were commented out for ``name``.

    :param added: pattern of the line that was added below its marker.
    """
    minus, plus = markers(name)
    result: list[str] = []
    added_follows = False
    for line in text.splitlines(keepends=True):
        if added_follows:
            added_follows = False
            if added.match(line):
                continue
        if line.rstrip("\r\n") == plus:
            added_follows = True
        elif line.startswith(minus):
            result.append(line[len(minus) :])
        else:
            result.append(line)
    return "".join(result)


def comment_out(name: str, line: str) -> str:
    return markers(name)[0] + line
