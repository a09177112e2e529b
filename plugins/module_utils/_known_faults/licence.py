# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with the licence of a virtual GPU, and how it is waited for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._core.finding import Finding
from .._hardware.vgpu_licence import GRACE, LICENSED, UNLICENSED
from .common import LICENCE_STEP, licence_evidence, missing_licence

#: Seconds between two looks.
INTERVAL = 3
LICENCE_EXPIRED = "vgpu_licence_expired"


def licence_fault(name: str, licence: Mapping[str, Any] | None, now: float) -> Finding | None:
    """Return what is wrong with the licence of a guest's GPU; None if nothing is, or it is unknown.

    A lease ends hours or days after it was acquired and is renewed long before, so that an end that
    is near shows nothing. One that is past does.

    :param name: the GPU's address.
    :param now: Unix time of the node's clock; 0 does not compare it.
    """
    state = (licence or {}).get("state")
    if licence is None or state is None:
        return None
    if state in (GRACE, UNLICENSED):
        return missing_licence(name, licence)
    end = licence["expiry"]
    if state != LICENSED or not end or not now or datetime.fromisoformat(end).timestamp() >= now:
        return None
    return Finding(
        LICENCE_EXPIRED,
        f"The licence of the virtual GPU {name} ended on {end}, by this node's clock, and the "
        "driver still reports it as valid: nvidia-gridd does not renew it, or the clock is wrong.",
        licence_evidence(licence),
        LICENCE_STEP,
    )


@dataclass(frozen=True)
class Waited:
    """How a wait for licences ended.

    :param missing: the GPUs without one, by address; empty if all have one, or nothing shows it.
    """

    missing: Mapping[str, Mapping[str, Any]]
    seconds: int

    def finding(self) -> Finding | None:
        """Return why the wait was in vain."""
        for address, licence in self.missing.items():
            found = missing_licence(address, licence)
            shown = f"{found.evidence}; seen for {self.seconds} s"
            return Finding(found.code, found.cause, shown, found.next_step)
        return None


def wait_for_licence(
    devices: Callable[[], Sequence[Mapping[str, Any]]],
    timeout: int,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Waited:
    """Wait until each virtual GPU has its licence.

    :param devices: asks the driver, and returns the devices as :func:`.nvml.from_smi` does.
    :param timeout: seconds to wait at most; 0 looks once.
    """
    start = clock()
    missing = _missing(devices())
    while missing and clock() - start < timeout:
        sleep(INTERVAL)
        missing = _missing(devices())
    return Waited(missing, int(clock() - start))


def _missing(devices: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {
        str(device["address"]): device["licence"]
        for device in devices
        if device["licence"] and device["licence"]["state"] in (GRACE, UNLICENSED)
    }
