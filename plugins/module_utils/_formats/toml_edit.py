# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits TOML text and preserves all other bytes. Pure.

The text is scanned into statements with positions; an edit replaces characters or inserts lines.
This file does not interpret values: callers parse the text before and after the edit with a TOML
parser and compare the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

from .._core.errors import InputError
from .toml_read import BOM
from .toml_scan import BARE_KEY, ESCAPES, Header, Pair, Path, Scanner, Section


class Document:
    """TOML text. Each edit returns a new document."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        scanner = Scanner(self.text)
        if scanner.peek() == BOM:
            scanner.at += 1
        sections: list[Section] = []
        header: Header | None = None
        pairs: list[Pair] = []
        arrays: dict[Path, int] = {}
        while scanner.peek():
            start = scanner.at
            scanner.skip_blank()
            if not scanner.peek() or scanner.peek() in "#\r\n":
                scanner.end_line()
            elif scanner.peek() == "[":
                sections.append(Section(header, tuple(pairs)))
                header, pairs = self._header(scanner, start, arrays), []
            else:
                key_start = scanner.at
                key, value_start = scanner.key_and_equals()
                scanner.value()
                value_end = scanner.at
                scanner.end_line()
                path = (header.path if header else ()) + key
                pairs.append(Pair(path, key, start, scanner.at, key_start, value_start, value_end))
        sections.append(Section(header, tuple(pairs)))
        return tuple(sections)

    @staticmethod
    def _header(scanner: Scanner, start: int, arrays: dict[Path, int]) -> Header:
        key_start = scanner.at
        array = scanner.peek(2) == "[["
        scanner.at += 2 if array else 1
        scanner.skip_blank()
        key = scanner.key()
        scanner.skip_blank()
        closing = "]]" if array else "]"
        if scanner.peek(len(closing)) != closing:
            scanner.fail(f"{closing} is missing")
        scanner.at += len(closing)
        scanner.end_line()
        path: Path = ()
        for index, part in enumerate(key):
            path += (part,)
            if array and index == len(key) - 1:
                arrays[path] = arrays.get(path, -1) + 1
            if path in arrays:
                # Not a valid key, so a table below an array never equals another table.
                path += (f"\0{arrays[path]}",)
        return Header(path, start, scanner.at, key_start, array)

    @property
    def newline(self) -> str:
        first = self.text.find("\n")
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(pair for section in self.sections for pair in section.pairs)

    def find(self, path: Path) -> Pair | None:
        """Return the pair that sets ``path`` itself, also in an inline table."""
        for pair in self.pairs:
            found = self._find_in(pair, path)
            if found is not None:
                return found
        return None

    def _find_in(self, pair: Pair, path: Path) -> Pair | None:
        if pair.path == path:
            return pair
        if path[: len(pair.path)] != pair.path or not self.is_inline_table(pair):
            return None
        for inner in self.inline_pairs(pair):
            found = self._find_in(inner, path)
            if found is not None:
                return found
        return None

    def is_inline_table(self, pair: Pair) -> bool:
        return self.text[pair.value_start] == "{"

    def inline_pairs(self, pair: Pair) -> list[Pair]:
        scanner = Scanner(self.text)
        scanner.at = pair.value_start
        return list(scanner.inline_pairs(pair.path))

    def literal(self, pair: Pair) -> str:
        return self.text[pair.value_start : pair.value_end]

    # -- edits ---------------------------------------------------------------------------------

    def set(self, path: Path, value: Any) -> Document:
        """Return the document with ``path`` set to ``value`` (a scalar or a list of scalars).

        :raises InputError: the path leads through a value or an array of tables.
        """
        pair = self.find(path)
        if pair is not None:
            return self._cut(pair.value_start, pair.value_end, render(value, self.quote))
        for length in range(len(path) - 1, -1, -1):
            edited = self._set_below(path, path[:length], value)
            if edited is not None:
                return edited
        return self._add_table(path[:-1], path[-1], value)

    def _set_below(self, path: Path, known: Path, value: Any) -> Document | None:
        """Return the edit where ``known`` is the deepest table that exists, or None."""
        rest = path[len(known) :]
        holder = self.find(known) if known else None
        if holder is not None:
            if not self.is_inline_table(holder):
                self._refuse(known, "is not a table")
            return self._add_inline(holder, rest, value)
        if not known:
            return self._add_root(path[0], value) if len(path) == 1 else None
        for section in self.sections:
            if section.path[: len(known) + 1] == (*known, "\0" + "0"):
                self._refuse(known, "is an array of tables")
        for section in self.sections:
            if section.header is not None and section.path == known and len(rest) == 1:
                return self._add_pair(section, section.end, (path[-1],), value)
        for section in reversed(self.sections):
            depth = len(section.path)
            if depth >= len(known):
                continue
            # Defined by dotted keys: a table header for it would not be valid TOML.
            dotted = [pair for pair in section.pairs if pair.path[: len(known)] == known]
            if dotted:
                return self._add_pair(section, dotted[-1].end, path[depth:], value)
        if len(rest) > 1 and any(
            section.header is not None and section.path[: len(known)] == known
            for section in self.sections
        ):
            return self._add_table(path[:-1], path[-1], value)
        return None

    @staticmethod
    def _refuse(path: Path, why: str) -> NoReturn:
        raise InputError(
            f"The key {render_path(path)} {why}, so nothing can be put into it.",
            next_step="Write it as a table, then run again.",
        )

    def _add_inline(self, holder: Pair, rest: Path, value: Any) -> Document:
        literal = render(value, self.quote)
        for part in reversed(rest[1:]):
            literal = f"{{ {render_key(part, self.quote)} = {literal} }}"
        new = f"{render_key(rest[0], self.quote)} = {literal}"
        pairs = self.inline_pairs(holder)
        if pairs:
            return self._cut(pairs[-1].end, pairs[-1].end, f", {new}")
        return self._cut(holder.value_start, holder.value_end, f"{{ {new} }}")

    def _add_root(self, key: str, value: Any) -> Document:
        root = self.sections[0]
        if root.pairs:
            return self._add_pair(root, root.end, (key,), value)
        at = 1 if self.text.startswith(BOM) else 0
        line = f"{render_key(key, self.quote)} = {render(value, self.quote)}{self.newline}"
        return self._cut(at, at, line)

    def _add_pair(self, section: Section, at: int, key: Path, value: Any) -> Document:
        line = (
            f"{self._pair_indent(section)}{render_path(key, self.quote)} = "
            f"{render(value, self.quote)}{self.newline}"
        )
        return self._insert_lines(at, line)

    def _add_table(self, table: Path, key: str, value: Any) -> Document:
        at, indent = self._place(table)
        pair_indent = indent + self._extra_indent()
        lines = [
            f"{indent}[{render_path(table, self.quote)}]",
            f"{pair_indent}{render_key(key, self.quote)} = {render(value, self.quote)}",
        ]
        above = self.text[:at].splitlines()
        if above and above[-1].strip(" \t" + BOM):
            lines.insert(0, "")
        below = self.text[at:]
        block = self.newline.join(lines) + self.newline
        if below and not below.lstrip(" \t").startswith(("\r", "\n")):
            block += self.newline
        return self._insert_lines(at, block)

    def _place(self, table: Path) -> tuple[int, str]:
        """Return position and indentation of a new table."""
        best, at = 1, len(self.text)
        for section in self.sections:
            if section.header is None:
                continue
            shared = _shared(section.path, table)
            if shared > 1 and shared >= best:
                best, at = shared, self._section_end(section)
        indent = ""
        headers = [section.header for section in self.sections if section.header]
        siblings = [header for header in headers if header.path[:-1] == table[:-1]]
        ancestors = [header for header in headers if table[: len(header.path)] == header.path]
        if siblings:
            indent = self.text[siblings[-1].start : siblings[-1].key_start]
        elif ancestors and any(header.key_start > header.start for header in headers):
            nearest = max(ancestors, key=lambda header: len(header.path))
            step = "\t" if "\n\t" in self.text else "  "
            indent = self.text[nearest.start : nearest.key_start]
            indent += step * (len(table) - len(nearest.path))
        return at, indent

    def _section_end(self, section: Section) -> int:
        """Return the end of a section, including the comments at its end.

        A comment directly above the next header belongs to that header.
        """
        at = section.end
        for line in self.text[at:].splitlines(keepends=True):
            text = line.strip()
            if not text:
                return at
            if not text.startswith("#"):
                return section.end
            at += len(line)
        return at

    def _pair_indent(self, section: Section) -> str:
        if section.pairs:
            last = section.pairs[-1]
            return self.text[last.start : last.key_start]
        if section.header is None:
            return ""
        own = self.text[section.header.start : section.header.key_start]
        return own + self._extra_indent()

    def _extra_indent(self) -> str:
        """Return the indentation of pairs relative to their header in this file."""
        for section in reversed(self.sections):
            if section.header is not None and section.pairs:
                header = self.text[section.header.start : section.header.key_start]
                pair = self.text[section.pairs[0].start : section.pairs[0].key_start]
                return pair[len(header) :] if pair.startswith(header) else ""
        return ""

    @property
    def quote(self) -> str:
        """The quote character that the file uses for keys of plugins."""
        return "'" if "plugins.'" in self.text else '"'

    def delete(self, path: Path) -> Document:
        """Return the document without ``path``, a value or a table with all its content."""
        document = self
        while True:
            shorter = document._delete_one(path)
            if shorter is None:
                return document
            document = shorter

    def _delete_one(self, path: Path) -> Document | None:
        for section in reversed(self.sections):
            for pair in reversed(section.pairs):
                if pair.path[: len(path)] == path:
                    return self._cut(pair.start, pair.end, "")
                found = self._find_in(pair, path)
                if found is not None:
                    return self._delete_inline(found)
            if section.header is not None and section.path[: len(path)] == path:
                return self._delete_header(section.header)
        return None

    def _delete_header(self, header: Header) -> Document:
        start = header.start
        above = self.text[:start].splitlines(keepends=True)
        below = self.text[header.end :].splitlines()
        # Remove the blank line above too, unless that would join two other paragraphs.
        if above and not above[-1].strip() and (not below or not below[0].strip()):
            start -= len(above[-1])
        return self._cut(start, header.end, "")

    def _delete_inline(self, pair: Pair) -> Document:
        return self._delete_member(pair.start, pair.end)

    def _delete_member(self, start: int, end: int) -> Document:
        """Return the document without one member of a list, and without one comma."""
        scanner = Scanner(self.text)
        scanner.at = end
        scanner.skip_space()
        if scanner.peek() == ",":
            scanner.at += 1
            scanner.skip_blank()
            line_start = self.text.rfind("\n", 0, start) + 1
            if scanner.peek() in ("\r", "\n") and not self.text[line_start:start].strip():
                # The member has its own lines.
                scanner.end_line()
                start = line_start
            return self._cut(start, scanner.at, "")
        before = self.text[:start].rstrip()
        if before.endswith(","):
            return self._cut(len(before) - 1, end, "")
        return self._cut(start, end, "")

    def elements(self, path: Path) -> list[str]:
        """Return the elements of an array as written; an empty list if there is no array."""
        return [self.text[start:end] for start, end in self._elements(path)]

    def _elements(self, path: Path) -> list[tuple[int, int]]:
        pair = self.find(path)
        if pair is None or self.text[pair.value_start] != "[":
            return []
        scanner = Scanner(self.text)
        scanner.at = pair.value_start
        return list(scanner.elements())

    def append_element(self, path: Path, value: str) -> Document:
        """Return the document with ``value`` as the last element of the array at ``path``."""
        places = self._elements(path)
        if not places:
            return self.set(path, [value])
        end = places[-1][1]
        return self._cut(end, end, f", {render(value, self.quote)}")

    def delete_element(self, path: Path, index: int) -> Document:
        """Return the document without one element of the array at ``path``."""
        return self._delete_member(*self._elements(path)[index])

    def _insert_lines(self, at: int, lines: str) -> Document:
        if at and not self.text[:at].endswith("\n") and self.text[:at] != BOM:
            lines = self.newline + lines
        return self._cut(at, at, lines)

    def _cut(self, start: int, end: int, new: str) -> Document:
        return Document(self.text[:start] + new + self.text[end:])


def _shared(one: Path, other: Path) -> int:
    count = 0
    for left, right in zip(one, other):
        if left != right:
            break
        count += 1
    return count


def render_key(part: str, quote: str = '"') -> str:
    if BARE_KEY.fullmatch(part):
        return part
    return render(part, quote)


def render_path(path: Sequence[str], quote: str = '"') -> str:
    return ".".join(render_key(part, quote) for part in path)


def render(value: Any, quote: str = '"') -> str:
    """Return a value as TOML text on one line.

    :raises InputError: TOML has no such value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        if quote == "'" and "'" not in value and value.isprintable():
            return f"'{value}'"
        return '"' + "".join(_escaped(char) for char in value) + '"'
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{render_key(key, quote)} = {render(item, quote)}" for key, item in value.items()
        )
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(render(item, quote) for item in value) + "]"
    raise InputError(f"{value!r} cannot be written as a TOML value.")


def _escaped(char: str) -> str:
    for letter, meaning in ESCAPES.items():
        if char == meaning and letter != "e":
            return f"\\{letter}"
    if char.isprintable() or char == " ":
        return char
    return f"\\u{ord(char):04X}" if ord(char) < 0x10000 else f"\\U{ord(char):08X}"
