# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module leaves behind where nothing was left to do, so that the facts can tell it. Pure.

A runtime's module that finds all as wished and changes nothing notes the wish, the daemon's process
and the marks that all files had when it read them. While every one of them is the same, so is the
module's answer, and the facts say ``settled``: the role then needs no call to find that out.
Whatever is edited, added, taken away, replaced or restarted breaks a mark, and the module looks
again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from ._version import COLLECTION

_PREFIX = "settled:"

#: A name for a file as it is now, which no edit leaves the same; None where nothing is there.
Mark = Callable[[str], "str | None"]
#: A name for the moment in which a process started; None if it is gone.
Birth = Callable[[int], "str | None"]


def wish_name(values: Mapping[str, Any]) -> str:
    """Return a short name for what is asked of a module of this release."""
    text = json.dumps([COLLECTION, values], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def key(engine: str, name: str) -> str:
    """Return where the note of an engine's module stands among the values of the node's record."""
    return f"{_PREFIX}{engine}:{name}"


def note(
    wish: str, owner: str, process: str | None, files: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the note.

    :param owner: whose engine it is; another distribution of it is not the one that was looked at.
    :param process: the daemon's identity, None where none runs.
    :param files: the marks of all files that the answer depends on.
    """
    return {"wish": wish, "owner": owner, "process": process, "files": dict(sorted(files.items()))}


def settled(
    record: Mapping[str, Any] | None, engine: str, owner: str, mark: Mark, birth: Birth
) -> dict[str, str] | None:
    """Return the wishes of an engine that are met, by the runtime's name.

    :param record: the node's record; None: it cannot be read, and neither can the answer.
    :param owner: whose engine is on the node.
    """
    if record is None:
        return None
    values = record.get("values", {})
    begin = key(engine, "")
    notes = {name[len(begin) :]: note for name, note in values.items() if name.startswith(begin)}
    return {
        name: wish
        for name, found in sorted(notes.items())
        if (wish := stands(found, owner, mark, birth)) is not None
    }


def stands(found: Any, owner: str, mark: Mark, birth: Birth) -> str | None:
    """Return the wish of a note where nothing has moved since, else None."""
    if not isinstance(found, Mapping) or found.get("owner") != owner:
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
