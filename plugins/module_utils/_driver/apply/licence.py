# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for the licence of a vGPU guest after its files were written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._core.errors import KubegpuError
from ..._core.printable import printable
from ..._core.redact import redact
from ..._hardware.nvml import from_smi
from ..._known_faults.licence import wait_for_licence
from ..arguments import asks_licence, licence_timeout
from ..types import GRIDD_UNIT

if TYPE_CHECKING:
    from .context import Context

# Seconds for one answer of the driver.
_ANSWER = 60
_STAYS = " The driver, gridd.conf and the token are kept as requested."


def await_licence(
    context: Context, clock: Callable[[], float], sleep: Callable[[float], None]
) -> None:
    """Wait until each virtual GPU has a licence, if one was requested for this guest.

    A driver that does not answer, or does not report a licence, ends the wait without an error: the
    verification judges it.

    :raises KubegpuError: there is none when the time is over.
    """
    licence = context.request.licence
    seconds = licence_timeout(licence)
    if GRIDD_UNIT not in context.plan.services or not asks_licence(licence) or not seconds:
        return
    missing = wait_for_licence(lambda: _devices(context), seconds, clock, sleep).finding()
    if missing is None:
        return
    raise KubegpuError(
        missing.cause + _STAYS,
        evidence=f"{missing.evidence}; {_daemon(context)}",
        next_step=f"{missing.next_step} If the server is only slow: nvidia_driver_licence.timeout "
        f"is {seconds} seconds.",
        code=missing.code,
    )


def _devices(context: Context) -> Sequence[Mapping[str, Any]]:
    answer = context.run(["nvidia-smi", "-q", "-x"], timeout=_ANSWER)
    try:
        devices: Sequence[Mapping[str, Any]] = from_smi(answer.stdout)["devices"]
    except ValueError:
        return ()
    return devices


def _daemon(context: Context) -> str:
    """Return the state of the licence daemon and the last line of its journal."""
    state = context.run(["systemctl", "is-active", f"{GRIDD_UNIT}.service"], timeout=20)
    journal = context.run(
        ["journalctl", "--unit", GRIDD_UNIT, "--no-pager", "--output=cat", "--lines=1"], timeout=20
    )
    words = state.stdout.split()
    said = printable(redact(journal.stdout.strip()))[:300]
    shown = f"systemctl is-active {GRIDD_UNIT} says {words[0] if words else 'nothing'}"
    return f"{shown}; its journal ends with: {said}" if said else shown
