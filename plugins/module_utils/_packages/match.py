# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a package is one that is meant: by patterns of names, by a version with a ``*``."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence


def covers(patterns: Sequence[str], name: str) -> bool:
    """Return whether a name is one of those that the patterns mean."""
    return any(
        fnmatch.fnmatchcase(name, pattern) for pattern in patterns if pattern[0] != "!"
    ) and not any(
        fnmatch.fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern[0] == "!"
    )


def fits(wanted: str | None, version: str | None) -> bool:
    """Return whether a version is the one that is asked for."""
    if wanted is None or version is None:
        return version is not None
    prefix, star, ending = wanted.partition("*")
    if not star:
        return wanted == version
    plain = version if ":" in prefix else version.rpartition(":")[2]
    rest = plain[len(prefix) :]
    # 595.5* is not 595.58: a number is meant whole.
    whole = not (prefix[-1:].isdigit() and rest[:1].isdigit())
    return plain.startswith(prefix) and rest.endswith(ending) and whole
