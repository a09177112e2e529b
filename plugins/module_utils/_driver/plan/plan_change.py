# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that installs a driver, or replaces the installed one. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..._core.steps import Step
from ..._core.versions import version_numbers
from ..._distro.data import FAMILIES, best_effort
from ..._distro.support import MANAGERS
from ..._nvidia.runfile import install_arguments
from ..types import NO_LOCK, Plan
from . import memory_mode
from .configuration import with_configuration
from .decide import why_unsuitable
from .decision import DecisionInput, Target
from .installed import (
    InstalledDriver,
)
from .kernels import missing_headers
from .packages import (
    PackageSet,
    headers,
    obsolete,
    package_set,
)
from .sources import (
    RUNFILE,
    repository,
)
from .steps import (
    reboot,
    state_warnings,
    stream_steps,
)


def plan_change(inputs: DecisionInput, target: Target) -> Plan:
    """Return the plan that installs the target, or replaces the installed driver by it."""
    node, installed = inputs.node, inputs.installed
    action = _action(installed, target)
    mode = memory_mode.warnings(inputs, target.branch, ours=True)
    warnings = [*target.warnings, *mode, *state_warnings(inputs, installed, True)]
    plan = Plan(
        action=action,
        branch=target.branch,
        version=target.version,
        kernel_module=target.kernel_module,
        source=target.source,
        lock=dict(NO_LOCK),
        reboot=reboot(inputs, target),
        reasons=target.reasons,
    )
    words = target.version or f"branch {target.branch}"
    because = target.reasons[0]
    if installed:
        why_not = why_unsuitable(inputs)
        because = f"{installed.version} is there{f', but {why_not}' if why_not else ''}. {because}"
    steps: list[Step] = []
    other_source = bool(installed and installed.source != target.source)
    if installed and installed.source == RUNFILE and other_source:
        plan = replace(plan, uninstall=RUNFILE)
        steps.append(
            Step(
                "uninstall",
                "run",
                str(node["driver"]["uninstaller"]),
                f"{installed.title} was installed by it, and packages conflict with it",
            )
        )
    if target.source == RUNFILE:
        plan = _with_runfile(inputs, target, plan)
        gone = tuple(sorted(installed.packages)) if installed and other_source else ()
        detail = f"{words}, {target.kernel_module} kernel modules, by its installer"
        warnings.extend(missing_headers(node))
    else:
        wanted = package_set(inputs, target)
        plan, more = _with_packages(inputs, target, plan, wanted)
        steps = [*more[:1], *steps, *more[1:]] if plan.repository else [*steps, *more]
        gone = obsolete(inputs, target, wanted, other_source=other_source)
        detail = f"{words}, {target.kernel_module} kernel modules"
        detail += f" ({wanted.note})" if wanted.note else ""
        effort = best_effort(node["os"], inputs.system.folder)
        if effort:
            warnings.append(effort)
        if not wanted.signed:
            warnings.extend(missing_headers(node))
    if gone:
        plan = replace(plan, obsolete=gone)
        reason = "another source" if other_source else "another branch or kind of kernel modules"
        steps.append(Step("packages", "remove", ", ".join(gone), f"they are of {reason}"))
    steps.append(Step("packages", action, detail, because))
    if plan.hold:
        steps.append(
            Step("hold", "hold", words, "an unattended upgrade could replace a part of the set")
        )
    return with_configuration(inputs, target, plan, steps, warnings)


def _action(installed: InstalledDriver | None, target: Target) -> str:
    if installed is None:
        return "install"
    old = version_numbers(installed.version)
    new = version_numbers(target.version)
    if not new:
        old, new = (int(installed.branch),), (int(target.branch),)
    if new == old:
        return "install"
    return "upgrade" if new > old else "downgrade"


def _with_packages(
    inputs: DecisionInput, target: Target, plan: Plan, wanted: PackageSet
) -> tuple[Plan, list[Step]]:
    """Return the plan with the target's packages and repository; the repository's step is first."""
    plan = replace(
        plan,
        packages=wanted.packages,
        optional_packages=wanted.optional,
        pinning=wanted.pinning,
        streams=wanted.streams,
        hold=inputs.request.hold,
        lock={
            "patterns": list(wanted.patterns),
            "version": target.version or f"{target.branch}.",
        },
    )
    steps = stream_steps(inputs, target, wanted.streams)
    entry, change = repository(
        inputs.node, inputs.system, str(target.source), inputs.request, inputs.data
    )
    if change:
        plan = replace(plan, repository=entry)
        steps.insert(0, Step("repository", *change))
    return plan, steps


def _with_runfile(inputs: DecisionInput, target: Target, plan: Plan) -> Plan:
    given = target.runfile or {}
    dkms = inputs.request.dkms != "false"
    arguments = install_arguments(
        str(target.version),
        str(target.kernel_module),
        dkms,
        load=False,
        running=bool(inputs.node["driver"]["loaded"]),
        compute_only=inputs.request.compute_only,
    )
    packages: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    family = FAMILIES.get(inputs.system.family)
    if family and inputs.system.manager in MANAGERS:
        meta, optional = headers(inputs.node, inputs.system, inputs.data)
        packages = {**({meta: None} if meta else {}), **dict.fromkeys(family.build)}
        if dkms:
            packages["dkms"] = None
    return replace(
        plan,
        packages=packages,
        optional_packages=optional,
        runfile={
            "url": given.get("url") or None,
            "path": given.get("path") or None,
            "remote": bool(given.get("remote", False)),
            "checksum": given["checksum"],
            "version": target.version,
            "arguments": arguments,
        },
    )
