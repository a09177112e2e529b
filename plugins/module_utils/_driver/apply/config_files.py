# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's configuration files on the node: compared, written, undone, restored."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._host.files import FileState, read_file
from ..._record.file_record import Undo
from ..._record.transaction import FileChange
from ..plan.config_files import FILES, GRIDD, IN_INITRAMFS, MODULES, NOUVEAU, OPTIONS, TOKEN, UDEV
from . import units

if TYPE_CHECKING:
    from .context import Context

# Files from which single lines can be removed; the other files make sense only as a whole.
BY_LINES = (NOUVEAU, OPTIONS, MODULES, UDEV, GRIDD)
# The mode from NVIDIA's guide for clients of its licence system.
_TOKEN_MODE = 0o744
_FILE_MODE = 0o644


def file_changes(context: Context) -> dict[str, FileChange]:
    """Return the changes of configuration files by path, including files to be undone."""
    wanted: dict[str, bytes] = {}
    busy = not context.present or context.plan.change or context.record.pending is not None
    if context.present:
        wanted = {path: text.encode() for path, text in context.plan.files.items()}
        # A node that is no vGPU guest does not need the secret.
        if context.params["_token"] and context.plan.licence_token is not None:
            wanted[TOKEN] = base64.b64decode(context.params["_token"])
    changes = {}
    for path, content in sorted(wanted.items()):
        before = read_file(context.absolute(path))
        mode = _TOKEN_MODE if path == TOKEN else _FILE_MODE
        after = replace(before, content=content, mode=before.mode if before.exists else mode)
        change = FileChange(f"{FILES}{path}", before, after, details=_details(path, content))
        if change.changed:
            changes[path] = change
    for key, record in context.store.records(FILES).items():
        path = key[len(FILES) :]
        if path in wanted or not busy:
            continue
        before = read_file(context.absolute(path))
        way, after = context.store.undo_target(key, before)
        if way is Undo.REMOVE_LINES and path not in BY_LINES:
            after = before
        elif way is Undo.REMOVE_LINES and before.content is not None:
            rest = remove_lines(before.content.decode(), record.details.get("text", ""))
            after = replace(before, content=None if rest is None else rest.encode())
        changes[path] = FileChange(key, before, after, undo=True)
    return changes


def _details(path: str, content: bytes) -> dict[str, Any]:
    # The token is a secret, and not a text that a user would edit.
    return {} if path == TOKEN else {"text": content.decode()}


def to_record(state: FileState) -> dict[str, Any] | None:
    """Return a file for the record, for :func:`put_back`."""
    if state.content is None:
        return None
    return {"content": base64.b64encode(state.content).decode(), "mode": state.mode}


def restore_file(context: Context, path: str, kept: Mapping[str, Any] | None) -> bool:
    """Restore a file to its state before this change; return whether it differed."""
    now = read_file(context.absolute(path))
    old = replace(
        now,
        content=None if kept is None else base64.b64decode(kept["content"]),
        mode=now.mode if kept is None else kept["mode"],
    )
    key = f"{FILES}{path}"
    record = context.store.record(key)
    if now.content == old.content and record is None:
        return False
    if record is not None and record.before_sha256 == old.sha256:
        context.store.write_undone(key, old)
    else:
        context.store.write_recorded(key, now, old, _details(path, old.content or b""))
    return now.content != old.content


def read_again(context: Context, paths: Iterable[str]) -> None:
    """Reload the services whose files were written."""
    paths = tuple(paths)
    units.read_again(
        context.run,
        units=any(path.startswith("/etc/systemd/") for path in paths),
        rules=any(path.startswith("/etc/udev/") for path in paths),
    )


def needs_initramfs(paths: Sequence[str]) -> bool:
    """Return whether one of the files has a copy in the initial RAM disk."""
    return any(path in IN_INITRAMFS for path in paths)


def remove_lines(text: str, ours: str) -> str | None:
    """Return an edited file without our lines; None if no other line is left."""
    mine = set(ours.splitlines())
    left = [line for line in text.splitlines(keepends=True) if line.rstrip("\n") not in mine]
    return "".join(left) if any(line.strip() for line in left) else None
