# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change the MIG layout of one GPU: one command at a time, with the state read after each."""

from __future__ import annotations

from dataclasses import replace

from .._core.errors import KubegpuError
from .._known_faults.answers import is_in_use, said_by_smi
from .layout import Instance, Layout, counted
from .plan import needs_reset
from .reset import Resetter, last_line
from .smi import NvidiaSmi
from .types import Gpu, GpuPlan


def change_gpu(smi: NvidiaSmi, plan: GpuPlan, resetter: Resetter | None) -> Gpu:
    """Change the GPU as planned; return it, with ``pending_why`` if it waits for a reboot.

    :param resetter: resets the GPU; None where that is not allowed.
    :raises KubegpuError: the GPU has not the layout of the plan.
    """
    gpu = plan.gpu
    for instance in plan.destroy:
        output = smi.destroy(gpu, instance)
        if _place(instance) in map(_place, smi.layout(gpu).instances):
            raise _failed(gpu, f"{instance.profile} at {instance.start} is still there", output)
    if plan.mode is not None:
        why = _set_mode(smi, gpu, plan.mode, resetter)
        if why is not None:
            return replace(gpu, pending_why=why)
    if plan.create:
        _create(smi, gpu, plan.create)
    layout = smi.layout(gpu) if plan.change else plan.after
    if layout != _sorted(plan.after):
        raise _failed(gpu, f"it has {layout.describe()}, not {plan.after.describe()}", "")
    return replace(gpu, pending_why=None)


def current(smi: NvidiaSmi, gpu: Gpu) -> Gpu:
    """Return the GPU with its mode and layout of this moment."""
    return replace(gpu, layout=smi.layout(gpu), pending=smi.mode(gpu).pending)


def _set_mode(smi: NvidiaSmi, gpu: Gpu, enabled: bool, resetter: Resetter | None) -> str | None:
    """Set the mode; return what the driver says if it takes effect with a reboot, else None."""
    output = smi.set_mode(gpu, enabled)
    mode = smi.mode(gpu)
    if mode.current != enabled and mode.pending == enabled and resetter and needs_reset(gpu):
        output = f"{output}\n{resetter.reset(gpu)}".strip()
        mode = smi.mode(gpu)
    if mode.pending != enabled:
        raise _failed(gpu, f"MIG is not {'enabled' if enabled else 'disabled'}", output)
    return last_line(output) if mode.current != enabled else None


def _create(smi: NvidiaSmi, gpu: Gpu, instances: tuple[Instance, ...]) -> None:
    # Large ones first; explicit starts make the order irrelevant, but messages are easier to read.
    ordered = sorted(instances, key=lambda one: (-one.size, one.start))
    whole = [one for one in ordered if one.compute is None]
    output = smi.create(gpu, whole) if whole else ""
    for one in ordered:
        if one.compute is not None:
            output = smi.create_divided(gpu, one)
            made = [new for new in smi.layout(gpu).instances if _place(new) == _place(one)]
            if made and made[0].number is not None and one.compute:
                output = smi.divide(gpu, made[0].number, one.compute)
    existing = smi.layout(gpu).instances
    lacking = [one for one in ordered if one not in existing]
    if lacking:
        raise _failed(gpu, f"{counted(lacking)} was not made", output)


def _place(instance: Instance) -> tuple[str, int]:
    return instance.profile, instance.start


def _sorted(layout: Layout) -> Layout:
    return replace(layout, instances=tuple(sorted(layout.instances, key=lambda one: one.start)))


def _failed(gpu: Gpu, cause: str, output: str) -> KubegpuError:
    return KubegpuError(
        f"{gpu.title} ({gpu.address}): {cause}.",
        evidence="\n".join(said_by_smi(output)[-5:]),
        next_step="A program uses the GPU or the instance: nvidia-smi, and fuser -v /dev/nvidia*, "
        "show which."
        if is_in_use(output)
        else f"Check: nvidia-smi mig -i {gpu.uuid} -lgi, and the kernel log (dmesg).",
    )
