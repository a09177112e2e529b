# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of a plan besides packages: files, units, initial RAM disk, loading. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..._core.steps import Step, sentence
from ..types import GRIDD_UNIT, PERSISTENCED_UNIT, Plan
from . import config_files, memory_mode
from . import config_texts as texts
from .decision import DecisionInput, Target
from .fabric_plan import components_of
from .installed import (
    changed_files,
    stale_files,
)
from .sources import (
    DISTRO,
    RUNFILE,
)
from .steps import (
    licence_token,
    plan_loading,
    service_steps,
)


def with_configuration(
    inputs: DecisionInput, target: Target, plan: Plan, steps: list[Step], warnings: list[str]
) -> Plan:
    """Return the plan with files, services, initramfs and loading, and the steps for each."""
    node, request = inputs.node, inputs.request
    files = _files(inputs, target, plan)
    differing = changed_files(node, files)
    token, token_step = licence_token(inputs)
    requested = (*files, *([config_files.TOKEN] if token else []))
    stale = stale_files(node, requested) if node["driver"]["managed"] else ()
    if differing:
        reason = ", ".join(config_files.PURPOSES.get(path, path) for path in differing)
        steps.append(Step("files", "write", ", ".join(differing), reason))
    if stale:
        steps.append(Step("files", "remove", ", ".join(stale), "they are no longer requested"))
    if token_step:
        steps.append(token_step)
    initramfs = any(path in config_files.IN_INITRAMFS for path in (*differing, *stale))
    if initramfs:
        reason = "the initial RAM disk contains the settings of modprobe"
        steps.append(Step("initramfs", "rebuild", "", reason))
    units: dict[str, str] = {}
    if request.persistence:
        units[PERSISTENCED_UNIT] = "enabled"
    if inputs.guest:
        units[GRIDD_UNIT] = "enabled"
    components = components_of(inputs, target)
    units.update(components.units)
    warnings.extend(components.warnings)
    steps.extend(service_steps(inputs, units))
    if node["driver"].get("pending"):
        steps.append(
            Step("driver", "finish", "", "an earlier run began a change and did not finish it")
        )
    loading, load_step = plan_loading(
        inputs, target, build=any(step.step == "kernel" for step in steps)
    )
    if load_step:
        steps.append(load_step)
    plan = replace(
        plan,
        files=files,
        licence_token=token,
        services=units,
        initramfs=initramfs,
        load=loading,
    )
    return with_steps(plan, steps, warnings)


def _files(inputs: DecisionInput, target: Target, plan: Plan) -> dict[str, str]:
    request = inputs.request
    components = components_of(inputs, target)
    files = {
        config_files.NOUVEAU: texts.nouveau(),
        config_files.MODULES: texts.modules(*components.modules),
        config_files.UDEV: texts.udev(),
    }
    options = {**request.module_options, **memory_mode.module_options(inputs, target.branch)}
    if options:
        debian = target.source == DISTRO and inputs.system.id == "debian"
        files[config_files.OPTIONS] = texts.options(options, debian=debian)
    if plan.hold and inputs.system.manager == "apt":
        files[config_files.UNATTENDED] = texts.unattended()
    if target.source == RUNFILE and request.persistence:
        files[config_files.PERSISTENCED] = texts.persistenced()
    files.update(components.files)
    licence = texts.gridd(request.licence)
    if inputs.guest and any(request.licence.get(key) for key in ("server", "port", "feature_type")):
        files[config_files.GRIDD] = licence
    return files


def with_steps(plan: Plan, steps: list[Step], warnings: list[str]) -> Plan:
    return replace(
        plan,
        steps=tuple(steps),
        change=bool(steps),
        reasons=plan.reasons or tuple(sentence(step) for step in steps),
        warnings=tuple(dict.fromkeys(warnings)),
    )
