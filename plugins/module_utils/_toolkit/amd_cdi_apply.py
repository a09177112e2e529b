# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""amd_cdi_specification: have the CDI specification of AMD GPUs made, or undo that."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import Any

from .._host.command import Runner
from .._host.files import FileState, glob_files, read_file, write_file
from .._record.file_record import Undo
from .._record.store import StateStore
from .amd_cdi import KEY, describe, made_for, read_amd_specification
from .amd_cdi_checks import check_generated, stale

_SECONDS = 120
_MODE = 0o644


@dataclass(frozen=True)
class AmdCdiRequest:
    """The module's options, except for ``state``."""

    path: str
    program: str
    device_directory: str


@dataclass(frozen=True)
class Dependencies:
    """Access to the node. ``temporary_directory`` takes the file that amd-ctk writes."""

    run: Runner
    store: StateStore
    temporary_directory: str


def present(request: AmdCdiRequest, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Have the specification made if it does not fit the devices; return the result."""
    nodes = list(glob_files(f"{request.device_directory}/renderD*"))
    before = read_file(request.path)
    there = read_amd_specification(_text(before))
    recorded = node.store.record(KEY + before.path)
    made = made_for(recorded.details) if recorded else None
    why = stale(there.nodes if there else None, made, nodes)
    if why and not check_mode:
        with node.store.transaction():
            _generate(request, node, before, nodes)
    seen = None if there is None else list(there.nodes) if made is None else made
    return {
        "changed": why is not None,
        "path": request.path,
        "devices": nodes,
        "reasons": [why] if why else [],
        "diff": _diff(request.path, describe(seen), describe(nodes if why else seen)),
    }


def _generate(
    request: AmdCdiRequest, node: Dependencies, before: FileState, nodes: list[str]
) -> None:
    # Before 1.3.0 the program takes no other name than this one.
    output = f"{node.temporary_directory}/amd.json"
    answer = node.run([request.program, "cdi", "generate", f"--output={output}"], timeout=_SECONDS)
    made = read_file(output)
    check_generated(_text(made) if answer.ok else None, answer.last_output())
    write_file(FileState(made.path))
    after = dataclasses.replace(before, content=made.content, mode=before.mode or _MODE)
    node.store.write_recorded(KEY + before.path, before, after, {"nodes": nodes})


def absent(request: AmdCdiRequest, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Undo the recorded write; a file without a record is not managed. Return the result."""
    store = node.store
    with contextlib.nullcontext() if check_mode else store.transaction():
        before = after = read_file(request.path)
        key = KEY + before.path
        recorded = store.record(key)
        if recorded is not None:
            undo, target = store.undo_target(key, before)
            # Another program made it since: it is no longer managed, and remains.
            after = before if undo is Undo.REMOVE_LINES else target
            if not check_mode:
                store.write_undone(key, after)
    made = made_for(recorded.details) if recorded else None
    changed = after.sha256 != before.sha256
    return {
        "changed": changed,
        "path": request.path,
        "devices": [],
        "reasons": ["this module made it"] if changed else [],
        "diff": _diff(request.path, describe(_shown(before, made)), describe(_shown(after, None))),
    }


def _shown(state: FileState, made: list[str] | None) -> list[str] | None:
    found = read_amd_specification(_text(state))
    return None if found is None else list(found.nodes) if made is None else made


def _text(state: FileState) -> str | None:
    return None if state.content is None else state.content.decode(errors="replace")


def _diff(path: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": path, "after_header": path, "before": before, "after": after}
