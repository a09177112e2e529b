# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove secrets from lines of configuration files, by syntax. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .redact import (
    HEADERS,
    MARK,
    NOTHING,
    is_header_table,
    is_secret,
    may_name_secret,
    plain_names,
    redact,
    without_keys,
)

# A pair in a line of configuration, and where a table begins, also in a comment.
_PAIR = re.compile(r"""(?<![\w.-])([\w.-]+)(["']?[ \t]*(?:=+>?|:=?)[ \t]*)""")
# In YAML, two quotes in a string of single ones are one.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^']|'')*'")
_LONG_STRINGS = ('"""', "'''")
_BARE = re.compile(r"[^\s,}\]]+")
_WHOLE_LINE = re.compile(r".+", re.DOTALL)
_IN_FLOW = re.compile(r"[^,}\]]+")
# Values of these names have several words.
_HEADER_NAME = re.compile(r"authoriz|cookie", re.I)
_BEFORE_NAME = re.compile(r"""[\s#;"'-]*""")
_BRACKET = re.compile(r"[{}\[\]]")
_YAML_NAME = re.compile(r"""([ ]*(?:-[ ]+)?)["']?([\w.-]+)["']?:(?:[ ]|$)""")
# The members of a pair, which JSON has as YAML, and a key that has a line of its own.
_PAIR_MEMBER = re.compile(
    r"""([ ]*(?:-[ ]+)?)["']?(name|key|value)["']?:(?:[ ]+["']?([\w.-]*)|$)""", re.I | re.M
)
_QUESTION = re.compile(r"""([ ]*(?:-[ ]+)?)\?[ ]+["']?([\w.-]+)""")
_COMMENT = re.compile(r"[ \t]*[#;]+[ \t]*")
_TABLE = re.compile(r"[ \t]*\[{1,2}[^=\n]*\]")


def redact_lines(text: str) -> str:
    """Return lines of configuration without secrets, by syntax: a template, comments, INI.

    In a table of headers all values are covered. A value can go on in the next lines.
    """
    shown: list[str] = []
    headers = commented = False
    closing = ""
    for line in plain_names(without_keys(text)).splitlines(keepends=True):
        body = line.rstrip("\r\n")
        ending = line[len(body) :]
        if closing:
            end = body.find(closing)
            closing = closing if end < 0 else ""
            shown.append(f"{body[: len(body) - len(body.lstrip())]}{MARK}{ending}")
            continue
        if not body:
            commented = False
            shown.append(line)
            continue
        comment = _COMMENT.match(body)
        content = body[comment.end() :] if comment else body
        if not comment:
            commented = False
        if _TABLE.match(content):
            last = content.partition("]")[0].rpartition(".")[2].strip("[ \t\"'")
            if comment:
                commented = is_header_table(last)
            else:
                headers = is_header_table(last)
        covered, closing = _line(body, headers or (commented and comment is not None))
        shown.append(covered + ending)
    return "".join(shown)


def redact_yaml(text: str) -> str:
    """Return YAML without secrets: as lines, and of a secret also what is indented below it.

    In ``name: DB_PASSWORD`` and ``value: X`` the value is one, in any order, and in ``? token`` and
    ``: X``.
    """
    lines = redact_lines(without_keys(text)).splitlines(keepends=True)
    named = _named_values(lines)
    shown: list[str] = []
    below = asked = None
    for number, line in enumerate(lines):
        content = line.strip()
        indent = len(line) - len(line.lstrip())
        # A list can begin in the column of its name.
        if (
            below is not None
            and content
            and indent <= below
            and not (indent == below and content.startswith("- "))
        ):
            below = None
        if below is not None and content:
            shown.append(f"{line[:indent]}{MARK}\n")
            continue
        name = _YAML_NAME.match(line)
        covered = line
        if asked == indent and content.startswith(":"):
            covered, below = f"{line[:indent]}: {MARK}\n", indent
        elif name and number in named:
            covered, below = f'{line[: name.end()].rstrip()} "{MARK}"\n', len(name[1])
        elif name and (is_secret(name[2]) or is_header_table(name[2])):
            below = len(name[1])
        question = _QUESTION.match(line)
        asked = len(question[1]) if question and is_secret(question[2]) else None
        shown.append(covered)
    return "".join(shown)


def _named_values(lines: Sequence[str]) -> set[int]:
    """Return the lines with the value of a pair that has a secret's name, by their numbers."""
    found: set[int] = set()
    # Of each mapping around a line: its column, whether its name is one, and where its value is.
    around: list[tuple[int, bool, int | None]] = []
    for number, line in enumerate(lines):
        content = line.lstrip(" ")
        if not content.strip():
            continue
        while around and around[-1][0] > len(line) - len(content):
            around.pop()
        member = _PAIR_MEMBER.match(line)
        if not member:
            continue
        column, secret, value = len(member[1]), False, None
        if around and around[-1][0] == column:
            _column, secret, value = around.pop()
        if member[2].lower() == "value":
            value = number
        else:
            secret = is_secret(member[3])
        around.append((column, secret, value))
        if secret and value is not None:
            found.add(value)
    return found


def _line(line: str, all_names: bool) -> tuple[str, str]:
    """Return the redacted line, and the delimiter that ends a value which continues."""
    if not (all_names or may_name_secret(line) or "header" in line.lower()):
        return redact(line), ""
    parts: list[str] = []
    at = 0
    flow = _Flow(line)
    before = _BEFORE_NAME.match(line)
    first = before.end() if before else 0
    for pair in _PAIR.finditer(line):
        start = pair.end()
        if pair.start() < at or line.startswith("{{", start) or start == len(line):
            continue
        if not (_is_secret_path(pair[1]) or (all_names and "=" in pair[2])):
            continue
        bare = _bare(pair, flow.contains(pair.start()), pair.start() <= first)
        end, closing = _end_of_value(line, start, bare)
        if line[start:end] in NOTHING:
            # An empty value is not a secret.
            continue
        parts += [redact(line[at:start]), f'"{MARK}"']
        at = end
        if closing:
            return "".join(parts), closing
    return "".join([*parts, redact(line[at:])]), ""


def _is_secret_path(path: str) -> bool:
    return is_secret(path) or not HEADERS.isdisjoint(path.lower().split("."))


class _Flow:
    """Whether places of a line, asked from left to right, are in brackets.

    Each character is counted once: a line of a server can be of any length.
    """

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._open = 0

    def contains(self, place: int) -> bool:
        for bracket in _BRACKET.finditer(self._line, self._at, place):
            self._open += 1 if bracket[0] in "{[" else -1
        self._at = place
        return self._open > 0


def _bare(pair: re.Match[str], in_flow: bool, first: bool) -> re.Pattern[str]:
    """Return what belongs to the value if it has no quotes: one word, or all that follows.

    :param first: whether the name is the first one of its line.
    """
    if _HEADER_NAME.search(pair[1]):
        return _WHOLE_LINE
    if in_flow:
        return _IN_FLOW
    return _WHOLE_LINE if first or pair[2].rstrip(" \t") != pair[2] else _BARE


def _end_of_value(line: str, start: int, bare: re.Pattern[str]) -> tuple[int, str]:
    """Return where the value ends; and if that is in another line, by what.

    :param bare: the value if it has no quotes.
    """
    for quotes in _LONG_STRINGS:
        if line.startswith(quotes, start):
            end = line.find(quotes, start + len(quotes))
            return (len(line), quotes) if end < 0 else (end + len(quotes), "")
    string = _STRING.match(line, start)
    if string:
        return string.end(), ""
    for opening, closing in ("[]", "{}"):
        if line[start] == opening:
            # None of what is in it is shown, nor what follows it in this line.
            end = line.rfind(closing)
            return (end + 1, "") if end > start else (len(line), closing)
    if line[start] in "\"'":
        # A quote without its end.
        return len(line), ""
    found = bare.match(line, start)
    return (found.end() if found else len(line)), ""
