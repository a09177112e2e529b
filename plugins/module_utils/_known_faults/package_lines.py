# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a package manager's output that show why it failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Lines about dependencies name the packages; the error comes after them.
RELATION = (
    r"\b(?:Depends|PreDepends|Pre-Depends|Conflicts|Breaks|Recommends): "
    r"|^ *(?:- |Problem)|requires |but \S+ is to be installed"
)


def relevant_lines(output: str, pattern: str = r"\Z.", more: Sequence[str] = ()) -> str:
    """Return the lines that are errors or match the pattern, each once; else the last lines.

    :param more: further lines, which are added unless they are among them.
    """
    lines = [
        line.strip()
        for line in output.splitlines()
        if re.match(r"\s*(?:E:|Err:|W:|dpkg: error|error)", line)
        or re.search(pattern, line, re.IGNORECASE)
        or line.strip() in more
    ]
    return "\n".join(dict.fromkeys((*(lines or output.strip().splitlines()[-8:]), *more)))
