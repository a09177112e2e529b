# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several files as one change: all of them are written and recorded, or none is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import KubegpuError
from .._host.files import FileState, read_file
from .file_record import FileRecord
from .store import StateStore


@dataclass(frozen=True)
class FileChange:
    """One file's part of a change. ``undo``: the file takes its old shape, the record goes."""

    key: str
    before: FileState
    after: FileState
    undo: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return (self.before.content, self.before.mode) != (self.after.content, self.after.mode)


@contextlib.contextmanager
def applied(store: StateStore, changes: Sequence[FileChange]) -> Iterator[None]:
    """Write the changes, run the block (a validation, say), then finish.

    Whatever fails, in writing or in the block, what was written so far is put back. Changes that
    undo come after the block: they drop their record, so they are done when nothing else can fail.
    """
    done: list[tuple[FileChange, FileRecord | None]] = []
    try:
        for change in changes:
            if not change.undo:
                done.append((change, store.record(change.key)))
                store.write_recorded(change.key, change.before, change.after, dict(change.details))
        yield
    except BaseException:
        for change, earlier in reversed(done):
            # The first failure is the one to be told; a file that cannot be put back keeps its
            # record, so that the next run knows of it.
            with contextlib.suppress(KubegpuError, OSError):
                _put_back(store, change, earlier)
        raise
    for change in changes:
        if change.undo:
            store.write_undone(change.key, change.after)


def _put_back(store: StateStore, change: FileChange, earlier: FileRecord | None) -> None:
    if store.record(change.key) is None:
        return
    if earlier is None:
        store.write_undone(change.key, change.before)
    else:
        store.write_recorded(
            change.key, read_file(change.before.path), change.before, earlier.details
        )
