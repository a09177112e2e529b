# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module leaves behind where nothing was left to do, so that the facts can tell it. Pure.

A runtime's module that finds all as wished notes the wish, the daemon's process and the marks of
all files that it looked at. While every one of them is the same, so is the module's answer, and
the facts say ``settled``: the role then needs no call to find that out. Whatever is edited, added,
taken away, replaced or restarted breaks a mark, and the module looks again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# A change of what the modules do with the same wish makes another one of it.
_RELEASE = 1
_PREFIX = "settled:"

#: A name for a file as it is now, which no edit leaves the same; None where nothing is there.
Mark = Callable[[str], "str | None"]
#: A name for the moment in which a process started; None if it is gone.
Birth = Callable[[int], "str | None"]


def wish_name(values: Mapping[str, Any]) -> str:
    """Return a short name for what is asked of a module."""
    text = json.dumps([_RELEASE, values], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def key(engine: str, name: str) -> str:
    """Return where the note of an engine's module stands among the values of the node's record."""
    return f"{_PREFIX}{engine}:{name}"


def note(wish: str, process: str | None, paths: Iterable[str], mark: Mark) -> dict[str, Any]:
    """Return the note: ``process`` is the daemon's identity, None where none runs."""
    return {
        "wish": wish,
        "process": process,
        "files": {path: mark(path) for path in sorted(set(paths))},
    }


def settled(
    record: Mapping[str, Any] | None, engine: str, mark: Mark, birth: Birth
) -> dict[str, str] | None:
    """Return the wishes of an engine that are met, by the runtime's name.

    :param record: the node's record; None: it cannot be read, and neither can the answer.
    """
    if record is None:
        return None
    values = record.get("values", {})
    begin = key(engine, "")
    notes = {name[len(begin) :]: note for name, note in values.items() if name.startswith(begin)}
    return {
        name: wish
        for name, found in sorted(notes.items())
        if (wish := stands(found, mark, birth)) is not None
    }


def stands(found: Any, mark: Mark, birth: Birth) -> str | None:
    """Return the wish of a note where nothing has moved since, else None."""
    if not isinstance(found, Mapping):
        return None
    wish, process, files = (found.get(name) for name in ("wish", "process", "files"))
    if not isinstance(wish, str) or not isinstance(files, Mapping) or not files:
        return None
    # Without a daemon nothing tells when one is started.
    if not isinstance(process, str) or not _alive(process, birth):
        return None
    return wish if all(mark(path) == text for path, text in files.items()) else None


def _alive(process: str, birth: Birth) -> bool:
    pid, _at, moment = process.partition("@")
    return pid.isdigit() and birth(int(pid)) == moment
