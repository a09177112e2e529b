# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The message of a finding, an error or a layer: one form for all that shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: The titles of the parts that follow the cause, in their order.
TITLES: Mapping[str, str] = {
    "evidence": "Seen",
    "next_step": "Next step",
    "fix": "Fix",
    "follows": "Follows from it",
}
#: Ends the message of a task that only repeats that a host failed.
ABOVE = "The whole message is in the output above."
#: What an error has of them.
ERROR_PARTS = ("evidence", "next_step")


def titled(parts: Mapping[str, Any], names: Iterable[str] = TITLES) -> Iterator[tuple[str, str]]:
    """Yield title and text of each part that has a value; of a list, each text.

    :param parts: texts by the names of the fields of a finding.
    """
    for name in names:
        value = parts.get(name) or ()
        for text in (value,) if isinstance(value, str) else value:
            yield TITLES[name], str(text)


def message(
    parts: Mapping[str, Any],
    *,
    head: str = "",
    names: Iterable[str] = ERROR_PARTS,
    between: str = "\n",
    flat: bool = False,
) -> str:
    """Return cause, evidence and next step as a text, with a line for each.

    :param head: the first line instead of the cause.
    :param names: the parts that are shown after it.
    :param flat: whether each part is one line.
    """
    lines = [head or str(parts.get("cause") or "")]
    lines += [f"{title}: {text}" for title, text in titled(parts, names)]
    return between.join(" ".join(line.split()) if flat else line.rstrip() for line in lines)
