# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who manages the memory of GPUs that share it with a Grace CPU: the kernel or the driver. Pure.

Read 2026-11-23. Sources: release notes of driver 580.65.06 (coherent driver-based memory
management, CDMM) and of NVIDIA's HPC SDK 26.11 (from R615 on CDMM is the default on GH200, GB200
and GB300), nv_enable_cdmm_mode in NVIDIA's open kernel modules, and gpu-driver-container, whose
driver containers always set the option.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._core.errors import InputError
from ..types import Request, branch_of

if TYPE_CHECKING:
    # The options are read without a decision.
    from .decision import DecisionInput

AUTO, DRIVER, NUMA = "auto", "driver", "numa"
# The option of the module nvidia.
OPTION = "NVreg_CoherentGPUMemoryMode"
# GPUs on a board with a Grace CPU, to which NVLink-C2C connects them.
COHERENT_GPUS = {
    "2342": "GH200",
    "2348": "GH200",
    "2941": "GB200",
    "31c2": "GB300",
    "31c3": "GB300",
}
_MANAGER = {DRIVER: "driver", NUMA: "kernel"}
# The first branch that knows the option, and the first whose default is the driver.
KNOWN_FROM = 580
DRIVER_FROM = 615


def check(request: Request) -> None:
    """Refuse a mode that is given in two options.

    :raises InputError: ``module_options`` has the kernel module's option as well.
    """
    if request.coherent_memory == AUTO:
        return
    both = [name for name in request.module_options if str(name).rpartition(".")[2] == OPTION]
    if both:
        raise InputError(
            f"nvidia_driver_coherent_memory and nvidia_driver_module_options both set {OPTION}.",
            evidence=f"coherent_memory: {request.coherent_memory!r}, module_options: "
            f"{both[0]}: {request.module_options[both[0]]!r}",
            next_step="Take it out of one of the two.",
            names={"variable": "nvidia_driver_coherent_memory"},
        )


def coherent(inputs: DecisionInput) -> str:
    """Return the product with coherent memory; empty if the node has no such GPU."""
    return next(
        (
            COHERENT_GPUS[gpu["device_id"]]
            for gpu in inputs.node["gpus"]
            if gpu["vendor"] == "nvidia" and gpu["device_id"] in COHERENT_GPUS
            # The host manages the memory of a guest's GPU.
            if not gpu["virtual_function"] and not gpu["vgpu"]["guest"]
        ),
        "",
    )


def module_options(inputs: DecisionInput, branch: str) -> dict[str, str]:
    """Return the module option for a driver of this branch; empty where there is none."""
    mode = inputs.request.coherent_memory
    if mode == AUTO or not coherent(inputs) or int(branch) < KNOWN_FROM:
        return {}
    return {OPTION: mode}


def warnings(inputs: DecisionInput, branch: str, *, ours: bool) -> tuple[str, ...]:
    """Return why the requested mode is not set; empty if it is.

    :param ours: whether this collection manages the driver's files.
    """
    product, mode = coherent(inputs), inputs.request.coherent_memory
    if mode == AUTO or not product:
        return ()
    if int(branch) < KNOWN_FROM:
        return (
            f"nvidia_driver_coherent_memory is {mode}, but the driver of branch {branch} has no "
            f"such mode for the {product}: it is not written. Next step: ask for branch "
            f"{KNOWN_FROM} or newer.",
        )
    if not ours and in_force(inputs.node) != mode:
        return (
            f"nvidia_driver_coherent_memory is {mode}, but the driver is not managed here, and its "
            f"options are left unchanged. Next step: ask for its branch (nvidia_driver_branch: "
            f'"{branch}").',
        )
    return ()


def in_force(node: Mapping[str, Any]) -> str | None:
    """Return the mode of the loaded module; None if it is not known."""
    driver = node["driver"]
    mode, branch = driver.get("coherent_memory"), branch_of(driver["loaded"])
    if mode is None or branch is None:
        return None
    return str(mode) or (DRIVER if int(branch) >= DRIVER_FROM else NUMA)


def reload_reason(inputs: DecisionInput, branch: str) -> str:
    """Return why the module must be reloaded for the mode; empty if it need not be."""
    wanted = module_options(inputs, branch).get(OPTION)
    now = in_force(inputs.node)
    if wanted is None or now in (None, wanted):
        return ""
    return (
        f"the memory of the {coherent(inputs)} is managed by the {_MANAGER[str(now)]}; "
        f"nvidia_driver_coherent_memory requests the {_MANAGER[wanted]}; reloading the module "
        "is enough where no program uses a GPU"
    )
