# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options and the result that the modules of all runtimes have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from .._core.printable import printable
from .._core.redact import redact_data
from .._distro.images import RUNTIMES, loses_settings
from .._distro.os_release import read_os
from .._host.command import Runner
from .._host.reader import NodeReader
from .._nvidia.toolkit_paths import RUNTIME_PATH
from .._record.options import STATE_ARGUMENTS
from .engine import Result

R = TypeVar("R", bound=Result)
RUNTIME_ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "default": "nvidia"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "set_default": {"type": "bool", "default": False},
    **STATE_ARGUMENTS,
}
# containerd and CRI-O.
CRI_ARGUMENTS: dict[str, dict[str, Any]] = {
    **RUNTIME_ARGUMENTS,
    "runtime_path": {"type": "path", "default": RUNTIME_PATH},
    "restart": {"type": "bool", "default": False},
    "restart_timeout": {"type": "int", "default": 60},
    "toolkit_expected": {"type": "bool", "default": False},
}


def apply_runtime(module: Any, run: Runner, runtime: Callable[[bool], R]) -> R:
    """Make the runtime be as requested, or predict that in check mode.

    :param runtime: changes the runtime; with true, it predicts the result.
    :raises Refusal: the system is an image that would lose the change.
    """
    refusal = loses_settings(read_os(NodeReader(run=run)), RUNTIMES)
    if refusal and module.params["state"] == "present" and runtime(True).changed:
        raise refusal
    return runtime(module.check_mode)


def from_options(kind: Any, params: dict[str, Any]) -> Any:
    """Return an instance of a dataclass whose fields are options of the module."""
    names = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in params.items() if name in names})


def exit_result(module: Any, result: Result) -> None:
    """End the module with the result, without secrets. A diff is returned in diff mode only."""
    values = dataclasses.asdict(result)
    for warning in values.pop("warnings", ()):
        module.warn(printable(warning))
    for name in {"handlers", "runtimes"} & {*values}:
        values[name] = redact_data(values[name])
    if not module._diff:
        del values["diff"]
    module.exit_json(**values)
