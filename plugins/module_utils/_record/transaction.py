# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several files as one change: all of them are written and recorded, or none is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.changed_parts import changed_parts
from .._core.errors import KubegpuError
from .._host.files import FileState, read_file, remove_leftovers, write_file
from .file_record import FileRecord
from .store import StateStore


@dataclass(frozen=True)
class FileChange:
    """The change of one file. ``undo``: the file is restored and its record deleted.

    ``twin`` is the record under another key that the first record of this key continues;
    ``related`` are the records of the same file under other keys, as they are after the change.
    """

    key: str
    before: FileState
    after: FileState
    undo: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    twin: FileRecord | None = None
    related: Mapping[str, FileRecord] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return (self.before.content, self.before.mode) != (self.after.content, self.after.mode)

    def diff(self, show: Callable[[bytes], str]) -> dict[str, str]:
        """Return the diff in Ansible's format.

        :param show: returns the content as text without secrets.
        """

        def side(state: FileState) -> tuple[str, str]:
            path = self.after.path
            return (
                ("", f"{path} (absent)") if state.content is None else (show(state.content), path)
            )

        (old, before_header), (new, after_header) = side(self.before), side(self.after)
        before, after = changed_parts(old, new)
        return {
            "before": before,
            "after": after,
            "before_header": before_header,
            "after_header": after_header,
        }


class Transaction:
    """Writes files one by one, until :meth:`restore` or :meth:`finish`."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._begun: list[tuple[FileChange, Mapping[str, FileRecord | None]]] = []

    def write(self, change: FileChange) -> None:
        """Write the file. The record of a change is written before it, that of an undo remains."""
        keys = (change.key,) if change.undo else (change.key, *change.related)
        self._begun.append((change, {key: self._store.record(key) for key in keys}))
        if change.undo:
            if change.after != change.before:
                remove_leftovers(change.after.path)
                write_file(change.after)
            return
        for key, record in change.related.items():
            self._store.put_record(key, record)
        details = dict(change.details)
        self._store.write_recorded(change.key, change.before, change.after, details, change.twin)

    def restore(self) -> bool:
        """Restore the files and records, the last one first; return whether a file was written.

        :raises KubegpuError: a file cannot be restored. It keeps its record, so that the next run
            knows of it; the other ones are restored.
        """
        begun, self._begun = self._begun, []
        errors = []
        for change, earlier in reversed(begun):
            try:
                self._restore(change, earlier)
            except (KubegpuError, OSError) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return any(change.before != change.after for change, _earlier in begun)

    def _restore(self, change: FileChange, earlier: Mapping[str, FileRecord | None]) -> None:
        if change.undo:
            if change.after != change.before:
                write_file(change.before)
            return
        record = self._store.record(change.key)
        # Neither differs if the write failed before it began. The record alone does not show it: a
        # killed run can leave an equal one.
        if record != earlier[change.key] or read_file(change.before.path) != change.before:
            self._store.take_back(change.key, change.before, earlier[change.key])
        for key in change.related:
            record = earlier[key]
            if record is not None:
                self._store.put_record(key, record)

    def finish(self) -> None:
        """Delete the records of undone changes: nothing else can fail then."""
        begun, self._begun = self._begun, []
        for change, _earlier in begun:
            if change.undo:
                for key, record in change.related.items():
                    self._store.put_record(key, record)
                self._store.forget(change.key)


@contextlib.contextmanager
def applied(store: StateStore, changes: Sequence[FileChange]) -> Iterator[None]:
    """Write the changes, run the block (for example a validation), then undo what is to be undone.

    If a write or the block fails, the files written so far are restored. Undoing comes after the
    block, since it deletes the records: nothing else can fail then.
    """
    transaction = Transaction(store)
    try:
        for change in changes:
            if not change.undo:
                transaction.write(change)
        yield
    except BaseException:
        # The first failure is reported.
        with contextlib.suppress(KubegpuError, OSError):
            transaction.restore()
        raise
    for change in changes:
        if change.undo:
            store.write_undone(change.key, change.after)
