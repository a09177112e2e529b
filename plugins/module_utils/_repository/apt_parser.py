# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parser of apt's source entries, in both of its formats.

Entries that apt would refuse are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

ONE_LINE = "one_line"
DEB822 = "deb822"

_TYPES = ("deb", "deb-src")
_FALSE = frozenset({"no", "false", "without", "off", "disable", "0"})
_OPTION = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9-]*?)(?P<sign>[+-]?)=(?P<value>.*)\Z", re.DOTALL)
_FIELD = re.compile(r"(?P<name>[^\s:#-][^\s:]*)\s*:(?P<value>.*)\Z")
_URI = re.compile(r"[a-z][a-z0-9+.-]*:/?", re.IGNORECASE)
# Fields of a stanza that have an attribute of their own; all others are options.
_FIELDS = ("types", "uris", "suites", "components", "enabled")


@dataclass(frozen=True)
class AptEntry:
    """One line of a ``.list`` file, or one stanza of a ``.sources`` file.

    Lines count from 1, the end included. ``kind`` is :data:`ONE_LINE` or :data:`DEB822`.
    ``options`` has lower-case names (``signed-by``, ``arch``, ...) and their text; that of an
    embedded key is the key. ``enabled`` is false for a stanza that says so, and for a line that
    was commented out.
    """

    file: str
    start_line: int
    end_line: int
    kind: str
    types: tuple[str, ...]
    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    enabled: bool = True

    @property
    def signed_by(self) -> str | None:
        """Return the ``signed-by`` option: paths, fingerprints or an embedded key."""
        return self.options.get("signed-by")


def parse(file_name: str, text: str) -> list[AptEntry]:
    """Return the entries of the file; its name determines the format, as with apt."""
    lines = text.splitlines()
    if file_name.endswith(".sources"):
        return list(_stanzas(file_name, lines))
    return list(_lines(file_name, lines))


def _lines(file_name: str, lines: list[str]) -> Iterator[AptEntry]:
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        active = not stripped.startswith("#")
        entry = _one_line(stripped.lstrip("# \t"))
        if entry is None:
            continue
        kind, options, uri, suite, components = entry
        yield AptEntry(
            file=file_name,
            start_line=number,
            end_line=number,
            kind=ONE_LINE,
            types=(kind,),
            uris=(uri,),
            suites=(suite,),
            components=components,
            options=options,
            enabled=active,
        )


def _one_line(line: str) -> tuple[str, dict[str, str], str, str, tuple[str, ...]] | None:
    words = _without_comment(line).split(None, 1)
    if len(words) < 2 or words[0] not in _TYPES:
        return None
    kind, rest = words
    options: dict[str, str] = {}
    if rest.startswith("["):
        inner, bracket, rest = rest[1:].partition("]")
        if not bracket:
            return None
        options = _options(inner)
    where = rest.split()
    if len(where) < 2 or not _URI.match(where[0]):
        return None
    return kind, options, where[0], where[1], tuple(where[2:])


def _without_comment(line: str) -> str:
    """Remove a comment; a number sign inside brackets does not begin one."""
    inside = False
    for position, character in enumerate(line):
        if character == "[":
            inside = "]" in line[position:]
        elif character == "]":
            inside = False
        elif character == "#" and not inside:
            return line[:position]
    return line


def _options(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in text.split():
        match = _OPTION.match(word)
        if match:
            name = match["name"].lower()
            known = options.get(name)
            value = match["value"].replace(",", " ").strip()
            options[name] = f"{known} {value}" if known and match["sign"] == "+" else value
    return options


def _stanzas(file_name: str, lines: list[str]) -> Iterator[AptEntry]:
    start = end = 0
    fields: dict[str, list[str]] = {}
    name: str | None = None
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            entry = _stanza(file_name, start, end, fields)
            if entry is not None:
                yield entry
            start, fields, name = 0, {}, None
            continue
        start, end = start or number, number
        if line[0] in " \t":
            if name is not None:
                # A lone dot means an empty line, as in an embedded key.
                fields[name].append("" if line.strip() == "." else line.strip())
            continue
        match = _FIELD.match(line)
        name = match["name"].lower() if match else None
        if match and name:
            fields[name] = [match["value"].strip()]


def _stanza(file_name: str, start: int, end: int, fields: dict[str, list[str]]) -> AptEntry | None:
    words = {name: tuple(" ".join(fields.get(name, [])).split()) for name in _FIELDS}
    if not words["uris"] or not words["types"]:
        return None
    return AptEntry(
        file=file_name,
        start_line=start,
        end_line=end,
        kind=DEB822,
        types=words["types"],
        uris=words["uris"],
        suites=words["suites"],
        components=words["components"],
        options={
            name: "\n".join(values).strip()
            for name, values in fields.items()
            if name not in _FIELDS
        },
        enabled=" ".join(words["enabled"]).lower() not in _FALSE,
    )
