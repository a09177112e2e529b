# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The phases of the module nvidia_driver, in the order of a change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..._core.errors import InputError, KubegpuError
from ..._known_faults.codes import UNKNOWN
from ..._known_faults.evidence import uptime
from ..._record.transaction import applied
from ..plan.config_files import GRIDD, RECORD, TOKEN
from ..record import (
    Record,
    finish_change,
    is_taken_over,
    needs_uninstaller,
    record_after_rollback,
    runfile_to_run,
    start_change,
)
from ..types import GRIDD_UNIT, INSTALLS
from . import config_files as configuration
from . import failures, installer, kernel_module, package_calls, units
from .context import Context, diagnose_node
from .diff import change_diff, describe_driver, differences
from .initramfs import rebuild_initramfs
from .licence import await_licence
from .loading import kernel_without_module

# The findings that can explain a failure of packages.
_BY_PACKAGES = ("dkms_build_failed", "kernel_headers_missing")
# Causes that are in the installer's own message; for others that message is added.
_IN_WORDS = (*_BY_PACKAGES, "disk_full", "nouveau_loaded")


def run_phase(phase: str, context: Context) -> dict[str, Any]:
    """Run a phase that changes the node.

    :raises KubegpuError: the node is not the planned one, another run has taken over the change, or
        the phase failed.
    """
    if phase != "begin":
        # From here on this run itself has changed the node.
        _check_run(context, phase)
    return PHASES[phase](context)


def _check_run(context: Context, phase: str) -> None:
    """Stop if another run has taken over the change."""
    # A failure before the record was saved is explained; there is nothing to roll back.
    nothing = context.record.pending is None and phase in ("explain", "rollback")
    if nothing or not is_taken_over(context.record, context.params["_run"]):
        return
    raise KubegpuError(
        "Another run has continued with the driver of this node since this one began; this one "
        "stops here.",
        next_step="Wait for that run to end, and start no two runs for one node at a time.",
    )


def plan_phase(context: Context) -> dict[str, Any]:
    """Return the diff, and whether there is anything to do. Changes nothing.

    :raises KubegpuError: the node is not the planned one, or the plan is a refusal.
    """
    context.sent.check(context.facts)
    plan, record = context.plan, context.record
    if plan.action == "refuse" and (context.present or record.installed or not record.managed):
        raise InputError(
            "No driver can be set up as requested; nothing was changed.\n"
            + "\n".join(f"- {reason}" for reason in plan.reasons)
        )
    module_state = context.module_state()
    loading = context.loading(module_state)
    for text in (*plan.warnings, loading.warning):
        if text:
            context.warn(text)
    changes = configuration.file_changes(context)
    diff = change_diff(context, module_state, loading, changes)
    interrupted = record.pending is not None
    changed = bool(diff) or interrupted
    result = _build_result(
        context, record, module_state.loaded, "" if loading.now else loading.reboot
    )
    result["changed"] = changed
    if context.diff:
        result["diff"] = diff
    if context.present:
        needed = changed or plan.change
        runfile = runfile_to_run(plan, record)
    else:
        # A pending change is undone by the records of the package sets.
        needed = changed or record.managed or plan.action == "remove"
        runfile = None
    result["_tasks"] = {"needed": needed, "runfile": None if runfile is None else dict(runfile)}
    return result


def _begin(context: Context) -> dict[str, Any]:
    """Save the record, remove the driver of another source, write the files.

    Returns what :func:`plan_phase` says of the node before.
    """
    result = plan_phase(context)
    changes = configuration.file_changes(context)
    plan = context.plan
    files = {
        path: configuration.to_record(change.before)
        for path, change in changes.items()
        if change.changed
    }
    runfile = runfile_to_run(plan, context.record) if context.present else None
    if runfile is not None:
        runfile = {**runfile, **(context.params["_runfile"] or {})}
    record = start_change(
        context.record,
        plan,
        context.facts,
        files,
        units.read_services(context.run, plan.services),
        plan.initramfs or configuration.needs_initramfs(list(files)),
        runfile,
        context.params["_run"],
        context.sent.streams,
    )
    uninstall = plan.uninstall == "runfile"
    if context.present:
        if uninstall:
            installer.check_packages_available(context)
    else:
        uninstall = needs_uninstaller(plan, context.record, context.facts)
    context.save_record(record)
    installer.remove_unused_runfiles(context, record)
    if uninstall:
        installer.uninstall_runfile(context.run, context.facts["driver"]["uninstaller"])
    if context.present:
        with applied(context.store, list(changes.values())):
            pass
        configuration.read_again(context, files)
    return result


def _finish(context: Context) -> dict[str, Any]:
    """Verify the packages, configure and load the driver, and finish the record."""
    return _finish_present(context) if context.present else _finish_absent(context)


def _explain(context: Context) -> dict[str, Any]:
    """Return why the packages or the runfile failed, and the calls for the rollback."""
    failure = context.params["_failure"] or {}
    words, found = str(failure.get("msg") or "no answer"), failures.codes_of(failure)
    if not context.pending:
        # It failed before the record was saved, and so before any change.
        return {
            "changed": False,
            "message": words,
            "failure": {},
            "keep": False,
            "unchanged": True,
            "before": "",
            "sets": [],
        }
    before = context.pending.get("before")
    # This run or an interrupted one may have left files of the installer.
    ran = bool(context.pending.get("runfile_begun"))
    by_installer = failures.is_installer_failure(found)
    there, broken = installer.driver_packages(context)
    old = dict(before["packages"]) if before else {}
    unchanged = not broken and there == old
    finding = diagnose_node(context, words=words)
    passing = failures.is_transient(found | {finding.code})
    known = finding.code != UNKNOWN if by_installer else finding.code in _BY_PACKAGES
    failed_build = broken or by_installer or failures.is_build_failure(found)
    explained = known and not passing and failed_build
    message = finding.message if explained else words
    if explained and by_installer and finding.code not in _IN_WORDS:
        message += f"\nWhat failed: {words}"
    keep = bool(context.pending.get("boot_first")) or (passing and not (unchanged and not ran))
    if ran and not keep:
        installer.remove_partial_installation(context, before)
    return {
        "changed": False,
        "message": message,
        "failure": finding.as_problem() if explained else {},
        "keep": keep,
        "unchanged": unchanged and not ran,
        "before": describe_driver(before),
        "sets": []
        if passing and unchanged
        else package_calls.rollback_calls(
            before,
            sorted({*there, *broken}),
            managed=bool(context.pending.get("managed")),
            streams=(before or {}).get("streams"),
        ),
    }


def _build(context: Context) -> dict[str, Any]:
    """Build missing kernel modules by DKMS."""
    return {"changed": bool(kernel_module.build_missing_modules(context.run, context.facts))}


def _rollback(context: Context) -> dict[str, Any]:
    """Restore files, initial RAM disk and loaded module from before this change."""
    pending = context.pending
    if not pending:
        return {"changed": False, "files": []}
    done = []
    for path, kept in pending["files"].items():
        if configuration.restore_file(context, path, kept):
            done.append(path)
    configuration.read_again(context, done)
    notes = [installer.reinstall_runfile(context, pending.get("before"))]
    if configuration.needs_initramfs(done):
        rebuild_initramfs(context.run, context.reader, context.facts["os"]["family"])
    notes.append(kernel_module.reload_previous(context.run, context.reader, pending.get("loaded")))
    if kernel_module.loaded_version(context.reader):
        units.restore_mig(context)
    record = record_after_rollback(context.record)
    installer.remove_unused_runfiles(context, record)
    if record is None:
        context.store.drop(RECORD)
    else:
        context.save_record(record)
    return {"changed": True, "files": done, "notes": [note for note in notes if note]}


def _finish_present(context: Context) -> dict[str, Any]:
    run, reader = context.run, context.reader
    wrong = _verify(context)
    if wrong:
        raise KubegpuError(
            "The driver does not match the plan after the change.",
            evidence="; ".join(wrong),
            next_step="Run again: it continues where this run stopped.",
        )
    if context.pending.get("initramfs"):
        skipped = rebuild_initramfs(run, reader, context.facts["os"]["family"])
        if skipped:
            context.warn(f"The initial RAM disk was not rebuilt: {skipped}.")
    for text in units.enable_services(run, context.plan.services, start=False):
        context.warn(text)
    if {GRIDD, TOKEN} & set(context.pending.get("files", ())):
        # It reads them at start. This precedes the record, so that an interrupted run repeats it.
        run(["systemctl", "try-restart", f"{GRIDD_UNIT}.service"], timeout=120)
    record = finish_change(
        context.record, context.facts, back=context.request.version == "previous"
    )
    installer.remove_unused_runfiles(context, record)
    context.save_record(record)
    # The driver is installed from here on, even if the module cannot be loaded.
    reboot = _load(context)
    loaded = kernel_module.loaded_version(reader)
    if loaded:
        units.start_services(context, reboot)
        if not reboot:
            units.restore_mig(context)
            # Last: the driver is complete whether the guest gets a licence or not.
            await_licence(context, time.monotonic, time.sleep)
    return {**_build_result(context, record, loaded, reboot), "changed": True}


def _load(context: Context) -> str:
    """Load the module if requested; return why a reboot is needed, or an empty text.

    :raises KubegpuError: the module cannot be loaded or does not work.
    """
    other_kernel = kernel_without_module(context.facts)
    module_state = context.module_state()
    loading = context.loading(module_state)
    if loading.warning:
        context.warn(loading.warning)
    if other_kernel and not loading.warning:
        return other_kernel
    if not loading.now:
        return loading.reboot
    modules = kernel_module.KernelModules(context.run, context.reader, context.daemons)
    stays = modules.unload() if module_state.loaded else modules.unload_nouveau()
    if stays is not None:
        # The caller starts the units again.
        return f"A module that is loaded cannot be unloaded: {stays.last_output()}"
    begin = uptime(context.reader)
    answer = modules.load()
    complaint = None if not answer.ok else kernel_module.failed_driver_query(context.run)
    if not answer.ok or complaint is not None:
        raise diagnose_node(context.refresh(), answer.last_output(), since=begin).error()
    return ""


def _finish_absent(context: Context) -> dict[str, Any]:
    run, reader = context.run, context.reader
    changes = configuration.file_changes(context)
    module_state = context.module_state()
    loading = context.loading(module_state)
    # This precedes the files, of which one can be a unit.
    units.restore_services(run, context.record.services)
    reboot = loading.reboot
    if loading.now:
        stays = kernel_module.KernelModules(run, reader, context.daemons).unload()
        if stays is not None:
            reboot = f"The driver's module cannot be unloaded: {stays.last_output()}"
    with applied(context.store, list(changes.values())):
        pass
    configuration.read_again(context, changes)
    if context.pending.get("initramfs"):
        skipped = rebuild_initramfs(run, reader, context.facts["os"]["family"])
        if skipped:
            context.warn(f"The initial RAM disk was not rebuilt: {skipped}.")
    installer.remove_unused_runfiles(context, None)
    context.store.drop(RECORD)
    answer = _build_result(context, Record(), kernel_module.loaded_version(reader), reboot)
    return {**answer, "changed": True}


def _verify(context: Context) -> list[str]:
    """Return the differences from the requested state that remain after the change."""
    wrong = []
    if context.plan.action in INSTALLS or context.plan.action == "refuse":
        wrong.append(differences(context.plan))
    driver = context.facts["driver"]
    if context.plan.hold and driver["packages"] and driver["held"] is False:
        wrong.append("not all of the driver's packages are held")
    wrong.extend(
        f"{path} differs"
        for path, change in configuration.file_changes(context).items()
        if change.changed
    )
    return wrong


def _build_result(
    context: Context, record: Record, loaded: str | None, reboot: str
) -> dict[str, Any]:
    return {
        "loaded": loaded,
        "reboot_required": bool(reboot),
        "reboot_reason": reboot,
        "previous": _public_driver(record.previous),
    }


def _public_driver(driver: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if driver is None:
        return None
    return {name: driver[name] for name in ("version", "branch", "source", "kernel_module")}


PHASES: Mapping[str, Callable[[Context], dict[str, Any]]] = {
    "plan": plan_phase,
    "begin": _begin,
    "runfile": installer.run_runfile,
    "build": _build,
    "finish": _finish,
    "explain": _explain,
    "rollback": _rollback,
}
