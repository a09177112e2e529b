# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a node's driver, from facts and a request, with a reason for each step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._core.errors import Refusal
from ..._core.steps import Step
from ..._distro.support import MANAGERS, unsupported
from ..._nvidia.driver_branches import DriverData
from ..._repository.entry import check_kind
from ..types import Plan, Request
from . import gpu_support as rules
from .decide import decide
from .decision import DecisionInput, Target
from .installed import (
    read_installed,
)
from .licence import check_licence
from .packages import (
    package_set,
)
from .plan_absent import plan_absent
from .plan_change import plan_change
from .plan_image import plan_loaded
from .plan_keep import plan_keep
from .sources import (
    DISTRO,
    NVIDIA,
    comes_after_ours,
    repository,
    repository_entry,
    system_of,
)

__all__ = ["DriverData", "Plan", "Request", "Step", "plan_driver"]


def plan_driver(node: Mapping[str, Any], request: Request, data: DriverData) -> Plan:
    """Return the plan that brings the node's driver to the requested state.

    A request that cannot be met is a plan with the action ``refuse``.

    :param node: the fact ``gpu_node``.
    :param request: the desired state.
    :param data: branches, products and repositories.
    """
    if request.state == "absent":
        return plan_absent(node, request)
    gpus = rules.find_gpus(node, data)
    if not gpus:
        guests = [gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia"]
        reason = (
            "The NVIDIA GPUs of this node are virtual functions, which belong to guests: nothing "
            "to do."
            if guests
            else "No NVIDIA GPU is in this node: nothing to do."
        )
        return Plan("none", reasons=(reason,))
    inputs = DecisionInput(node, request, data, gpus, system_of(node, data), read_installed(node))
    loaded = plan_loaded(inputs)
    if loaded:
        return loaded
    try:
        target = decide(inputs)
        _check_node(inputs, target)
        notes = check_licence(inputs, target.branch)
    except Refusal as refusal:
        return Plan.refused(refusal)
    plan = plan_keep(inputs, target) if target.keep else plan_change(inputs, target)
    plan = replace(plan, warnings=(*plan.warnings, *notes))
    old = None
    if plan.change and plan.packages:
        old = unsupported(node["os"], request.controller)
    if old:
        return Plan.refused(old)
    return plan


def _check_node(inputs: DecisionInput, target: Target) -> None:
    """Check that the source can be used on this node.

    :raises Refusal: it cannot.
    """
    request, system = inputs.request, inputs.system
    if target.keep:
        return
    if target.source in (DISTRO, NVIDIA) and system.manager not in MANAGERS:
        raise Refusal(
            f"{system.name} installs packages with "
            f"{system.manager or 'a tool that is not known'}; this release knows "
            f"{', '.join(MANAGERS)}.",
            "give a runfile as nvidia_driver_runfile, with its checksum.",
        )
    if target.source == NVIDIA:
        _check_key(inputs)
    if target.source == DISTRO and system.id == "debian":
        archive = inputs.node["os"].get("archive")
        if not archive:
            raise Refusal(
                "apt has no entry for Debian's own archive, in which the driver would be.",
                "add one for the release with contrib non-free non-free-firmware, or ask for "
                "another nvidia_driver_source.",
            )
        _url, step = repository(inputs.node, system, DISTRO, request, inputs.data)
        if step is None and request.manage_repository and "***" in archive["uri"]:
            raise Refusal(
                f"{archive['file']} reaches Debian's archive with a password, which is not copied "
                "into another entry.",
                "add contrib non-free non-free-firmware to that entry.",
            )
        if step and not archive["signed_by"] and comes_after_ours(archive["file"]):
            # Tried with apt 2.6: "Conflicting values set for option Signed-By".
            raise Refusal(
                f"{archive['file']} reaches Debian's archive without Signed-By and is read after "
                "the entry that would be added: apt would refuse both.",
                "add contrib non-free non-free-firmware, or Signed-By, to that entry.",
            )
    packages = package_set(inputs, target) if target.source in (DISTRO, NVIDIA) else None
    if request.dkms == "false" and packages and not packages.signed:
        raise Refusal(
            "nvidia_driver_dkms is false, but this source has no prebuilt kernel modules for "
            f"{system.name}.",
            "leave nvidia_driver_dkms at auto, or ask for another source.",
        )


def _check_key(inputs: DecisionInput) -> None:
    """Refuse a repository of other packages, and one whose key has no known full fingerprint."""
    request, system = inputs.request, inputs.system
    found, _step = repository(inputs.node, system, NVIDIA, request, inputs.data)
    row = repository_entry(system, NVIDIA, inputs.data)
    if found is not None and row is not None:
        own = f"{row.get('folder') or system.folder}/{row['architectures'][system.arch]}"
        check_kind(request.repository_url, system.manager, "nvidia_driver_repository", own)
    if found is None or found["key_fingerprints"]:
        return
    raise Refusal(
        f"The key of {found['url']} is {found['key_url'].rpartition('/')[2]}, and this collection "
        "does not know its whole fingerprint: no public text has it.",
        "compare the key with what NVIDIA publishes by other means, and give all 40 digits as "
        "nvidia_driver_repository.key_fingerprints; or set the repository up yourself "
        "(nvidia_driver_repository.manage: false).",
    )
