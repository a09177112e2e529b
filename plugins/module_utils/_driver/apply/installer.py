# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runfile: installed, uninstalled, restored; and checks of packages around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._core.errors import InputError, KubegpuError
from ..._host.command import TIMED_OUT, Runner
from ..._host.files import FileState, remove_empty_directories, write_file
from ..._host.temporary import clear_unpacked, unpacking
from ..._known_faults.codes import NOUVEAU
from ..._nvidia.package_names import is_driver
from ..._nvidia.runfile import (
    LOG,
    UNINSTALL_LOG,
    beside_nouveau,
    uninstall_arguments,
    unpacked_in,
)
from ..._packages.registry import choose
from ..._packages.types import ABSENT, CONFIGURATION
from ..record import Record, cached_files, current_driver, same_driver, update_pending
from . import kernel_module
from .context import Context
from .failures import INSTALLER_FAILED, INSTALLER_STOPPED
from .initramfs import rebuild_initramfs
from .loading import decide_loading

if TYPE_CHECKING:
    from ..._host.reader import NodeReader

_CHECKSUM_TIMEOUT = 600


def run_runfile(context: Context) -> dict[str, Any]:
    """Run the runfile on the node.

    :raises KubegpuError: the installer failed, or cannot work next to a loaded kernel driver.
    """
    state = context.module_state()
    modules = kernel_module.KernelModules(context.run, context.reader)
    if context.request.load and decide_loading(True, state, context.plan.reboot).now:
        # The installer refuses a loaded module; if it is in use, an option allows that.
        if state.loaded:
            modules.unload()
        modules.unload_nouveau()
    runfile = dict(context.pending["runfile"])
    state = context.module_state()
    if state.nouveau is not None:
        more = beside_nouveau(runfile["version"])
        if not more:
            # The files that block it are written; the next boot must use them.
            rebuild_initramfs(context.run, context.reader, context.facts["os"]["family"])
            context.save_record(update_pending(context.record, boot_first=True))
            raise KubegpuError(
                f"{state.kernel_driver} is loaded and in use, and the installer of "
                f"{runfile['version']} does not install next to it.",
                evidence=f"/sys/module/{state.kernel_driver}",
                next_step=f"Reboot: {state.kernel_driver} is not loaded after it. Then run again.",
                code=NOUVEAU,
            )
        runfile["arguments"] = [*runfile["arguments"], *more]
    timeout = context.params["build_timeout"]
    record = update_pending(context.record, runfile_begun=True)
    context.save_record(record)
    execute_runfile(context.run, context.reader, runfile, timeout)
    context.save_record(update_pending(record, runfile_done=True))
    return {"changed": True}


def check_packages_available(context: Context) -> None:
    """Check that the plan's packages are available before another driver is removed.

    :raises KubegpuError: no package list has one of them.
    """
    names = sorted(context.plan.packages)
    if not names:
        return
    manager = choose(context.facts["os"]["package_manager"], context.run)
    if manager.has_streams and context.plan.streams:
        manager = manager.with_streams(context.plan.streams)
    offered = manager.available(names)
    if any(not offered.get(name) for name in names):
        context.run(manager.refresh_command(), timeout=900)
        offered = manager.available(names)
    unknown = [name for name in names if not offered.get(name)]
    if unknown:
        raise KubegpuError(
            "The driver of the runfile is kept, since no package list of this node has "
            f"{', '.join(unknown)}; nothing was changed.",
            next_step="Add the repository, or check that it can be reached, then run again.",
        )


def driver_packages(context: Context) -> tuple[dict[str, str | None], list[str]]:
    """Return the driver's installed packages, and those that are half installed."""
    try:
        manager = choose(context.facts["os"]["package_manager"], context.run)
        packages = manager.read().packages
    except InputError:
        return dict((current_driver(context.facts) or {"packages": {}})["packages"]), []
    ours = {name: package for name, package in packages.items() if is_driver(name)}
    broken = [
        name
        for name, package in sorted(ours.items())
        if not package.installed and package.status not in (ABSENT, CONFIGURATION)
    ]
    return {name: p.version for name, p in ours.items() if p.installed}, broken


def remove_unused_runfiles(context: Context, kept: Record | None) -> None:
    """Remove cached runfiles that the new record does not need, and what a killed one unpacked."""
    clear_unpacked(context.reader.root, "driver")
    for path in cached_files(context.record):
        if path not in cached_files(kept):
            write_file(FileState(context.absolute(path)))
            remove_empty_directories((context.absolute(path).rpartition("/")[0],))


def remove_partial_installation(context: Context, before: Mapping[str, Any] | None) -> None:
    """Uninstall what an interrupted installer left, before packages are restored."""
    driver = context.facts["driver"]
    if driver["uninstaller"] and not (
        before and before["source"] == "runfile" and before["version"] == driver["installed"]
    ):
        context.run(uninstall_arguments(driver["uninstaller"]), timeout=900)


def reinstall_runfile(context: Context, before: Mapping[str, Any] | None) -> str:
    """Reinstall the previous driver from its runfile; return why not, or an empty text."""
    if before is None or before["source"] != "runfile":
        return ""
    if same_driver(before, current_driver(context.facts)):
        return ""
    runfile = before.get("runfile")
    if not runfile or not context.reader.exists(runfile["file"]):
        return (
            f"The driver {before['version']} came from a runfile that is not on this node: it "
            "cannot be restored. Give it as runfile, with its version."
        )
    execute_runfile(context.run, context.reader, runfile, context.params["build_timeout"])
    return ""


def execute_runfile(
    run: Runner, reader: NodeReader, runfile: Mapping[str, Any], timeout: int
) -> None:
    """Run the installer on the node with the plan's arguments.

    :param timeout: seconds.
    :raises KubegpuError: it failed, took too long, or is not the verified file.
    """
    _verify_checksum(run, runfile)
    with unpacking(reader.root, "driver") as folder:
        more, environment = unpacked_in(folder)
        argv = ["sh", runfile["file"], *runfile["arguments"], *more]
        answer = run(argv, timeout=timeout, environment=environment)
    if answer.rc == TIMED_OUT:
        raise KubegpuError(
            f"The installer of the driver {runfile['version']} was not ready after {timeout} "
            "seconds (build_timeout), and was stopped.",
            evidence=answer.last_output(),
            next_step=f"{LOG} shows how far it got; raise build_timeout for a slow node.",
            code=INSTALLER_STOPPED,
        )
    if not answer.ok:
        log = reader.read_text(LOG) or ""
        told = [line.strip() for line in log.splitlines() if line.startswith("ERROR")]
        raise KubegpuError(
            f"The installer of the driver {runfile['version']} failed (exit status {answer.rc}).",
            evidence="\n".join([*told[-8:], answer.last_output()]).strip(),
            next_step=f"Check {LOG}.",
            code=INSTALLER_FAILED,
        )


def uninstall_runfile(run: Runner, uninstaller: str | None) -> None:
    """Run the runfile's own uninstaller.

    :raises KubegpuError: it is missing or failed.
    """
    if uninstaller is None:
        raise KubegpuError(
            "The driver on this node came from a runfile, and its uninstaller is not there.",
            next_step="Run the same .run file with --uninstall manually, then run again.",
        )
    answer = run(uninstall_arguments(uninstaller), timeout=900)
    if not answer.ok:
        raise KubegpuError(
            f"The driver's own uninstaller failed: {uninstaller}",
            evidence=answer.last_output(),
            next_step=f"Check {UNINSTALL_LOG}.",
        )


def _verify_checksum(run: Runner, runfile: Mapping[str, Any]) -> None:
    """Refuse a file that changed since it was verified: it is about to be run as root."""
    wanted = runfile.get("sha256")
    if not wanted:
        return
    answer = run(["sha256sum", runfile["file"]], timeout=_CHECKSUM_TIMEOUT)
    seen = (answer.stdout.split() or [""])[0].lstrip("\\")
    if seen != wanted:
        raise KubegpuError(
            f"{runfile['file']} is not the file any more that was verified; it was not run.",
            evidence=f"expected sha256 {wanted}, found {seen or answer.last_output()}",
            next_step="Find out who changed it, remove it, and run again.",
        )
