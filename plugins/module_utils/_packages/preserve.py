# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that keep their content although the scripts of packages change or remove them.

They are saved in the node's record before the package manager runs, and restored after it; a run
that was killed in between is made good by the next one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from .._host.files import FileState, glob_files, read_file, write_file
from .._record.store import StateStore


def key(name: str) -> str:
    """Return the key of the saved files of a package set in the node's record."""
    return f"package_set_preserved:{name}"


def save(store: StateStore, name: str, patterns: Sequence[str]) -> None:
    """Save the files that match, unless those of an earlier run are still saved."""
    if not patterns or store.get(key(name)):
        return
    found = [read for path in _paths(patterns) for read in _read(path)]
    store.put(key(name), [_to_json(state) for state in found])


def differing(store: StateStore, name: str) -> list[str]:
    """Return the saved files that have another content now."""
    return [state.path for state in _saved(store, name) if _differs(state)]


def restore(store: StateStore, name: str) -> None:
    """Restore the saved files, and forget them."""
    for state in _saved(store, name):
        if _differs(state):
            write_file(state)
    store.drop(key(name))


def check_patterns(patterns: Sequence[str]) -> None:
    """Check the option ``preserve``.

    :raises InputError: a pattern is no absolute path.
    """
    for pattern in patterns:
        if not pattern.startswith("/"):
            raise InputError(
                f"preserve: {pattern!r} is not an absolute path.",
                next_step="Give a path such as /etc/docker/daemon.json or /etc/cdi/*.",
            )


def _paths(patterns: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        found.update(dict.fromkeys(glob_files(pattern)))
    return list(found)


def _read(path: str) -> list[FileState]:
    try:
        state = read_file(path)
    except InputError:
        # A folder or a device: a script that removes it is not undone.
        return []
    return [state] if state.exists else []


def _saved(store: StateStore, name: str) -> list[FileState]:
    return [_from_json(one) for one in store.get(key(name)) or ()]


def _differs(state: FileState) -> bool:
    return read_file(state.path).sha256 != state.sha256


def _to_json(state: FileState) -> dict[str, Any]:
    return {
        "path": state.path,
        "content": base64.b64encode(state.content or b"").decode(),
        "mode": state.mode,
        "uid": state.uid,
        "gid": state.gid,
    }


def _from_json(data: Mapping[str, Any]) -> FileState:
    content = base64.b64decode(data["content"])
    return FileState(data["path"], content, data["mode"], data["uid"], data["gid"])
