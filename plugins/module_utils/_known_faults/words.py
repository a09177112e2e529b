# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fill in the words of a text into what is said about it. Pure."""

from __future__ import annotations

import re

from .reader import near_address


class _Groups(dict[str, str]):
    """Named groups for a text; one without a match is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def groups(match: re.Match[str]) -> dict[str, str]:
    """Return the named groups that have a value; an address also from the lines around."""
    found = {name: value for name, value in match.groupdict().items() if value}
    if "address" in match.re.groupindex and "address" not in found:
        near = near_address(match.string, match.start())
        found.update({"address": near} if near else {})
    return found


def filled_in(sentence: str, match: re.Match[str]) -> str:
    """Return a sentence with the named groups in place of their names in braces."""
    said = sentence.format_map(_Groups(groups(match)))
    # A name that the text did not have leaves blanks behind, or a bracket without it.
    said = re.sub(r" \((?:[a-z]{1,20} )?\)", "", said)
    return re.sub(r" +(?=[,.:;](?:\s|$))", "", re.sub(r" {2,}", " ", said))
