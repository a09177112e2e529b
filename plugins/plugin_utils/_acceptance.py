# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The acceptance of the hosts of a play, from their variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance import stages
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.plan import (
    Host,
    plan_host,
    plan_without_gpus,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.result import (
    judge,
    report,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.types import (
    BAD,
    BLOCKED,
    FAILED,
    NOTHING,
    PASSED,
    RUN,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.result import taken

from ._hosts import facts, select_hosts
from ._rollout import failed_finding
from ._rollout import failure as stored_failure

Object = Mapping[str, Any]
Hostvars = Mapping[str, Object]

_AGAIN = "run accept again."


def plan(gpu_node: Object, host: str, options: Object, looked: Object, cluster: Object) -> Object:
    """Return the plan of a host.

    :param options: the variables of the role, without their prefix.
    :param looked: the result of ``gpu_node_acceptance`` with ``step: look``.
    :param cluster: the result of the maintenance module in check mode.
    :raises InputError: a value is wrong.
    """
    # The tasks do not fail, so that their messages are the reasons in the table.
    failure = "" if "programs" in looked else str(looked.get("msg") or "It was not looked at.")
    if not failure and "nodes" not in cluster:
        failure = str(cluster.get("msg") or "Nothing was asked about work on the node.")
    return plan_host(
        read_request(options),
        Host(
            name=host,
            facts=gpu_node,
            looked=looked,
            drain=(cluster.get("nodes") or {}).get(host),
            failure=failure,
        ),
    ).to_json()


def drained(found: Object, answers: Sequence[Object], host: str) -> dict[str, Any]:
    """Return the result of a host after the drain.

    :param answers: results of the module of the maintenance, the cordon first; skipped ones count
        for nothing.
    """
    findings = taken([one for one in answers if "skipped" not in one], host)["findings"]
    return stages.drained(found, answers[0], findings)


def judged(found: Object, host: str, seen: Object) -> dict[str, Any]:
    """Return the result of a host after its tests.

    :param seen: ``gpu_node``, ``plan``, ``options``, the ``rows`` of the verification, ``health``,
        ``tests`` and the time as ``at``.
    :raises InputError: a value is wrong.
    """
    layers = [one for row in seen.get("rows") or () if row["node"] == host for one in row["layers"]]
    made = judge(
        seen["plan"],
        seen["gpu_node"],
        layers=layers,
        health=seen.get("health") or (),
        tests=seen.get("tests") or (),
        expect=read_request(seen["options"]).expect,
        at=seen["at"],
    )
    return {**found, **made}


def failed(found: Object, task: Object, answer: Object) -> dict[str, Any]:
    """Return the result of a host after a task failed.

    :param task: ``ansible_failed_task``.
    :param answer: ``ansible_failed_result``. In a loop, that of the failed item has the message.
    """
    item: Object = next((one for one in answer.get("results") or () if one.get("failed")), answer)
    finding = failed_finding(stored_failure(task, item), _AGAIN)
    return stages.failed(found, finding, lost=bool(item.get("lost_connection")))


def plans(hosts: Sequence[str], hostvars: Hostvars) -> dict[str, Object]:
    """Return the plans of the hosts that have one."""
    found = {host: _fact(hostvars, host, "gpu_acceptance_plan") for host in hosts}
    return {host: one for host, one in found.items() if one}


def tested_hosts(hosts: Sequence[str], hostvars: Hostvars) -> list[str]:
    """Return the hosts that are tested."""
    return [host for host, one in plans(hosts, hostvars).items() if one["action"] == RUN]


def leaving_hosts(hosts: Sequence[str], hostvars: Hostvars) -> list[str]:
    """Return the hosts that are drained: pods may have come since the plan."""
    return [
        host
        for host in tested_hosts(hosts, hostvars)
        if _fact(hostvars, host, "gpu_acceptance_plan").get("drain")
        and not _fact(hostvars, host, "gpu_acceptance_result").get("outcome")
    ]


def released(hosts: Sequence[str], hostvars: Hostvars, *, tainted: bool) -> list[str]:
    """Return the hosts that are released: a node that failed only if a taint keeps pods away.

    A host without anything to do may be held by an earlier run that was killed. One that was
    released already is left out.

    :param tainted: whether a node that is not accepted gets the taint.
    """
    found = []
    for host, one in plans(hosts, hostvars).items():
        result = _fact(hostvars, host, "gpu_acceptance_result")
        if result.get("released"):
            continue
        ended = result.get("outcome") in (PASSED, BLOCKED)
        # The taint is there only if its record asks for it, and labelling did not fail.
        accepted = ((facts(hostvars[host]) or {}).get("acceptance") or {}).get("passed")
        marked = tainted and not accepted and not hostvars[host].get("kubegpu_failure")
        ended = ended or (marked and bool(result))
        if one["action"] == NOTHING or (one["action"] == RUN and ended):
            found.append(host)
    return found


def report_hosts(
    hosts: Sequence[str], hostvars: Hostvars, *, ended: str, checked: bool
) -> dict[str, Any]:
    """Return the content of the report."""
    known = {**plans(hosts, hostvars), **_without_gpus(hosts, hostvars)}
    return report(
        known,
        {host: _noted(hostvars, host) for host in known},
        {host: (facts(hostvars[host]) or {}).get("acceptance") for host in known},
        ended=ended,
        checked=checked,
    )


def _without_gpus(hosts: Sequence[str], hostvars: Hostvars) -> dict[str, Object]:
    """Return the plans of the hosts that were read and have no NVIDIA GPU."""
    read, nvidia = (select_hosts(hosts, hostvars, one) for one in ("facts", "nvidia"))
    return {
        host: plan_without_gpus(_expected(hostvars[host]), others=bool(nvidia)).to_json()
        for host in read
        if host not in nvidia
    }


def _expected(variables: Object) -> int:
    """Return how many GPUs a host is expected to have; 0 if its variables do not say it."""
    found = read_request({"expect": variables.get("gpu_acceptance_expect")}).expect
    return int(found.get("gpus") or 0)


def _noted(hostvars: Hostvars, host: str) -> Object:
    """Return what the run noted of a host, also of one that failed in a task after its tests."""
    result = _fact(hostvars, host, "gpu_acceptance_result")
    failure: Object = hostvars[host].get("kubegpu_failure") or {}
    if not failure or result.get("outcome") in BAD:
        return result
    finding = failed_finding(failure, _AGAIN)
    return {
        **result,
        "outcome": FAILED,
        "findings": [*(result.get("findings") or ()), finding],
    }


def _fact(hostvars: Hostvars, host: str, name: str) -> Object:
    found: Object = (hostvars[host].get(name) or {}) if host in hostvars else {}
    return found
