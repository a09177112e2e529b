# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outcomes of the hosts, when no further batch is started, and the report. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._core.message import message
from .._known_faults.results import result_parts
from .etcd_quorum import Quorum
from .types import (
    BAD,
    BLOCKED,
    DONE,
    KEPT,
    NONE,
    NOT_STARTED,
    REFUSE,
    REFUSED,
    ROLLED_BACK,
    SPENDS,
    UNCHANGED,
    UNREACHABLE,
    HostPlan,
)

Object = Mapping[str, Any]


def why_stop(
    request_max_failed: int,
    outcomes: Mapping[str, str],
    batch: Sequence[str],
    out: Sequence[str],
    plan: Object,
    quorum: Quorum,
    restarts: Sequence[str],
) -> str:
    """Return why a batch is not started; empty if it may be.

    :param outcomes: the outcomes of the hosts so far.
    :param out: the nodes that take no pods now, for whatever reason.
    :param plan: the plan as JSON values.
    :param quorum: the control plane now.
    :param restarts: the hosts of the batch that take a member of it away.
    """
    spent = sorted(host for host, outcome in outcomes.items() if outcome in SPENDS)
    if len(spent) > request_max_failed:
        return (
            f"{len(spent)} failed ({', '.join(spent)}), and gpu_upgrade_max_failed allows "
            f"{request_max_failed or 'none'}"
        )
    more = [host for host in batch if host not in out]
    if more and len(out) + len(more) > plan["limit"]:
        return (
            f"{', '.join(sorted(out))} are out already, and gpu_upgrade_max_unavailable allows "
            f"{plan['limit']} nodes at once"
        )
    if restarts and len(restarts) > quorum.spare:
        return (
            f"{', '.join(sorted(quorum.away)) or 'none'} of the control plane are not ready, and "
            f"it would lose its quorum while {', '.join(restarts)} restart"
        )
    return ""


def taken(answers: Sequence[Object], host: str) -> dict[str, Any]:
    """Return which pods left the node of a host, which stay, and what is wrong with it.

    :param answers: results of ``gpu_node_maintenance``. One without nodes failed as a whole.
    """
    rows = [answer["nodes"].get(host) or {} for answer in answers if answer.get("nodes")]
    return {
        "evicted": [
            f"{pod['namespace']}/{pod['name']}" for row in rows for pod in row.get("evicted") or ()
        ],
        "findings": [
            *(dict(finding) for row in rows for finding in row.get("findings") or ()),
            *(problem(answer) for answer in answers if not answer.get("nodes")),
        ],
        "stay": {
            "without_request": [
                dict(pod) for row in rows for pod in row.get("without_request") or ()
            ],
            "containers": {
                name: pod for row in rows for name, pod in (row.get("containers") or {}).items()
            },
        },
    }


def problem(answer: Object) -> dict[str, Any]:
    """Return the finding of a call of ``gpu_node_maintenance`` that failed as a whole."""
    return {"code": "cluster_not_asked", "evidence": "", "next_step": "", **result_parts(answer)}


def not_saved(answer: Object, needed: Collection[str], *, required: bool) -> dict[str, Any]:
    """Return what is noted of a node whose packages were to be saved; empty if they were.

    Nothing was changed on it yet.

    :param answer: the result of ``package_set`` with ``state: saved``.
    :param needed: the packages that a rollback would install.
    :param required: whether a node without a rollback is not upgraded.
    """
    missing = answer.get("not_available")
    lost = sorted({*(missing or ())} & {*needed})
    if missing is not None and not lost:
        return {}
    failed = result_parts(answer)
    cause = failed["cause"]
    if lost:
        cause = f"no repository has the installed versions of {', '.join(lost)}, nor has apt a copy"
    finding = Finding(
        "not_saved",
        f"The packages that a rollback would install are not all saved: {cause.rstrip('.')}.",
        failed.get("evidence", ""),
        "Repair what the message names, and run the upgrade again. With gpu_upgrade_rollback: try "
        "nodes are upgraded anyway.",
    ).as_problem()
    if answer.get("lost_connection"):
        return {"outcome": UNREACHABLE, "findings": [finding]}
    if required and needed:
        return {"outcome": BLOCKED, "findings": [finding]}
    return {"warnings": [finding]}


def outcome_of(plan: Object, result: Object | None, *, checked: bool) -> str:
    """Return how a host ended.

    :param plan: its part of the plan.
    :param result: what the upgrade noted of it.
    :param checked: whether the run only planned.
    """
    noted = str((result or {}).get("outcome") or "")
    if noted:
        return noted
    if plan["action"] == REFUSE:
        return REFUSED
    if plan["action"] == NONE:
        return UNCHANGED
    return "planned" if checked else NOT_STARTED


def report(
    plan: Object, results: Mapping[str, Object], *, began: str, ended: str, checked: bool = False
) -> dict[str, Any]:
    """Return the content of the report.

    :param plan: the plan as JSON values.
    :param results: what the upgrade noted of each host that it started.
    """
    stopped = next((one["stopped"] for one in results.values() if one.get("stopped")), "")
    hosts = {
        name: _host(one, results.get(name) or {}, checked=checked)
        for name, one in plan["hosts"].items()
    }
    hosts.update({name: _not_read(name) for name in plan.get("not_read") or ()})
    bad = sorted(name for name, one in hosts.items() if one["outcome"] in BAD)
    return {
        "run": plan["run"],
        "began": began,
        "ended": ended,
        "stopped": stopped,
        "refused": plan["refused"],
        "elsewhere": plan.get("elsewhere") or [],
        "findings": plan["findings"],
        "ok": not bad and not plan["refused"],
        "hosts": hosts,
    }


def _host(plan: Object, result: Object, *, checked: bool) -> dict[str, Any]:
    """Return a host in the report.

    :param plan: its part of the plan.
    :param result: what the upgrade noted of it; empty if it did not start it.
    """
    return {
        "outcome": outcome_of(plan, result, checked=checked),
        "batch": plan["batch"],
        "disturbs": plan["disturbs"],
        "changes": plan["changes"],
        "began": bool(result.get("began")),
        "from": result.get("from") or {},
        "to": result.get("to") or {},
        "evicted": result.get("evicted") or [],
        "findings": result.get("findings") or [*plan["findings"], *plan["blocks"]],
        "warnings": result.get("warnings") or [],
        "rolled_back_because": result.get("rolled_back_because") or "",
        "passed": bool(result.get("passed")),
    }


def _not_read(host: str) -> dict[str, Any]:
    """Return a host in the report that did not answer when the run began."""
    finding = Finding(
        "not_read",
        f"{host} was unreachable, or could not be read, when the run began, and took no part in "
        "it.",
        "",
        "See that the machine is up and answers to ssh: the output of Ansible above has the "
        "message.",
    )
    result = {"outcome": UNREACHABLE, "findings": [finding.as_problem()]}
    return _host(HostPlan(host, NONE).to_json(), result, checked=False)


def rows(data: Object) -> list[dict[str, Any]]:
    """Return the table of a report: a row for each host, with what to do next."""
    found = []
    for name, one in data["hosts"].items():
        outcome = one["outcome"]
        notes = [_note(finding) for finding in one["findings"]] if outcome != DONE else []
        notes += [_note(warning) for warning in one["warnings"]]
        if one["rolled_back_because"]:
            # After a good rollback, a hook or the release may fail.
            good = outcome == ROLLED_BACK or one["passed"]
            what = "restored" if good else "not restored completely; it failed"
            notes.insert(0, f"{what}, because: {one['rolled_back_because']}")
        if outcome in KEPT and not one["began"]:
            # It may have been cordoned, and not released since.
            notes.append(
                "nothing on it was changed, and it may be cordoned. Next step: run the upgrade "
                "again; or release it with -e gpu_upgrade_release=true"
            )
        elif outcome in KEPT:
            notes.append(
                "the node remains drained. Next step: repair it and run the upgrade again, which "
                "continues with it first; or release it with -e gpu_upgrade_release=true"
            )
        if outcome == NOT_STARTED and data["stopped"]:
            notes.append(f"not started: {data['stopped']}")
        if outcome == BLOCKED:
            notes.append("the node was released, and nothing on it was changed")
        found.append(
            {
                "node": name,
                "batch": one["batch"] or "-",
                "outcome": outcome.replace("_", " "),
                "driver": _change(one, "driver"),
                "toolkit": _change(one, "toolkit"),
                "notes": notes,
            }
        )
    return found


def plan_rows(plan: Object) -> list[dict[str, Any]]:
    """Return the table of a plan."""
    return [
        {
            "node": name,
            "batch": one["batch"] or "-",
            "changes": one["changes"] or ["-" if one["action"] == NONE else one["action"]],
            "disturbs": one["disturbs"] if one["action"] not in (NONE, REFUSE) else "-",
            "leave": one["leave"] or ["-"],
            "notes": [_note(finding) for finding in (*one["findings"], *one["blocks"])],
        }
        for name, one in plan["hosts"].items()
    ]


def _change(one: Object, part: str) -> str:
    before, after = one["from"].get(part) or "-", one["to"].get(part) or ""
    return f"{before} to {after}" if after and after != before else before


def _note(finding: Object) -> str:
    return message(finding, names=("next_step",), between=" ")
