# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of the drop-in file for a runtime handler, from the request and CRI-O's files. Pure.

CRI-O reads ``crio.conf``, then every file in ``crio.conf.d`` in the order of their names. A later
file replaces single values, and a handler of the same name as a whole (cri-o/cri-o
pkg/config/config.go, read on 2026-11-28).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._runtime.config_file import ConfigFile, table
from .complete import OCI, OWN, completed, lacking, why
from .types import BUILT_IN, DropIn, Effective, Request, Runtime

_RUNTIME = ("crio", "runtime")
# Where NVIDIA's runtime looks for the runtime that it starts, and the setting that adds paths.
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
RUNTIMES_SETTING = "nvidia-container-runtime.runtimes"


def effective(files: Iterable[ConfigFile]) -> Effective:
    """Return the effective configuration of files in the order in which CRI-O reads them."""
    handlers: dict[str, Mapping[str, Any]] = {}
    owner: dict[str, str] = {}
    default, default_file, conmon = None, None, None
    for file in files:
        runtime = table(file.data, _RUNTIME)
        for name, handler in table(runtime, ("runtimes",)).items():
            if isinstance(handler, Mapping):
                handlers[name], owner[name] = handler, file.path
        if isinstance(runtime.get("default_runtime"), str):
            default, default_file = str(runtime["default_runtime"]), file.path
        conmon = runtime.get("conmon", conmon)
    return Effective(handlers, default, owner, default_file, conmon or None)


def plan_drop_in(
    request: Request, before: Iterable[ConfigFile], after: Iterable[ConfigFile]
) -> DropIn:
    """Return the settings of the drop-in file.

    :param before: the files that CRI-O reads before it.
    :param after: those that it reads after it.
    :raises KubegpuError: a later file overrides what is requested.
    """
    request.check()
    later = tuple(after)
    seen = effective((*before, *later))
    reasons: list[str] = []
    warnings: list[str] = []
    name = request.name
    settings: dict[str, Any] = {}
    lacks = missing_keys(request, seen)
    if lacks == ():
        reasons.append(f"The handler {name} is in {seen.handler_file[name]}, not by us.")
    else:
        what = f"the handler {name}" + (f" with other settings: {why(lacks)}" if lacks else "")
        _check_not_overridden(later, seen.handler_file.get(name), what)
        handler = _handler(request, seen, warnings)
        if lacks and "runtime_path" not in lacks:
            existing = seen.handlers[name]
            handler = completed(existing, handler, lacks)
            _check_kinds(name, handler)
            reasons.append(
                f"The handler {name} in {seen.handler_file[name]} is completed by "
                f"{request.drop_in_path}: {why(lacks)}."
            )
        settings = {f"crio.runtime.runtimes.{name}.{key}": item for key, item in handler.items()}
    if request.set_default and seen.default != name:
        _check_not_overridden(later, seen.default_file, "default_runtime")
        settings["crio.runtime.default_runtime"] = name
    return DropIn(settings, tuple(reasons), tuple(warnings))


def missing_keys(request: Request, seen: Effective) -> tuple[str, ...] | None:
    """Return what an existing handler lacks; None: there is no handler of this name."""
    existing = seen.handlers.get(request.name)
    if existing is None:
        return None
    own = own_runtime(request.name, seen)
    return lacking(existing, own, seen.conmon, request.runtime_path)


def _check_not_overridden(later: tuple[ConfigFile, ...], path: str | None, what: str) -> None:
    if path in {file.path for file in later}:
        raise KubegpuError(
            f"{path} sets {what}, and CRI-O reads it after our own file.",
            next_step="Correct it there, or give a drop_in_path whose name comes later.",
        )


def read_order(path: str) -> list[str]:
    """Return the key by which CRI-O orders files: by name in each folder, subfolders included."""
    return path.split("/")


def own_runtime(name: str, seen: Effective) -> Runtime | None:
    """Return the node's own OCI runtime, other than the handler ``name``; None: there is none."""
    for candidate in (seen.default, *BUILT_IN, *seen.handlers):
        handler = seen.handlers.get(candidate or "")
        if candidate is None or candidate == name or handler is None:
            continue
        if handler.get("runtime_type", "") in OCI and not handler.get("inherit_default_runtime"):
            return Runtime(candidate, handler)
    return None


def outside_path(program: str | None) -> bool:
    """Return whether NVIDIA's runtime finds a program by its absolute path only."""
    return bool(program) and str(program).rpartition("/")[0] not in ("", *_PATH)


def _handler(request: Request, seen: Effective, warnings: list[str]) -> dict[str, Any]:
    """Return the handler: the settings of the node's own OCI runtime with another program."""
    own = own_runtime(request.name, seen)
    if own is None:
        warnings.append(
            "No file names the node's own runtime, so the handler has CRI-O's own settings."
        )
        return {"runtime_path": request.runtime_path, "runtime_type": "oci"}
    _check_kinds(own.name, own.settings)
    kept = {key: value for key, value in own.settings.items() if key not in OWN}
    if outside_path(own.path):
        warnings.append(
            f"The handler starts {own.name} below NVIDIA's runtime, which finds {own.path} only "
            f"where {RUNTIMES_SETTING} names it (container_toolkit_config)."
        )
    return {"runtime_path": request.runtime_path, **kept}


def _check_kinds(name: str, handler: Mapping[str, Any]) -> None:
    for key, value in handler.items():
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, (str, bool, int)) for item in items):
            raise KubegpuError(
                f"The runtime {name} has {key}, which this module cannot take over.",
                evidence=f"{key} = {value!r}",
                next_step="Write the handler manually.",
            )


def outdated(
    name: str, path: str, before: Iterable[ConfigFile], own: ConfigFile, after: Iterable[ConfigFile]
) -> bool:
    """Return whether a managed handler differs from the current settings of the node's runtime."""
    current = table(own.data, (*_RUNTIME, "runtimes", name))
    try:
        drop_in = plan_drop_in(Request(name=name, runtime_path=path), before, after)
    except KubegpuError:
        # Not managed, or overridden: the module reports that when it runs.
        return False
    prefix = f"crio.runtime.runtimes.{name}."
    return any(current.get(key[len(prefix) :]) != value for key, value in drop_in.settings.items())


def handlers(seen: Effective) -> dict[str, Any]:
    """Return the handlers for the module's result: type and program by name."""
    return {
        name: {"type": handler.get("runtime_type") or None, "path": handler.get("runtime_path")}
        for name, handler in sorted(seen.handlers.items())
    }
