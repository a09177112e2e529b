# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the running dockerd needs a reload or a restart to do what ``daemon.json`` says.

Measured with dockerd 20.10, 26.1 and 28.5: a reload applies ``runtimes`` and ``default-runtime``
if the file has them. A key that was removed from the file keeps its effect, and 20.10 crashes on a
reload that removes its default runtime (see :func:`transition`).
"""

from __future__ import annotations

from collections.abc import Mapping

from .._core.versions import find_version, upstream_numbers
from .._formats.json_edit import Document
from .config import default_runtime, runtimes
from .record import Edit, Record
from .types import BUILTIN_DEFAULT, HOOK, Info, Needs, Request, Running

TRANSITION = "transition"
_GPUS_SINCE = (19, 3)
_VALIDATE_SINCE = (23, 0)
_CDI_SINCE = (25, 0)
_CDI_DEFAULT_SINCE = (28, 3)
_CDI_DEFAULT_UNKNOWN_SINCE = (28, 0)


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of ``Docker version 20.10.24+dfsg1, build ...`` or of ``28.5.2``."""
    return upstream_numbers(find_version(text)) or None


def can_validate(version: tuple[int, ...]) -> bool:
    return version >= _VALIDATE_SINCE


def needs(
    document: Document, request: Request, running: Running, version: tuple[int, ...] | None
) -> Needs:
    """Compare the file (not the changes of this run) with the running dockerd."""
    reload: list[str] = []
    restart: list[str] = []
    notes: list[str] = []
    info = running.info
    actual = (parse_version(info.version) if info is not None else None) or version
    hooked = request.present and request.needs_hook
    if hooked and actual is not None and actual < _GPUS_SINCE:
        notes.append(
            f"Docker {_dotted(actual)} has no --gpus (it came with 19.03): start GPU containers "
            f"with --runtime={request.name}."
        )
    if request.present and request.cdi and actual is not None and actual < _CDI_SINCE:
        notes.append(
            f"Docker {_dotted(actual)} has no CDI (it came with 25.0): features.cdi has no "
            "effect yet."
        )
    if not running.active:
        return Needs(notes=tuple(notes))
    if info is None:
        notes.append(
            "dockerd runs but does not answer on its socket: it is unknown whether it has loaded "
            "the file."
        )
        if running.file_changes:
            reload.append("the file changes, and dockerd cannot be asked what it runs with")
    else:
        reload += _reload_reasons(document, info, running.flags)
        restart += _cdi_reasons(document, info, actual)
    if hooked and (actual is None or actual >= _GPUS_SINCE):
        if running.hook_path is None:
            notes.append(
                f"{HOOK} is not installed: docker run --gpus will not work. "
                "Install the NVIDIA container toolkit."
            )
        elif running.started_before_hook:
            restart.append(
                f"--gpus needs a dockerd that was started after {running.hook_path} was "
                "installed: it looks for it once, at start"
            )
    return Needs(tuple(reload), tuple(restart), tuple(notes))


def applied(document: Document, info: Info | None, flags: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether the running dockerd has the file's runtimes and default runtime."""
    return info is not None and not _reload_reasons(document, info, flags)


def transition(document: Document, info: Info | None, running: Running) -> Document | None:
    """Return the file for one reload before ``document``; None: a plain reload is enough.

    A reload removes neither runtimes nor a default runtime that the file no longer names, and it
    fails without a file. So the file names both explicitly during one reload.
    """
    if "default-runtime" in running.flags or "add-runtime" in running.flags:
        return None  # the file must not repeat options of the command line
    node = document.get(["runtimes"])
    lacks_runtimes = node is None or node.is_null
    lacks_default = default_runtime(document) is None
    removed = info is None or bool(set(info.runtimes) - set(_builtin(info)) - {BUILTIN_DEFAULT})
    other = info is None or info.default_runtime != BUILTIN_DEFAULT
    if not ((lacks_runtimes and removed) or (lacks_default and other)):
        return None
    between = document.ensure_object([]).ensure_object(["runtimes"])
    if lacks_default:
        path = ["default-runtime"]
        between = between.set(path, between.dump(BUILTIN_DEFAULT, path))
    return between


def transition_record(document: Document) -> Record:
    """Return the record for removing a :func:`transition` from a file that was edited."""
    edits: tuple[Edit, ...] = ()
    if default_runtime(document) is None:
        edits = (Edit(("default-runtime",), document.raw(["default-runtime"]), '"runc"'),)
    made = [(path, document.raw(path)) for path in ((), ("runtimes",))]
    return Record({TRANSITION: edits}, tuple(made))


def _reload_reasons(
    document: Document, info: Info, given: Mapping[str, tuple[str, ...]]
) -> list[str]:
    reasons = []
    named = runtimes(document)
    flagged = {value.partition("=")[0] for value in given.get("add-runtime", ())}
    for name, entry in named.items():
        running = info.runtimes.get(name)
        if running is None:
            reasons.append(f"the running dockerd does not know the runtime {name}")
        elif isinstance(entry, dict) and isinstance(entry.get("path"), str):
            if running.get("path") != entry["path"]:
                reasons.append(
                    f"the running dockerd has {running.get('path')} for the runtime {name}"
                )
            elif (running.get("runtimeArgs") or []) != (entry.get("runtimeArgs") or []):
                reasons.append(f"the running dockerd has other arguments for the runtime {name}")
    for name in info.runtimes:
        builtin = name == BUILTIN_DEFAULT or name.startswith("io.containerd.")
        if not builtin and name not in named and name not in flagged:
            reasons.append(f"the running dockerd still has the runtime {name}")
    flag = given.get("default-runtime", ())
    wanted = default_runtime(document) or (flag[-1] if flag else BUILTIN_DEFAULT)
    if info.default_runtime != wanted:
        reasons.append(f"the running dockerd's default runtime is {info.default_runtime}")
    return reasons


def _cdi_reasons(document: Document, info: Info, version: tuple[int, ...] | None) -> list[str]:
    if info.cdi_directories is None or version is None or version < _CDI_SINCE:
        return []
    if document.get(["cdi-spec-dirs"]) is not None:
        return []  # the directories do not show the feature's state then
    node = document.get(["features", "cdi"])
    if node is not None and isinstance(node.data(), bool):
        wanted = bool(node.data())
    elif version >= _CDI_DEFAULT_SINCE:
        wanted = True
    elif version >= _CDI_DEFAULT_UNKNOWN_SINCE:
        return []
    else:
        wanted = False
    if wanted == bool(info.cdi_directories):
        return []
    return [f"features.cdi is {'on' if wanted else 'off'} in the file and takes a start of dockerd"]


def _builtin(info: Info) -> list[str]:
    return [name for name in info.runtimes if name.startswith("io.containerd.")]


def _dotted(version: tuple[int, ...]) -> str:
    major, *rest = version
    # Docker's numbers of the year-and-month time are written with two digits: 19.03.
    return ".".join(
        [str(major), *(f"{n:02d}" if i == 0 and major < 20 else str(n) for i, n in enumerate(rest))]
    )
