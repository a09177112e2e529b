# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of others as they may be shown on a terminal.

Who may start a process on a node chooses its name, and root of a node what all of its files and
programs say. A terminal obeys what such a text contains: sequences that begin with ESC or with a C1
code clear the screen, hide or rewrite what stands there (ECMA-48, section 8.3), and Unicode's
bidirectional controls show a text in another order (UAX #9; CVE-2021-42574).
"""

from __future__ import annotations

_KEPT = "\n\t"


def printable(text: str) -> str:
    """Return the text with an escape, such as ``\\x1b``, for each character that is not printable.

    Those are the control codes (C0, DEL, C1), format characters (bidirectional controls, zero
    width), separators of lines and paragraphs, spaces other than the usual one, surrogates, and
    what Unicode does not assign. Line feeds and tabs stay; CR LF becomes a line feed.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in _KEPT else one.encode("unicode_escape").decode("ascii")
        for one in text.replace("\r\n", "\n")
    )
