# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""cdi_specification: have a CDI specification made for the loaded driver, or undo that."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core.errors import KubegpuError
from .._host.command import Runner
from .._host.files import FileState, read_file, write_file
from .._host.systemd import restart
from .._nvidia.toolkit_paths import CDI_PATH
from .._record.file_record import Undo
from .._record.store import StateStore
from .cdi import (
    SERVICE,
    CdiState,
    RefreshUnit,
    check_generated,
    hook_of,
    needs_refresh,
    read_specification,
    read_unit,
)

_KEY = "cdi_specification:nvidia:"
# Unlike the directory of the service, this one survives a reboot.
_LASTING_PATH = CDI_PATH


@dataclass(frozen=True)
class CdiRequest:
    """The module's options, except for ``state``."""

    driver_version: str | None
    previous_driver_version: str | None
    method: str
    service_expected: bool
    toolkit_removed: bool
    outdated: str
    path: str
    service_path: str


@dataclass(frozen=True)
class Dependencies:
    """Access to the node. ``open_store`` returns the node's record."""

    run: Runner
    open_store: Callable[[], StateStore]
    exists: Callable[[str], bool]
    real_path: Callable[[str], str]


def _text(state: FileState) -> str | None:
    return None if state.content is None else state.content.decode(errors="replace")


def _refresh_unit(run: Runner) -> RefreshUnit:
    answer = run(
        [
            *("systemctl", "show", SERVICE),
            "--property=LoadState,Result,ConditionResult,ExecCondition",
        ]
    )
    return read_unit(dict(line.split("=", 1) for line in answer.stdout.splitlines() if "=" in line))


def _method(request: CdiRequest, node: Dependencies, check_mode: bool) -> tuple[str, str]:
    """Return how the specification is made, and why not by the installed service."""
    if request.method != "auto":
        return request.method, ""
    unit = _refresh_unit(node.run)
    if not unit.exists:
        return ("service" if check_mode and request.service_expected else "generate"), ""
    why = unit.declines(lambda path: _text(read_file(path)), node.exists)
    return ("generate", f"{SERVICE} does not start: {why}") if why else ("service", "")


def present(request: CdiRequest, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Make the specification again if it is not for the loaded driver; return the result."""
    request = _lasting(request, node)
    method, declined = _method(request, node, check_mode)
    driver = request.driver_version
    path = _path(request, method)
    before = found = _found(request)
    if request.previous_driver_version is not None:
        previous = request.previous_driver_version
        before = CdiState(bool(previous), previous or None)
    why = needs_refresh(before, driver) or request.outdated or None
    after = CdiState(True, driver or found.driver_version) if why else before
    if why and not check_mode and (request.outdated or needs_refresh(found, driver)):
        if method == "service" or declined:
            # Whether the service starts is decided by systemd itself.
            declined = _by_service(request, node)
            method = "generate" if declined else "service"
        if method == "generate":
            _generate(request, node)
        path = _path(request, method)
        if not driver:
            after = read_specification(_text(read_file(path)))
    return {
        "changed": why is not None,
        "path": path,
        "method": method,
        "reasons": [reason for reason in (why, declined if why else "") if reason],
        "diff": _diff(path, before, after),
    }


def _lasting(request: CdiRequest, node: Dependencies) -> CdiRequest:
    """Return the request with a path other than the service's own, links resolved."""
    if node.real_path(request.path) != node.real_path(request.service_path):
        return request
    return dataclasses.replace(request, path=_LASTING_PATH)


def _path(request: CdiRequest, method: str) -> str:
    return request.service_path if method == "service" else request.path


def _read(path: str) -> CdiState:
    return read_specification(_text(read_file(path)))


def _found(request: CdiRequest) -> CdiState:
    """Return the specification that containers get: the service's own if there is one."""
    state = _read(request.service_path)
    return state if state.exists or request.method == "service" else _read(request.path)


def _by_service(request: CdiRequest, node: Dependencies) -> str:
    """Have the service make it; return why it did not start, if another method is allowed.

    :raises KubegpuError: it failed, or did not start and no other method is allowed.
    """
    restart(node.run, SERVICE)
    path = request.service_path
    text = _text(read_file(path)) or ""
    current = not needs_refresh(read_specification(text), request.driver_version)
    # For changed GPUs, a specification for the driver can be the earlier one.
    if current and not request.outdated:
        return ""
    unit = _refresh_unit(node.run)
    if not unit.left_out:
        check_generated(text, f"{SERVICE} wrote no {path}")
        return ""
    why = unit.declines(lambda name: _text(read_file(name)), node.exists) or (
        "a condition of its unit is not met"
    )
    if request.method == "auto":
        return f"{SERVICE} does not start: {why}"
    raise KubegpuError(
        f"{SERVICE} did not start, so that it made no CDI specification: {why}.",
        evidence=f"systemctl show {SERVICE}: a condition was not met",
        next_step="Use method: auto or method: generate, which has nvidia-ctk make it.",
    )


def _generate(request: CdiRequest, node: Dependencies) -> None:
    generated = node.run(["nvidia-ctk", "cdi", "generate", "--format=yaml"], timeout=120)
    check_generated(generated.stdout, generated.last_output())
    store = node.open_store()
    with store.transaction():
        paths = [request.path]
        if _read(request.service_path).exists:
            # Containers would still get what the service wrote for another driver.
            paths.append(request.service_path)
        for path in dict.fromkeys(paths):
            before = read_file(path)
            after = dataclasses.replace(before, content=generated.stdout.encode())
            store.write_recorded(_key(path), before, after, {})


def absent(request: CdiRequest, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Undo the recorded writes; a file without a record is not managed. Return the result."""
    store = node.open_store()
    with contextlib.nullcontext() if check_mode else store.transaction():
        # It may have been written to another path than one that is made now.
        keys = [*store.records(_KEY)] or [_key(request.path)]
        undone = [_undo(store, key, check_mode) for key in keys]
    results = [result for result, _after in undone]
    if request.toolkit_removed or _key(request.service_path) not in keys:
        left = read_file(request.service_path)
        # In check mode nothing is restored yet.
        left = {after.path: after for _result, after in undone}.get(left.path, left)
        results.append(_remove_left(request, node, left, check_mode))
    changed = [result for result in results if result["changed"]]
    return {
        "changed": bool(changed),
        "path": keys[0][len(_KEY) :],
        "method": "generate",
        "reasons": list(dict.fromkeys(result["reason"] for result in changed)),
        "diff": [result["diff"] for result in results],
    }


def _remove_left(
    request: CdiRequest, node: Dependencies, current: FileState, check_mode: bool
) -> dict[str, Any]:
    """Remove what the service wrote if the program that containers would run is gone."""
    path = request.service_path
    hook = hook_of(_text(current))
    gone = hook is not None and (not node.exists(hook) or (check_mode and request.toolkit_removed))
    after = FileState(current.path) if gone else current
    if gone and not check_mode:
        write_file(after)
    before = read_specification(_text(current))
    return {
        "changed": gone,
        "reason": f"it names {hook}, which is gone with the toolkit",
        "diff": _diff(path, before, read_specification(_text(after))),
    }


def _undo(store: StateStore, key: str, check_mode: bool) -> tuple[dict[str, Any], FileState]:
    """Undo one write; return its part of the result, and the file after it."""
    path = key[len(_KEY) :]
    current = read_file(path)
    after = current
    if store.record(key) is not None:
        undo, target = store.undo_target(key, current)
        # Another program generated it since: it is no longer managed, and remains.
        after = current if undo is Undo.REMOVE_LINES else target
        if not check_mode:
            store.write_undone(key, after)
    before = read_specification(_text(current))
    result = {
        "changed": after.sha256 != current.sha256,
        "reason": "this module made it",
        "diff": _diff(path, before, read_specification(_text(after))),
    }
    return result, after


def _key(path: str) -> str:
    return f"{_KEY}{path}"


def _diff(path: str, before: CdiState, after: CdiState) -> dict[str, str]:
    return {
        "before_header": path,
        "after_header": path,
        "before": before.describe(),
        "after": after.describe(),
    }
