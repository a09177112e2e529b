# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of the drop-in file for a runtime handler, from the request and CRI-O's files. Pure.

CRI-O reads ``crio.conf``, then every file in ``crio.conf.d`` in the order of their names. A later
file replaces single values, and a handler of the same name as a whole (cri-o/cri-o
pkg/config/config.go, read on 2026-11-21).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._runtime.config_file import ConfigFile, table
from .types import BUILT_IN, DropIn, Effective, Request, Runtime

_RUNTIME = ("crio", "runtime")
# Handlers that start ordinary containers: by conmon, or by conmonrs ("pod").
_OCI = frozenset({"", "oci", "pod"})
# Settings of one program only, which a handler does not inherit.
_OWN = frozenset({"runtime_path", "platform_runtime_paths", "runtime_config_path"})
# Where NVIDIA's runtime looks for the runtime that it starts, and the setting that adds paths.
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
RUNTIMES_SETTING = "nvidia-container-runtime.runtimes"


def effective(files: Iterable[ConfigFile]) -> Effective:
    """Return the effective configuration of files in the order in which CRI-O reads them."""
    handlers: dict[str, Mapping[str, Any]] = {}
    owner: dict[str, str] = {}
    default, default_file = None, None
    for file in files:
        runtime = table(file.data, _RUNTIME)
        for name, handler in table(runtime, ("runtimes",)).items():
            if isinstance(handler, Mapping):
                handlers[name], owner[name] = handler, file.path
        if isinstance(runtime.get("default_runtime"), str):
            default, default_file = str(runtime["default_runtime"]), file.path
    return Effective(handlers, default, owner, default_file)


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
    existing = seen.handlers.get(name)
    settings: dict[str, Any] = {}
    if existing is not None and existing.get("runtime_path") == request.runtime_path:
        reasons.append(f"The handler {name} is in {seen.handler_file[name]}, not by us.")
    else:
        _check_not_overridden(later, seen.handler_file.get(name), f"the handler {name}")
        handler = _handler(request, seen, warnings)
        settings = {f"crio.runtime.runtimes.{name}.{key}": item for key, item in handler.items()}
    if request.set_default and seen.default != name:
        _check_not_overridden(later, seen.default_file, "default_runtime")
        settings["crio.runtime.default_runtime"] = name
    return DropIn(settings, tuple(reasons), tuple(warnings))


def _check_not_overridden(later: tuple[ConfigFile, ...], path: str | None, what: str) -> None:
    if path in {file.path for file in later}:
        raise KubegpuError(
            f"{path} sets {what} too, and CRI-O reads it after our own file.",
            next_step="Give a drop_in_path whose name comes later.",
        )


def own_runtime(name: str, seen: Effective) -> Runtime | None:
    """Return the node's own OCI runtime, other than the handler ``name``; None: there is none."""
    for candidate in (seen.default, *BUILT_IN, *seen.handlers):
        handler = seen.handlers.get(candidate or "")
        if candidate is None or candidate == name or handler is None:
            continue
        if handler.get("runtime_type", "") in _OCI and not handler.get("inherit_default_runtime"):
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
    kept = {key: value for key, value in own.settings.items() if key not in _OWN}
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
