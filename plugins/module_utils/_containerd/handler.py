# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of a handler and the runtime that it inherits from. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from .._runtime.config_file import table
from .config import fold, meaning
from .data import BINARY, NVIDIA_RUNTIME, RUNC_SHIM, RUNC_SHIMS, RUNTIMES
from .types import Request, State
from .values import copy, has
from .voided import voided_runc


def expected_handlers(request: Request, state: State) -> list[dict[str, Any]]:
    """Return the handler as this module would write it, for each runtime to inherit from."""
    builder = HandlerBuilder(request, state)
    return [builder.wanted(source) for _name, source in builder.sources()]


class HandlerBuilder:
    """Builds the handler from the runtime that it inherits from.

    ``completed`` holds the runtimes whose missing ``runtime_type`` this run adds.
    """

    def __init__(self, request: Request, state: State) -> None:
        self.request = request
        self.state = state
        self.completed: set[str] = set()

    def source(self) -> Mapping[str, Any]:
        """Return the runtime that the handler inherits from: the default runtime, else runc."""
        _name, runtime = self.sources()[0]
        return runtime

    def sources(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return names and runtimes that a handler can inherit from, in order of preference.

        The default runtime starts ordinary pods, so its options fit the kubelet.
        """
        state = self.state
        found: list[tuple[str, Mapping[str, Any]]] = []
        explicit = table(state.explicit, RUNTIMES)
        effective = state.effective.runtimes if state.effective else {}
        lost = voided_runc(state)
        if lost is not None:
            # It is written again, so that CRI loads.
            explicit = {**explicit, "runc": lost[1]}
        for name in dict.fromkeys((*self.candidates(), state.original_default, *explicit)):
            if name == self.request.name:
                continue
            # The spelling in the files comes first: config dump may print another config version.
            for runtimes in (explicit, effective):
                runtime = runtimes.get(name)
                built_in = name == "runc" and not effective and not self.has_no_type(name)
                if isinstance(runtime, Mapping) and (
                    name in self.completed
                    or _is_runc(runtime, effective.get(name))
                    or (built_in and "runtime_type" not in runtime)
                ):
                    found.append((name, runtime))
        if found:
            return found
        if not effective and (not explicit or state.version >= (2, 0)):
            known = not self.has_no_type("runc")
            return [("runc" if known else "", {"runtime_type": RUNC_SHIM})]
        return [("", {})]

    def candidates(self) -> tuple[str, ...]:
        """Return the default runtime and runc, without a runtime of NVIDIA's own."""
        default = self.state.original_default
        runtime = self.runtime(default)
        path = fold(table(runtime, ("options",))).get(BINARY.lower())
        nvidia = posixpath.basename(str(path or "")).startswith(NVIDIA_RUNTIME)
        if default == self.request.name or nvidia:
            return ("runc",)
        return (default, "runc")

    def runtime(self, name: str) -> Mapping[str, Any]:
        """Return a runtime as the files define it, else as containerd reports it."""
        known = self.state.effective.runtimes if self.state.effective else {}
        return table(self.state.explicit, (*RUNTIMES, name)) or table(known, (name,))

    def has_no_type(self, name: str) -> bool:
        state = self.state
        written = table(state.explicit, (*RUNTIMES, name))
        if not has(state.explicit, (*RUNTIMES, name)) or written.get("runtime_type"):
            return False
        if state.effective is not None:
            return not table(state.effective.runtimes, (name,)).get("runtime_type")
        # From 2.0 on, keys of runc that the file leaves out have built-in values.
        return "runtime_type" in written or name != "runc" or state.version < (2, 0)

    def wanted(self, source: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the complete handler, as it is written if it does not exist yet."""
        source = self.source() if source is None else source
        shim = str(source.get("runtime_type", ""))
        wanted: dict[str, Any] = {"runtime_type": self.request.runtime_type or RUNC_SHIM}
        inherited = meaning(source)
        if shim in RUNC_SHIMS or not shim or is_variable(shim):
            for key, value in inherited.items():
                if key not in ("runtime_type", "options"):
                    wanted[key] = copy(value)
        options = {
            key: copy(value)
            for key, value in table(inherited, ("options",)).items()
            if key.lower() != BINARY.lower()
        }
        for key, value in self.request.options.items():
            for twin in [other for other in options if other.lower() == key.lower()]:
                del options[twin]
            options[key] = copy(value)
        wanted["options"] = {BINARY: self.request.runtime_path, **options}
        return wanted


def _is_runc(runtime: Mapping[str, Any], effective: Any) -> bool:
    shim = runtime.get("runtime_type")
    if shim is None or is_variable(shim):
        shim = effective.get("runtime_type") if isinstance(effective, Mapping) else shim
    return shim in RUNC_SHIMS or is_variable(shim)


def is_variable(value: Any) -> bool:
    """Return whether the distribution substitutes the value later (MicroK8s)."""
    return isinstance(value, str) and "${" in value
