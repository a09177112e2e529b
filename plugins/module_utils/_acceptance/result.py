# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a node by its tests, its record, and the report of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.finding import ERROR, WARNING
from .._core.message import message
from .checks import judge_health, judge_layers
from .data import TITLES
from .expected import compare, gpu_set, product
from .nvbandwidth import compare_twins
from .plan import in_use, not_looked_at
from .types import (
    BAD,
    BLOCKED,
    FAILED,
    NOT_STARTED,
    NOT_TESTED,
    NOTHING,
    PASSED,
    PLANNED,
    REFUSE,
    REFUSED,
    SKIP,
    UNCHANGED,
    UNREACHABLE,
    to_json,
)

Object = Mapping[str, Any]
_MOST_CAUSES = 5
_KEPT = (
    "the node remains drained. Next step: repair it and run accept again, which releases it if "
    "it passes; gpu_acceptance_required: true releases it with its taint"
)
_KEPT_HOST = (
    "the host remains drained. Next step: repair it and run accept again, which releases it if it "
    "passes. To release it without a repair: ansible {host} -b -m "
    "kubegpu.nodes.gpu_host_maintenance -a 'name={host} state=released run={run}'"
)


def judge(
    plan: Object,
    gpu_node: Object,
    *,
    layers: Sequence[Object],
    health: Sequence[Object],
    tests: Sequence[Object],
    expect: Object,
    at: str,
) -> dict[str, Any]:
    """Return the result of a node.

    :param layers: the layers of the verification.
    :param health: results of ``gpu_node_health``, before the tests and after them.
    :param tests: results of the tests.
    :param expect: what is expected of the hardware.
    :param at: the time.
    """
    judged = [
        *compare(gpu_node, health[0] if health else {}, expect),
        *judge_layers(layers, "node"),
        *judge_health(health),
        *(replace(one, severity=WARNING) for one in judge_health(health, WARNING)),
    ]
    findings = [to_json(one) for one in judged]
    for test in tests:
        findings += test.get("findings") or ()
    passed = not any(one["severity"] == ERROR for one in findings)
    return {
        "outcome": PASSED if passed else FAILED,
        "at": at,
        "level": plan["level"],
        "driver": _driver(gpu_node),
        "gpus": gpu_set(gpu_node),
        "product": product(gpu_node),
        "tests": [
            {
                **{name: test.get(name) for name in ("test", "seconds", "version")},
                "skipped": test.get("not_tested"),
            }
            for test in tests
        ],
        "missing": list(plan["missing"]),
        "values": next((one["measured"] for one in tests if one.get("measured")), {}),
        "findings": findings,
    }


def begun(plan: Object, gpu_node: Object, *, at: str) -> dict[str, Any]:
    """Return the record of a node whose tests begin.

    This record remains if they do not end: an earlier pass does not count any more.
    """
    return {
        "passed": False,
        "at": at,
        "level": plan["level"],
        "driver": _driver(gpu_node),
        "gpus": gpu_set(gpu_node),
        "tests": [],
        "missing": list(plan["missing"]),
        "causes": ["the tests started but did not finish"],
    }


def before_tests(looked: Object) -> dict[str, Any]:
    """Return what blocks a node that was taken out of service; empty if it can be tested.

    :param looked: the result of the module's step ``look``.
    """
    outcome = UNREACHABLE if looked.get("lost_connection") else BLOCKED
    if "users" not in looked:
        finding = not_looked_at(str(looked.get("msg") or "It was not looked at."))
    elif looked["users"]:
        finding = in_use(looked["users"])
    else:
        return {}
    return {"outcome": outcome, "findings": [to_json(finding)]}


def _driver(gpu_node: Object) -> str:
    return str((gpu_node.get("driver") or {}).get("loaded") or "")


def record(result: Object) -> dict[str, Any]:
    """Return what the node's record keeps of a result."""
    errors = [one for one in result["findings"] if one["severity"] == ERROR]
    return {
        "passed": result["outcome"] == PASSED,
        "at": result["at"],
        "level": result["level"],
        "driver": result["driver"],
        "gpus": list(result["gpus"]),
        "tests": [str(one["test"]) for one in result["tests"]],
        "missing": list(result["missing"]),
        "causes": [str(one["cause"]) for one in errors[:_MOST_CAUSES]],
    }


def outcome_of(plan: Object, result: Object, *, checked: bool) -> str:
    """Return how a host ended.

    :param result: what the run noted of it.
    :param checked: whether the run only planned.
    """
    noted = str(result.get("outcome") or "")
    if noted:
        return noted
    action = plan.get("action")
    if action == REFUSE:
        return REFUSED
    if action == NOTHING:
        return UNCHANGED
    if action == SKIP:
        return NOT_TESTED
    return PLANNED if checked else NOT_STARTED


def report(
    plans: Mapping[str, Object],
    results: Mapping[str, Object],
    records: Mapping[str, Object | None],
    *,
    ended: str,
    checked: bool,
) -> dict[str, Any]:
    """Return the content of the report.

    :param plans: the plan of each host.
    :param results: what the run noted of the hosts that it tested.
    :param records: the record of each host's acceptance, which is all of one that is unchanged.
    """
    twins = compare_twins(
        {
            name: (str(one.get("product") or ""), one.get("values") or {})
            for name, one in results.items()
        }
    )
    hosts = {}
    for name, plan in plans.items():
        result = results.get(name) or {}
        outcome = outcome_of(plan, result, checked=checked)
        # An earlier result next to what became of a node now would be taken for its own.
        done = (records.get(name) or {}) if outcome == UNCHANGED else result
        hosts[name] = {
            "outcome": outcome,
            "level": str(done.get("level") or plan["level"]),
            "at": str(done.get("at") or ""),
            "driver": str(done.get("driver") or ""),
            "reason": plan["reason"],
            "tests": result.get("tests") or [],
            "missing": plan["missing"],
            "values": result.get("values") or {},
            "kept": bool(result.get("held")) and not result.get("released"),
            "host_run": str(result.get("host_run") or ""),
            "findings": [
                *(result.get("findings") or plan["findings"]),
                *map(to_json, twins.get(name, ())),
            ],
        }
    return {
        "ended": ended,
        "ok": not any(one["outcome"] in BAD for one in hosts.values()),
        "hosts": hosts,
    }


def plan_rows(plans: Mapping[str, Object]) -> list[dict[str, Any]]:
    """Return the table of the plans."""
    return [
        {
            "node": name,
            "level": plan["level"],
            "tests": [TITLES[one["test"]] for one in plan["tests"]]
            or ["-" if plan["action"] != "run" else "layers and health"],
            "why": plan["reason"]
            or ("refused, see below" if plan["action"] == REFUSE else plan["action"]),
            "leave": list(plan["leave"]) or ["-"],
            "notes": [
                *(note(one) for one in plan["findings"]),
                *(_lacks(plan) if plan["action"] == "run" else ()),
            ],
        }
        for name, plan in plans.items()
    ]


def rows(data: Object) -> list[dict[str, Any]]:
    """Return the table of a report."""
    return [
        {
            "node": name,
            "outcome": one["outcome"].replace("_", " "),
            "level": one["level"] or "-",
            "at": one["at"] or "-",
            "tests": [TITLES.get(test["test"], test["test"]) for test in one["tests"]] or ["-"],
            "notes": [
                note(finding) for finding in one["findings"] if finding.get("severity") != "info"
            ]
            + (_lacks(one) if one["outcome"] in (PASSED, FAILED) else [])
            + ([_kept(name, one)] if one["kept"] else []),
        }
        for name, one in data["hosts"].items()
    ]


def _kept(name: str, one: Object) -> str:
    run = one.get("host_run")
    return _KEPT_HOST.format(host=name, run=run) if run else _KEPT


def _lacks(one: Object) -> list[str]:
    names = ", ".join(TITLES[tool] for tool in one["missing"])
    return [f"not installed, and so not run: {names}"] if names else []


def note(finding: Object) -> str:
    """Return a finding as one line."""
    where = f"{finding['subject']}: " if finding.get("subject") else ""
    head = f"{where}{finding['cause']}"
    return message(finding, head=head, names=("next_step",), between=" ")
