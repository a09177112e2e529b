# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A runtime's configuration file as data. Pure; without the editor, which the facts do not need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from .._core.errors import InputError
from .._formats.toml_read import BOM

Parser = Callable[[str], dict[str, Any]]


def config_version(data: Mapping[str, Any]) -> int:
    """Return the config version of the file; 1 if it names none."""
    version = data.get("version", 0)
    return version if isinstance(version, int) and version > 0 else 1


def table(data: Mapping[str, Any], path: Iterable[str]) -> Mapping[str, Any]:
    """Return the table at ``path``, an empty one if there is none."""
    current: Any = data
    for part in path:
        current = current.get(part) if isinstance(current, Mapping) else None
    return current if isinstance(current, Mapping) else {}


@dataclass(frozen=True)
class ConfigFile:
    """One file that a runtime loads; ``path`` has links resolved, ``text`` is None if absent.

    ``generated``: a distribution writes the file, so it must not be edited. ``fragment``: this is
    the managed block of a template, rendered into the generated file, without a config version.
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
    """Return the file as text and data.

    :raises InputError: the content is not TOML.
    """
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
