# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module leaves behind where nothing was left to do, so that the facts can tell it. Pure.

A runtime's module that finds all as wished and changes nothing notes the wish, the daemon's process
and the marks that all files had when it read them. While every one of them is the same, so is the
module's answer, and the facts say ``settled``: the role then needs no call to find that out.
Whatever is edited, added, taken away, replaced or restarted breaks a mark, and the module looks
again.

containerd's note keeps what ``containerd config dump`` said, too: of all programs that the facts
start for a runtime it costs the node most (docs/benchmarks.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core.collection import COLLECTION

_PREFIX = "settled:"
_WORDS = "words"

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
    wish: str,
    owner: str,
    process: str | None,
    files: Mapping[str, str | None],
    words: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the note.

    :param owner: whose engine it is; another distribution of it is not the one that was looked at.
    :param process: the daemon's identity, None where none runs.
    :param files: the marks of all files that the answer depends on.
    :param words: what the engine says of its own configuration, which the facts then need not ask.
    """
    found = {"wish": wish, "owner": owner, "process": process, "files": dict(sorted(files.items()))}
    return found if words is None else {**found, _WORDS: [COLLECTION, words]}


def without_words(found: Any) -> Any:
    """Return a note without the engine's words, where they are those that this release keeps."""
    if not isinstance(found, Mapping) or _words(found) is None:
        return found
    return {name: value for name, value in found.items() if name != _WORDS}


def _words(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    release, words = [*(found.get(_WORDS) or ()), None, None][:2]
    return words if release == COLLECTION and isinstance(words, Mapping) else None


def said(
    record: Mapping[str, Any] | None,
    engine: str,
    owner: str,
    files: Sequence[str],
    *,
    mark: Mark,
    birth: Birth,
) -> Mapping[str, Any] | None:
    """Return what an engine said of itself, where it would say the same again.

    :param files: the program and the file that are looked at now; the note has to be about them.
    """
    for found in _notes(record, engine).values():
        if stands(found, owner, mark, birth) is None or not {*files} <= {*found["files"]}:
            continue
        words = _words(found)
        if words is not None:
            return words
    return None


def settled(
    record: Mapping[str, Any] | None, engine: str, owner: str, mark: Mark, birth: Birth
) -> dict[str, str] | None:
    """Return the wishes of an engine that are met, by the runtime's name.

    :param record: the node's record; None: it cannot be read, and neither can the answer.
    :param owner: whose engine is on the node.
    """
    if record is None:
        return None
    return {
        name: wish
        for name, found in _notes(record, engine).items()
        if (wish := stands(found, owner, mark, birth)) is not None
    }


def _notes(record: Mapping[str, Any] | None, engine: str) -> dict[str, Any]:
    begin = key(engine, "")
    values = (record or {}).get("values", {})
    return {name[len(begin) :]: values[name] for name in sorted(values) if name.startswith(begin)}


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
