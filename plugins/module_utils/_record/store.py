# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of the changes on a node: ``/var/lib/kubegpu/state.json`` and backups."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ansible.module_utils.common.warnings import warn

from .._core.errors import KubegpuError
from .._host import acl as _acl
from .._host.files import (
    FileState,
    locked,
    read_file,
    remove_all_leftovers,
    remove_empty_directories,
    remove_leftovers,
    write_file,
)
from .file_record import FileRecord, Undo, attributes_from_json, attributes_to_json

FORMAT = 1
# Backups are named by their sha256: the names allow guessing at a password in one.
_FOLDER_MODE = 0o700
_WRITABLE_BY_OTHERS = 0o022
_FOR_OTHERS = 0o077
# The directory that only this collection uses. Another one may have other users.
_OWN_FOLDER = "/var/lib/kubegpu"


class StateStore:
    """The record of one node. Use it inside :meth:`transaction`.

    Keys are ``<module>:<name>:<path>`` for files (:meth:`write_recorded`, :meth:`undo`), and any
    other string for values (:meth:`get`, :meth:`put`, :meth:`drop`). Each change is on
    disk when its method returns.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._backups = os.path.join(self._folder, "backups")
        self._data: dict[str, Any] = self._load()
        # The backups that any record has named since the transaction began.
        self._known: set[str] = set()

    @contextlib.contextmanager
    def transaction(self, timeout: float = 60.0) -> Iterator[None]:
        """Lock the node and reload the record; remove it at the end if it is empty.

        :param timeout: seconds to wait for the lock.
        """
        lock = f"{self._path}.lock"
        # Before the lock file is written, and again when no other run works here.
        self._check_owner()
        with locked(lock, timeout, folder_mode=_FOLDER_MODE):
            self._check_owner()
            self._close_folders()
            # Temporary files of killed runs; no other run writes here while the lock is held.
            remove_leftovers(self._path)
            remove_all_leftovers(self._backups)
            self._data = self._load()
            self._known = self._named_backups()
            try:
                yield
            finally:
                self._discard_unnamed()
                if not self._data["files"] and not self._data["values"]:
                    write_file(FileState(self._path))
                    self._clean_up(lock)

    def _check_owner(self) -> None:
        """Check that only root can write the record, since root restores files from it.

        In a folder around it that others may write, they can put another one in its place, unless
        it is sticky, as /tmp.

        :raises KubegpuError: others can.
        """
        trusted = (0, os.geteuid())
        folder = os.path.abspath(self._folder)
        while folder != os.path.dirname(folder):
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(folder)
                if stat.S_ISLNK(status.st_mode) and status.st_uid not in trusted:
                    raise self._writable_by_others(folder, status)
            folder = os.path.dirname(folder)
        folder = os.path.realpath(self._folder)
        sticky = 0
        while True:
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(folder)
                if status.st_uid not in trusted or (
                    status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & sticky
                ):
                    raise self._writable_by_others(folder, status)
            sticky = stat.S_ISVTX
            if folder == os.path.dirname(folder):
                return
            folder = os.path.dirname(folder)

    def _writable_by_others(self, folder: str, status: os.stat_result) -> KubegpuError:
        own = folder == os.path.realpath(self._folder)
        return KubegpuError(
            f"The folder {folder} of the node's record can be written by others than root."
            if own
            else f"The folder {folder}, in which the node's record {self._path} is, can be written "
            "by others than root.",
            evidence=f"user id {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}",
            next_step="See that what lies in it is right, then: "
            + (
                f"chown root: {folder} && chmod 700 {folder}."
                if own
                else f"chown root: {folder} && chmod go-w {folder}; or give another state_path."
            ),
        )

    def _close_folders(self) -> None:
        """Close directories of an earlier release to others."""
        own = (self._folder,) if self._folder == _OWN_FOLDER else ()
        for folder in (*own, self._backups):
            with contextlib.suppress(OSError):
                mode = os.stat(folder, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode) and mode & _FOR_OTHERS:
                    os.chmod(folder, _FOLDER_MODE)

    def get(self, key: str) -> Any:
        """Return the value of ``key``, or None."""
        return self._data["values"].get(key)

    def put(self, key: str, value: Any) -> None:
        if self._data["values"].get(key) != value:
            self._data["values"][key] = value
            self._save()

    def drop(self, key: str) -> None:
        if self._data["values"].pop(key, None) is not None:
            self._save()

    def drop_all(self, prefix: str) -> None:
        """Drop the values whose key begins with ``prefix``."""
        for key in [one for one in self._data["values"] if one.startswith(prefix)]:
            self.drop(key)

    def record(self, key: str) -> FileRecord | None:
        """Return the record of a file change, or None."""
        data = self._data["files"].get(key)
        return None if data is None else self._parsed(data)

    def records(self, prefix: str) -> dict[str, FileRecord]:
        """Return all file records whose key begins with ``prefix``."""
        return {
            key: self._parsed(data)
            for key, data in self._data["files"].items()
            if key.startswith(prefix)
        }

    def write_recorded(
        self,
        key: str,
        before: FileState,
        after: FileState,
        details: dict[str, Any],
        twin: FileRecord | None = None,
    ) -> FileRecord:
        """Record the change from ``before`` to ``after``, then write the file.

        An earlier record under the same key keeps its ``before``, so that undoing restores the
        original file.

        :param twin: a record of the same file under another key, used as the earlier one if there
            is none under this key.
        """
        earlier = self.record(key) or twin
        if earlier is None or before.sha256 == earlier.before_sha256:
            # The file is the original (first write, a killed one, or undone manually).
            made = () if earlier is None else earlier.made_directories
            record = FileRecord(
                path=before.path,
                before_sha256=before.sha256,
                before_mode=before.mode,
                before_uid=before.uid,
                before_gid=before.gid,
                before_selinux=before.selinux,
                before_attributes=attributes_to_json(before.attributes),
                backup=self._backup_path(before),
                after_sha256=after.sha256,
                made_directories=made,
            )
        else:
            record = replace(
                earlier,
                after_sha256=after.sha256,
                edited=earlier.edited or not earlier.continues(before.sha256),
            )
        record = replace(
            record,
            details=details,
            from_sha256=before.sha256,
            after_mode=after.mode,
            after_uid=after.uid,
            after_gid=after.gid,
            after_attributes=attributes_to_json(after.attributes),
            made_directories=record.made_directories
            + tuple(new for new in self._missing(after) if new not in record.made_directories),
        )
        # The record first: a kill leaves a record of a change that was not made, which undoing
        # detects, and never a change or a backup without a record.
        self._put_record(key, record)
        if before.sha256 == record.before_sha256:
            self._keep(before, record.backup)
        remove_leftovers(after.path)
        write_file(after)
        return record

    def take_back(self, key: str, before: FileState, earlier: FileRecord | None) -> None:
        """Restore the file to its state before this run's :meth:`write_recorded`.

        :param earlier: the result of :meth:`record` before that write.
        """
        if earlier is None:
            self.write_undone(key, before)
            return
        write_file(before)
        self._put_record(key, earlier)

    def forget(self, key: str) -> None:
        """Delete the record of a file that remains as it is."""
        record = self.record(key)
        if record is None:
            return
        remove_empty_directories(record.made_directories)
        self._discard(key, record.backup)
        del self._data["files"][key]
        self._save()

    def undo_target(self, key: str, current: FileState) -> tuple[Undo, FileState]:
        """Return how the change is undone and, for a restore, the file as it was before."""
        record = self.record(key)
        if record is None:
            return Undo.REMOVE_LINES, current
        undo = record.undo(current.sha256)
        if undo is not Undo.RESTORE:
            return undo, current
        if record.backup is None:
            return undo, FileState(current.path)
        backup = read_file(record.backup)
        if backup.sha256 != record.before_sha256:
            # The managed lines can still be removed.
            if backup.exists:
                warn(
                    f"The backup {record.backup} of {current.path} is not what was saved: it is "
                    "not restored; only what this collection wrote is removed."
                )
            return Undo.REMOVE_LINES, current
        return undo, FileState(
            current.path,
            backup.content,
            record.restored_mode(current.mode),
            *record.restored_owner(current.uid, current.gid),
            record.before_selinux,
            attributes_from_json(
                record.restored_attributes(attributes_to_json(current.attributes))
            ),
        )

    def write_undone(self, key: str, after: FileState) -> None:
        """Write the undone file, then delete the record and the directories made for the file."""
        remove_leftovers(after.path)
        write_file(after)
        # The record is deleted last: a kill before leaves one with nothing left to undo.
        self.forget(key)

    def put_record(self, key: str, record: FileRecord) -> None:
        """Replace a record, for a module that records several changes of one file."""
        self._put_record(key, record)

    def _missing(self, wanted: FileState) -> tuple[str, ...]:
        missing: list[str] = []
        folder = os.path.dirname(wanted.path)
        while folder and not os.path.isdir(folder):
            missing.insert(0, folder)
            folder = os.path.dirname(folder)
        return tuple(missing)

    def _put_record(self, key: str, record: FileRecord) -> None:
        if record.backup is not None:
            self._known.add(record.backup)
        self._data["files"][key] = record.to_json()
        self._save()

    def _backup_path(self, state: FileState) -> str | None:
        return None if state.content is None else os.path.join(self._backups, f"{state.sha256}")

    def _keep(self, state: FileState, backup: str | None) -> None:
        if backup is None or state.content is None:
            return
        # An existing one may be damaged, and this is the last moment to detect it.
        if read_file(backup).sha256 != state.sha256:
            with contextlib.suppress(OSError):
                # If this fails, writing the backup reports why.
                os.mkdir(self._backups, _FOLDER_MODE)
            write_file(FileState(backup, state.content, 0o600))

    def _discard(self, key: str, backup: str | None) -> None:
        if backup is None or any(
            other != key and isinstance(data, dict) and data.get("backup") == backup
            for other, data in self._data["files"].items()
        ):
            return
        with contextlib.suppress(OSError):
            os.unlink(backup)

    def _named_backups(self) -> set[str]:
        files = self._data["files"].values()
        return {
            str(data["backup"]) for data in files if isinstance(data, dict) and data.get("backup")
        }

    def _discard_unnamed(self) -> None:
        """Remove backups that no record names any more: they may contain a password.

        Other files stay: a user who moved a broken record away may need them.
        """
        for backup in self._known - self._named_backups():
            if os.path.dirname(backup) == self._backups:
                with contextlib.suppress(OSError):
                    os.unlink(backup)

    def _clean_up(self, lock: str) -> None:
        # The lock file is removed while it is held (see `locked`), the directory last: without the
        # lock file another run may start, and then the directory is not empty.
        for remove, path in (
            (os.rmdir, self._backups),
            (os.unlink, lock),
            (os.rmdir, self._folder),
        ):
            with contextlib.suppress(OSError):
                remove(path)

    def _parsed(self, data: Any) -> FileRecord:
        try:
            record = FileRecord.from_json(data)
            for known in (record.before_attributes, record.after_attributes):
                acl = dict(attributes_from_json(known) or ()).get(_acl.ATTRIBUTE)
                if acl is not None:
                    _acl.check(acl)
        except (TypeError, AttributeError, ValueError) as error:
            raise self._unreadable(str(error)) from error
        return record

    def _unreadable(self, evidence: str) -> KubegpuError:
        return KubegpuError(
            f"The node's record {self._path} is of a format that this release cannot read.",
            evidence=evidence,
            next_step="Use the release of kubegpu.nodes that wrote it.",
        )

    def _load(self) -> dict[str, Any]:
        content = read_file(self._path).content
        if content is None:
            return {"format": FORMAT, "files": {}, "values": {}}
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise KubegpuError(
                f"The node's record {self._path} is not valid JSON.",
                evidence=str(error),
                next_step=f"Restore it from a backup, or move it away: without it only what "
                f"equals our own lines is removed. Backups lie in {self._folder}/backups.",
            ) from error
        if not (
            isinstance(data, dict)
            and data.get("format") == FORMAT
            and isinstance(data.get("files"), dict)
            and isinstance(data.get("values"), dict)
        ):
            raise self._unreadable(
                f"format {data.get('format') if isinstance(data, dict) else None!r}"
            )
        return data

    def _save(self) -> None:
        text = json.dumps(self._data, indent=1, sort_keys=True) + "\n"
        write_file(FileState(self._path, text.encode(), 0o600))
