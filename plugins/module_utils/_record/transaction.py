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
    """The change of one file. ``undo``: the file is restored and its record deleted."""

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
    """Write the changes, run the block (for example a validation), then undo what is to be undone.

    If a write or the block fails, the files written so far are restored. Undoing comes after the
    block, since it deletes the records: nothing else can fail then.
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
            # The first failure is reported. A file that cannot be restored keeps its record, so
            # that the next run knows of it.
            with contextlib.suppress(KubegpuError, OSError):
                _restore(store, change, earlier)
        raise
    for change in changes:
        if change.undo:
            store.write_undone(change.key, change.after)


def _restore(store: StateStore, change: FileChange, earlier: FileRecord | None) -> None:
    if store.record(change.key) is None:
        return
    if earlier is None:
        store.write_undone(change.key, change.before)
    else:
        store.write_recorded(
            change.key, read_file(change.before.path), change.before, earlier.details
        )
