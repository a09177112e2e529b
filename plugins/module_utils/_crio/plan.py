# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A runtime handler in CRI-O's configuration: wishes and files in, settings of a drop-in out. Pure.

CRI-O reads ``crio.conf``, then every file below ``crio.conf.d`` in the order of their names. A
later file replaces single values, and a handler of the same name as a whole (cri-o/cri-o
pkg/config/config.go, read on 2026-11-21).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError, KubegpuError
from .._runtime.config_file import ConfigFile, table

_RUNTIME = ("crio", "runtime")
# Handlers that start ordinary containers: by conmon, or by conmonrs ("pod").
_OCI = frozenset({"", "oci", "pod"})
# The default runtime where no file names one: crun since 1.31, runc before.
_BUILT_IN = ("crun", "runc")
# What belongs to one program only.
_OWN = frozenset({"runtime_path", "platform_runtime_paths", "runtime_config_path"})
# Where NVIDIA's runtime looks for the program below it, and the setting that names others.
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
RUNTIMES_SETTING = "nvidia-container-runtime.runtimes"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Request:
    """What the user wants."""

    name: str = "nvidia"
    state: str = "present"
    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    set_default: bool = False
    config_path: str = "/etc/crio/crio.conf"
    drop_in_path: str = "/etc/crio/crio.conf.d/99-nvidia.toml"

    def check(self) -> None:
        """Refuse names and paths that CRI-O could not use, or that would do harm."""
        if not _NAME.fullmatch(self.name) or self.name in _BUILT_IN:
            raise InputError(
                f"The handler's name {self.name!r} is not valid.",
                next_step="Use letters, digits, '-' and '_', at most 63, such as nvidia; the "
                "node's own crun and runc are not changed.",
            )
        for option in ("runtime_path", "config_path", "drop_in_path"):
            path = getattr(self, option)
            if not path.startswith("/") or path.endswith("/") or not path.isprintable():
                raise InputError(
                    f"{option} must be the absolute path of a file.", evidence=repr(path)
                )
        if self.config_path == self.drop_in_path:
            raise InputError(
                "config_path and drop_in_path are the same.", evidence=self.drop_in_path
            )


@dataclass(frozen=True)
class Effective:
    """What the files come to: handlers by name, the default, and who has the last word."""

    handlers: Mapping[str, Mapping[str, Any]]
    default: str | None
    handler_file: Mapping[str, str]
    default_file: str | None


@dataclass(frozen=True)
class Wanted:
    """The settings of our drop-in file, by ``section.key``, and why."""

    settings: Mapping[str, Any]
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runtime:
    """The node's own runtime, from which a handler inherits."""

    name: str
    settings: Mapping[str, Any]

    @property
    def path(self) -> str | None:
        """Its program; None where CRI-O looks for it in PATH."""
        program = self.settings.get("runtime_path")
        return program if isinstance(program, str) and program else None


def effective(files: Iterable[ConfigFile]) -> Effective:
    """Return what CRI-O makes of the files, which come in the order in which it reads them."""
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


def wanted(request: Request, before: Iterable[ConfigFile], after: Iterable[ConfigFile]) -> Wanted:
    """Return what our drop-in has to say, given what CRI-O reads before and after it."""
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
        _last_word(later, seen.handler_file.get(name), f"the handler {name}")
        handler = _handler(request, seen, warnings)
        settings = {f"crio.runtime.runtimes.{name}.{key}": item for key, item in handler.items()}
    if request.set_default and seen.default != name:
        _last_word(later, seen.default_file, "default_runtime")
        settings["crio.runtime.default_runtime"] = name
    return Wanted(settings, tuple(reasons), tuple(warnings))


def _last_word(later: tuple[ConfigFile, ...], path: str | None, what: str) -> None:
    if path in {file.path for file in later}:
        raise KubegpuError(
            f"{path} sets {what} too, and CRI-O reads it after our own file.",
            next_step="Give a drop_in_path whose name comes later.",
        )


def own_runtime(name: str, seen: Effective) -> Runtime | None:
    """Return the node's own OCI runtime, which the handler ``name`` is not."""
    for candidate in (seen.default, *_BUILT_IN, *seen.handlers):
        handler = seen.handlers.get(candidate or "")
        if candidate is None or candidate == name or handler is None:
            continue
        if handler.get("runtime_type", "") in _OCI and not handler.get("inherit_default_runtime"):
            return Runtime(candidate, handler)
    return None


def outside_path(program: str | None) -> bool:
    """Return whether NVIDIA's runtime finds a program only where its whole path is named."""
    return bool(program) and str(program).rpartition("/")[0] not in ("", *_PATH)


def _handler(request: Request, seen: Effective, warnings: list[str]) -> dict[str, Any]:
    """Return the handler: all of the node's own OCI runtime but its program."""
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
                next_step="Write the handler by hand.",
            )


def outdated(
    name: str, path: str, before: Iterable[ConfigFile], own: ConfigFile, after: Iterable[ConfigFile]
) -> bool:
    """Return whether a handler of our own file lacks what the node's own runtime has now."""
    there = table(own.data, (*_RUNTIME, "runtimes", name))
    try:
        wish = wanted(Request(name=name, runtime_path=path), before, after)
    except KubegpuError:
        # Not by us, or no longer ours to correct: the module says so when it is asked.
        return False
    prefix = f"crio.runtime.runtimes.{name}."
    return any(there.get(key[len(prefix) :]) != value for key, value in wish.settings.items())


def handlers(seen: Effective) -> dict[str, Any]:
    """Return the handlers for the user: type and program by name."""
    return {
        name: {"type": handler.get("runtime_type") or None, "path": handler.get("runtime_path")}
        for name, handler in sorted(seen.handlers.items())
    }
