# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""container_toolkit_config: edit the toolkit's ``config.toml``, or undo the edits."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import InputError
from .._formats.toml_redact import redact
from .._host.files import FileState, read_file, sha256
from .._record.file_record import FileRecord, Undo
from .._record.store import StateStore
from .._record.transaction import FileChange
from .._runtime.config_file import table
from .._runtime.toml_settings import (
    Parser,
    Plan,
    Seen,
    parse_text,
    plan_absent,
    plan_present,
)
from .settings import Release, faults, release_of


@dataclass(frozen=True)
class ConfigRequest:
    """The settings that the user asks for.

    ``existed``: whether the file was there before the play installed the toolkit.
    """

    settings: Mapping[str, Any]
    state: str
    existed: bool
    toolkit_version: str
    config_path: str

    @property
    def key(self) -> str:
        """The key of the file's record."""
        return f"container_toolkit_config::{self.config_path}"


def apply(
    request: ConfigRequest, store: StateStore, parse: Parser, *, check: bool, diff: bool
) -> dict[str, Any]:
    """Edit the file, unless in check mode, and return the module's result.

    :param diff: whether the result has a diff.

    :raises KubegpuError: the file cannot be edited, or the toolkit would not accept a value.
    """
    if check:
        before, after, plan = _plan(request, store, parse)
    else:
        with store.transaction():
            before, after, plan = _plan(request, store, parse)
            _write(request, store, parse, before, after, plan)
    result = {
        "changed": before.content != after.content,
        "path": before.path,
        "reasons": list(plan.reasons),
    }
    return {**result, "diff": _diff(before, after)} if diff else result


def _diff(before: FileState, after: FileState) -> list[dict[str, str]]:
    if before.content == after.content:
        return []
    return [FileChange("", before, after).diff(lambda content: redact(content.decode()))]


def _plan(
    request: ConfigRequest, store: StateStore, parse: Parser
) -> tuple[FileState, FileState, Plan]:
    """Return the file before and after the change, and the plan of its settings."""
    before = read_file(request.config_path)
    record = store.record(request.key)
    seen = Seen(_text(before))
    target = before
    if record is not None:
        undo, target = store.undo_target(request.key, before)
        made = undo is Undo.REMOVE_LINES and record.before_sha256 is None and before.exists
        if made and record.details.get("meaning") == _content_digest(seen.text or "", parse):
            # The packages of another release write the file again, with the values that it has.
            undo, target = Undo.RESTORE, FileState(before.path)
        seen = seen.with_record(record, undo, _text(target))
    parse = _naming_file(before.path, parse)
    if request.state == "present":
        plan = plan_present(request.settings, seen, parse)
        release = release_of(request.toolkit_version)
        _check(request.settings, release, parse_text(seen.text or "", parse))
    else:
        plan = plan_absent(request.settings, seen, parse)
        if seen.recorded and seen.way is Undo.RESTORE:
            return before, target, plan
    if plan.text is None:
        return before, FileState(before.path), plan
    return before, replace(before, content=plan.text.encode()), plan


def _naming_file(path: str, parse: Parser) -> Parser:
    """Return a parser whose errors name the file."""

    def read(text: str) -> dict[str, Any]:
        try:
            return parse(text)
        except ValueError as error:
            raise InputError(
                f"{path} is not valid TOML; it is left as it is.",
                evidence=str(error),
                next_step="Correct the file, or move it away and run again.",
            ) from error

    return read


def _check(settings: Mapping[str, Any], release: Release, data: Mapping[str, Any]) -> None:
    """Check the values.

    :raises InputError: the toolkit of this release would not work with one.
    """
    features = {f"features.{name}": value for name, value in table(data, ("features",)).items()}
    for fault in faults(settings, release, features):
        raise InputError(
            f"settings: {fault.message}.",
            next_step="Correct the value, or leave it out.",
        )


def _content_digest(text: str, parse: Parser) -> str:
    """Return a digest of a file's values, independent of order, layout and comments."""
    data = json.dumps(parse_text(text, parse), sort_keys=True, default=str)
    return sha256(data.encode())


def _has_managed_values_only(record: FileRecord | None, before: FileState, parse: Parser) -> bool:
    """Return whether the file has the values of the last recorded write, or is the original."""
    if record is None or before.sha256 == record.before_sha256:
        return True
    digest = record.details.get("meaning")
    if not digest:
        return False
    return record.continues(before.sha256) or digest == _content_digest(_text(before) or "", parse)


def _write(
    request: ConfigRequest,
    store: StateStore,
    parse: Parser,
    before: FileState,
    after: FileState,
    plan: Plan,
) -> None:
    key = request.key
    if request.state == "absent":
        if before != after or store.record(key) is not None:
            store.write_undone(key, after)
        return
    made = not request.existed and before.content is not None and store.record(key) is None
    if made or before.content != after.content:
        managed = _has_managed_values_only(store.record(key), before, parse)
        details = {
            "settings": dict(plan.ours),
            "tables": list(plan.tables),
            # Empty: it has values of others, and must not be removed as a whole.
            "meaning": _content_digest(_text(after) or "", parse) if managed else "",
        }
        first = FileState(before.path) if made else before
        record = store.write_recorded(key, first, after, details)
        if made:
            directory = posixpath.dirname(before.path)
            store.put_record(key, replace(record, made_directories=(directory,)))


def _text(state: FileState) -> str | None:
    if state.content is None:
        return None
    try:
        return state.content.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{state.path} is not UTF-8 text; it is left as it is.",
            evidence=str(error),
            next_step="Correct the file, or move it away and run again.",
        ) from error
