# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The known name that somebody may have meant. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

# A word that turns a name into its opposite: its value means the reverse.
_NEGATIONS = frozenset(
    {
        *("absent", "avoid", "block", "deny", "disable", "disabled", "disallow", "except"),
        *("exclude", "forbid", "ignore", "keep", "less", "never", "no", "non", "none", "not"),
        *("off", "omit", "prevent", "purge", "remove", "skip", "stop", "suppress", "without"),
    }
)
_PREFIXES = ("un", "dis", "de", "non", "no", "in", "im")
# Similarity of two words, from 0 to 1, from which one is the other with a typing error.
_SAME_WORD = 0.75
_WORDS = re.compile(r"[^a-zA-Z]+|(?<=[a-z])(?=[A-Z])")
# Letters of a word that a prefix of negation is put before.
_SHORTEST = 3
# So many similar names are looked at.
_MOST = 5


def most_similar(name: str, known: Iterable[str], cutoff: float) -> str | None:
    """Return the known name that is most similar to another one, and does not mean its opposite.

    :param cutoff: similarity, from 0 to 1, below which none is returned.
    """
    close = difflib.get_close_matches(name, list(known), _MOST, cutoff)
    return next((one for one in close if not is_opposite(name, one)), None)


def is_opposite(name: str, other: str) -> bool:
    """Return whether only one of two names has a word of negation, mistyped or not."""
    words, others = _words(name), _words(other)
    rest = [*_without_partner(words, others), *_without_partner(others, words)]
    return any(_is_negation(word) for word in rest) or any(
        _negates(one, two) or _negates(two, one) for one in words for two in others
    )


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.split(name) if word]


def _without_partner(words: Sequence[str], others: Sequence[str]) -> list[str]:
    return [word for word in words if not any(_is_same(word, one) for one in others)]


def _is_same(word: str, other: str) -> bool:
    return word == other or difflib.SequenceMatcher(None, word, other).ratio() >= _SAME_WORD


def _is_negation(word: str) -> bool:
    return any(_is_same(word, one) for one in _NEGATIONS)


def _negates(word: str, other: str) -> bool:
    """Return whether a word is another one with a prefix of negation, such as ``unhold``."""
    rests = [
        word[len(prefix) :]
        for prefix in _PREFIXES
        if word.startswith(prefix) and not other.startswith(prefix)
    ]
    return any(len(rest) >= _SHORTEST and _is_same(rest, other) for rest in rests)
