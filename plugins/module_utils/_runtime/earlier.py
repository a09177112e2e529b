# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorded files of all runtimes at a point in time, and the way back to them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from .._core.errors import KubegpuError
from .._host.files import FileState, read_file
from .._record.file_record import (
    FileRecord,
    Undo,
    attributes_from_json,
    attributes_to_json,
)
from .._record.store import StateStore
from .._record.transaction import FileChange

KEY = "runtime_configuration"
#: How the keys of the records of each runtime's files begin.
PREFIXES = {
    "containerd": "containerd_runtime:",
    "docker": "docker_runtime:",
    "crio": "crio_runtime:",
}


@dataclass(frozen=True)
class Left:
    """A file that is not restored."""

    path: str
    reason: str


def read_current(store: StateStore) -> dict[str, Any]:
    """Return the recorded files of all runtimes as JSON values, by the key of their records."""
    return {
        key: {"file": _to_json(read_file(record.path)), "record": record.to_json()}
        for prefix in PREFIXES.values()
        for key, record in store.records(prefix).items()
    }


def plan_restore(
    store: StateStore, saved: dict[str, Any], prefix: str
) -> tuple[list[FileChange], list[Left]]:
    """Return the changes that restore the saved files of a runtime, and the files that stay.

    A runtime without saved files was first configured afterwards, and is left as it is.

    :param saved: the result of :func:`read_current`.
    :raises KubegpuError: ``saved`` was changed by hand.
    """
    known = {key: _parse(key, one) for key, one in saved.items() if key.startswith(prefix)}
    if not known:
        return [], []
    target_of = {file.path: file for file, _record in known.values()}
    now: dict[str, FileState] = {}
    changes, left = [], []
    for key, record in store.records(prefix).items():
        current = read_file(record.path)
        earlier = known.get(key)
        undo, original = store.undo_target(key, current)
        target = target_of.get(record.path, original)
        ours = record.continues(current.sha256) or current.sha256 == target.sha256
        if not ours or (record.path not in target_of and undo is Undo.REMOVE_LINES):
            left.append(Left(record.path, "another program wrote it since the upgrade changed it"))
            continue
        # Two handlers may have one file: the first change writes it, both have a record.
        before = now.setdefault(record.path, current)
        if earlier is None:
            changes.append(FileChange(key, before, target, undo=True))
        elif before != target or record.details != earlier[1].details:
            changes.append(FileChange(key, before, target, details=earlier[1].details))
        now[record.path] = target
    return changes, left


def _to_json(state: FileState) -> dict[str, Any]:
    content = None if state.content is None else base64.b64encode(state.content).decode()
    return {
        "path": state.path,
        "content": content,
        "mode": state.mode,
        "uid": state.uid,
        "gid": state.gid,
        "selinux": state.selinux,
        "attributes": attributes_to_json(state.attributes),
    }


def _parse(key: str, data: Any) -> tuple[FileState, FileRecord]:
    try:
        file = dict(data["file"])
        content = file.pop("content")
        attributes = attributes_from_json(file.pop("attributes"))
        raw = None if content is None else base64.b64decode(content, validate=True)
        state = FileState(**file, content=raw, attributes=attributes)
        return state, FileRecord.from_json(dict(data["record"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise KubegpuError(
            f"The value {KEY} of the node's record was changed by hand.",
            evidence=f"{key}: {error}",
            next_step="Restore the configuration of the runtime by hand, then remove this value "
            "from state.json.",
        ) from error
