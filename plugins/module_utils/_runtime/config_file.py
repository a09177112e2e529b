# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A runtime's configuration file as data. Pure, and small: the facts have no need of an editor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from .._core.errors import InputError
from .._formats.toml_scan import BOM

Parser = Callable[[str], dict[str, Any]]


def config_version(data: Mapping[str, Any]) -> int:
    """Return the file's format; a file that names none is of version 1."""
    version = data.get("version", 0)
    return version if isinstance(version, int) and version > 0 else 1


def table(data: Mapping[str, Any], path: Iterable[str]) -> Mapping[str, Any]:
    """Return the table at ``path``, empty where there is none."""
    current: Any = data
    for part in path:
        current = current.get(part) if isinstance(current, Mapping) else None
    return current if isinstance(current, Mapping) else {}


@dataclass(frozen=True)
class ConfigFile:
    """One file that a runtime loads; ``path`` has links resolved, ``text`` is None if absent.

    ``generated`` is one that a distribution writes, so that nobody else may. ``part`` is the marked
    place of a template: it goes into the generated file, and has no version of its own.
    """

    path: str
    text: str | None
    data: Mapping[str, Any]
    generated: bool = False
    fragment: bool = False

    @property
    def version(self) -> int:
        return config_version(self.data)


def decode(path: str, content: bytes | None, parse: Parser) -> ConfigFile:
    """Return a file as text and data; a file that is not TOML is refused."""
    if content is None:
        return ConfigFile(path, None, {})
    try:
        text = content.decode("utf-8")
        return ConfigFile(path, text, parse_text(text, parse))
    except ValueError as error:
        raise InputError(
            f"{path} is not valid TOML, so containerd cannot load it either.",
            evidence=str(error),
            next_step="Correct the file (containerd config dump names the place), then run again.",
        ) from error


def parse_text(text: str, parse: Parser) -> dict[str, Any]:
    return parse(text[1:] if text.startswith(BOM) else text)
