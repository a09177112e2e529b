# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits JSON as text and preserves all other bytes. Pure.

The text is scanned into nodes with positions. An edit replaces, inserts or removes one member and
preserves order, indentation, number formats, line ends, a byte order mark and trailing text.
Numbers are not converted to Python numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.errors import InputError
from .._core.redact import MARK, is_secret, redact_items

OBJECT, ARRAY, STRING, NUMBER, LITERAL = "object", "array", "string", "number", "literal"

# Go, which reads these files, has a limit of 10000; real files are far below this.
_MAX_DEPTH = 200
_BOM = "\ufeff"
_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_DEFAULT_INDENT = "    "

Path = Sequence[str]


@dataclass(frozen=True)
class Member:
    """One member of an object; ``start`` is where its key begins."""

    key: str
    start: int
    key_end: int
    value: Node


@dataclass(frozen=True)
class Node:
    """One value at ``text[start:end]``; ``text`` is the whole file."""

    kind: str
    start: int
    end: int
    text: str = field(repr=False)
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()

    @property
    def raw(self) -> str:
        return self.text[self.start : self.end]

    def get(self, key: str) -> Node | None:
        """Return the value of a member; the last one if the key is repeated, as parsers do."""
        found = None
        for member in self.members:
            if member.key == key:
                found = member.value
        return found

    @property
    def is_null(self) -> bool:
        return self.kind == LITERAL and self.raw == "null"

    def data(self) -> Any:
        """Return Python data for comparisons; numbers stay text (:class:`Number`)."""
        if self.kind == OBJECT:
            return {member.key: member.value.data() for member in self.members}
        if self.kind == ARRAY:
            return [item.data() for item in self.items]
        if self.kind == STRING:
            return json.loads(self.raw)
        if self.kind == NUMBER:
            return Number(self.raw)
        return {"true": True, "false": False, "null": None}[self.raw]

    def shape(self) -> Any:
        """Return the value without white space, with order and repeated keys, for comparisons."""
        if self.kind == OBJECT:
            return (OBJECT, tuple((m.key, m.value.shape()) for m in self.members))
        if self.kind == ARRAY:
            return (ARRAY, tuple(item.shape() for item in self.items))
        return self.raw


@dataclass(frozen=True)
class Number:
    """A number as written: Python must not round 9223372036854775807 or 1.0."""

    text: str


@dataclass(frozen=True)
class Document:
    """A whole file. ``root`` is None if the file is blank."""

    text: str
    name: str
    root: Node | None
    trailing: str = ""

    def get(self, path: Path) -> Node | None:
        node = self.root
        for key in path:
            if node is None:
                return None
            node = node.get(key)
        return node

    def raw(self, path: Path) -> str | None:
        """Return the text of the value, None if there is no such member.

        The empty path returns the whole root, or an empty string for a blank file.
        """
        if not path:
            return "" if self.root is None else self.root.raw
        node = self.get(path)
        return None if node is None else node.raw

    def data(self) -> Any:
        return None if self.root is None else self.root.data()

    def line_of(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def without_bom(self) -> Document:
        """Return the file without its byte order mark."""
        if not self.text.startswith(_BOM):
            return self
        return parse(self.text[1:], self.name, trailing=bool(self.trailing))

    def encode(self) -> bytes:
        return self.text.encode("utf-8", "surrogateescape")

    # -- edits: each returns a new document, parsed again ------------------------------------

    def set(self, path: Path, raw: str) -> Document:
        """Set the member to ``raw``: replace it, or append it to its object.

        The empty path is the root itself.

        :raises InputError: the object does not exist (see :meth:`ensure_object`).
        """
        if not path:
            return self._set_root(raw)
        node = self.get(path)
        if node is not None:
            return self._spliced(node.start, node.end, raw)
        parent = self.get(path[:-1])
        if parent is None or parent.kind != OBJECT:
            raise InputError(f"{self.name}: {'.'.join(path[:-1]) or 'the file'} is not an object.")
        style = self.style(path[:-1])
        key = json.dumps(path[-1], ensure_ascii=False)
        if not parent.members:
            if style.single_line:
                text = f"{{{key}{style.colon}{raw}}}"
            else:
                text = (
                    f"{{{style.newline}{style.member_indent}{key}{style.colon}{raw}"
                    f"{style.newline}{style.closing_indent}}}"
                )
            return self._spliced(parent.start, parent.end, text)
        at = parent.members[-1].value.end
        return self._spliced(at, at, f",{style.separator}{key}{style.colon}{raw}")

    def delete(self, path: Path) -> Document:
        """Remove the member with its comma and its line; other lines stay."""
        parent = self.get(path[:-1])
        if parent is None:
            return self
        index = next((i for i, member in enumerate(parent.members) if member.key == path[-1]), None)
        if index is None:
            return self
        members = parent.members
        if len(members) == 1:
            return self._spliced(parent.start, parent.end, "{}")
        if index == len(members) - 1:
            return self._spliced(members[index - 1].value.end, members[index].value.end, "")
        return self._spliced(members[index].start, members[index + 1].start, "")

    def ensure_object(self, path: Path) -> Document:
        """Create an object at ``path`` if the value is absent or null, or the file is blank.

        :raises InputError: another value is there.
        """
        node = self.get(path)
        if node is not None and node.kind == OBJECT:
            return self
        if node is not None and not node.is_null:
            raise InputError(
                f"{self.name}, line {self.line_of(node.start)}: "
                f"{'.'.join(path) or 'the file'} is {_article(node.kind)}, not an object.",
                next_step="Correct the file manually: dockerd does not start with it either.",
            )
        return self.set(path, "{}")

    def dump(self, value: Any, path: Path) -> str:
        """Return ``value`` as text in the style of the file, for :meth:`set` at ``path``."""
        style = self.style(path[:-1])
        if isinstance(value, (dict, list)) and value and not style.single_line:
            text = json.dumps(value, indent=style.unit, ensure_ascii=False)
            if isinstance(value, dict):
                text = _short_lists(text)
            lines = text.split("\n")
            return style.newline.join(
                [lines[0], *(f"{style.member_indent}{line}" for line in lines[1:])]
            )
        return json.dumps(value, ensure_ascii=False, separators=(style.item_separator, style.colon))

    def style(self, path: Path) -> Style:
        """Return the style of (new) members of the object at ``path``."""
        newline = "\r\n" if "\r\n" in self.text else "\n"
        unit = self._unit()
        node = self.get(path)
        like = self._with_members(path)
        colon = ": "
        if like is not None:
            between = self.text[like.members[0].key_end : like.members[0].value.start]
            colon = colon if "\n" in between else between
        space = " " if colon.endswith(" ") else ""
        # An object on one line remains on one line, with its content. An empty object gets lines,
        # unless the whole file is one line.
        root = self.root
        single = root is not None and bool(root.members) and "\n" not in root.raw
        closing = "" if node is None else _indent(self._line(node.start))
        member = closing + unit
        separator = f"{newline}{member}"
        if node is not None and node.members:
            last = node.members[-1]
            before = node.members[-2].value.end if len(node.members) > 1 else node.start + 1
            between = self.text[before : last.start]
            if "\n" in between:
                member = _indent(between.rpartition("\n")[2])
                separator = f"{newline}{member}"
            elif "\n" not in node.raw:
                single = True
        if single:
            separator = space
        return Style(newline, unit, colon, member, closing, separator, f",{space}", single)

    def _line(self, position: int) -> str:
        start = self.text.rfind("\n", 0, position) + 1
        return self.text[start:position].lstrip(_BOM)

    def _unit(self) -> str:
        """Return one indentation step of the file."""
        waiting = [] if self.root is None else [(self.root, "")]
        while waiting:
            node, outer = waiting.pop(0)
            if not node.members:
                continue
            before = self.text[node.start + 1 : node.members[0].start]
            if "\n" not in before:
                continue
            indent = before.rpartition("\n")[2]
            if indent.startswith(outer) and len(indent) > len(outer):
                return indent[len(outer) :]
            waiting += [(m.value, indent) for m in node.members if m.value.kind == OBJECT]
        return _DEFAULT_INDENT

    def _with_members(self, path: Path) -> Node | None:
        for length in range(len(path), -1, -1):
            node = self.get(path[:length])
            if node is not None and node.members:
                return node
        return None

    def _set_root(self, raw: str) -> Document:
        if self.root is not None:
            return self._spliced(self.root.start, self.root.end, raw)
        # A blank file keeps its byte order mark; a new file ends with a line end.
        bom = _BOM if self.text.startswith(_BOM) else ""
        blank = self.text[len(bom) :]
        ending = "\r\n" if "\r\n" in blank else "\n"
        return parse(f"{bom}{raw}{blank or ending}" if raw else self.text, self.name)

    def _spliced(self, start: int, end: int, text: str) -> Document:
        return parse(
            self.text[:start] + text + self.text[end:], self.name, trailing=bool(self.trailing)
        )


@dataclass(frozen=True)
class Style:
    """Style of the members of one object."""

    newline: str
    unit: str
    colon: str
    member_indent: str
    closing_indent: str
    separator: str
    item_separator: str
    single_line: bool


def decode(content: bytes, name: str) -> str:
    """Return the text of the file; :meth:`Document.encode` restores bytes that are not UTF-8.

    :raises InputError: the file is UTF-16.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(
            f"{name} is UTF-16, not UTF-8.", next_step="Save the file as UTF-8 and run again."
        )
    return content.decode("utf-8", "surrogateescape")


def parse(text: str, name: str, *, trailing: bool = False) -> Document:
    """Scan the text.

    :param trailing: whether text may follow the value; it is preserved.
    :raises InputError: the text is not JSON.
    """
    scanner = _Scanner(text, name)
    position = scanner.skip(1 if text.startswith(_BOM) else 0)
    if position == len(text):
        return Document(text, name, None)
    root = scanner.value(position, 0)
    rest = scanner.skip(root.end)
    if rest != len(text) and not trailing:
        raise scanner.error(rest, "something follows the end of the value")
    return Document(text, name, root, text[rest:])


def redact(document: Document) -> str:
    """Return the text with secrets redacted, for a diff; the lines stay the same.

    Secrets are values of members with secret names, and credentials in strings (addresses, options,
    variables). Text after the value is redacted as a whole, because its meaning is unknown.
    """
    spans: list[tuple[int, int, str]] = []

    def string(start: int, end: int, shown: str) -> None:
        raw = document.text[start:end]
        if json.loads(raw) != shown:
            spans.append((start, end, json.dumps(shown, ensure_ascii=False)))

    def visit(node: Node, secret: bool) -> None:
        for member in node.members:
            key = redact_items([member.key])[0]
            string(member.start, member.key_end, key)
            visit(member.value, secret or is_secret(member.key))
        before = ""
        for item in node.items:
            if item.kind == STRING and not secret:
                text = item.data()
                string(item.start, item.end, redact_items([before, text])[-1])
                before = text
            else:
                visit(item, secret)
        if node.kind == STRING and not secret:
            string(node.start, node.end, redact_items([node.data()])[0])
        elif secret and node.kind in (STRING, NUMBER) and node.raw != '""':
            spans.append((node.start, node.end, f'"{MARK}"'))

    if document.root is not None:
        visit(document.root, False)
    end = len(document.text) - len(document.trailing)
    parts: list[str] = []
    at = 0
    for start, stop, new in sorted(spans):
        parts += [document.text[at:start], new]
        at = stop
    return "".join([*parts, document.text[at:end], _LINE.sub(MARK, document.trailing)])


_LINE = re.compile(r"[^\s][^\r\n]*")


class _Scanner:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def skip(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return position if match is None else match.end()

    def error(self, position: int, cause: str) -> InputError:
        line = self._text.count("\n", 0, position) + 1
        column = position - self._text.rfind("\n", 0, position)
        rest = self._text[position : position + 1]
        if not rest:
            evidence = "the file ends there"
        elif self._text.startswith(("//", "/*", "#"), position):
            cause = "JSON has no comments"
            evidence = f"a comment at column {column}"
        else:
            # The text itself is not quoted, because it can hold a secret.
            evidence = f"{rest!r} at column {column}"
        return InputError(
            f"{self._name}, line {line}: {cause}.",
            evidence=evidence,
            next_step=f"Correct line {line} of the file manually and run again; nothing was "
            "written.",
        )

    def value(self, position: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise self.error(position, f"values are nested more than {_MAX_DEPTH} deep")
        first = self._text[position : position + 1]
        if first == "{":
            return self._object(position, depth)
        if first == "[":
            return self._array(position, depth)
        if first == '"':
            return self._string(position)
        for literal in ("true", "false", "null"):
            if self._text.startswith(literal, position):
                return self._node(LITERAL, position, position + len(literal))
        match = _NUMBER.match(self._text, position)
        if match is not None:
            return self._node(NUMBER, position, match.end())
        raise self.error(position, "a value is expected")

    def _node(self, kind: str, start: int, end: int) -> Node:
        return Node(kind, start, end, self._text)

    def _string(self, position: int) -> Node:
        match = _STRING.match(self._text, position)
        if match is None:
            raise self.error(position, "this string is not valid or has no end")
        return self._node(STRING, position, match.end())

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        position = self.skip(start + 1)
        if self._text[position : position + 1] == "}":
            return self._node(OBJECT, start, position + 1)
        while True:
            if self._text[position : position + 1] != '"':
                raise self.error(position, "a key in double quotes is expected")
            key = self._string(position)
            colon = self.skip(key.end)
            if self._text[colon : colon + 1] != ":":
                raise self.error(colon, "a colon is expected after the key")
            value = self.value(self.skip(colon + 1), depth + 1)
            members.append(Member(json.loads(key.raw), position, key.end, value))
            position, ended = self._next(value.end, "}")
            if ended:
                return replace(self._node(OBJECT, start, position), members=tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        position = self.skip(start + 1)
        if self._text[position : position + 1] == "]":
            return self._node(ARRAY, start, position + 1)
        while True:
            item = self.value(position, depth + 1)
            items.append(item)
            position, ended = self._next(item.end, "]")
            if ended:
                return replace(self._node(ARRAY, start, position), items=tuple(items))

    def _next(self, position: int, closing: str) -> tuple[int, bool]:
        position = self.skip(position)
        found = self._text[position : position + 1]
        if found == closing:
            return position + 1, True
        if found == ",":
            return self.skip(position + 1), False
        raise self.error(position, f"a comma or {closing!r} is expected")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _short_lists(text: str) -> str:
    """Return the text with lists of plain values on one line."""
    return re.sub(
        r"\[\n\s*([^\[\]{}]*?)\n\s*\]", lambda m: "[" + re.sub(r",\n\s*", ", ", m[1]) + "]", text
    )


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'ao' else 'a'} {kind}"
