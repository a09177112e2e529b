# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The diff of a driver's change: files, and what is neither a file nor a package."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..plan.config_files import PERSISTENCED, TOKEN
from ..record import current_driver
from ..types import INSTALLS, Plan
from . import units
from .loading import Loading, ModuleState

if TYPE_CHECKING:
    from ..._record.transaction import FileChange
    from .context import Context


def change_diff(
    context: Context,
    module_state: ModuleState,
    loading: Loading,
    changes: Mapping[str, FileChange],
) -> list[dict[str, str]]:
    """Return the diff of a change in Ansible's format.

    :param changes: the changes of configuration files by path.
    """
    diff = [
        {
            "before": describe_file(path, change.before.content),
            "after": describe_file(path, change.after.content),
            "before_header": path,
            "after_header": path,
        }
        for path, change in changes.items()
        if change.changed
    ]
    before, after = driver_states(context, module_state, loading)
    if before != after:
        title = "NVIDIA driver"
        diff.append(
            {"before": before, "after": after, "before_header": title, "after_header": title}
        )
    return diff


def driver_states(context: Context, module_state: ModuleState, loading: Loading) -> tuple[str, str]:
    """Return driver, loaded module and services before and after, as the lines of a diff."""
    plan, record, facts = context.plan, context.record, context.facts
    now = current_driver(facts)
    before = {"driver": describe_driver(now), "loaded module": module_state.loaded or ""}
    after = dict(before)
    if context.present:
        if plan.action in INSTALLS:
            after["driver"] = format_driver(
                plan.version, plan.branch, plan.kernel_module, plan.source or ""
            )
        if loading.now:
            after["loaded module"] = (
                plan.version or plan.branch or facts["driver"]["installed"] or ""
            )
        services = {
            unit: (state, "enabled") for unit, state in _unit_states(context, plan.services).items()
        }
    else:
        if record.installed:
            after["driver"] = describe_driver(record.original)
        elif plan.action == "remove" and not record.managed:
            after["driver"] = ""
        if loading.now:
            after["loaded module"] = ""
        services = {
            unit: (state, record.services[unit])
            for unit, state in _unit_states(context, record.services).items()
            if state == "enabled" and not record.services[unit].startswith("enabled")
        }
    before.update({f"service {unit} is": state for unit, state in _stopped(context).items()})
    after.update({f"service {unit} is": "active" for unit in _stopped(context)})
    for unit, (state, wanted) in services.items():
        before[f"service {unit}"] = "" if state == units.NO_UNIT else state
        after[f"service {unit}"] = "" if wanted == units.NO_UNIT else wanted
    return format_state(before), format_state(after)


def _stopped(context: Context) -> dict[str, str]:
    """Return the state of the units that the plan starts; a masked one remains masked."""
    planned = [step.detail for step in context.plan.steps if step.step == "service"]
    states = units.read_services(context.run, planned if context.present else ())
    running = context.facts["driver"]["services"]
    return {
        unit: str(running[unit])
        for unit, state in states.items()
        if state not in (units.NO_UNIT, "masked")
    }


def _unit_states(context: Context, names: Mapping[str, str]) -> dict[str, str]:
    """Return the current state of the units that can be changed."""
    states = units.read_services(context.run, names)
    comes = context.plan.action in INSTALLS or PERSISTENCED in context.plan.files
    return {
        unit: state
        for unit, state in states.items()
        if state in ("enabled", "disabled") or (state == units.NO_UNIT and comes)
    }


def differences(plan: Plan) -> str:
    """Return the steps that a plan still has after the change, or its reasons."""
    return "; ".join(f"{step.step}: {step.detail}" for step in plan.steps) or "; ".join(
        plan.reasons
    )


def describe_file(path: str, content: bytes | None) -> str:
    """Return a file's text for a diff; of a licence token only the checksum."""
    if content is None:
        return ""
    if path == TOKEN:
        return f"(licence token, sha256 {hashlib.sha256(content).hexdigest()})\n"
    return content.decode("utf-8", "replace")


def format_state(state: Mapping[str, str]) -> str:
    """Return a state as the lines of a diff."""
    return "".join(f"{name}: {value}\n" for name, value in sorted(state.items()) if value)


def describe_driver(driver: Mapping[str, Any] | None) -> str:
    if driver is None:
        return ""
    return format_driver(
        driver["version"], driver["branch"], driver["kernel_module"], driver["source"] or ""
    )


def format_driver(
    version: str | None, branch: str | None, kernel_module: str | None, source: str
) -> str:
    """Return a driver as one line, for a diff."""
    number = version or (f"{branch} (newest)" if branch else "unknown version")
    return " ".join(word for word in (number, kernel_module, f"from {source}") if word)
