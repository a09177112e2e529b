# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules of dnf 4: what is enabled, what there is, and how one switches."""

from __future__ import annotations

import configparser
from collections.abc import Mapping, Sequence

from .streams import DISABLED, NONE

FOLDER = "/etc/dnf/modules.d"
# For a command that shall see other streams than those that are enabled: in a name space of its
# own dnf's configuration is a copy in memory, and there they are. Arguments are files' names and
# texts by turns, then "--" and the command.
_ASSUMING = (
    *("unshare", "--mount", "sh", "-c"),
    'cd "$0" && mount -t tmpfs -o mode=0755 tmpfs "$0" && cp -a . "$0"/ && mkdir -p "$0/modules.d" '
    '&& while [ "$1" != -- ]; do printf %s "$2" >"$0/modules.d/$1.module" && shift 2; done '
    '&& shift && cd / && exec "$@"',
    "/etc/dnf",
)


def assuming(streams: Mapping[str, str]) -> tuple[str, ...]:
    """Return what has to stand before a command that shall see these streams enabled."""
    files = (word for name, stream in streams.items() for word in (name, entry(name, stream)))
    return (*_ASSUMING, *files, "--") if streams else ()


def entry(module: str, stream: str) -> str:
    """Return the text of the file in which dnf keeps the state of a module."""
    state = {NONE: "", DISABLED: "disabled"}.get(stream, "enabled")
    name = stream if state == "enabled" else ""
    return f"[{module}]\nname={module}\nstream={name}\nprofiles=\nstate={state}\n"


def parse(module: str, text: str) -> str:
    """Return the stream that is enabled by the text of a module's file."""
    file = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        file.read_string(text)
    except configparser.Error:
        return NONE
    state = file.get(module, "state", fallback="").strip().lower()
    if state == "disabled":
        return DISABLED
    # "1" is what dnf itself takes for enabled, too.
    return file.get(module, "stream", fallback="").strip() if state in ("enabled", "1") else NONE


def parse_list(text: str) -> dict[str, tuple[str, ...]]:
    """Return the streams of each module in what ``dnf module list`` printed."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and not line.startswith((" ", "Hint:", "Name ")):
            found.setdefault(words[0], []).append(words[1])
    return {module: tuple(dict.fromkeys(streams)) for module, streams in found.items()}


def commands(
    program: Sequence[str], now: Mapping[str, str], wanted: Mapping[str, str]
) -> tuple[list[str], ...]:
    """Return what switches to the streams.

    Not by Ansible's module: for a stream it knows but installing one of its profiles, which is
    more than the set asks for, and dnf enables no stream beside another one.
    """
    found: list[list[str]] = []
    for module, stream in wanted.items():
        if now.get(module, NONE) != NONE:
            found.append([*program, "module", "reset", module])
        if stream == DISABLED:
            found.append([*program, "module", "disable", module])
        elif stream != NONE:
            found.append([*program, "module", "enable", f"{module}:{stream}"])
    return tuple(found)
