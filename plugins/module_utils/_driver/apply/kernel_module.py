# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's kernel modules: read, loaded, unloaded, built."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._hardware.kernel_drivers import KERNEL_DRIVERS
from ..._host.command import NOT_FOUND, Result, Runner
from ..._known_faults.answers import has_no_module
from ..._known_faults.device_users import find_holders, find_users, loaded_modules
from ..._known_faults.evidence import read_environment
from ..._known_faults.evidence_types import DeviceUser
from ..._nvidia.toolkit_paths import CDI_REFRESH_UNIT
from ..components import IMEX_UNIT, MANAGER_UNIT
from ..types import PERSISTENCED_UNIT
from .loading import ModuleState, unbuilt_kernels
from .units import read_services

if TYPE_CHECKING:
    from ..._host.reader import NodeReader

# The module's own name, and Debian's, where an alternative that was never set leaves no alias.
_MODULES = ("nvidia", "nvidia-current", "nvidia-current-open")
_UVM = ("nvidia-uvm", "nvidia-current-uvm", "nvidia-current-open-uvm")
# The driver's own daemons, as the kernel cuts their names.
_DAEMONS = {
    PERSISTENCED_UNIT: "nvidia-persiste",
    MANAGER_UNIT: "nv-fabricmanage",
    IMEX_UNIT: "nvidia-imex",
}
_BUILD_TIMEOUT = 1800


def read_module_state(reader: NodeReader, ours: Collection[str] = ()) -> ModuleState:
    """Return the state of the kernel modules.

    :param ours: units, besides the persistence daemon, that are stopped for a change and started
        again.
    """
    units = {PERSISTENCED_UNIT, *ours}
    loaded = loaded_version(reader)
    environment = read_environment(reader)
    own = [name for name in KERNEL_DRIVERS if reader.is_dir(f"/sys/module/{name}")]
    return ModuleState(
        loaded=loaded,
        # None (unknown) counts as allowed: a container can have the right.
        cannot=environment.why_not if environment.may_load is False else "",
        users=tuple(str(user) for user in find_users(reader) if not _is_daemon(user, units))
        if loaded
        else (),
        holders=find_holders(reader) if loaded else (),
        # The later ones are used by other modules, the first one by programs alone.
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
class KernelModules:
    """Loads and unloads the driver's kernel modules.

    ``ours``: units that are stopped first, besides the persistence daemon.
    """

    run: Runner
    reader: NodeReader
    ours: tuple[str, ...] = ()

    def unload(self) -> Result | None:
        """Unload the driver's modules; return the failed command's result, or None."""
        if self.reader.is_dir("/sys/module/nvidia"):
            # It keeps the devices open; the caller starts it again.
            self.run(["systemctl", "stop", PERSISTENCED_UNIT])
            for unit in self.ours:
                # The fabric manager needs time to release the switches.
                self.run(["systemctl", "stop", f"{unit}.service"], timeout=120)
            # It opens the GPUs for seconds after each load of the module, and loads nvidia_uvm.
            self.run(["systemctl", "stop", CDI_REFRESH_UNIT])
        for name in loaded_modules(self.reader):
            answer = self.run(["rmmod", name])
            if not answer.ok:
                return answer
        return None

    def unload_nouveau(self) -> Result | None:
        """Unload the kernel's own drivers; return the failed command's result, or None."""
        for name in KERNEL_DRIVERS:
            # modprobe -r may have removed those that the previous one depends on.
            if self.reader.is_dir(f"/sys/module/{name}"):
                answer = self.run(["modprobe", "-r", name])
                if not answer.ok:
                    return answer
        return None

    def load(self) -> Result:
        """Load the modules for the GPU and for CUDA, and create the device files."""
        answer = self._first(_MODULES)
        if answer.ok:
            answer = self._first(_UVM)
        if answer.ok:
            # udev creates them as well, where it runs.
            self.run(["nvidia-modprobe", "-c", "0", "-u"])
        return answer

    def _first(self, names: Sequence[str]) -> Result:
        first: Result | None = None
        for name in names:
            answer = self.run(["modprobe", name], timeout=120)
            if answer.ok or not has_no_module(answer.stderr):
                return answer
            first = first or answer
        return first or Result(NOT_FOUND, "", "nothing to load")


def reload_previous(run: Runner, reader: NodeReader, loaded: str | None) -> str:
    """Load the module that was loaded before a failed change; return the error, or nothing."""
    if loaded is None or loaded_version(reader):
        return ""
    answer = KernelModules(run, reader).load()
    if not answer.ok:
        return f"the kernel module {loaded}, which was loaded ({answer.last_output()})"
    for unit, state in read_services(run, _DAEMONS).items():
        if state == "enabled":
            run(["systemctl", "start", f"{unit}.service"], timeout=120)
    return ""


def build_missing_modules(run: Runner, node: Mapping[str, Any]) -> list[str]:
    """Build the driver by DKMS for kernels whose headers came later; return these kernels.

    A build that fails is found when the facts are read again.
    """
    kernels = unbuilt_kernels(node)
    for kernel in kernels:
        run(["dkms", "autoinstall", "-k", kernel], timeout=_BUILD_TIMEOUT)
    return kernels


def failed_driver_query(run: Runner) -> Result | None:
    """Return the result of nvidia-smi if it failed; None if it succeeded or is not installed."""
    answer = run(["nvidia-smi", "-L"], timeout=60)
    return None if answer.ok or answer.rc == NOT_FOUND else answer
