# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's part of a node that is no file and no package: modules, initramfs, services.

Everything is done by a runner and seen by a reader that are passed in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._core.errors import KubegpuError
from ..._diagnosis.device_users import find_holders, find_users, loaded_modules
from ..._diagnosis.evidence import read_environment
from ..._diagnosis.evidence_types import DeviceUser
from ..._diagnosis.known_errors import explain
from ..._distro.data import initramfs_tools
from ..._hardware.kernel_drivers import KERNEL_DRIVERS
from ..._host.command import Result, Runner
from ..._nvidia.runfile import LOG, UNINSTALL_LOG, uninstall_arguments
from ..plan.fabric import BRIDGE_MODULE, IMEX_UNIT, MANAGER_UNIT
from ..record import INSTALLER, PERSISTENCED_UNIT, Look

if TYPE_CHECKING:
    from ..._host.reader import NodeReader
    from ..types import DriverPlan

# The module's own name, and Debian's, where an alternative that was never set leaves no alias.
_MODULES = ("nvidia", "nvidia-current", "nvidia-current-open")
_UVM = ("nvidia-uvm", "nvidia-current-uvm", "nvidia-current-open-uvm")
# The driver's own daemons, as the kernel cuts their names.
_DAEMONS = {
    PERSISTENCED_UNIT: "nvidia-persiste",
    MANAGER_UNIT: "nv-fabricmanage",
    IMEX_UNIT: "nvidia-imex",
}
_NO_MODULE = "not found in directory"
_INITRAMFS_TIMEOUT = 1800
_BUILD_TIMEOUT = 1800
_CHECKSUM_TIMEOUT = 600
# The fabric manager is up when it has set up all switches.
_UNIT_TIMEOUT = 300
_ABSENT = 127
# What ``timeout`` answers for a command that it stopped.
_STOPPED = 124
_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
# What systemctl is-enabled says where there is no such unit.
NO_UNIT = "not-found"


def look_around(reader: NodeReader, ours: Collection[str] = ()) -> Look:
    """Return what decides whether a module can be loaded or changed now.

    :param ours: units that are stopped for a change and started again, beside the persistence
        daemon.
    """
    units = {PERSISTENCED_UNIT, *ours}
    loaded = loaded_version(reader)
    environment = read_environment(reader)
    own = [name for name in KERNEL_DRIVERS if reader.is_dir(f"/sys/module/{name}")]
    return Look(
        loaded=loaded,
        # A container may be one that is allowed to.
        cannot=environment.why_not if environment.may_load is False else "",
        users=tuple(str(user) for user in find_users(reader) if not _is_daemon(user, units))
        if loaded
        else (),
        holders=find_holders(reader) if loaded else (),
        # What others are built on is used by them; the first one is used by programs alone.
        nouveau=int(reader.read_line(f"/sys/module/{own[0]}/refcnt") or 0) if own else None,
        kernel_driver=own[0] if own else "nouveau",
    )


def _is_daemon(user: DeviceUser, units: Collection[str]) -> bool:
    return any(
        user.unit == f"{unit}.service" or user.name.startswith(name)
        for unit, name in _DAEMONS.items()
        if unit in units
    )


def loaded_version(reader: NodeReader) -> str | None:
    return reader.read_line("/sys/module/nvidia/version")


@dataclass(frozen=True)
class Modules:
    """Loads and unloads the driver's kernel modules.

    ``ours``: units that are stopped for it, beside the persistence daemon.
    """

    run: Runner
    reader: NodeReader
    ours: tuple[str, ...] = ()

    def unload(self) -> Result | None:
        """Unload all modules of the driver; return the answer of the one that stays, or None."""
        if self.reader.is_dir("/sys/module/nvidia"):
            # It holds the devices open and belongs to the driver; it is started again later.
            self.run(["systemctl", "stop", PERSISTENCED_UNIT])
            for unit in self.ours:
                # It can take a while to let the switches go.
                self.run(["systemctl", "stop", f"{unit}.service"], timeout=120)
        for name in loaded_modules(self.reader):
            answer = self.run(["rmmod", name])
            if not answer.ok:
                return answer
        return None

    def unload_nouveau(self) -> Result | None:
        """Unload the kernel's own drivers; return the answer of the one that stays, or None."""
        for name in KERNEL_DRIVERS:
            # One may have taken along those that it was built on.
            if self.reader.is_dir(f"/sys/module/{name}"):
                answer = self.run(["modprobe", "-r", name])
                if not answer.ok:
                    return answer
        return None

    def load(self) -> Result:
        """Load the module and the one that CUDA needs, and make the device files."""
        answer = self._first(_MODULES)
        if answer.ok:
            answer = self._first(_UVM)
        if answer.ok:
            # Made by udev as well; the driver's own tool is there where udev is not.
            self.run(["nvidia-modprobe", "-c", "0", "-u"])
        return answer

    def _first(self, names: Sequence[str]) -> Result:
        first: Result | None = None
        for name in names:
            answer = self.run(["modprobe", name], timeout=120)
            if answer.ok or _NO_MODULE not in answer.stderr:
                return answer
            first = first or answer
        return first or Result(_ABSENT, "", "nothing to load")


def load_again(run: Runner, reader: NodeReader, loaded: str | None) -> str:
    """Load the module that was loaded before a change that failed; return why that fails."""
    if loaded is None or loaded_version(reader):
        return ""
    answer = Modules(run, reader).load()
    if not answer.ok:
        return f"the kernel module {loaded}, which was loaded ({answer.words()})"
    for unit, state in read_services(run, _DAEMONS).items():
        if state == "enabled":
            run(["systemctl", "start", f"{unit}.service"], timeout=120)
    return ""


def rebuild_initramfs(run: Runner, reader: NodeReader, family: str | None = None) -> str:
    """Rebuild the initial RAM disks of all kernels; return why it was not done, or nothing.

    :param family: the distribution's, whose own program comes before the others'.
    """
    for program, *arguments in initramfs_tools(family):
        if reader.first([f"{folder}/{program}" for folder in _FOLDERS]) is None:
            continue
        answer = run([program, *arguments], timeout=_INITRAMFS_TIMEOUT)
        if not answer.ok:
            raise KubegpuError(
                f"The initial RAM disk cannot be rebuilt: {program} failed.",
                evidence=answer.words(),
                next_step="Mend what it says (a full /boot, as a rule), then run again.",
            )
        return ""
    return "no program that builds an initial RAM disk is on this node"


def read_services(run: Runner, units: Iterable[str]) -> dict[str, str]:
    """Return whether each unit is enabled, in systemctl's words; nothing where it is not there."""
    found = {}
    for unit in units:
        answer = run(["systemctl", "is-enabled", f"{unit}.service"])
        if answer.rc == _ABSENT:
            return {}
        words = answer.stdout.split()
        found[unit] = words[0] if words else NO_UNIT
    return found


def enable_services(
    run: Runner, units: Mapping[str, str], *, start: bool, again: Collection[str] = ()
) -> list[str]:
    """Enable the units, and start them where the module is loaded; return what is to be warned of.

    :param units: ``enabled`` by unit.
    :param again: those that are started anew where they run.
    """
    warnings = []
    states = read_services(run, units)
    for unit in units:
        state = states.get(unit)
        if state is None:
            continue
        if state == NO_UNIT:
            warnings.append(f"The unit {unit} is not on this node, and is not enabled.")
            continue
        if state == "masked":
            warnings.append(f"The unit {unit} is masked by somebody, and stays so.")
            continue
        if not state.startswith(("enabled", "static", "alias", "indirect", "generated")):
            _systemctl(run, "enable", unit)
        if start:
            # A unit that failed a few times without the module is refused until this is said.
            run(["systemctl", "reset-failed", f"{unit}.service"])
            _systemctl(run, "restart" if unit in again else "start", unit)
    return warnings


def load_bridges(run: Runner) -> str:
    """Load what NVSwitches behind bridges are reached through; return why that fails."""
    answer = run(["modprobe", BRIDGE_MODULE], timeout=60)
    if answer.ok:
        return ""
    return (
        f"The kernel module {BRIDGE_MODULE}, through which this node reaches its NVSwitches, "
        f"cannot be loaded ({answer.words()}): the fabric manager will not find them. Next step: "
        "install what has it (linux-modules-extra-<kernel> on Ubuntu, kernel-modules-extra, or "
        "NVIDIA's DOCA-OFED), then run again."
    )


def give_back_services(run: Runner, earlier: Mapping[str, str]) -> None:
    """Disable the units that were not enabled before us."""
    for unit, state in earlier.items():
        if not state.startswith("enabled") and read_services(run, [unit]).get(unit) == "enabled":
            run(["systemctl", "stop", f"{unit}.service"])
            _systemctl(run, "disable", unit)


def read_again(run: Runner, *, units: bool, rules: bool) -> None:
    """Let systemd and udev read files that were changed; where they do not run, nobody has to."""
    if units:
        run(["systemctl", "daemon-reload"])
    if rules:
        run(["udevadm", "control", "--reload"])


def uninstall_runfile(run: Runner, uninstaller: str | None) -> None:
    """Run the runfile's own uninstaller."""
    if uninstaller is None:
        raise KubegpuError(
            "The driver on this node came from a runfile, and its uninstaller is not there.",
            next_step="Run the same .run file with --uninstall by hand, then run again.",
        )
    answer = run(uninstall_arguments(uninstaller), timeout=900)
    if not answer.ok:
        raise KubegpuError(
            f"The driver's own uninstaller failed: {uninstaller}",
            evidence=answer.words(),
            next_step=f"Look at {UNINSTALL_LOG}.",
        )


def execute_runfile(
    run: Runner, reader: NodeReader, runfile: Mapping[str, Any], timeout: int
) -> None:
    """Run the installer file that lies on the node, with the plan's arguments."""
    _see_checksum(run, runfile)
    answer = run(["sh", runfile["file"], *runfile["arguments"]], timeout=timeout)
    if answer.rc == _STOPPED:
        raise KubegpuError(
            f"{INSTALLER} {runfile['version']} was not ready after {timeout} "
            "seconds (build_timeout), and was stopped.",
            evidence=answer.words(),
            next_step=f"Look at {LOG} for where it stood; raise build_timeout for a slow node.",
        )
    if not answer.ok:
        log = reader.read_text(LOG) or ""
        told = [line.strip() for line in log.splitlines() if line.startswith("ERROR")]
        raise KubegpuError(
            f"{INSTALLER} {runfile['version']} failed (exit status {answer.rc}).",
            evidence="\n".join([*told[-8:], answer.words()]).strip(),
            next_step=f"Look at {LOG}.",
        )


def _see_checksum(run: Runner, runfile: Mapping[str, Any]) -> None:
    """Refuse a file that is not the verified one any more: it is about to be run as root."""
    wanted = runfile.get("sha256")
    if not wanted:
        return
    answer = run(["sha256sum", runfile["file"]], timeout=_CHECKSUM_TIMEOUT)
    seen = (answer.stdout.split() or [""])[0].lstrip("\\")
    if seen != wanted:
        raise KubegpuError(
            f"{runfile['file']} is not the file any more that was verified; it was not run.",
            evidence=f"expected sha256 {wanted}, found {seen or answer.words()}",
            next_step="Find out who changed it, remove it, and run again.",
        )


def build_missing(run: Runner, node: Mapping[str, Any]) -> list[str]:
    """Let DKMS build the driver for kernels whose headers came later; return for which.

    What does not build for a kernel is seen by the next look at the node.
    """
    if not any(entry["state"] != "failed" for entry in node["driver"]["dkms"]):
        return []
    kernels = [
        kernel["version"]
        for kernel in node["kernels"]
        if kernel["headers"] and kernel.get("driver") is None
    ]
    for kernel in kernels:
        run(["dkms", "autoinstall", "-k", kernel], timeout=_BUILD_TIMEOUT)
    return kernels


def ask_driver(run: Runner) -> Result | None:
    """Return the answer of nvidia-smi where it fails; None where it is well or not there."""
    answer = run(["nvidia-smi", "-L"], timeout=60)
    return None if answer.ok or answer.rc == _ABSENT else answer


def differences(plan: DriverPlan) -> str:
    """Return what a plan that should have nothing to do still wants."""
    return "; ".join(f"{step.step}: {step.detail}" for step in plan.steps) or "; ".join(
        plan.reasons
    )


def _systemctl(run: Runner, verb: str, unit: str) -> None:
    answer = run(["systemctl", verb, f"{unit}.service"], timeout=_UNIT_TIMEOUT)
    if not answer.ok:
        journal = run(
            ["journalctl", "--unit", unit, "--no-pager", "--output=cat", "--lines=20"], timeout=20
        ).stdout.strip()
        known = explain(journal)
        raise KubegpuError(
            f"systemctl {verb} {unit} failed." + (f" {known[0].cause}" if known else ""),
            evidence=(known[0].evidence if known else "") or answer.words(),
            next_step=known[0].next_step if known else f"Look at: journalctl --unit {unit}",
        )
