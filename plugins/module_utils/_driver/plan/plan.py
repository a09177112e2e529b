# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of a node: from facts and wishes to a plan with a reason for each step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._core.steps import Step, sentence
from ..._distro.data import FAMILIES, best_effort
from ..._distro.support import MANAGERS, unsupported
from ..._nvidia.driver_branches import DriverData, driver_data
from ..._nvidia.package_names import is_driver
from ..._nvidia.runfile import install_arguments
from ..options import read_wish
from ..types import DriverPlan, DriverWish, version_numbers
from . import config_files as texts
from . import gpu_support as rules
from . import memory_mode as memory
from .decide import decide, unfit
from .decision import Case, Refused, Target
from .fabric_plan import drift_steps, foreign, mended, parts_of
from .installed import (
    Present,
    differing_files,
    is_locked,
    kernels_without_module,
    read_present,
    stale_files,
    unheld,
)
from .packages import (
    PackageSet,
    headers,
    lock_patterns,
    makes_modules,
    obsolete,
    package_set,
)
from .plan_absent import plan_absent
from .sources import (
    DISTRO,
    NVIDIA,
    RUNFILE,
    comes_after_ours,
    repository,
    system_of,
)
from .steps import (
    kernel_step,
    licence_token,
    load,
    reboot,
    service_steps,
    state_warnings,
    stream_steps,
)

__all__ = ["DriverData", "DriverPlan", "DriverWish", "Step", "plan_driver", "read_options"]

_NO_LOCK: Mapping[str, Any] = {"patterns": [], "version": None}
PERSISTENCED = "nvidia-persistenced"
GRIDD = "nvidia-gridd"


def read_options(options: Mapping[str, Any]) -> tuple[DriverWish, DriverData]:
    """Return wish and data from the options of the filter and of the module.

    Options of other names are left aside; one that is missing or None has its default.

    :raises InputError: an option is not as it has to be; it is named.
    """
    data = driver_data(options.get("branches"), options.get("gpus"), options.get("repositories"))
    return read_wish(options), data


def plan_driver(node: Mapping[str, Any], wish: DriverWish, data: DriverData) -> DriverPlan:
    """Return what has to be done so that the node's driver is as wished.

    :param node: the facts ``gpu_node``.
    :param wish: what is asked for.
    :param data: branches, products and repositories.
    """
    if wish.state == "absent":
        return plan_absent(node, wish)
    gpus = rules.find_gpus(node, data)
    if not gpus:
        guests = [gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia"]
        reason = (
            "The NVIDIA GPUs of this node are virtual functions, which belong to guests: nothing "
            "to do."
            if guests
            else "No NVIDIA GPU is in this node: nothing to do."
        )
        return DriverPlan("none", reasons=(reason,))
    case = Case(node, wish, data, gpus, system_of(node, data), read_present(node))
    try:
        target = decide(case)
        _check_node(case, target)
    except Refused as refusal:
        return DriverPlan("refuse", reasons=refusal.reasons)
    plan = _kept(case, target) if target.keep else _changed(case, target)
    old = unsupported(node["os"], wish.controller) if plan.change and plan.packages else ""
    if old:
        cause, mark, step = old.partition("Next step: ")
        return DriverPlan("refuse", reasons=(cause.strip(), mark + step))
    return plan


def _check_node(case: Case, target: Target) -> None:
    """Refuse what the source cannot do on this node."""
    wish, system = case.wish, case.system
    if target.keep:
        return
    if target.source in (DISTRO, NVIDIA) and system.manager not in MANAGERS:
        raise Refused(
            f"{system.words} installs packages with "
            f"{system.manager or 'a tool that is not known'}; this release knows "
            f"{', '.join(MANAGERS)}.",
            "give a runfile as nvidia_driver_runfile, with its checksum.",
        )
    if target.source == NVIDIA:
        _check_key(case)
    if target.source == DISTRO and system.id == "debian":
        archive = case.node["os"].get("archive")
        if not archive:
            raise Refused(
                "apt has no entry for Debian's own archive, in which the driver would be.",
                "add one for the release with contrib non-free non-free-firmware, or ask for "
                "another nvidia_driver_source.",
            )
        _url, step = repository(case.node, system, DISTRO, wish, case.data)
        if step is None and wish.manage_repository and "***" in archive["uri"]:
            raise Refused(
                f"{archive['file']} reaches Debian's archive with a password, which is not copied "
                "into another entry.",
                "add contrib non-free non-free-firmware to that entry.",
            )
        if step and not archive["signed_by"] and comes_after_ours(archive["file"]):
            # Tried with apt 2.6: "Conflicting values set for option Signed-By".
            raise Refused(
                f"{archive['file']} reaches Debian's archive without Signed-By and is read after "
                "the entry that would be added: apt would refuse both.",
                "add contrib non-free non-free-firmware, or Signed-By, to that entry.",
            )
    package_set_ = _wanted(case, target) if target.source in (DISTRO, NVIDIA) else None
    if wish.dkms == "false" and package_set_ and not package_set_.signed:
        raise Refused(
            "nvidia_driver_dkms is false, but this source has no prebuilt kernel modules for "
            f"{system.words}.",
            "leave nvidia_driver_dkms at auto, or ask for another source.",
        )


def _check_key(case: Case) -> None:
    """Refuse to set up a repository whose key nobody can be told by its whole fingerprint."""
    found, _step = repository(case.node, case.system, NVIDIA, case.wish, case.data)
    if found is None or found["key_fingerprints"]:
        return
    raise Refused(
        f"The key of {found['url']} is {found['key_url'].rpartition('/')[2]}, and this collection "
        "does not know its whole fingerprint: no public text has it.",
        "compare the key with what NVIDIA tells you by other means, and give all 40 digits as "
        "nvidia_driver_key_fingerprints; or set the repository up yourself "
        "(nvidia_driver_manage_repository: false).",
    )


def _wanted(case: Case, target: Target) -> PackageSet:
    return package_set(
        case.node,
        case.system,
        str(target.source),
        target.branch,
        target.version,
        str(target.flavour),
        case.wish,
        case.data,
    )


def _kept(case: Case, target: Target) -> DriverPlan:
    """Return the plan where the driver that is there stays."""
    node, wish = case.node, case.wish
    present = case.present
    if present is None:  # A target is kept only where there is one.
        return DriverPlan()
    asked = bool(wish.version or wish.branch != "auto")
    managed = bool(node["driver"]["managed"] or node["driver"].get("pending"))
    build = kernel_step(case, kernels_without_module(node))
    # A driver that does not work is mended where that can be done, and from then on it is ours.
    mended = build is not None and not present.working
    ours = (asked or managed or mended) and case.system.manager in MANAGERS
    mode = memory.warnings(case, present.branch, ours=ours)
    warnings = [*target.warnings, *mode, *state_warnings(case, present, ours)]
    plan = DriverPlan(
        action="none",
        branch=present.branch,
        version=present.version,
        kernel_module=present.flavour,
        source=present.source,
        hold=bool(present.held),
        lock=dict(_NO_LOCK),
        reboot=reboot(case, target),
        reasons=target.reasons,
    )
    steps: list[Step] = []
    if build and ours:
        if not present.prebuilt:
            meta, exact = headers(node, case.system, case.data)
            plan = replace(plan, packages={meta: None} if meta else {}, optional_packages=exact)
        steps.append(build)
    if not ours:
        return _with_steps(plan, steps, warnings)
    mode_reason = memory.reload_reason(case, present.branch)
    if mode_reason and not plan.reboot["required"]:
        plan = replace(plan, reboot={"required": True, "reason": mode_reason})
    if present.source in (DISTRO, NVIDIA):
        plan, more = _kept_packages(case, target, present, plan)
        steps = [*more, *steps]
    return _configured(case, target, plan, steps, warnings)


def _kept_packages(
    case: Case, target: Target, present: Present, plan: DriverPlan
) -> tuple[DriverPlan, list[Step]]:
    """Return the plan with the set of packages that shall be there and held."""
    steps: list[Step] = []
    wanted = _wanted(case, target)
    known = {name: text for name, text in wanted.packages.items() if is_driver(name)}
    gone = foreign(case, present)
    steps.extend(drift_steps(present, gone))
    # The set is brought to what we would install only where it is that: an admin's choice of
    # other packages for the same driver is held as it is.
    kernel = [name for name in known if name in present.packages and makes_modules(name)]
    installed: dict[str, str | None] = {
        name: version
        for name, version in present.packages.items()
        if ":" not in name and name not in gone and is_locked(name, lock_patterns(case.system))
    }
    if kernel:
        packages = {**wanted.packages, **plan.packages}
    else:
        known = dict(parts_of(case, target).packages)
        packages = {**installed, **mended(present), **known, **plan.packages}
    missing = [name for name in known if name not in present.packages]
    if missing:
        steps.append(
            Step(
                "packages",
                "install",
                ", ".join(missing),
                f"these belong to driver {present.version} and are not there",
            )
        )
    unknown = case.node["driver"].get("streams") is None
    hold = case.wish.hold
    loose = unheld(case.node, lock_patterns(case.system))
    if hold and loose:
        steps.append(_hold_step(loose))
    elif not hold and present.held and case.node["driver"]["managed"]:
        steps.append(
            Step("hold", "unhold", f"driver {present.version}", "nvidia_driver_hold is false")
        )
    return (
        replace(
            plan,
            packages=packages,
            obsolete=gone,
            # What stays keeps the stream that is enabled: an admin's can be another one than ours.
            streams=wanted.streams if unknown and kernel and case.node["driver"]["managed"] else {},
            optional_packages={**(wanted.optional if kernel else {}), **plan.optional_packages},
            hold=hold,
            lock={"patterns": list(wanted.patterns), "version": present.version},
        ),
        steps,
    )


def _hold_step(names: tuple[str, ...]) -> Step:
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return Step("hold", "hold", shown, "an unattended upgrade could replace a part of the set")


def _changed(case: Case, target: Target) -> DriverPlan:
    """Return the plan where another driver than the one that is there has to come."""
    node, wish, present = case.node, case.wish, case.present
    action = _action(present, target)
    mode = memory.warnings(case, target.branch, ours=True)
    warnings = [*target.warnings, *mode, *state_warnings(case, present, True)]
    plan = DriverPlan(
        action=action,
        branch=target.branch,
        version=target.version,
        kernel_module=target.flavour,
        source=target.source,
        lock=dict(_NO_LOCK),
        reboot=reboot(case, target),
        reasons=target.reasons,
    )
    words = target.version or f"branch {target.branch}"
    because = target.reasons[0]
    if present:
        why_not = unfit(case)
        because = f"{present.version} is there{f', but {why_not}' if why_not else ''}. {because}"
    steps: list[Step] = []
    other_source = bool(present and present.source != target.source)
    if present and present.source == RUNFILE and other_source:
        plan = replace(plan, uninstall=RUNFILE)
        steps.append(
            Step(
                "uninstall",
                "run",
                str(node["driver"]["uninstaller"]),
                f"{present.words} was installed by it, and packages cannot be beside it",
            )
        )
    if target.source == RUNFILE:
        plan = _with_runfile(case, target, plan)
        gone = tuple(sorted(present.packages)) if present and other_source else ()
        detail = f"{words}, {target.flavour} kernel modules, by its installer"
        note = ""
    else:
        wanted = _wanted(case, target)
        plan = replace(
            plan,
            packages=wanted.packages,
            optional_packages=wanted.optional,
            pinning=wanted.pinning,
            streams=wanted.streams,
            hold=wish.hold,
            lock={
                "patterns": list(wanted.patterns),
                "version": target.version or f"{target.branch}.",
            },
        )
        gone = (
            obsolete(
                present.packages,
                wanted,
                branch=target.branch,
                old_branch=present.branch,
                flavour=str(target.flavour),
                other_source=other_source,
            )
            if present
            else ()
        )
        repo, change = repository(node, case.system, str(target.source), wish, case.data)
        if change:
            plan = replace(plan, repository=repo)
            steps.insert(0, Step("repository", *change))
        detail = f"{words}, {target.flavour} kernel modules"
        note = wanted.note
        steps.extend(stream_steps(case, target, wanted.streams))
        effort = best_effort(node["os"], case.system.folder)
        if effort:
            warnings.append(effort)
    if gone:
        plan = replace(plan, obsolete=gone)
        reason = "another source" if other_source else "another branch or kind of kernel modules"
        steps.append(Step("packages", "remove", ", ".join(gone), f"they are of {reason}"))
    steps.append(Step("packages", action, f"{detail}{f' ({note})' if note else ''}", because))
    if plan.hold:
        steps.append(
            Step("hold", "hold", words, "an unattended upgrade could replace a part of the set")
        )
    return _configured(case, target, plan, steps, warnings)


def _action(present: Present | None, target: Target) -> str:
    if present is None:
        return "install"
    old = version_numbers(present.version)
    new = version_numbers(target.version)
    if not new:
        old, new = (int(present.branch),), (int(target.branch),)
    if new == old:
        return "install"
    return "upgrade" if new > old else "downgrade"


def _with_runfile(case: Case, target: Target, plan: DriverPlan) -> DriverPlan:
    given = target.runfile or {}
    dkms = case.wish.dkms != "false"
    arguments = install_arguments(
        str(target.version),
        str(target.flavour),
        dkms,
        load=False,
        running=bool(case.node["driver"]["loaded"]),
        compute_only=case.wish.compute_only,
    )
    packages: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    family = FAMILIES.get(case.system.family)
    if family and case.system.manager in MANAGERS:
        meta, optional = headers(case.node, case.system, case.data)
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


def _configured(
    case: Case, target: Target, plan: DriverPlan, steps: list[Step], warnings: list[str]
) -> DriverPlan:
    """Return the plan with files, services, initramfs and load, and what of these differs."""
    node, wish = case.node, case.wish
    files = _files(case, target, plan)
    differing = differing_files(node, files)
    token, token_step = licence_token(case)
    wished = (*files, *([texts.TOKEN] if token else []))
    stale = stale_files(node, wished) if node["driver"]["managed"] else ()
    if differing:
        reason = "nouveau stays away, the modules come at boot, and the set is left alone"
        steps.append(Step("files", "write", ", ".join(differing), reason))
    if stale:
        steps.append(Step("files", "remove", ", ".join(stale), "they are no longer wished"))
    if token_step:
        steps.append(token_step)
    initramfs = any(path in texts.IN_INITRAMFS for path in (*differing, *stale))
    if initramfs:
        reason = "the initial RAM disk has a copy of what modprobe reads"
        steps.append(Step("initramfs", "rebuild", "", reason))
    units: dict[str, str] = {}
    if wish.persistence:
        units[PERSISTENCED] = "enabled"
    if case.guest:
        units[GRIDD] = "enabled"
    parts = parts_of(case, target)
    units.update(parts.units)
    warnings.extend(parts.warnings)
    steps.extend(service_steps(case, units))
    if node["driver"].get("pending"):
        steps.append(
            Step("driver", "finish", "", "an earlier run began a change and did not finish it")
        )
    loading, load_step = load(case, target, build=any(step.step == "kernel" for step in steps))
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
    return _with_steps(plan, steps, warnings)


def _files(case: Case, target: Target, plan: DriverPlan) -> dict[str, str]:
    wish = case.wish
    parts = parts_of(case, target)
    files = {
        texts.NOUVEAU: texts.nouveau(),
        texts.MODULES: texts.modules(*parts.modules),
        texts.UDEV: texts.udev(),
    }
    options = {**wish.module_options, **memory.module_options(case, target.branch)}
    if options:
        debian = target.source == DISTRO and case.system.id == "debian"
        files[texts.OPTIONS] = texts.options(options, debian=debian)
    if plan.hold and case.system.manager == "apt":
        files[texts.UNATTENDED] = texts.unattended()
    if target.source == RUNFILE and wish.persistence:
        files[texts.PERSISTENCED] = texts.persistenced()
    files.update(parts.files)
    licence = texts.gridd(wish.licence)
    if case.guest and any(wish.licence.get(key) for key in ("server", "port", "feature_type")):
        files[texts.GRIDD] = licence
    return files


def _with_steps(plan: DriverPlan, steps: list[Step], warnings: list[str]) -> DriverPlan:
    return replace(
        plan,
        steps=tuple(steps),
        change=bool(steps),
        reasons=plan.reasons or tuple(sentence(step) for step in steps),
        warnings=tuple(dict.fromkeys(warnings)),
    )
