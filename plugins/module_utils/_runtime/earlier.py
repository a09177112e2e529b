# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorded files of all runtimes at a point in time, and the rollback to them."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
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
    :raises KubegpuError: ``saved`` was changed manually.
    """
    known = {key: _parse(key, one) for key, one in saved.items() if key.startswith(prefix)}
    if not known:
        return [], []
    records = store.records(prefix)
    saved_as = {file.path: file for file, _record in known.values()}
    found = {record.path: read_file(record.path) for record in records.values()}
    targets: dict[str, FileState] = {}
    foreign = set()
    for key, record in records.items():
        path, current = record.path, found[record.path]
        undo, original = store.undo_target(key, current)
        target = _keeping(record, saved_as[path], current) if path in saved_as else original
        # Two handlers may have one file: the record that knows it best says who owns it now.
        if path not in targets or record.after_sha256 == current.sha256:
            targets[path] = target
        if current.sha256 != target.sha256 and (
            not record.continues(current.sha256)
            or _edited_since(record, known.get(key))
            or (path not in saved_as and undo is Undo.REMOVE_LINES)
        ):
            foreign.add(path)
    changes = []
    now = dict(found)
    for key, record in records.items():
        before, target = now[record.path], targets[record.path]
        if record.path in foreign:
            continue
        earlier = known.get(key)
        if earlier is None:
            changes.append(FileChange(key, before, target, undo=True))
        elif before != target or record.details != earlier[1].details:
            changes.append(FileChange(key, before, target, details=earlier[1].details))
        # The first change of a file writes it.
        now[record.path] = target
    left = [Left(path, "another program wrote it since it was saved") for path in sorted(foreign)]
    for path, file in saved_as.items():
        if path not in found and read_file(path).sha256 != file.sha256:
            left.append(Left(path, "this collection's settings were taken out of it since"))
    return changes, left


def _edited_since(record: FileRecord, earlier: tuple[FileState, FileRecord] | None) -> bool:
    """Return whether another program wrote the file between two writes of ours since the save."""
    return record.edited and not (earlier is not None and earlier[1].edited)


def _keeping(record: FileRecord, saved: FileState, current: FileState) -> FileState:
    """Return the saved file with the mode, owner and ACL that others gave it since our last write.

    A file with the saved content remains as it is.
    """
    if current.sha256 == saved.sha256:
        return current
    if not current.exists or not saved.exists:
        return saved
    original = replace(
        record,
        before_mode=saved.mode,
        before_uid=saved.uid,
        before_gid=saved.gid,
        before_attributes=attributes_to_json(saved.attributes),
    )
    uid, gid = original.restored_owner(current.uid, current.gid)
    attributes = original.restored_attributes(attributes_to_json(current.attributes))
    return replace(
        saved,
        mode=original.restored_mode(current.mode),
        uid=uid,
        gid=gid,
        attributes=attributes_from_json(attributes),
    )


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
            f"The value {KEY} of the node's record was changed manually.",
            evidence=f"{key}: {error}",
            next_step="Restore the configuration of the runtime manually, then remove this value "
            "from state.json.",
        ) from error
