# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of a system that is an image: it is kept, or the change is refused. Pure."""

from __future__ import annotations

from ..._core.errors import Refusal
from ..._distro.images import immutable, system_title
from ..._distro.upstream import own_driver, unknown_base
from ..types import Plan, branch_of
from .decision import PLACES, DecisionInput
from .sources import DISTRO, NVIDIA, RUNFILE


def plan_loaded(inputs: DecisionInput) -> Plan | None:
    """Return the plan that keeps a driver of which only the loaded module is found in an image.

    Such systems have it in other places (/var/lib/nvidia, a system extension, a container).
    """
    node, request = inputs.node, inputs.request
    loaded = node["driver"]["loaded"]
    if not loaded or inputs.installed is not None or not immutable(node["os"]):
        return None
    branch = branch_of(loaded)
    if request.branch not in ("auto", branch) or request.version not in ("", loaded):
        return None
    if inputs.requested_kernel_module not in ("", node["driver"]["kernel_module"]):
        return None
    reason = (
        f"Driver {loaded} is loaded, and {system_title(node['os'])} is an image that brings it: "
        "kept as it is."
    )
    return Plan("none", branch=branch, version=loaded, reasons=(reason,))


def check_system(inputs: DecisionInput, *, runfile: bool) -> None:
    """Check that a driver can be installed in the system at all.

    :param runfile: whether the driver would come from a runfile.
    :raises Refusal: it is an image; or nobody can say which packages fit; or it has its own.
    """
    facts = inputs.node["os"]
    image = immutable(facts)
    if image:
        raise image
    if runfile or inputs.request.source == RUNFILE:
        return
    unknown = unknown_base(facts, "a runfile as nvidia_driver_runfile, with its checksum")
    if unknown and inputs.system.folder not in inputs.data.repositories:
        raise unknown
    own = own_driver(facts, PLACES[DISTRO if inputs.request.source == DISTRO else NVIDIA])
    if own:
        raise own


def repair_refused(inputs: DecisionInput, cause: str) -> Refusal | None:
    """Return why a driver that does not work is not repaired: it belongs to an image; or None."""
    image = immutable(inputs.node["os"])
    return Refusal(cause, image.next_step, image.evidence) if image else None


def kept_as_it_is(inputs: DecisionInput) -> tuple[str, ...]:
    """Return the note that nothing else of the request is done where the system is an image."""
    if not immutable(inputs.node["os"]):
        return ()
    return (
        f"{system_title(inputs.node['os'])} is an image: holds, files and services of the driver "
        "are left as the image has them.",
    )
