# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that keeps the installed driver. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..._core.steps import Step
from ..._distro.support import MANAGERS
from ..._nvidia.package_names import is_driver
from ..arguments import asks_licence
from ..types import NO_LOCK, Plan
from . import memory_mode
from .configuration import with_configuration, with_steps
from .decision import DecisionInput, Target
from .fabric_plan import components_of, components_to_remove, drift_steps, repaired_components
from .installed import (
    InstalledDriver,
    is_locked,
    unheld,
)
from .kernels import kernels_without_module
from .packages import (
    headers,
    lock_patterns,
    package_set,
    provides_kernel_modules,
)
from .plan_image import kept_as_it_is
from .sources import (
    DISTRO,
    NVIDIA,
)
from .steps import (
    kernel_step,
    reboot,
    state_warnings,
)
from .working import NOT_LOADED_BY_REQUEST, why_not_loaded


def plan_keep(inputs: DecisionInput, target: Target) -> Plan:
    """Return the plan that keeps the installed driver."""
    node, request = inputs.node, inputs.request
    installed = inputs.installed
    if installed is None:  # A driver is kept only if there is one.
        return Plan()
    asked = bool(
        request.version
        or request.branch != "auto"
        or (inputs.guest and asks_licence(request.licence))
    )
    managed = bool(node["driver"]["managed"] or node["driver"].get("pending"))
    build = kernel_step(inputs, kernels_without_module(node))
    # A driver that does not work is repaired, and managed from then on.
    broken = bool(why_not_loaded(inputs))
    repaired = broken or (build is not None and not installed.working)
    image = kept_as_it_is(inputs)
    ours = (asked or managed or repaired) and inputs.system.manager in MANAGERS and not image
    mode = memory_mode.warnings(inputs, installed.branch, ours=ours)
    warnings = [*target.warnings, *mode, *state_warnings(inputs, installed, ours)]
    if asked or managed:
        warnings.extend(image)
    if broken and not request.load:
        warnings.append(NOT_LOADED_BY_REQUEST)
    plan = Plan(
        action="none",
        branch=installed.branch,
        version=installed.version,
        kernel_module=installed.kernel_module,
        source=installed.source,
        hold=bool(installed.held),
        lock=dict(NO_LOCK),
        reboot=reboot(inputs, target),
        reasons=target.reasons,
    )
    steps: list[Step] = []
    if build and ours:
        if not installed.prebuilt:
            meta, exact = headers(inputs.node, inputs.system, inputs.data)
            plan = replace(plan, packages={meta: None} if meta else {}, optional_packages=exact)
        steps.append(build)
    if not ours:
        return with_steps(plan, steps, warnings)
    mode_reason = memory_mode.reload_reason(inputs, installed.branch)
    if mode_reason and not plan.reboot["required"]:
        plan = replace(plan, reboot={"required": True, "reason": mode_reason})
    if installed.source in (DISTRO, NVIDIA):
        plan, more = _keep_packages(inputs, target, installed, plan)
        steps = [*more, *steps]
    return with_configuration(inputs, target, plan, steps, warnings)


def _keep_packages(
    inputs: DecisionInput, target: Target, installed: InstalledDriver, plan: Plan
) -> tuple[Plan, list[Step]]:
    """Return the plan with the packages that must be installed and held, and their steps."""
    steps: list[Step] = []
    wanted = package_set(inputs, target)
    known = {name: text for name, text in wanted.packages.items() if is_driver(name)}
    gone = components_to_remove(inputs, installed)
    steps.extend(drift_steps(installed, gone))
    # The set is completed only if it is the one that this collection installs. Another selection
    # of packages for the same driver is held unchanged.
    kernel = [
        name for name in known if name in installed.packages and provides_kernel_modules(name)
    ]
    locked: dict[str, str | None] = {
        name: version
        for name, version in installed.packages.items()
        if ":" not in name and name not in gone and is_locked(name, lock_patterns(inputs.system))
    }
    if kernel:
        packages = {**wanted.packages, **plan.packages}
    else:
        known = dict(components_of(inputs, target).packages)
        packages = {**locked, **repaired_components(installed), **known, **plan.packages}
    missing = [name for name in known if name not in installed.packages]
    if missing:
        steps.append(
            Step(
                "packages",
                "install",
                ", ".join(missing),
                f"these belong to driver {installed.version} and are not there",
            )
        )
    unknown = inputs.node["driver"].get("streams") is None
    hold = inputs.request.hold
    loose = unheld(inputs.node, lock_patterns(inputs.system))
    if hold and loose:
        steps.append(hold_step(loose))
    elif not hold and installed.held and inputs.node["driver"]["managed"]:
        steps.append(
            Step("hold", "unhold", f"driver {installed.version}", "nvidia_driver_hold is false")
        )
    return (
        replace(
            plan,
            packages=packages,
            obsolete=gone,
            # The enabled stream is kept: an administrator's can differ from ours.
            streams=wanted.streams
            if unknown and kernel and inputs.node["driver"]["managed"]
            else {},
            optional_packages={**(wanted.optional if kernel else {}), **plan.optional_packages},
            hold=hold,
            lock={"patterns": list(wanted.patterns), "version": installed.version},
        ),
        steps,
    )


def hold_step(names: tuple[str, ...]) -> Step:
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return Step("hold", "hold", shown, "an unattended upgrade could replace a part of the set")
