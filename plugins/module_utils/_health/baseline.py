# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the health of a node with an earlier result of the module. Pure.

A state (a pending row, a narrow link) is new if the earlier result did not have it. What is counted
since boot (Xids, memory errors) is new after another boot, too, and in the same boot if it was
counted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .._core.errors import InputError
from .._core.finding import Finding
from .._known_faults.rules.xids_data import ERROR
from .types import Judged, Node, judged

# Seconds by which a time may differ although the event is the same one: the time of boot is
# rounded, and the clock is corrected.
_SAME_TIME = 5.0
_GPU_MISSING = "gpu_missing"
_STEP = "Give the result of an earlier run of gpu_node_health, as it was registered."


def check_baseline(given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return an earlier result; None if none is given.

    :raises InputError: it is no result of the module.
    """
    if not given:
        return None
    for name, texts in (("findings", ("code", "severity", "address")), ("gpus", ("address",))):
        rows = given.get(name)
        if not isinstance(rows, (list, tuple)):
            raise InputError(f"baseline has no list {name}.", next_step=_STEP)
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping) or not all(
                isinstance(row.get(text), str) for text in texts
            ):
                raise InputError(
                    f"baseline.{name}[{number}] is not a mapping with {', '.join(texts)}.",
                    next_step=_STEP,
                )
            xids = row.get("xids") or ()
            if not isinstance(xids, (list, tuple)) or not all(isinstance(n, int) for n in xids):
                raise InputError(
                    f"baseline.{name}[{number}].xids is not a list of numbers.", next_step=_STEP
                )
    return given


def missing_gpus(node: Node, baseline: Mapping[str, Any]) -> list[Judged]:
    """Return the GPUs of the baseline that are not on the bus any more."""
    now = {gpu.address for gpu in node.gpus}
    uuids = {gpu.uuid for gpu in node.smi.gpus if gpu.uuid}
    return [
        judged(
            Finding(
                _GPU_MISSING,
                f"GPU {gpu['address']} is not on the PCI bus any more.",
                f"the baseline has it ({gpu.get('product') or 'unknown product'})",
                "Power the machine off and on; see that the card is seated and powered, and check "
                "the log of the management controller.",
            ),
            ERROR,
            gpu["address"],
        )
        for gpu in baseline["gpus"]
        if gpu["address"] not in now and str(gpu.get("uuid")) not in uuids
    ]


def new_findings(
    findings: Sequence[Judged], baseline: Mapping[str, Any], boot_id: str | None
) -> list[Judged]:
    """Return the findings that the baseline does not have, or that occurred again after it."""
    known: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in baseline["findings"]:
        known.setdefault((row["code"], row["address"]), []).append(row)
    same_boot = boot_id is not None and baseline.get("boot_id") == boot_id
    return [
        one
        for one in findings
        if not any(
            _covers(row, one, same_boot) for row in known.get((one.code, one.subject.gpu), ())
        )
    ]


def _covers(row: Mapping[str, Any], one: Judged, same_boot: bool) -> bool:
    """Return whether a finding of the baseline is this one, and no worse."""
    if not set(one.seen.xids) <= set(row.get("xids") or ()):
        return False
    if one.severity == ERROR != row["severity"]:
        return False
    if one.seen.count is None:
        return True
    count = row.get("count")
    if not same_boot or not isinstance(count, int) or one.seen.count > count:
        return False
    before = _time(row.get("last"))
    return one.seen.last is None or before is None or one.seen.last <= before + _SAME_TIME


def resolved_findings(
    findings: Sequence[Judged], baseline: Mapping[str, Any], node: Node
) -> list[dict[str, str]]:
    """Return the findings of the baseline that are there no more.

    That a GPU is missing is found by its baseline alone. In a later one, where it is missing too,
    only the finding names it.
    """
    now = {(one.code, one.subject.gpu) for one in findings}
    on_bus = {gpu.address for gpu in node.gpus}
    gone = {
        (row["code"], row["address"]): {
            "code": row["code"],
            "severity": row["severity"],
            "address": row["address"],
        }
        for row in baseline["findings"]
        if (row["code"], row["address"]) not in now
        and (row["code"] != _GPU_MISSING or row["address"] in on_bus)
    }
    return [gone[key] for key in sorted(gone)]


def _time(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
