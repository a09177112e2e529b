# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fact ``runtimes.crio``: the effective configuration, and whether the daemon has loaded it."""

from __future__ import annotations

import calendar
import posixpath
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._core.finding import Finding
from .._formats.toml_read import read_toml
from .._runtime.config_file import ConfigFile
from .plan import effective, missing_keys, outdated, own_runtime, read_order
from .types import Effective, Request, Runtime

if TYPE_CHECKING:
    from .._host.reader import NodeReader

CONFIG = Request.config_path
DROP_IN = Request.drop_in_path
_FOLDER = posixpath.dirname(DROP_IN)
_NOTHING: Mapping[str, Any] = {
    "runtimes": None,
    "default_runtime": None,
    "default_file": None,
    "own_runtime": None,
    "restart_required": None,
}


def read_crio(
    reader: NodeReader, active: bool | None, started: str | None
) -> tuple[dict[str, Any], list[Finding]]:
    """Return the effective configuration and the problems in it; None: a file cannot be read.

    :param started: when the running CRI-O was started, in UTC.
    """
    files: list[ConfigFile] = []
    for path in (CONFIG, *_drop_ins(reader, _FOLDER)):
        if reader.absent(path):
            continue
        text = reader.read_text(path)
        if text is None:
            return dict(_NOTHING), []
        try:
            files.append(ConfigFile(path, text, read_toml(text)))
        except ValueError as error:
            return dict(_NOTHING), [_invalid(path, str(error))]
    seen = effective(files)
    own = own_runtime("", effective(file for file in files if file.path != DROP_IN))
    return {
        "runtimes": _runtimes(seen, files),
        "default_runtime": seen.default,
        "default_file": seen.default_file,
        "own_runtime": own and _named(own),
        "restart_required": _restart_required(reader, files, started) if active else False,
    }, []


def _drop_ins(reader: NodeReader, folder: str) -> Iterator[str]:
    """Yield the files of the folder and its subfolders in CRI-O's order."""
    for name in reader.list_dir(folder):
        path = f"{folder}/{name}"
        if not reader.is_dir(path):
            yield path
        elif not reader.is_link(path):
            yield from _drop_ins(reader, path)


def _runtimes(seen: Effective, files: list[ConfigFile]) -> dict[str, Any]:
    own = read_order(DROP_IN)
    before = [file for file in files if read_order(file.path) < own]
    after = [file for file in files if read_order(file.path) > own]
    ours = next((file for file in files if file.path == DROP_IN), None)
    return {
        name: {
            "type": handler.get("runtime_type") or None,
            "path": handler.get("runtime_path") or None,
            "file": seen.handler_file[name],
            "outdated": ours is not None
            and seen.handler_file[name] == DROP_IN
            and outdated(name, str(handler.get("runtime_path")), before, ours, after),
            "lacks": list(missing_keys(Request(name=name), seen) or ())
            if handler.get("runtime_path") == Request.runtime_path
            else [],
        }
        for name, handler in sorted(seen.handlers.items())
    }


def _named(own: Runtime) -> dict[str, Any]:
    return {"name": own.name, "path": own.path}


def _restart_required(
    reader: NodeReader, files: list[ConfigFile], started: str | None
) -> bool | None:
    """Return whether the running CRI-O started before its files were last changed."""
    if started is None:
        return None
    moment = calendar.timegm(time.strptime(started, "%Y-%m-%dT%H:%M:%SZ"))
    times = (reader.times(path) for path in (_FOLDER, *(file.path for file in files)))
    return any(found is not None and found[1] > moment for found in times)


def _invalid(path: str, error: str) -> Finding:
    return Finding(
        "crio_config_invalid",
        f"CRI-O cannot load {path}: it will not come back from a restart.",
        error,
        "Correct it, then check: crio config",
    )
