# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access to values by path in the data of a TOML file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .data import Path


def leaves(data: Mapping[str, Any], base: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of each leaf; plain values come before tables, as TOML requires."""
    for key, value in data.items():
        if not isinstance(value, Mapping):
            yield (*base, key), value
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*base, key))


def merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``one`` updated with ``other``, key by key and recursively."""
    merged = dict(one)
    for key, value in other.items():
        old = merged.get(key)
        merged[key] = (
            merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


def copy(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: copy(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [copy(value) for value in data]
    return data


def value_at(data: Mapping[str, Any], path: Path) -> tuple[Any, ...]:
    """Return the value at ``path`` in a tuple; an empty tuple if it is absent."""
    current: Any = data
    for part in path:
        if not isinstance(current, Mapping) or part not in current:
            return ()
        current = current[part]
    return (copy(current),)


def has(data: Mapping[str, Any], path: Path) -> bool:
    return bool(value_at(data, path))


def put(data: dict[str, Any], path: Path, value: Any) -> None:
    current = data
    for part in path[:-1]:
        current = current.setdefault(part, {})
    current[path[-1]] = copy(value)


def remove(data: dict[str, Any], path: Path) -> None:
    """Remove the value at ``path`` if it exists."""
    current: Any = data
    for part in path[:-1]:
        current = current.get(part) if isinstance(current, dict) else None
    if isinstance(current, dict):
        current.pop(path[-1], None)


def prune(data: Any) -> Any:
    """Return the data without empty tables: they appear with headers and have no meaning."""
    if isinstance(data, Mapping):
        kept = {key: prune(value) for key, value in data.items()}
        return {key: value for key, value in kept.items() if value != {}}
    if isinstance(data, (list, tuple)):
        return [prune(value) for value in data]
    # A NaN does not equal itself.
    return repr(data) if isinstance(data, float) else data
