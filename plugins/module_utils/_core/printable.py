# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make untrusted text safe for a terminal.

Users of a node choose the names of their processes, and its root user the content of all files and
outputs. A terminal interprets such text: sequences that begin with ESC or a C1 code clear the
screen, hide or rewrite text (ECMA-48, section 8.3), and Unicode's bidirectional controls change its
order (UAX #9; CVE-2021-42574).
"""

from __future__ import annotations

import re

# What may be unprintable: all but line feeds, tabs and the printable characters of ASCII.
_OTHER = re.compile(r"[^\n\t -~]")


def printable(text: str) -> str:
    """Return the text with an escape, such as ``\\x1b``, for each unprintable character.

    These are control codes (C0, DEL, C1), format characters (bidirectional controls, zero width),
    line and paragraph separators, spaces other than U+0020, surrogates, and unassigned characters.
    Line feeds and tabs are kept; CR LF becomes a line feed.
    """
    if text.isprintable():
        return text
    return _OTHER.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    one = match[0]
    return one if one.isprintable() else one.encode("unicode_escape").decode("ascii")
