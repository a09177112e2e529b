# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of the acceptance of a host: what each of them adds to its result. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._known_faults.codes import HELD_BY_OTHER
from .types import BLOCKED, FAILED, NOTHING, UNREACHABLE

Object = Mapping[str, Any]
Result = dict[str, Any]


def drained(result: Object, cordon: Object, findings: Sequence[Object]) -> Result:
    """Return the result after the drain.

    :param cordon: the first result of the module of the maintenance.
    :param findings: what all of them say of the host.
    """
    bad = UNREACHABLE if cordon.get("lost_connection") else BLOCKED
    outcome, held = bad if findings else "", "nodes" in cordon
    row: Object = next(iter((cordon.get("nodes") or {}).values()), {})
    # The module of hosts without Kubernetes has this key, that of nodes has not.
    run = row.get("held_by") or "" if "slurm_node" in row else ""
    return {
        **result, "outcome": outcome, "held": held, "host_run": run, "findings": list(findings),
    }  # fmt: skip


def released(result: Object | None, findings: Sequence[Object], plan: Object) -> Result:
    """Return the result after the release. A node that is not released has failed.

    :param result: empty of a host that was not tested.
    :param findings: what the module of the maintenance says of the host.
    """
    known = {"outcome": "", "held": True, "findings": [], **(result or {})}
    ours = plan["action"] != NOTHING and known["outcome"] != BLOCKED
    # A node that this run did not take may be held by another run.
    wrong = [one for one in findings if ours or one.get("code") not in HELD_BY_OTHER]
    if not wrong:
        return {**known, "released": True}
    noted = [*known["findings"], *wrong]
    return {**known, "released": False, "outcome": FAILED, "findings": noted}


def failed(result: Object, finding: Object, *, lost: bool) -> Result:
    """Return the result after a task failed.

    :param lost: whether the connection was lost.
    """
    outcome = UNREACHABLE if lost else FAILED
    return {**result, "outcome": outcome, "findings": [*result["findings"], dict(finding)]}
