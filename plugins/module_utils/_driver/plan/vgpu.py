# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the driver of a vGPU guest fits the driver of its host. Pure."""

from __future__ import annotations

from ..._nvidia.vgpu_data import RELEASES
from ..types import branch_of
from . import gpu_support as rules
from .decision import DecisionInput

_NUMBERS = {branch: number for branch, number, _long in RELEASES}
_LONG = [branch for branch, _number, long in RELEASES if long]


def fits(host: str, guest: str) -> bool | None:
    """Return whether a guest driver works with a host's; None if NVIDIA's notes do not tell.

    :param host: the branch of the host's driver.
    :param guest: the branch of the guest's.
    """
    if host == guest:
        return True
    if int(guest) > int(host):
        return False
    if host not in _NUMBERS or guest not in _NUMBERS:
        return None
    if _NUMBERS[host] == _NUMBERS[guest] + 1:
        return True
    return host in _LONG and guest in _LONG and _LONG.index(host) == _LONG.index(guest) + 1


def misfit(inputs: DecisionInput, version: str) -> str:
    """Return why a guest's driver does not fit its host's; empty if it does, or it is unknown."""
    host, guest = rules.host_branch(inputs.gpus), branch_of(version)
    if not inputs.guest or host is None or guest is None or fits(host, guest) is not False:
        return ""
    return (
        f"Driver {version} does not fit the driver {_host_version(inputs)} of the vGPU host: "
        "according to NVIDIA's vGPU release notes a guest driver has to be of the host's branch, "
        "of the vGPU release before it, or of the long-term release before a long-term one."
    )


def warnings(inputs: DecisionInput, version: str) -> tuple[str, ...]:
    """Return the warning about a guest's driver that does not fit, or may not fit, its host's."""
    why = misfit(inputs, version)
    host, guest = rules.host_branch(inputs.gpus), branch_of(version)
    if why:
        return (f"{why} Next step: use the GRID guest driver of branch {host}.",)
    if not inputs.guest or host is None or guest is None or fits(host, guest):
        return ()
    return (
        f"The vGPU host's driver is of branch {host}, the guest driver is {version}: look in "
        "NVIDIA's vGPU release notes whether they go together.",
    )


def is_kept(inputs: DecisionInput, *, works: bool) -> bool:
    """Return whether the host's driver allows to keep the installed one.

    :param works: whether NVML lists all GPUs with it: that says more than a table.
    """
    installed = inputs.installed
    return installed is None or works or not misfit(inputs, installed.version)


def support_warning(inputs: DecisionInput, branch: str) -> str | None:
    """Return the warning about a branch whose support ends; a guest follows its host's."""
    data, today = inputs.data, inputs.request.today
    ending = rules.end_of_support(branch, data, today)
    if not inputs.guest:
        if not ending or all(gpu.guest is False for gpu in inputs.gpus):
            return rules.support_warning(branch, data, today)
        return (
            f"{ending}: plan the change to a newer one, unless this node is a vGPU guest (unknown "
            "without root): the driver of its host decides then."
        )
    if not ending:
        return None
    host = _host_version(inputs)
    seen = f" ({host})" if host else ""
    return (
        f"{ending}. This node is a vGPU guest: the driver of its host{seen} decides which branches "
        "it can have. Next step: have the host's vGPU manager updated first, then change the "
        "guest's driver."
    )


def _host_version(inputs: DecisionInput) -> str:
    return next((gpu.host_version for gpu in inputs.gpus if gpu.host_version), "")
