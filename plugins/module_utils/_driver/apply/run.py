# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The phases of the module nvidia_driver, in the order of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._core.errors import InputError, KubegpuError
from ..._diagnosis.driver import UNKNOWN
from ..._diagnosis.evidence import uptime
from ..._distro.data import without_dkms
from ..._record.transaction import applied
from .. import record as flow
from ..plan.config_files import GRIDD, RECORD, TOKEN
from ..plan.packages import module_streams
from ..plan.plan import read_options
from ..plan.sources import system_of
from ..types import GRIDD_UNIT, INSTALLS
from . import config_files as configuration
from . import failures, installer, kernel_module, package_calls, units
from .context import Diagnosed, Work, diagnosis
from .diff import describe_driver, differences, driver_states, shown_text
from .initramfs import rebuild_initramfs
from .loading import kernel_without_module

# Causes that a failure of packages can have; others of the node's troubles do not explain it.
_BY_PACKAGES = ("dkms_build_failed", "kernel_headers_missing")
# Causes that an installer names itself; others are found beside its words.
_IN_WORDS = (*_BY_PACKAGES, "disk_full", "nouveau_loaded")


def run_phase(phase: str, work: Work) -> dict[str, Any]:
    """Do a phase that changes the node, unless another run has gone on with the change."""
    if phase != "begin":
        _see_run(work, phase)
    return PHASES[phase](work)


def _see_run(work: Work, phase: str) -> None:
    """Stop a run whose change another one has gone on with: the node is that one's now."""
    # What failed before anything was recorded is explained, and nothing is to be put back.
    nothing = work.memory.pending is None and phase in ("explain", "rollback")
    if nothing or not flow.taken_over(work.memory, work.params["_run"]):
        return
    raise KubegpuError(
        "Another run has gone on with the driver of this node since this one began; this one "
        "stops here.",
        next_step="Wait for that run to end, and start no two runs for one node at a time.",
    )


def plan_phase(work: Work) -> dict[str, Any]:
    """Return what differs, and what is to be done; nothing is changed."""
    plan, memory = work.plan, work.memory
    if plan.action == "refuse" and (work.present or memory.installed or not memory.managed):
        raise InputError(
            "No driver can be set up as asked for; nothing was changed.\n"
            + "\n".join(f"- {reason}" for reason in plan.reasons)
        )
    look = work.look()
    loading = work.loading(look)
    for text in (*plan.warnings, loading.warning):
        if text:
            work.warn(text)
    changes = configuration.file_changes(work)
    before, after = driver_states(work, look, loading)
    diff = [
        {
            "before": shown_text(path, change.before.content),
            "after": shown_text(path, change.after.content),
            "before_header": path,
            "after_header": path,
        }
        for path, change in changes.items()
        if change.changed
    ]
    if before != after:
        title = "NVIDIA driver"
        diff.append(
            {"before": before, "after": after, "before_header": title, "after_header": title}
        )
    interrupted = memory.pending is not None
    changed = bool(diff) or interrupted
    result = _answer(work, memory, look.loaded, "" if loading.now else loading.reboot)
    result["changed"] = changed
    if work.diff:
        result["diff"] = diff
    if work.present:
        needed = changed or plan.change
        sets = package_calls.package_tasks(plan) if needed else []
        runfile = flow.runfile_to_do(plan, memory)
    else:
        # A change that was begun and not finished is undone by the sets' own records.
        foreign = plan.action == "remove" and not memory.managed and not interrupted
        needed = changed or memory.managed or foreign
        sets = (
            package_calls.removal_tasks(plan)
            if foreign
            else package_calls.absent_tasks()
            if needed
            else []
        )
        runfile = None
    result["_tasks"] = {
        "needed": needed,
        "sets": sets,
        "runfile": None if runfile is None else dict(runfile),
        "dkms": without_dkms(work.facts["os"]["id"] or ""),
    }
    return result


def _begin(work: Work) -> dict[str, Any]:
    """Record what is going to be done, remove another source's driver, write the files."""
    changes = configuration.file_changes(work)
    plan = work.plan
    files = {
        path: configuration.for_record(change.before)
        for path, change in changes.items()
        if change.changed
    }
    runfile = flow.runfile_to_do(plan, work.memory) if work.present else None
    if runfile is not None:
        runfile = {**runfile, **(work.params["_runfile"] or {})}
    memory = flow.begun(
        work.memory,
        plan,
        work.facts,
        files,
        units.read_services(work.run, plan.services),
        plan.initramfs or configuration.needs_initramfs(list(files)),
        runfile,
        work.params["_run"],
    )
    uninstall = plan.uninstall == "runfile"
    if work.present:
        if uninstall:
            installer.see_packages(work)
    else:
        uninstall = flow.uninstalls(plan, work.memory, work.facts)
    work.keep(memory)
    installer.drop_cached(work, memory)
    if uninstall:
        installer.uninstall_runfile(work.run, work.facts["driver"]["uninstaller"])
    if work.present:
        with applied(work.store, list(changes.values())):
            pass
        configuration.read_again(work, files)
    return {"changed": True}


def _finish(work: Work) -> dict[str, Any]:
    """Do what follows the packages, see that all is as planned, and finish the record."""
    return _finish_present(work) if work.present else _finish_absent(work)


def _explain(work: Work) -> dict[str, Any]:
    """Say why the packages or the runfile failed, and what has to be put back."""
    words = work.params["_failure"]
    if not work.pending:
        # It failed before anything was recorded, and nothing is changed before that.
        return {
            "changed": False,
            "message": words,
            "code": "",
            "keep": False,
            "unchanged": True,
            "before": "",
            "sets": [],
        }
    before = work.pending.get("before")
    # Its files can be there, of this run or of one that died.
    ran = bool(work.pending.get("runfile_begun"))
    by_installer = failures.from_installer(words)
    there, broken = installer.driver_packages(work)
    old = dict(before["packages"]) if before else {}
    unchanged = not broken and there == old
    finding = diagnosis(work, words=words)
    passing = failures.passing(words)
    telling = finding.code != UNKNOWN if by_installer else finding.code in _BY_PACKAGES
    told = telling and not passing and (broken or by_installer or failures.about_build(words))
    message = finding.message if told else words
    if told and by_installer and finding.code not in _IN_WORDS:
        message += f"\nWhat failed: {words}"
    keep = bool(work.pending.get("boot_first")) or (passing and not (unchanged and not ran))
    if ran and not keep:
        installer.clear_runfile(work, before)
    return {
        "changed": False,
        "message": message,
        "code": finding.code if told else "",
        "keep": keep,
        "unchanged": unchanged and not ran,
        "before": describe_driver(before),
        "sets": []
        if passing and unchanged
        else package_calls.rollback_tasks(
            before,
            sorted({*there, *broken}),
            managed=bool(work.pending.get("managed")),
            streams=restored_streams(work, before),
        ),
    }


def restored_streams(work: Work, before: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the streams of dnf's modules that the packages of the driver before are in.

    Of a record that does not say which were enabled, by its version.
    """
    if before and "streams" in before:
        return dict(before["streams"])
    if not before or not before["branch"] or not before["kernel_module"]:
        return {}
    _wish, data = read_options(work.params)
    system = system_of(work.facts, data)
    return module_streams(system, before["source"], before["branch"], before["kernel_module"], data)


def _rollback(work: Work) -> dict[str, Any]:
    """Put files and initial RAM disk back to what they were before this change."""
    pending = work.pending
    if not pending:
        return {"changed": False, "files": []}
    done = []
    for path, kept in pending["files"].items():
        if configuration.put_back(work, path, kept):
            done.append(path)
    configuration.read_again(work, done)
    notes = [installer.runfile_again(work, pending.get("before"))]
    if configuration.needs_initramfs(done):
        rebuild_initramfs(work.run, work.reader, work.facts["os"]["family"])
    notes.append(kernel_module.load_again(work.run, work.reader, pending.get("loaded")))
    memory = flow.given_back(work.memory)
    installer.drop_cached(work, memory)
    if memory is None:
        work.store.drop(RECORD)
    else:
        work.keep(memory)
    return {"changed": True, "files": done, "notes": [note for note in notes if note]}


def _finish_present(work: Work) -> dict[str, Any]:
    run, reader = work.run, work.reader
    if kernel_module.build_missing(run, work.facts):
        work = work.again()
    wrong = _verify(work)
    if wrong:
        raise KubegpuError(
            "The driver is not as it should be after the change.",
            evidence="; ".join(wrong),
            next_step="Run again: it goes on where this run stopped.",
        )
    if work.pending.get("initramfs"):
        skipped = rebuild_initramfs(run, reader, work.facts["os"]["family"])
        if skipped:
            work.warn(f"The initial RAM disk was not rebuilt: {skipped}.")
    for text in units.enable_services(run, work.plan.services, start=False):
        work.warn(text)
    if {GRIDD, TOKEN} & set(work.pending.get("files", ())):
        # It reads them when it starts. Before the record: a run that dies here does it again.
        run(["systemctl", "try-restart", f"{GRIDD_UNIT}.service"], timeout=120)
    memory = flow.finished(work.memory, work.facts, back=work.wish.version == "previous")
    installer.drop_cached(work, memory)
    work.keep(memory)
    # From here on nothing is half done: whatever the kernel says, the driver is installed.
    reboot = _load(work)
    loaded = kernel_module.loaded_version(reader)
    if loaded:
        units.start_services(work, reboot)
    return {**_answer(work, memory, loaded, reboot), "changed": True}


def _load(work: Work) -> str:
    """Load the module where that is asked for; return why a reboot is needed, or nothing."""
    other_kernel = kernel_without_module(work.facts)
    look = work.look()
    loading = work.loading(look)
    if loading.warning:
        work.warn(loading.warning)
    if other_kernel and not loading.warning:
        return other_kernel
    if not loading.now:
        return loading.reboot
    modules = kernel_module.Modules(work.run, work.reader, work.daemons)
    stays = modules.unload() if look.loaded else modules.unload_nouveau()
    if stays is not None:
        # What was stopped for it is started again by the caller.
        return f"A module that is loaded cannot be unloaded: {stays.words()}"
    begin = uptime(work.reader)
    answer = modules.load()
    complaint = None if not answer.ok else kernel_module.ask_driver(work.run)
    if not answer.ok or complaint is not None:
        raise Diagnosed(diagnosis(work.again(), answer.words(), since=begin))
    return ""


def _finish_absent(work: Work) -> dict[str, Any]:
    run, reader = work.run, work.reader
    changes = configuration.file_changes(work)
    look = work.look()
    loading = work.loading(look)
    # Before the files: a unit can be one of them.
    units.give_back_services(run, work.memory.services)
    reboot = loading.reboot
    if loading.now:
        stays = kernel_module.Modules(run, reader, work.daemons).unload()
        if stays is not None:
            reboot = f"The driver's module cannot be unloaded: {stays.words()}"
    with applied(work.store, list(changes.values())):
        pass
    configuration.read_again(work, changes)
    if work.pending.get("initramfs"):
        skipped = rebuild_initramfs(run, reader, work.facts["os"]["family"])
        if skipped:
            work.warn(f"The initial RAM disk was not rebuilt: {skipped}.")
    installer.drop_cached(work, None)
    work.store.drop(RECORD)
    answer = _answer(work, flow.Memory(), kernel_module.loaded_version(reader), reboot)
    return {**answer, "changed": True}


def _verify(work: Work) -> list[str]:
    """Return in what the node differs from the wish, after the change."""
    wrong = []
    if work.plan.action in INSTALLS or work.plan.action == "refuse":
        wrong.append(differences(work.plan))
    driver = work.facts["driver"]
    if work.plan.hold and driver["packages"] and driver["held"] is False:
        wrong.append("not all of the driver's packages are held")
    wrong.extend(
        f"{path} differs"
        for path, change in configuration.file_changes(work).items()
        if change.changed
    )
    return wrong


def _answer(work: Work, memory: flow.Memory, loaded: str | None, reboot: str) -> dict[str, Any]:
    return {
        "plan": work.plan.to_json(),
        "loaded": loaded,
        "reboot_required": bool(reboot),
        "reboot_reason": reboot,
        "previous": _public(memory.previous),
    }


def _public(driver: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if driver is None:
        return None
    return {name: driver[name] for name in ("version", "branch", "source", "kernel_module")}


PHASES: Mapping[str, Callable[[Work], dict[str, Any]]] = {
    "plan": plan_phase,
    "begin": _begin,
    "runfile": installer.run_runfile,
    "finish": _finish,
    "explain": _explain,
    "rollback": _rollback,
}
