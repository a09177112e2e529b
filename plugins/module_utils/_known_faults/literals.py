# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words of which a text has at least one if a regular expression matches it. Pure.

A search for a few words costs a hundredth of a search with an expression, and most texts have the
words of few rules. Only what the rules use of regular expressions is understood; for anything else
no words are returned, so that the expression itself is tried.
"""

from __future__ import annotations

from typing import NamedTuple

Words = frozenset[str]
_NONE: Words = frozenset()
# Shorter words are in most texts.
_SHORTEST = 3
_CLASSES = frozenset("sSdDwWbBZA")


class _Part(NamedTuple):
    """Words of a part of an expression, and the character that it is, if it is just one."""

    words: Words = _NONE
    character: str = ""


def required(pattern: str) -> Words:
    """Return words in lower case of which each match has one; empty if none can be named."""
    words, _end = _branches(pattern, 0)
    return words


def _branches(pattern: str, place: int) -> tuple[Words, int]:
    """Return the words of the alternatives from a place on, and where they end."""
    found: set[str] = set()
    known = True
    while True:
        words, place = _sequence(pattern, place)
        known = known and bool(words)
        found |= words
        if place >= len(pattern) or pattern[place] == ")":
            return (frozenset(found) if known else _NONE), place
        place += 1


def _sequence(pattern: str, place: int) -> tuple[Words, int]:
    """Return the best words of one alternative."""
    best, run = _NONE, ""
    while place < len(pattern) and pattern[place] not in "|)":
        part, place = _part(pattern, place)
        least, place = _repeats(pattern, place)
        if part.character and least == 1:
            run += part.character
            continue
        # A character that is repeated ends the word, and is part of it if it must be there.
        best = _better(best, _word(run + (part.character if least else "")))
        run = ""
        if least:
            best = _better(best, part.words)
    return _better(best, _word(run)), place


def _part(pattern: str, place: int) -> tuple[_Part, int]:
    """Return one part: a group, a class of characters, or a character."""
    sign = pattern[place]
    if sign == "(":
        return _group(pattern, place + 1)
    if sign == "[":
        return _Part(), _end_of_class(pattern, place)
    if sign == "\\":
        escaped = pattern[place + 1]
        plain = not (escaped in _CLASSES or escaped.isalnum())
        return _Part(character=escaped if plain else ""), place + 2
    return _Part(character="" if sign in ".^$" else sign.lower()), place + 1


def _group(pattern: str, place: int) -> tuple[_Part, int]:
    inside = place
    if pattern.startswith("?P<", place):
        inside = pattern.index(">", place) + 1
    elif pattern.startswith("?:", place):
        inside = place + 2
    elif pattern[place] == "?":
        # Looking around, flags: nothing of it has to be part of the match.
        inside = pattern.index(pattern[place + 1], place) + 1
        _words, end = _branches(pattern, inside)
        return _Part(), end + 1
    words, end = _branches(pattern, inside)
    return _Part(words), end + 1


def _end_of_class(pattern: str, place: int) -> int:
    place += 2 if pattern[place + 1] == "^" else 1
    # A bracket that comes first is a character of the class.
    place += 1 if pattern[place] == "]" else 0
    while pattern[place] != "]":
        place += 2 if pattern[place] == "\\" else 1
    return place + 1


def _repeats(pattern: str, place: int) -> tuple[int, int]:
    """Return how often a part is there at least (2: more than once), and where that ends."""
    least, sign = 1, pattern[place : place + 1]
    if sign in ("?", "*"):
        least, place = 0, place + 1
    elif sign == "+":
        least, place = 2, place + 1
    elif sign == "{" and pattern[place + 1].isdigit():
        end = pattern.index("}", place)
        count = int(pattern[place + 1 : end].partition(",")[0])
        least, place = (0 if count == 0 else 2), end + 1
    else:
        return 1, place
    return least, place + (pattern[place : place + 1] == "?")


def _word(run: str) -> Words:
    return frozenset([run]) if len(run) >= _SHORTEST else _NONE


def _better(one: Words, other: Words) -> Words:
    """Return the words of which the shortest is longer."""
    if not one or not other:
        return one or other
    return max(one, other, key=lambda words: min(map(len, words)))
