# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Set up or remove a package repository: read its files, plan, write all of them or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._core.changed_parts import changed_parts
from .._core.errors import InputError, RolledBackError
from .._core.redact_lines import redact_lines
from .._distro.images import REPOSITORIES, loses_settings
from .._distro.os_release import read_os
from .._host.access import barrier, sandbox_user
from .._host.command import Runner
from .._host.files import FileState, read_file
from .._host.reader import NodeReader
from .._record.file_record import Undo
from .._record.store import StateStore
from .._record.transaction import FileChange, applied
from .key_download import download_key
from .options import Options
from .plan import check, plan
from .rpm_keyring import RING, Ring, plan_ring, read_ring
from .types import CONFIGURATION, KEY, SOURCES, Change, Format, Plan, Request, SeenFile, State


@dataclass(frozen=True)
class Result:
    """What the module returns: the values, the warnings, and the diff for diff mode."""

    values: dict[str, Any]
    warnings: tuple[str, ...] = ()
    diff: tuple[dict[str, str], ...] = ()


def apply(options: Options, run: Runner, store: StateStore) -> Result:
    """Make the repository be as requested, or predict that in check mode.

    :raises KubegpuError: the request is refused, or a change failed. All files are restored then.
    """
    request = options.request
    if request.present and options.key_url:
        request = replace(request, key=_download(request, options.key_url))
    # Before the node is locked: no other run waits for the check of what a server sent.
    check(request)
    if request.present and request.format.sandboxed:
        _check_access(run, request)
    refusal = loses_settings(read_os(NodeReader(run=run)), REPOSITORIES)
    if refusal and request.present:
        seen, _plan_of_seen = _plan(request, store, options.architecture)
        if any(change.changed for change in seen):
            raise refusal
    if options.check_mode:
        changes, plan_ = _plan(request, store, options.architecture)
        ring = _plan_ring(run, request, store, plan_)
    else:
        with store.transaction():
            changes, plan_ = _plan(request, store, options.architecture)
            ring = _plan_ring(run, request, store, plan_)
            validate = options.validate and bool(changes)
            complaints = _complaints(run, request) if validate else ""
            with applied(store, changes):
                if request.present and validate:
                    _validate(run, request, complaints)
                _change_ring(run, request, store, ring)
    return _result(request, changes, plan_, ring)


def _result(request: Request, changes: list[FileChange], plan_: Plan, ring: Ring) -> Result:
    changed = [change for change in changes if change.changed]
    files = {SOURCES: request.sources_file, KEY: request.signed_by}
    if request.configuration_file and (
        request.http_proxy or request.https_proxy or request.ca_file
    ):
        files[CONFIGURATION] = request.configuration_file
    return Result(
        {
            "changed": ring.changed or bool(changed),
            "files": files if request.present else {},
            "disabled": [dict(entry) for entry in plan_.disabled],
            "key_fingerprints": list(plan_.key_fingerprints),
            "reasons": [*plan_.reasons, *ring.reasons],
        },
        request.format.warnings(request) if request.present and changed else (),
        (*map(_file_diff, changed), *([_ring_diff(ring)] if ring.changed else [])),
    )


def _download(request: Request, url: str) -> str:
    proxies = {
        "http_proxy": request.http_proxy,
        "https_proxy": request.https_proxy,
        "no_proxy": request.no_proxy,
    }
    return download_key(url, proxies, request.ca_file).decode("utf-8", "surrogateescape")


def _check_access(run: Runner, request: Request) -> None:
    """Check that the package manager's own user can enter the folder of the key.

    :raises InputError: it cannot, so that each signature of the repository would be refused.
    """
    user = sandbox_user(run)
    # A key of our own is written with a mode that lets everybody read it.
    path = request.keyring or request.key_file.rpartition("/")[0]
    found = barrier(run, path, user) if user else None
    if found is not None:
        raise InputError(
            f"{request.format.name} reads keys as the user {user}, which cannot read "
            f"{request.signed_by}; nothing was changed.",
            evidence=found.shown(),
            next_step=f"Run {found.command()}, then run again.",
        )


def _plan(request: Request, store: StateStore, architecture: str) -> tuple[list[FileChange], Plan]:
    """Read the files and plan; return the changes of files for the transaction, and the plan."""
    prefix = f"package_repository:{request.name}:"
    paths = {request.sources_file, request.key_file, request.configuration_file} - {""}
    paths.update(_source_files(request.format))
    paths.update(key[len(prefix) :] for key in store.records(prefix))
    files = {path: read_file(path) for path in sorted(paths)}
    seen = {path: _read_record(path, file, store, prefix) for path, file in files.items()}
    plan_ = plan(request, State(seen, architecture))
    changes = []
    for change in plan_.changes:
        key, before = prefix + change.path, files[change.path]
        after = _after(store, key, before, change)
        changes.append(FileChange(key, before, after, change.undo, dict(change.details)))
    return changes, plan_


def _source_files(format_: Format) -> list[str]:
    """Return all files of package sources, those of other repositories included."""
    reader = NodeReader()
    folder = format_.sources_file("any").rpartition("/")[0]
    names = [name for name in reader.list_dir(folder) if format_.source_file.match(name)]
    paths = (*format_.more_sources, *(f"{folder}/{name}" for name in names))
    return [path for path in paths if reader.is_file(path)]


def _read_record(path: str, file: FileState, store: StateStore, prefix: str) -> SeenFile:
    """Return the file with what the node's record says of it."""
    record = store.record(prefix + path)
    if record is None:
        return SeenFile(path, _text(file), file.mode)
    undo, target = store.undo_target(prefix + path, file)
    restored = target if undo is Undo.RESTORE else None
    return SeenFile(
        path,
        _text(file),
        file.mode,
        recorded=True,
        undo=undo,
        restored=None if restored is None else _text(restored),
        restored_mode=None if restored is None else restored.mode,
        details=record.details,
    )


def _after(store: StateStore, key: str, before: FileState, change: Change) -> FileState:
    if change.undo:
        undo, target = store.undo_target(key, before)
        if undo is Undo.RESTORE:
            return target
    if change.text is None:
        return FileState(before.path)
    content = change.text.encode("utf-8", "surrogateescape")
    return replace(before, content=content, mode=change.mode)


def _plan_ring(run: Runner, request: Request, store: StateStore, plan_: Plan) -> Ring:
    """Return the changes of rpm's keyring; none where the package manager has none."""
    record = store.get(RING) or {}
    requested = request.present and request.format.imports(request)
    ours = any(request.name in value["for"] for value in record.values())
    if not request.format.keyring or not (requested or ours):
        return Ring(record=record)
    wanted = plan_.key_fingerprints if requested else ()
    return plan_ring(request.name, wanted, read_ring(run), record)


def _change_ring(run: Runner, request: Request, store: StateStore, ring: Ring) -> None:
    """Import and erase keys. An import is recorded before it is made, an erasure afterwards."""
    if ring.add:
        store.put(RING, dict(ring.record))
        _rpm(run, ["rpm", "--import", request.key_file])
    for package in ring.erase:
        _rpm(run, ["rpm", "--erase", package])
    if ring.record:
        store.put(RING, dict(ring.record))
    else:
        store.drop(RING)


def _rpm(run: Runner, argv: list[str]) -> None:
    answer = run(argv)
    if not answer.ok:
        raise RolledBackError(
            "rpm's keyring could not be changed; all files were restored.",
            evidence=answer.last_output(),
            next_step="Run it to see why: " + " ".join(argv),
        )


def _complaints(run: Runner, request: Request) -> str:
    """Return the package manager's complaints about its sources, or an empty string."""
    answer = run(list(request.format.validation(request)))
    return "" if answer.ok else answer.last_output()


def _validate(run: Runner, request: Request, earlier: str) -> None:
    """Check that the package manager accepts its sources.

    :param earlier: its complaints before the change. They concern other entries.
    """
    complaints = _complaints(run, request)
    if complaints and complaints != earlier:
        raise RolledBackError(
            f"{request.format.name} refuses its source entries with the new one; all files were "
            "restored.",
            evidence=complaints,
            next_step=f"Correct the entry that {request.format.name} names, or name its URL in "
            "replaces.",
        )


def _file_diff(change: FileChange) -> dict[str, str]:
    before, after = changed_parts(_redacted(change.before), _redacted(change.after))
    return {
        "before": before,
        "after": after,
        "before_header": _header(change.before, change),
        "after_header": _header(change.after, change),
    }


def _ring_diff(ring: Ring) -> dict[str, str]:
    return {
        "before": "".join(f"{key}\n" for key in ring.before),
        "after": "".join(f"{key}\n" for key in ring.after),
        "before_header": "keys that rpm trusts",
        "after_header": "keys that rpm trusts",
    }


def _redacted(file: FileState) -> str:
    return redact_lines((_text(file) or "").encode("utf-8", "replace").decode())


def _header(file: FileState, change: FileChange) -> str:
    if change.before.content != change.after.content or file.mode is None:
        return file.path
    return f"{file.path} (mode {file.mode:04o})"


def _text(file: FileState) -> str | None:
    return None if file.content is None else file.content.decode("utf-8", "surrogateescape")
