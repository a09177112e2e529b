# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove secrets from lines of configuration files, by syntax. Pure."""

from __future__ import annotations

import re

from .redact import HEADERS, MARK, NOTHING, is_header_table, is_secret, redact, without_keys

# A pair in a line of configuration, and where a table begins, also in a comment.
_PAIR = re.compile(r"""(?<![\w.-])([\w.-]+)(["']?[ \t]*[=:][ \t]*)""")
# In YAML, two quotes in a string of single ones are one.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^']|'')*'")
_LONG_STRINGS = ('"""', "'''")
_BARE = re.compile(r"[^\s,}\]]+")
_WHOLE_LINE = re.compile(r".+", re.DOTALL)
_IN_FLOW = re.compile(r"[^,}\]]+")
# Values of these names have several words.
_HEADER_NAME = re.compile(r"authoriz|cookie", re.I)
_BEFORE_NAME = re.compile(r"""[\s#;"'-]*""")
_YAML_NAME = re.compile(r"""([ ]*(?:-[ ]+)?)["']?([\w.-]+)["']?:(?:[ ]|$)""")
_COMMENT = re.compile(r"[ \t]*[#;]+[ \t]*")
_TABLE = re.compile(r"[ \t]*\[{1,2}[^=\n]*\]")


def redact_lines(text: str) -> str:
    """Return lines of configuration without secrets, by syntax: a template, comments, INI.

    In a table of headers all values are covered. A value can go on in the next lines.
    """
    shown: list[str] = []
    headers = commented = False
    closing = ""
    for line in without_keys(text).splitlines(keepends=True):
        body = line.rstrip("\r\n")
        ending = line[len(body) :]
        if closing:
            end = body.find(closing)
            closing = closing if end < 0 else ""
            shown.append(f"{body[: len(body) - len(body.lstrip())]}{MARK}{ending}")
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
    """Return YAML without secrets: as lines, and of a secret also what is indented below it."""
    text = without_keys(text)
    shown: list[str] = []
    below: int | None = None
    for line in redact_lines(text).splitlines(keepends=True):
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
        shown.append(line)
        name = _YAML_NAME.match(line)
        if name and (is_secret(name[2]) or is_header_table(name[2])):
            below = len(name[1])
    return "".join(shown)


def _line(line: str, all_names: bool) -> tuple[str, str]:
    """Return the redacted line, and the delimiter that ends a value which continues."""
    parts: list[str] = []
    at = 0
    for pair in _PAIR.finditer(line):
        start = pair.end()
        if pair.start() < at or line.startswith("{{", start) or start == len(line):
            continue
        if not (_is_secret_path(pair[1]) or (all_names and "=" in pair[2])):
            continue
        end, closing = _end_of_value(line, start, _bare(line, pair))
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


def _bare(line: str, pair: re.Match[str]) -> re.Pattern[str]:
    """Return what belongs to the value if it has no quotes: one word, or all that follows."""
    if _HEADER_NAME.search(pair[1]):
        return _WHOLE_LINE
    before = line[: pair.start()]
    if sum(map(before.count, "{[")) > sum(map(before.count, "}]")):
        return _IN_FLOW
    first = _BEFORE_NAME.fullmatch(before) is not None
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
