# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers to evictions. A real server gives them in tests/integration/cluster/test_eviction.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import unix_time
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.answers import (
    judge,
    still_running,
    still_there,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.types import Node, Pod

DUE = "2026-11-23T12:00:00Z"
READY = Node("n1", "1", True, True)


def pod(**more):
    return Pod("ml", "p", "u", "n1", **{"phase": "Running", "ready": True, **more})


def error(status, evidence="said", reason="", causes=()):
    return KubeError(
        "It was refused", evidence=evidence, next_step="Do it.", status=status, reason=reason,
        causes=causes,
    )  # fmt: skip


BUDGET = (
    ("DisruptionBudget", "The disruption budget b1 needs 2 healthy pods and has 1 currently"),
)


@pytest.mark.parametrize(
    ("answer", "done", "final", "code"),
    [
        (None, True, False, None),
        (error(404), True, False, None),
        (error(400, 'admission webhook "x" does not support dry run'), True, False, None),
        (error(409), False, False, "eviction_failed"),
        (error(403, causes=(("NamespaceTerminating", ""),)), False, False, "eviction_failed"),
        (error(429, causes=BUDGET), False, False, "pdb_blocks"),
        # A server that has too much to do says nothing of a budget.
        (error(429), False, False, "eviction_failed"),
        (error(500, "This pod has more than one PodDisruptionBudget, which"), False, True,
         "two_budgets"),
        (error(500, "failed calling webhook"), False, False, "eviction_failed"),
        (error(503), False, False, "eviction_failed"),
        (error(None, reason="Unreachable"), False, False, "eviction_failed"),
        (error(403, reason="Forbidden"), False, True, "forbidden"),
        (error(401, reason="Expired"), False, True, "forbidden"),
        (error(403, reason="Denied"), False, True, "eviction_refused"),
        (error(400), False, True, "eviction_refused"),
        (error(422), False, True, "eviction_refused"),
    ],
)  # fmt: skip
def test_what_an_answer_means(answer, done, final, code):
    outcome = judge(pod(), answer)
    assert (outcome.done, outcome.final) == (done, final)
    assert (outcome.finding.code if outcome.finding else None) == code
    if outcome.finding:
        assert "ml/p" in outcome.finding.cause and outcome.finding.next_step


def test_a_budget_is_named_with_its_numbers():
    finding = judge(pod(), error(429, causes=BUDGET)).finding
    assert finding.details == {"budget": "b1", "needs": "2", "has": "1"}
    assert "it needs 2 healthy pods and has 1" in finding.cause
    text = "The disruption budget b1 is still being processed by the server."
    finding = judge(pod(), error(429, causes=(("DisruptionBudget", text),))).finding
    assert finding.details == {"budget": "b1", "needs": "", "has": ""}
    assert finding.cause.startswith("The budget b1 does not let the pod ml/p go, and the API")
    # More replicas would not help: the budget counts no pods.
    assert "replica" not in finding.next_step and "minAvailable as a number" in finding.next_step
    assert "kubectl describe pdb b1 --namespace ml" in finding.next_step
    # Kubernetes 1.36, pkg/registry/core/pod/storage/eviction.go.
    text = "The disruption budget b1 does not allow evicting pods currently"
    newer = judge(pod(), error(429, causes=(("DisruptionBudget", text),))).finding
    assert (newer.code, newer.cause) == ("pdb_blocks", finding.cause)
    words = judge(pod(), error(429, causes=(("DisruptionBudget", "other words"),))).finding
    assert words.code == "pdb_blocks" and "other words" in words.evidence


def test_a_pod_that_is_not_ready_is_told_apart():
    assert judge(pod(ready=False), error(429, causes=BUDGET)).finding.code == "unready_guarded"
    starting = pod(ready=False, phase="Pending")
    assert judge(starting, error(429, causes=BUDGET)).finding.code == "pdb_blocks"


def test_why_a_pod_is_still_there():
    down = Node("n1", "1", True, False, "kubelet stopped")
    now = unix_time(DUE)
    finding = still_there(pod(deletion=DUE), down, now)
    assert (finding.code, finding.evidence) == ("node_not_ready", "kubelet stopped")
    assert "for 95 s" in still_there(pod(deletion=DUE), READY, now + 95).cause
    assert f"until {DUE}" in still_there(pod(deletion=DUE), READY, now - 5).cause
    assert still_there(pod(deletion=DUE), READY, None).code == "terminating_long"
    plugin = pod(owner_kind="DaemonSet", owner_name="plugin")
    assert still_there(plugin, READY, now, paused=True).code == "daemonset_stays"


def test_a_job_that_did_not_finish():
    finding = still_running(pod(owner_kind="Job", owner_name="train"), 61.2)
    assert finding.code == "job_running" and "Job train has not finished after 61 s" in (
        finding.cause
    )
