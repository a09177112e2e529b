# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of dockerd on its command line, and conflicts between them and ``daemon.json``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .._core.errors import InputError
from .._formats.json_edit import Document

# Measured: dockerd merges the runtimes of file and command line at its start; a reload drops those
# of the command line.
_REFUSED = "dockerd does not start like that"
_FLAG_CONFLICTS = {
    "default-runtime": ("default-runtime", _REFUSED),
    "feature": ("features", _REFUSED),
    "add-runtime": ("runtimes", "dockerd forgets those of its command line at the next reload"),
}


@dataclass(frozen=True)
class FlagSource:
    """A source of dockerd's flags: a unit file, an environment file or a command line."""

    where: str
    arguments: tuple[str, ...]


def parse_flags(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of the long flags among the arguments, in order."""
    found: dict[str, tuple[str, ...]] = {}
    for index, argument in enumerate(arguments):
        if not argument.startswith("--"):
            continue
        key, equals, value = argument[2:].partition("=")
        if not equals:
            following = arguments[index + 1] if index + 1 < len(arguments) else ""
            value = "" if following.startswith("-") else following
        found[key] = (*found.get(key, ()), value)
    return found


def unit_sources(systemctl_cat: str) -> tuple[list[FlagSource], list[str]]:
    """Return the sources of flags in the output of ``systemctl cat``, and the environment files.

    Later files win: an empty ``ExecStart=`` removes the earlier ones.
    """
    where = "the unit"
    starts: list[FlagSource] = []
    others: list[FlagSource] = []
    files: list[str] = []
    text = systemctl_cat.replace("\\\n", " ")
    for line in text.splitlines():
        header = re.fullmatch(r"# (/\S+)", line.strip())
        if header is not None:
            where = header[1]
            continue
        key, equals, value = line.strip().partition("=")
        if not equals or key.startswith(("#", ";")):
            continue
        if key == "ExecStart":
            starts = [] if not value.strip() else [*starts, FlagSource(where, _words(value))]
        elif key == "Environment":
            others.append(FlagSource(where, _assigned(value)))
        elif key == "EnvironmentFile" and value.strip():
            files.append(value.strip().lstrip("-"))
    return [*starts, *others], files


def environment_source(path: str, text: str) -> FlagSource:
    """Return the flags in an environment file such as ``/etc/default/docker``."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", ";"))]
    return FlagSource(path, tuple(word for line in lines for word in _assigned(line)))


def check_flags(
    document: Document, config_path: str, real_path: str, sources: Sequence[FlagSource]
) -> None:
    """Check that no option is both in the file and on dockerd's command line.

    :raises InputError: one is, or dockerd reads another file.
    """
    for source in sources:
        given = parse_flags(source.arguments)
        for value in given.get("config-file", ()):
            if value and value not in (config_path, real_path) and not value.startswith("$"):
                raise InputError(
                    f"dockerd does not read {config_path}.",
                    evidence=f"{source.where}: --config-file={value}",
                    next_step=f"Set config_path: {value}.",
                )
        for flag, (key, consequence) in _FLAG_CONFLICTS.items():
            node = document.get([key])
            if flag not in given or node is None or node.is_null:
                continue
            raise InputError(
                f"{key} would stand in {config_path} and on dockerd's command line: {consequence}.",
                evidence=f"{source.where}: --{flag} {given[flag][-1]}".rstrip(),
                next_step=f"Remove --{flag} from {source.where} (and put what it says into "
                f"{config_path}), run systemctl daemon-reload, then run again.",
            )


def _words(value: str) -> tuple[str, ...]:
    return tuple(word.strip("'\"") for word in re.split(r"[\s]+", value.strip()) if word)


def _assigned(text: str) -> tuple[str, ...]:
    """Return the words of ``NAME="--flag value"`` without the name."""
    return tuple(re.sub(r"^[A-Za-z0-9_]+=[\"']?(?=-)", "", word) for word in _words(text))
