# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets keys of a TOML file, such as the container toolkit's ``config.toml``. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Callable

from .._core.errors import InputError, KubegpuError
from .._formats.toml_edit import Document, render
from .._formats.toml_read import BOM
from .._record.file_record import FileRecord, Undo

Parser = Callable[[str], dict[str, Any]]

_MISSING = object()


@dataclass(frozen=True)
class Seen:
    """The current file (``text`` None: there is none) and its record.

    ``ours``: the managed settings by key, ``{"value": ..., "before": ..., "existed": bool}``;
    ``tables``: the sections that this module created, as ``a.b``.
    """

    text: str | None
    recorded: bool = False
    way: Undo = Undo.REMOVE_LINES
    restored: str | None = None
    ours: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()

    def with_record(self, record: FileRecord, way: Undo, target: str | None) -> Seen:
        """Return the file with its record; ``target`` is the text that undoing restores."""
        return replace(
            self,
            recorded=True,
            way=way,
            restored=target if way is Undo.RESTORE else None,
            ours=record.details.get("settings", {}),
            tables=tuple(record.details.get("tables", ())),
        )


@dataclass(frozen=True)
class Plan:
    """The new text (None: no file), the managed settings in it, and the reasons."""

    text: str | None
    ours: Mapping[str, Mapping[str, Any]]
    tables: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def check(settings: Mapping[str, Any]) -> None:
    """Validate the settings.

    :raises InputError: the file cannot hold a key or value.
    """
    for key, value in settings.items():
        if not all(key.split(".")):
            raise InputError(
                f"{key!r} is not the key of a setting.",
                next_step="Write it as section.key, such as nvidia-container-cli.no-cgroups.",
            )
        items = value if isinstance(value, list) else [value]
        kinds = (str,) if isinstance(value, list) else (str, bool, int, float)
        if not all(isinstance(item, kinds) for item in items):
            raise InputError(
                f"The value of {key} is neither text, number, true or false, nor a list of text.",
                evidence=repr(value),
                next_step="For a table, give each of its keys as section.key.",
            )


def plan_present(settings: Mapping[str, Any], seen: Seen, parse: Parser) -> Plan:
    """Return the text with the settings; managed settings that are not in them are reverted."""
    check(settings)
    reasons: list[str] = []
    dropped = {key: entry for key, entry in seen.ours.items() if key not in settings}
    text = _reverted(seen.text or "", dropped, seen.tables, parse, reasons)
    ours = {key: dict(entry) for key, entry in seen.ours.items() if key in settings}
    data = parse_text(text, parse)
    intended = copy.deepcopy(data)
    document = Document(text)
    tables = {name for name in seen.tables if _value(data, tuple(name.split("."))) is not _MISSING}
    for key in sorted(settings):
        path, value = tuple(key.split(".")), settings[key]
        now = _value(data, path)
        if _same(now, value):
            continue
        document = document.set(path, value)
        tables.update(
            ".".join(path[:length])
            for length in range(1, len(path))
            if _value(intended, path[:length]) is _MISSING
        )
        _put(intended, path, value, key)
        reasons.append(f"{key} is {_shown(now)}, requested is {render(value)}.")
        earlier = ours.get(key)
        ours[key] = {
            "value": value,
            # Reverting restores the value from before the first change.
            "before": earlier["before"] if earlier else (None if now is _MISSING else now),
            "existed": earlier["existed"] if earlier else now is not _MISSING,
        }
    _compare(document.text, intended, parse)
    if seen.text is None and not document.text:
        return Plan(None, ours, reasons=tuple(reasons))
    return Plan(document.text, ours, tuple(sorted(tables)), tuple(reasons))


def plan_absent(settings: Mapping[str, Any], seen: Seen, parse: Parser) -> Plan:
    """Return the text without the managed settings.

    Without a record, keys that are equal to ``settings`` are removed.
    """
    check(settings)
    if seen.recorded and seen.way is Undo.RESTORE:
        why = "The file was not edited since: its earlier content is restored."
        return Plan(seen.restored, {}, reasons=(why,))
    if seen.text is None or (seen.recorded and seen.way is Undo.NOTHING):
        return Plan(seen.text, {})
    reasons: list[str] = []
    ours = seen.ours
    if not seen.recorded:
        ours = {key: {"value": value, "existed": False} for key, value in settings.items()}
    text = _reverted(seen.text, ours, seen.tables, parse, reasons)
    return Plan(text, {}, reasons=tuple(reasons))


def _reverted(
    text: str,
    ours: Mapping[str, Mapping[str, Any]],
    tables: Sequence[str],
    parse: Parser,
    reasons: list[str],
) -> str:
    data = parse_text(text, parse)
    intended = copy.deepcopy(data)
    document = Document(text)
    for key, entry in sorted(ours.items()):
        path = tuple(key.split("."))
        # A value that was set by others since remains.
        if not _same(_value(data, path), entry["value"]):
            continue
        if entry["existed"]:
            document = document.set(path, entry["before"])
            _put(intended, path, entry["before"], key)
            reasons.append(f"{key} was {_shown(entry['before'])} before.")
            continue
        document = document.delete(path)
        _remove(intended, path)
        reasons.append(f"{key} was not set before.")
        # A section that this module created is removed with its last value.
        for length in range(len(path) - 1, 0, -1):
            if ".".join(path[:length]) in tables and _value(intended, path[:length]) == {}:
                document = document.delete(path[:length])
                _remove(intended, path[:length])
    _compare(document.text, intended, parse)
    return document.text


def parse_text(text: str, parse: Parser) -> dict[str, Any]:
    """Return the data of the file.

    :raises InputError: the text is not TOML.
    """
    try:
        return parse(text[len(BOM) :] if text.startswith(BOM) else text)
    except KubegpuError:
        raise
    except Exception as error:
        raise InputError(
            "The configuration is not valid TOML; it is left as it is.",
            evidence=str(error),
            next_step="Correct the file, or move it away and run again.",
        ) from error


def _compare(text: str, intended: Mapping[str, Any], parse: Parser) -> None:
    """Check that the edited text parses to the intended data.

    :raises KubegpuError: it does not.
    """
    if parse_text(text, parse) != intended:
        raise KubegpuError(
            "The configuration has a form that cannot be edited; it is left as it is.",
            next_step="Please report this with the file; until then set the values manually.",
        )


def _value(data: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = data
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; ``true`` and 1 are not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any, key: str) -> None:
    table = data
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise InputError(
                f"{key} cannot be set: {part} is a value in this file, not a section.",
                next_step="Correct the key, or the file.",
            )
    if isinstance(table.get(path[-1]), dict):
        raise InputError(f"{key} is a section in this file, not a value.")
    table[path[-1]] = value


def _remove(data: dict[str, Any], path: tuple[str, ...]) -> None:
    table = _value(data, path[:-1])
    if isinstance(table, dict):
        table.pop(path[-1], None)


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "not set"
    try:
        return render(value)
    except InputError:
        return str(value)
