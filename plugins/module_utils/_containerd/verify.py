# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validation of a plan by what containerd makes of the edited files. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._core.errors import KubegpuError
from .._runtime.config_file import ConfigFile, table
from .config import Effective, fold, meaning, others
from .data import BINARY, CDI, CGROUP, DEFAULT, RUNTIMES, Path
from .types import Change, Plan, Request
from .values import has, leaves, value_at


def refuse_duplicate_tables(
    distribution: str, generated: ConfigFile, part: ConfigFile, earlier: ConfigFile
) -> None:
    """Check that the fragment of a template defines no table that the template has already.

    :param earlier: the fragment before the edit; tables rendered from it are no duplicates.
    :raises KubegpuError: a table would be defined twice.
    """
    for path, _value in leaves(part.data):
        (there,) = value_at(generated.data, path[:-1]) or ({},)
        if not has(earlier.data, path[:-1]) and any(
            not isinstance(value, Mapping) for value in there.values()
        ):
            raise KubegpuError(
                f"{'.'.join(path[2:])} cannot be set by {part.path}: {distribution} writes that "
                "table itself, and containerd takes it only once.",
                evidence=f"{generated.path} has [{'.'.join(path[:-1])}]",
                next_step=f"Set it by {distribution}'s own means (the default runtime by "
                "default-runtime in its config.yaml).",
            )


def verify(
    request: Request,
    plan: Plan,
    before: Effective,
    after: Effective,
    completed: frozenset[str] = frozenset(),
    restored: bool = False,
) -> None:
    """Compare what containerd reports before and after the edit with the plan.

    :param completed: runtimes whose type an earlier run added; it may be removed again.
    :param restored: whether the files are restored to their first state, a missing runc included.
    :raises KubegpuError: anything but the requested handler and settings would change.
    """
    name = request.name
    problems = []
    earlier = {key: meaning(value) for key, value in before.runtimes.items() if key != name}
    later = {key: meaning(value) for key, value in after.runtimes.items() if key != name}
    if "runc" not in earlier and before.default == "runc":
        # It was missing, and CRI cannot load without it.
        later.pop("runc", None)
    filled = completed_runtimes(change for edit in plan.edits for change in edit.changes)
    for runtimes in (earlier, later):
        for runtime in {*filled, *completed}:
            runtimes.get(runtime, {}).pop("runtime_type", None)
    if restored and "runc" not in later:
        # This module had added it because CRI cannot load without it.
        earlier.pop("runc", None)
    if earlier != later:
        changed = sorted(key for key in {*earlier, *later} if earlier.get(key) != later.get(key))
        problems.append(f"the runtimes {', '.join(changed)} would change")
    if request.state == "present":
        problems += [
            f"the runtime {runtime} would have no runtime_type"
            for runtime in sorted(filled)
            if not table(after.runtimes, (runtime,)).get("runtime_type")
        ]
        problems += _handler_problems(request, after, plan.source)
        if request.set_default and after.default != name:
            problems.append(f"the default runtime would be {after.default}, not {name}")
    # The original default may name a runtime that does not exist; it is restored unchanged.
    dangling = after.default not in after.runtimes and before.default in before.runtimes
    if dangling and request.state == "present":
        problems.append(f"the default runtime {after.default} would not exist")
    ignored: list[Path] = [(*RUNTIMES, key) for key in {*before.runtimes, name, "runc"}]
    # These two may change only if the plan changes them.
    touched = {change.path[2:] for edit in plan.edits for change in edit.changes}
    for path in (DEFAULT, CDI):
        if path in touched or request.state == "absent":
            ignored.append(path)
    if others(before, ignored) != others(after, ignored):
        problems.append("settings other than the handler would change")
    if problems:
        raise KubegpuError(
            "The edited configuration would not mean what it should; nothing was written.",
            evidence="containerd config dump: " + "; ".join(problems),
            next_step="Report this with the configuration files (without their secrets).",
        )


def completed_runtimes(changes: Iterable[Change]) -> frozenset[str]:
    """Return the runtimes whose missing ``runtime_type`` the changes add."""
    return frozenset(
        change.path[-2]
        for change in changes
        if change.path[2:4] == RUNTIMES
        and change.path[5:] == ("runtime_type",)
        and change.before in ((), ("",))
    )


def _handler_problems(request: Request, after: Effective, source: str) -> list[str]:
    handler = after.runtimes.get(request.name)
    if not isinstance(handler, Mapping):
        return [f"the handler {request.name} would not be there"]
    options = table(handler, ("options",))
    binaries = [value for key, value in options.items() if key.lower() == BINARY.lower()]
    problems = []
    if binaries != [request.runtime_path]:
        problems.append(f"its BinaryName would be {binaries}")
    if not handler.get("runtime_type"):
        problems.append("it would have no runtime_type")
    cgroups = {
        bool(fold(table(runtime, ("options",))).get(CGROUP))
        for key, runtime in after.runtimes.items()
        if key in (source, request.name) and isinstance(runtime, Mapping)
    }
    if len(cgroups) > 1 and CGROUP not in fold(request.options):
        problems.append(f"its SystemdCgroup would differ from {source}'s")
    return problems
