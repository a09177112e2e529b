# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of the acceptance of a host: what each of them adds to its result. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._upgrade.result import taken
from .types import BLOCKED, FAILED, NOTHING, UNREACHABLE

Object = Mapping[str, Any]
Result = dict[str, Any]

# A node that this run did not take may be held by another run.
_NOT_OURS = frozenset({"held_by_other", "host_held_by_other"})


def drained(result: Object, answers: Sequence[Object], host: str) -> Result:
    """Return the result after the drain.

    :param answers: results of the module of the maintenance, the cordon first; skipped ones count
        for nothing.
    """
    findings = taken([one for one in answers if "skipped" not in one], host)["findings"]
    bad = UNREACHABLE if answers[0].get("lost_connection") else BLOCKED
    outcome, held = bad if findings else "", "nodes" in answers[0]
    return {**result, "outcome": outcome, "held": held, "findings": findings}


def released(result: Object | None, answer: Object, host: str, plan: Object) -> Result:
    """Return the result after the release. A node that is not released has failed.

    :param result: None of a host that was not tested.
    """
    known = {"outcome": "", "held": True, "findings": [], **(result or {})}
    ours = plan["action"] != NOTHING and known["outcome"] != BLOCKED
    wrong = [
        one for one in taken([answer], host)["findings"] if ours or one.get("code") not in _NOT_OURS
    ]
    if not wrong:
        return {**known, "released": True}
    findings = [*known["findings"], *wrong]
    return {**known, "released": False, "outcome": FAILED, "findings": findings}


def failed(result: Object, finding: Object, *, lost: bool) -> Result:
    """Return the result after a task failed.

    :param lost: whether the connection was lost.
    """
    outcome = UNREACHABLE if lost else FAILED
    return {**result, "outcome": outcome, "findings": [*result["findings"], dict(finding)]}
