# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scans TOML text into keys, values and tables with their positions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from .._core.errors import InputError

Path = tuple[str, ...]

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
ESCAPES = {
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    '"': '"',
    "\\": "\\",
}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_MAX_DEPTH = 200


@dataclass(frozen=True)
class Pair:
    """``key = value``, also inside an inline table (``inline``).

    ``path`` is absolute; ``start`` and ``end`` delimit whole lines (the bare pair if inline).
    """

    path: Path
    key: Path
    start: int
    end: int
    key_start: int
    value_start: int
    value_end: int
    inline: bool = False


@dataclass(frozen=True)
class Header:
    """``[table]`` or ``[[table]]``; ``end`` is the end of its line."""

    path: Path
    start: int
    end: int
    key_start: int
    array: bool


@dataclass(frozen=True)
class Section:
    """A header with the pairs below it; the first section has no header."""

    header: Header | None
    pairs: tuple[Pair, ...]

    @property
    def path(self) -> Path:
        return self.header.path if self.header else ()

    @property
    def end(self) -> int:
        """Position after the line of the last statement."""
        if self.pairs:
            return self.pairs[-1].end
        return self.header.end if self.header else 0


class Scanner:
    """Reads characters. It is lenient, because a parser has read the text before."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def fail(self, what: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        raise InputError(
            f"The TOML text cannot be read: {what}.",
            evidence=f"line {line}: {self.text.splitlines()[line - 1 : line]}",
            next_step="Correct the file and run again.",
        )

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def skip_blank(self) -> None:
        while self.peek() and self.peek() in " \t":
            self.at += 1

    def skip_space(self) -> None:
        """Skip white space, line ends and comments, as inside an array."""
        while self.peek():
            if self.peek() in " \t\r\n":
                self.at += 1
            elif self.peek() == "#":
                self.skip_comment()
            else:
                return

    def skip_comment(self) -> None:
        while self.peek() and self.peek() not in "\r\n":
            self.at += 1

    def end_line(self) -> None:
        """Skip what can follow a statement, including the line end."""
        self.skip_blank()
        if self.peek() == "#":
            self.skip_comment()
        if self.peek(2) == "\r\n":
            self.at += 2
        elif self.peek() == "\n":
            self.at += 1
        elif self.peek():
            self.fail(f"unexpected {self.peek()!r}")

    def key(self) -> Path:
        parts = [self.key_part()]
        while True:
            mark = self.at
            self.skip_blank()
            if self.peek() != ".":
                self.at = mark
                return tuple(parts)
            self.at += 1
            self.skip_blank()
            parts.append(self.key_part())

    def key_part(self) -> str:
        if self.peek() in ('"', "'") and self.peek():
            return self.string()
        match = BARE_KEY.match(self.text, self.at)
        if match is None:
            self.fail("a key is missing")
        self.at = match.end()
        return match.group()

    def string(self) -> str:
        """Read a single-line string and return its value."""
        quote = self.peek()
        self.at += 1
        parts = []
        while self.peek() != quote:
            char = self.peek()
            if not char or char in "\r\n":
                self.fail("a string has no end")
            self.at += 1
            if char == "\\" and quote == '"':
                char = self.escape()
            parts.append(char)
        self.at += 1
        return "".join(parts)

    def escape(self) -> str:
        kind = self.peek()
        self.at += 1
        if kind in _HEX_DIGITS:
            digits = self.peek(_HEX_DIGITS[kind])
            self.at += len(digits)
            try:
                return chr(int(digits, 16))
            except ValueError:
                self.fail("a wrong escape")
        if kind not in ESCAPES:
            self.fail("a wrong escape")
        return ESCAPES[kind]

    def value(self) -> None:
        """Skip one value."""
        for quote in ('"""', "'''"):
            if self.peek(3) == quote:
                self.multi_line(quote)
                return
        if self.peek() in ('"', "'") and self.peek():
            self.string()
        elif self.peek() in ("[", "{"):
            self.nested()
        else:
            match = _BARE_VALUE.match(self.text, self.at)
            if match is None or not match.group().strip():
                self.fail("a value is missing")
            self.at += len(match.group().rstrip())

    def nested(self) -> None:
        """Skip an array or an inline table."""
        if self.depth == _MAX_DEPTH:
            line = self.text.count("\n", 0, self.at) + 1
            raise InputError(
                "The TOML text cannot be read: values are nested too deep.",
                evidence=f"line {line}: more than {_MAX_DEPTH} arrays and tables in each other",
                next_step="Correct the file and run again.",
            )
        self.depth += 1
        for _inner in self.elements() if self.peek() == "[" else self.inline_pairs(()):
            pass
        self.depth -= 1

    def multi_line(self, quote: str) -> None:
        self.at += 3
        while True:
            if not self.peek():
                self.fail("a string has no end")
            if self.peek(3) == quote:
                self.at += 3
                # Up to two more quotes belong to the string itself.
                while self.peek() == quote[0]:
                    self.at += 1
                return
            self.at += 2 if self.peek() == "\\" and quote == '"""' else 1

    def elements(self) -> Iterator[tuple[int, int]]:
        """Read an array and yield start and end of each element."""
        self.at += 1
        while True:
            self.skip_space()
            if self.peek() == "]":
                self.at += 1
                return
            start = self.at
            self.value()
            yield start, self.at
            self.skip_space()
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != "]":
                self.fail("an array has no end")

    def inline_pairs(self, base: Path) -> Iterator[Pair]:
        """Read an inline table and yield its pairs."""
        self.at += 1
        while True:
            self.skip_space()
            if self.peek() == "}":
                self.at += 1
                return
            start = self.at
            key, value_start = self.key_and_equals()
            self.value()
            yield Pair(base + key, key, start, self.at, start, value_start, self.at, inline=True)
            self.skip_space()
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != "}":
                self.fail("an inline table has no end")

    def key_and_equals(self) -> tuple[Path, int]:
        key = self.key()
        self.skip_blank()
        if self.peek() != "=":
            self.fail("'=' is missing")
        self.at += 1
        self.skip_blank()
        return key, self.at
