# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A text of a node, and what is asked. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

#: The form of a text, by which its secrets are found.
TOML, JSON, YAML, CONF, LOG = "toml", "json", "yaml", "conf", "log"


@dataclass(frozen=True)
class Place:
    """A file; or with a pattern of names, the files of a folder."""

    path: str
    form: str
    names: str = ""


@dataclass(frozen=True)
class Request:
    """The options of the module, which documents them.

    :param most: the bytes of all texts together.
    :param lines: of each log, the last ones.
    :param timeout: seconds for all logs together.
    :param namespaces: of the cluster, in which plugins may be, in addition to the known ones.
    """

    most: int = 1 << 20
    lines: int = 300
    timeout: int = 60
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A text without secrets.

    :param name: its name in the bundle.
    :param source: the file, or the command that printed it.
    :param cut: whether a part of it was left out.
    """

    name: str
    source: str
    text: str
    cut: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
