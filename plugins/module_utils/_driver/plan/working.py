# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an installed driver works: it is loaded and answers, and nothing blocks it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.errors import Refusal
from ..._distro.support import MANAGERS
from ..._hardware.kernel_drivers import KERNEL_DRIVERS, kernel_drivers
from ..._hardware.module_blocks import (
    MODULES,
    blocks_of,
    describe_blocks,
    stops_by_name,
    unblock_step,
)
from ..._hardware.vendors import container_gpus
from .config_files import PATHS
from .decision import DecisionInput, Target, capitalize_first
from .installed import InstalledDriver
from .kernels import kernels_without_module, running_kernel
from .plan_image import repair_refused
from .sources import RUNFILE

# Findings of the facts for a loaded driver that was asked and does not answer, causes first.
_NO_ANSWER = ("device_nodes_missing", "driver_hangs", "driver_not_answering")
# Findings of the facts for GPUs that fail by themselves, and nvidia-smi with them.
BROKEN_GPU = ("gpu_lost", "recovery_action")
NOT_LOADED_BY_REQUEST = (
    "The driver is not loaded, and this run does not load it: nvidia_driver_load is false. Next "
    "step: nvidia_driver_load: true, or reboot."
)


def why_not_loaded(inputs: DecisionInput) -> str:
    """Return why the installed driver does not work, empty if it is loaded or nobody can tell.

    In a container the running kernel is not on the disk, and the module belongs to the host. Where
    virtual machines have all GPUs, nothing needs the driver.
    """
    node, installed = inputs.node, inputs.installed
    kernel = running_kernel(node)
    if installed is None or kernel is None or not container_gpus(node):
        return ""
    if installed.loaded:
        held = held_by_kernel_driver(node)
        return (
            f"{kernel_drivers(node)} holds the GPUs although NVIDIA's module is loaded"
            if held
            else ""
        )
    if node["nouveau"]["loaded"]:
        return f"{kernel_drivers(node)} is loaded and holds the GPUs, NVIDIA's module is not loaded"
    if not kernel.get("driver"):
        return f"kernel {kernel['version']} is running, for which it has no module"
    return "its kernel module is not loaded"


def held_by_kernel_driver(node: Mapping[str, Any]) -> bool:
    """Return whether nouveau or nova has taken the GPUs, and a loaded NVIDIA driver has none."""
    taken = [gpu for gpu in node["gpus"] if gpu["kernel_driver"] in KERNEL_DRIVERS]
    return bool(taken and node["driver"]["loaded"] and node["nvml"] is None)


def lacks_module_for_good(inputs: DecisionInput) -> bool:
    """Return whether only its installer can give the driver a module for the running kernel."""
    installed = inputs.installed
    kernel = running_kernel(inputs.node)
    return bool(
        installed
        and not installed.working
        and installed.source == RUNFILE
        and kernel
        and not inputs.node["driver"]["dkms"]
    )


def check_works(inputs: DecisionInput) -> tuple[str, ...]:
    """Check a driver that would be kept; return warnings.

    :raises Refusal: it does not work, and this collection cannot repair it.
    """
    installed = inputs.installed
    # With all GPUs bound to vfio-pci, a loaded driver has none, and says so.
    if installed is None or not container_gpus(inputs.node):
        return ()
    why = why_not_loaded(inputs)
    if not why:
        slow = _slow_start(inputs.node)
        if installed.loaded and not slow:
            _check_answers(inputs.node, installed)
        return (slow,) if slow else ()
    cause = f"{capitalize_first(installed.title)} is installed and does not work: {why}."
    image = repair_refused(inputs, cause)
    if image:
        raise image
    if lacks_module_for_good(inputs):
        kernels = ", ".join(kernels_without_module(inputs.node))
        raise Refusal(
            cause,
            f"run its .run file again for kernel {kernels}, with --dkms so that later kernels get "
            "a module, or give it as nvidia_driver_runfile, which does it.",
        )
    if inputs.system.manager not in MANAGERS:
        raise Refusal(
            cause,
            "this collection does not change the driver of a system with "
            f"{inputs.system.manager or 'a package manager that is not known'}: block nouveau "
            "(blacklist nouveau in /etc/modprobe.d), rebuild the initial RAM disk, reboot, and "
            "modprobe nvidia; then run again.",
        )
    return ()


def _slow_start(node: Mapping[str, Any]) -> str:
    """Return the warning about a driver whose answer may only take long; empty for another one.

    Without the persistence daemon, each question starts all GPUs. Where this collection manages the
    driver, it starts the daemon. A process that cannot be ended shows a GPU that hangs.
    """
    hang = node.get("driver_hang")
    daemon = node["driver"]["services"].get("nvidia-persistenced")
    if not hang or hang["left"] or daemon not in ("inactive", "failed"):
        return ""
    return (
        f"The driver did not answer {hang['program']} within {hang['seconds']:.0f} s, and "
        f"nvidia-persistenced is {daemon}: either starting all GPUs takes that long, or a GPU "
        "hangs. Next step: systemctl enable --now nvidia-persistenced, then run the playbook "
        "diagnose."
    )


def broken_gpus(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the warnings of GPUs that are lost or have to be reset: no driver changes that."""
    if not node["driver"]["loaded"] or not container_gpus(node):
        return ()
    return tuple(
        f"{one['cause']} Seen: {one['evidence'].rstrip('.')}. The driver is not the cause. Next "
        f"step: {one['next_step']}"
        for one in node["problems"]
        if one["code"] in BROKEN_GPU
    )


def _check_answers(node: Mapping[str, Any], installed: InstalledDriver) -> None:
    """Check that the driver answers; what nobody could ask is no fault.

    Of another version than the installed one, it is reloaded or waits for a reboot.
    """
    userland = node["driver"]["userland"]
    if node["nvml"] is not None or installed.loaded != installed.version:
        return
    if broken_gpus(node):
        # Another driver would not answer either.
        return
    if node["driver"]["managed"] is None:
        # Not read as root, who alone may open the devices of some nodes.
        return
    if userland in (None, installed.loaded):
        found = {one["code"]: one for one in node["problems"] if one["code"] in _NO_ANSWER}
        codes = [code for code in _NO_ANSWER if code in found]
        # Without its library there is nothing that could answer.
        if not codes or (userland is None and codes == ["driver_not_answering"]):
            return
        first = found[codes[0]]
        cause = first["cause"].rstrip(".")
        said = "" if first["code"] == "driver_not_answering" else f"{cause}: "
        raise Refusal(
            f"{capitalize_first(installed.title)} is loaded and does not answer: {said}"
            f"{first['evidence'].rstrip('.')}.",
            f"{first['next_step'].rstrip('.')}. The playbook diagnose names the cause; another "
            "driver is installed by nvidia_driver_version or nvidia_driver_branch.",
        )


def check_blocked(inputs: DecisionInput, target: Target) -> tuple[str, ...]:
    """Return warnings of settings that block the driver's kernel modules.

    :raises Refusal: with them, the run could not load the driver, or a boot would lose it.
    """
    node = inputs.node
    if target.keep and not container_gpus(node):
        return ()
    # Files of this collection are rewritten.
    found = [one for one in blocks_of(node, MODULES["nvidia"]) if one["place"] not in PATHS]
    if not found:
        early = describe_blocks(blocks_of(node, MODULES["nvidia"], early=True))
        text = f"{early} counts in the initial RAM disk only: the driver is loaded after it."
        return (text,) if early else ()
    cause = f"The driver's kernel module is blocked ({describe_blocks(found)})"
    loaded = node["driver"]["loaded"]
    stays = target.keep and loaded
    if stays or (loaded and not stops_by_name(found)):
        return (
            f"{cause}: {loaded} is loaded now, and a boot does not load it by itself. Next step: "
            f"{unblock_step(found)}",
        )
    if not inputs.request.load or running_kernel(node) is None:
        return (f"{cause}: a boot does not load it. Next step: {unblock_step(found)}",)
    raise Refusal(
        f"{cause}: it cannot be loaded, or is gone after the next boot. These lines are not this "
        "collection's, and are left unchanged.",
        f"{unblock_step(found)} Then run again. Or leave the driver unloaded: nvidia_driver_load: "
        "false; or do not manage it here: nvidia_driver_enabled: false.",
    )
