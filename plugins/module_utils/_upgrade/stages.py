# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of a host's upgrade: what each of them adds to the result of the host. Pure.

A result has the keys that the role starts it with (``roles/gpu_upgrade/tasks/start.yml``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._known_faults.codes import HELD_BY_OTHER
from .gate import GATES, judge
from .result import problem, taken
from .types import BLOCKED, FAILED, UNREACHABLE

Object = Mapping[str, Any]
Result = dict[str, Any]

#: The longest time of a change without a call for the cluster, in seconds: packages and a build.
CHANGE_LIMIT = 3600
#: That of package_set with ``state: saved`` (half an hour for downloads, ten minutes for copies),
#: with what it takes to read the packages and to wait for the package manager.
SAVE_LIMIT = 3000


def failed(result: Object, finding: Object, *, lost: bool) -> Result:
    """Return the result after a task failed.

    :param lost: whether the connection was lost.
    """
    outcome = UNREACHABLE if lost else FAILED
    return {**result, "outcome": outcome, "findings": [*result["findings"], dict(finding)]}


def row_of(answer: Object, host: str) -> Object:
    """Return what a host without Kubernetes is, by the result of ``gpu_host_maintenance``."""
    found: Object | None = (answer.get("nodes") or {}).get(host)
    return found or {"node": host, "ready": False, "findings": [problem(answer)]}


def drained(
    result: Object, answers: Sequence[Object], host: str, *, without_cluster: bool = False
) -> Result:
    """Return the result after the drain. A node that could not be drained is not changed.

    :param answers: results of the module of the maintenance; skipped ones count for nothing.
    """
    found = taken([one for one in answers if "skipped" not in one], host)
    lost = without_cluster and bool(answers[0].get("lost_connection"))
    bad = UNREACHABLE if lost else FAILED if result["began"] else BLOCKED
    return {
        **result,
        "outcome": bad if found["findings"] else "",
        "evicted": [*result["evicted"], *found["evicted"]],
        "findings": found["findings"],
        **({} if without_cluster else {"stay": found["stay"]}),
    }


def judged(result: Object, host: str, good: str, to: Object, seen: Object) -> Result:
    """Return the result after the gate.

    :param good: the outcome of a node that passes.
    :param to: the versions that are installed now.
    :param seen: ``gates``, the rows of the verification as ``rows``, and what the other gates read:
        ``row``, ``boot``, ``health``, ``diag`` and the results of the roles as ``changes``.
    """
    layers = [one for row in seen["rows"] if row["node"] == host for one in row["layers"]]
    waits = [one for one in seen.get("changes") or () if one.get("reboot_required")]
    reasons = [one["reboot_reason"] for one in waits if one.get("reboot_reason")]
    reboot = ("; ".join(reasons) or "the driver asks for it") if waits else ""
    findings = [
        one.as_problem()
        for one in judge(
            seen.get("gates", GATES),
            row=seen.get("row") or {},
            layers=layers,
            health=[one for one in seen.get("health") or () if "skipped" not in one],
            reboot=reboot,
            diag=seen.get("diag"),
            boot=seen.get("boot") or "",
            stay=result.get("stay") or {},
        )
    ]
    outcome = FAILED if findings else good
    return {**result, "outcome": outcome, "passed": not findings, "findings": findings, "to": to}


def not_restored(result: Object, runtimes: Object) -> Result:
    """Return the result with what of the runtimes a rollback has not restored.

    :param runtimes: the result of ``runtime_configuration``.
    """
    texts = [
        result["rolled_back_because"],
        *(f"Not restored: {one['path']}" for one in runtimes.get("left") or ()),
        *(f"To be restarted: {one}" for one in runtimes.get("restart_required") or ()),
    ]
    return {**result, "rolled_back_because": " ".join(texts)}


def released(result: Object, answer: Object, host: str) -> Result:
    """Return the result after the release. A node that is not released has failed.

    :param answer: the result of the module of the maintenance.
    """
    row = (answer.get("nodes") or {}).get(host) or {}
    if row.get("ok"):
        return dict(result)
    wrong = row["findings"] if "findings" in row else [problem(answer)]
    if result["outcome"] == BLOCKED:
        # The node is blocked because another run holds it.
        wrong = [one for one in wrong if one.get("code") not in HELD_BY_OTHER]
        if not wrong:
            return dict(result)
    return {**result, "outcome": FAILED, "findings": [*result["findings"], *wrong]}


def ended(result: Object, report: Object, host: str) -> Result:
    """Return the result at the end, with what the plan found of a host that was not begun."""
    own = report["hosts"][host]
    stopped = report["stopped"] or " ".join(one["cause"] for one in report["findings"])
    more = {"outcome": own["outcome"], "findings": own["findings"], "stopped": stopped}
    return {**result, **more}


def software(node: Object, plans: Mapping[str, Object]) -> dict[str, Any]:
    """Return what an upgrade saves of a node, and what a rollback installs.

    :param node: the fact ``gpu_node``.
    :param plans: the plans of the node by role.
    :returns: ``rollback`` and ``saved``, packages with their versions, and ``distro_cuda``, the
        versions of the distribution's own CUDA toolkits.
    """
    driver: Object = node["driver"]["packages"]
    toolkit: Object = node["container_toolkit"]["packages"]

    def changes(role: str, key: str) -> bool:
        return bool((plans.get(role) or {}).get(key))

    # dnf hides the streams of other branches of the driver: there, only the change itself shows it.
    hidden = node["os"]["package_manager"].startswith("dnf")
    rollback = {
        **(toolkit if changes("nvidia_container_toolkit", "change_packages") else {}),
        **(node["cuda"]["packages"] if changes("cuda_toolkit", "change") else {}),
        **(driver if changes("nvidia_driver", "change") and not hidden else {}),
    }
    # Without the CUDA toolkits, which have gigabytes, and without libraries of a second
    # architecture (NAME:i386), which are extra.
    saved = {name: one for name, one in {**driver, **toolkit}.items() if ":" not in name}
    own = [one["version"] for one in node["cuda"]["toolkits"] if one["source"] == "distro"]
    return {"rollback": rollback, "saved": saved, "distro_cuda": own}


def lease_duration(limits: Object, batches: Sequence[Collection[str]]) -> int:
    """Return the seconds after which another run may take over the Lease of this one.

    It is renewed by each call for the cluster. The longest time without one is a change, or the
    test of the GPUs; packages are saved after the gate, before the release, and before the next
    batch is cordoned. Ansible does a task on as many hosts at once as it has forks, so that a
    larger batch takes that time again for each round; the soak is waited for once.

    :param limits: ``forks``, and seconds: those of the reboots (``driver_reboot``, ``mig_reboot``),
        of the test with DCGM (``dcgm``) and of ``soak``; ``saves``, whether packages are saved.
    :param batches: of the plan; none before it is made.
    """
    largest = max([1, *(len(batch) for batch in batches)])
    rounds = -(-largest // int(limits["forks"]))
    parts = sum(int(limits[name] or 0) for name in ("driver_reboot", "mig_reboot", "dcgm"))
    one = CHANGE_LIMIT + parts + (SAVE_LIMIT if limits["saves"] else 0)
    return one * rounds + int(limits["soak"] or 0)
