# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads TOML that tools write, also where Python has no parser (before 3.11). Pure.

It supports the output of ``containerd config dump`` and the files of the container toolkit: tables,
arrays of tables, strings, numbers, booleans, arrays and inline tables. Dates and multi-line strings
are returned as text. It is not used for edits.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

#: A mark of the byte order, which editors of Windows put before the text.
BOM = "\ufeff"

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"'''(.*?)'''|'([^'\n]*)'", re.DOTALL)
_BASIC = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
_BARE_VALUE = re.compile(r"[^,\]}#\s]+")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
# As in JSON (_formats/json_edit.py); real files are far below this.
_MAX_DEPTH = 200
_NUMBER_BASES = {"0x": 16, "0o": 8, "0b": 2}


def read_toml(text: str) -> dict[str, Any]:
    """Return the data of ``text``, read by Python's parser if there is one.

    :raises ValueError: the text is not TOML, or the fallback does not support it.
    """
    try:
        parse = importlib.import_module("tomllib").loads
    except ImportError:
        parse = read_regular_toml
    return limited(parse)(text)


def limited(parse: Callable[[str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    """Return the parser with a limit: it raises ValueError if values are nested too deep."""

    def read(text: str) -> dict[str, Any]:
        too_deep = f"values are nested more than {_MAX_DEPTH} deep"
        try:
            data = parse(text)
        except RecursionError as error:
            raise ValueError(too_deep) from error
        level: list[Any] = [data]
        for _depth in range(_MAX_DEPTH + 1):
            level = [
                inner
                for value in level
                for inner in (value.values() if isinstance(value, dict) else value)
                if isinstance(inner, (dict, list))
            ]
            if not level:
                return data
        raise ValueError(too_deep)

    return read


def read_regular_toml(text: str) -> dict[str, Any]:
    """Return the data of ``text``, read by the fallback."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text.lstrip("\ufeff")
        self.at = 0

    def read(self) -> dict[str, Any]:
        root: dict[str, Any] = {}
        table = root
        self._skip(_SPACE)
        while self.at < len(self.text):
            if self._take("[["):
                path = self._path()
                self._expect("]]")
                table = {}
                _table(root, path[:-1]).setdefault(path[-1], []).append(table)
            elif self._take("["):
                table = _table(root, self._path())
                self._expect("]")
            else:
                self._pair(table)
            self._skip(_SPACE)
        return root

    def _pair(self, table: dict[str, Any]) -> None:
        path = self._path()
        self._expect("=")
        self._skip(_BLANK)
        owner = _table(table, path[:-1])
        if path[-1] in owner:
            raise self._error(f"{path[-1]} occurs twice")
        owner[path[-1]] = self._value()

    def _path(self) -> list[str]:
        path = [self._key()]
        while self._take("."):
            path.append(self._key())
        return path

    def _key(self) -> str:
        self._skip(_BLANK)
        bare = _BARE_KEY.match(self.text, self.at)
        if bare:
            self.at = bare.end()
            key = bare.group()
        elif self.text[self.at : self.at + 1] in ("'", '"'):
            key = self._string()
        else:
            raise self._error("no key")
        self._skip(_BLANK)
        return key

    def _value(self) -> Any:
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return self._string()
        if self._take("["):
            return self._array()
        if self._take("{"):
            return self._inline_table()
        bare = _BARE_VALUE.match(self.text, self.at)
        if not bare:
            raise self._error("no value")
        self.at = bare.end()
        return _scalar(bare.group())

    def _array(self) -> list[Any]:
        values = []
        self._skip(_SPACE)
        while not self._take("]"):
            values.append(self._value())
            self._skip(_SPACE)
            if not self._take(",") and self.text[self.at : self.at + 1] != "]":
                raise self._error("an array without an end")
            self._skip(_SPACE)
        return values

    def _inline_table(self) -> dict[str, Any]:
        table: dict[str, Any] = {}
        self._skip(_SPACE)
        while not self._take("}"):
            self._pair(table)
            self._skip(_SPACE)
            if not self._take(",") and self.text[self.at : self.at + 1] != "}":
                raise self._error("an inline table without an end")
            self._skip(_SPACE)
        return table

    def _string(self) -> str:
        literal = self.text[self.at] == "'"
        match = (_LITERAL if literal else _BASIC).match(self.text, self.at)
        if not match:
            raise self._error("a string without an end")
        self.at = match.end()
        long, short = match.groups()
        value: str = short if long is None else long.lstrip("\n")
        return value if literal else _ESCAPE.sub(_unescaped, value)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()

    def _take(self, word: str) -> bool:
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._error(f"no {word}")

    def _error(self, what: str) -> ValueError:
        return ValueError(f"line {self.text.count(chr(10), 0, self.at) + 1}: {what}")


def _table(root: dict[str, Any], path: list[str]) -> dict[str, Any]:
    table = root
    for key in path:
        found = table.setdefault(key, {})
        if isinstance(found, list) and found:
            found = found[-1]
        if not isinstance(found, dict):
            raise ValueError(f"{key} is a value and a table")
        table = found
    return table


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, "")


def _scalar(word: str) -> Any:
    if word in ("true", "false"):
        return word == "true"
    plain = word.replace("_", "")
    try:
        if plain[:2] in _NUMBER_BASES:
            return int(plain[2:], _NUMBER_BASES[plain[:2]])
        return int(plain)
    except ValueError:
        pass
    try:
        return float(plain)
    except ValueError:
        return word
