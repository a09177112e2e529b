# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the CDI specification of AMD GPUs has to be made, and whether it is right then. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .._core.errors import KubegpuError
from .amd_cdi import AmdSpecification, read_amd_specification

_ALL = "all"


def stale(
    named: Sequence[str] | None, made_for: Sequence[str] | None, nodes: Sequence[str]
) -> str | None:
    """Return why the specification has to be made again; None if it fits.

    AMD's program leaves out devices that cannot compute, so that the devices of the node are
    compared with those that were there when it was made.

    :param named: the render nodes that it names; None: there is no specification.
    :param made_for: the render nodes that were there when this collection made it; None if another
        program did.
    :param nodes: the render nodes that are there.
    """
    if named is None:
        return "no CDI specification exists"
    gone = sorted(set(named) - set(nodes))
    if gone:
        return f"it names {', '.join(gone)}, which {'is' if len(gone) == 1 else 'are'} not there"
    if made_for is not None and list(made_for) != list(nodes):
        return f"it was made for {', '.join(made_for) or 'no device'}"
    return None


def check_generated(text: str | None, output: str) -> AmdSpecification:
    """Return the specification that ``amd-ctk cdi generate`` made.

    :param output: its last lines, for the evidence.
    :raises KubegpuError: it is no specification, or has no GPU.
    """
    made = read_amd_specification(text)
    if made is None:
        raise KubegpuError(
            "amd-ctk cdi generate made no CDI specification.",
            evidence=output,
            next_step="Run amd-ctk --debug cdi generate on the node; amdgpu has to be loaded.",
        )
    if not [name for name in made.devices if name != _ALL]:
        raise KubegpuError(
            "The CDI specification that amd-ctk made has no GPU.",
            evidence=output,
            next_step="amd-ctk knows the GPUs of /sys/class/kfd/kfd/topology/nodes alone: check "
            "dmesg | grep -e amdgpu -e kfd for why the GPU is not there.",
        )
    return made
