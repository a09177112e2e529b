# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of nvidia-smi for MIG.

nvidia-smi reports failures as warnings, with the status of success ("Treating as warning and moving
on.", "All done."). Therefore its output is evidence only, and the state is read again after
each command. Profiles are given by name: their IDs differ between cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._core.errors import KubegpuError
from .._host.command import Result, Runner
from .facts import parse_instances
from .layout import Instance, Layout
from .state import read_instances
from .types import Gpu

_MODES = {"Enabled": True, "Disabled": False}
_QUERY = "--query-gpu=mig.mode.current,mig.mode.pending"


@dataclass(frozen=True)
class Mode:
    """The MIG mode now, and after a reset or reboot; None without MIG."""

    current: bool | None
    pending: bool | None


@dataclass(frozen=True)
class NvidiaSmi:
    """Reads and changes MIG on GPUs. ``timeout`` is in seconds, for each command."""

    run: Runner
    timeout: int

    def mode(self, gpu: Gpu) -> Mode:
        """Return the modes of the GPU.

        :raises KubegpuError: nvidia-smi does not tell.
        """
        answer = self._smi("-i", gpu.uuid, _QUERY, "--format=csv,noheader")
        words = [word.strip() for word in answer.stdout.strip().split(",")]
        if len(words) != 2 or not set(words) <= {*_MODES, "[N/A]", "N/A"}:
            raise KubegpuError(
                f"nvidia-smi does not report the MIG mode of {gpu.title}.",
                evidence=answer.last_output(),
                next_step=f"Check: nvidia-smi -i {gpu.uuid} {_QUERY} --format=csv",
            )
        return Mode(_MODES.get(words[0]), _MODES.get(words[1]))

    def layout(self, gpu: Gpu) -> Layout:
        """Return mode and instances of the GPU.

        :raises KubegpuError: nvidia-smi does not tell.
        """
        if not self.mode(gpu).current:
            return Layout(False)
        listed = self._smi("mig", "-i", gpu.uuid, "-lgi")
        found = parse_instances(listed.stdout, self._smi("mig", "-i", gpu.uuid, "-lci").stdout)
        if found is None:
            raise KubegpuError(
                f"nvidia-smi does not report the GPU instances of {gpu.title}.",
                evidence=listed.last_output(),
                next_step=f"Check: nvidia-smi mig -i {gpu.uuid} -lgi",
            )
        return Layout(True, read_instances([one for some in found.values() for one in some]))

    def set_mode(self, gpu: Gpu, enabled: bool) -> str:
        """Set the mode; return the output."""
        return _output(self._smi("-i", gpu.uuid, "-mig", str(int(enabled))))

    def reset(self, gpu: Gpu) -> str:
        """Reset the GPU; return the output."""
        return _output(self._smi("--gpu-reset", "-i", gpu.uuid))

    def destroy(self, gpu: Gpu, instance: Instance) -> str:
        """Destroy an instance and the compute instances on it; return the output."""
        target = ("mig", "-i", gpu.uuid, "-gi", str(instance.number))
        if instance.compute != ():
            self._smi(*target, "-dci")
        return _output(self._smi(*target, "-dgi"))

    def create(self, gpu: Gpu, instances: Sequence[Instance]) -> str:
        """Create instances, each with one compute instance that has all of it."""
        places = ",".join(one.place for one in instances)
        return _output(self._smi("mig", "-i", gpu.uuid, "-cgi", places, "-C"))

    def create_divided(self, gpu: Gpu, instance: Instance) -> str:
        """Create an instance without compute instances."""
        return _output(self._smi("mig", "-i", gpu.uuid, "-cgi", instance.place))

    def divide(self, gpu: Gpu, number: int, profiles: Sequence[str]) -> str:
        """Create compute instances on an instance."""
        target = ("mig", "-i", gpu.uuid, "-gi", str(number))
        return _output(self._smi(*target, "-cci", ",".join(profiles)))

    def make_device_files(self) -> None:
        """Create the device files of new instances: nvidia-smi does it for root."""
        self._smi("-L")

    def _smi(self, *arguments: str) -> Result:
        return self.run(["nvidia-smi", *arguments], timeout=self.timeout)


def _output(answer: Result) -> str:
    return answer.stdout.strip() or answer.stderr.strip()
