# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a real API server answers to evictions, and what gpu_node_maintenance makes of it."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.answers import judge
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.plan import read_pod
from tests.integration.cluster.workloads import BASE, Pods, admin, make_nodes, stopped, wait_until
from tests.testbed import cluster_made

NODE = "evict-a"
OLD = "policy/v1beta1"


@pytest.fixture(scope="module")
def kube(api):
    cluster = admin(api)
    make_nodes(api, cluster, [NODE])
    yield cluster
    cluster_made.delete(api, [NODE])


@pytest.fixture
def pods(kube):
    found = Pods(kube)
    yield found
    found.clear()


def evict(kube, data, version=OLD, **more):
    """Return the error of an eviction, None for none, and what it means."""
    path = f"/api/v1/namespaces/{data['metadata']['namespace']}/pods/{data['metadata']['name']}"
    uid = more.pop("uid", data["metadata"]["uid"])
    try:
        kube.evict(path, uid, version, **more)
    except KubeError as error:
        return error, judge(read_pod(kube.get(path) or data), error)
    return None, judge(read_pod(data), None)


def there(kube, name):
    """Return a pod that nobody has deleted; None for any other."""
    found = kube.get(f"{BASE}/pods/{name}")
    return found if found and "deletionTimestamp" not in found["metadata"] else None


def test_the_version_is_found_and_another_one_is_refused(kube, pods):
    assert kube.eviction_version() == OLD
    made = pods.make("p", NODE)
    error, outcome = evict(kube, made, "policy/v1")
    assert error.status == 400 and 'no kind "Eviction" is registered' in error.evidence
    assert outcome.final and outcome.finding.code == "eviction_refused"
    assert there(kube, "p")


def test_an_eviction_and_its_dry_run(kube, pods):
    made = pods.make("p", NODE)
    assert evict(kube, made, dry_run=True)[0] is None
    assert there(kube, "p")
    assert evict(kube, made)[0] is None
    assert not there(kube, "p") and kube.get(f"{BASE}/pods/p")
    # One that ends already, and one that is gone.
    error, outcome = evict(kube, made)
    assert error is None and outcome.done
    kube.delete(f"{BASE}/pods/p", grace=0)
    error, outcome = evict(kube, made)
    assert error.status == 404 and outcome.done


def test_a_body_without_kind_is_taken_and_another_name_is_not(kube, pods):
    pods.make("p", NODE)
    with pytest.raises(KubeError) as caught:
        kube.create(f"{BASE}/pods/p/eviction", {"metadata": {"name": "q", "namespace": "default"}})
    assert caught.value.status == 400 and there(kube, "p")
    kube.create(f"{BASE}/pods/p/eviction", {"metadata": {"name": "p", "namespace": "default"}})
    assert not there(kube, "p")


def test_a_grace_period_of_zero_is_a_value(kube, pods):
    made = pods.make("p", NODE)
    assert evict(kube, made, grace=0)[0] is None
    assert kube.get(f"{BASE}/pods/p") is None


def test_a_deletion_of_a_pod_of_another_uid_or_as_a_trial_deletes_nothing(kube, pods):
    made = pods.make("p", NODE)
    with pytest.raises(KubeError) as caught:
        kube.delete(f"{BASE}/pods/p", uid="0" * 8, grace=0)
    assert caught.value.status == 409
    assert kube.delete(f"{BASE}/pods/p", uid=made["metadata"]["uid"], grace=0, dry_run=True)
    assert there(kube, "p")


def test_another_uid_is_a_conflict_that_the_next_look_explains(kube, pods):
    made = pods.make("p", NODE)
    error, outcome = evict(kube, made, uid="0" * 8)
    assert error.status == 409 and "the UID in the precondition" in error.evidence
    assert not outcome.done and not outcome.final
    assert there(kube, "p")


def test_a_budget_names_itself_and_its_numbers(api, kube, pods):
    made = pods.make("p", NODE)
    with stopped(api):
        path = pods.budget("b1", "p")
        error, outcome = evict(kube, made)
    assert error.status == 429 and outcome.finding.code == "pdb_blocks"
    assert "is still being processed by the server" in outcome.finding.evidence
    assert outcome.finding.details["budget"] == "b1"
    pods.await_budget(path, currentHealthy=1)
    for dry_run in (True, False):
        error, outcome = evict(kube, made, dry_run=dry_run)
        assert error.status == 429 and error.retry_after is None
        assert not outcome.done and not outcome.final
        assert outcome.finding.details == {"budget": "b1", "needs": "1", "has": "1"}
        assert "it needs 1 healthy pods and has 1" in outcome.finding.cause
    assert there(kube, "p")


def test_a_pod_that_is_not_ready_is_guarded_for_ever(kube, pods):
    made = pods.make("p", NODE, ready=False)
    pods.await_budget(pods.budget("b1", "p"), expectedPods=1, currentHealthy=0)
    error, outcome = evict(kube, made)
    assert error.status == 429 and outcome.finding.code == "unready_guarded"
    assert (outcome.finding.details["needs"], outcome.finding.details["has"]) == ("1", "0")


@pytest.mark.full("Succeeded", why="another phase")
@pytest.mark.parametrize("phase", ["Pending", "Succeeded"])
def test_a_budget_does_not_hold_a_pod_that_does_not_run(kube, pods, phase):
    made = pods.make("p", NODE, phase=phase, ready=False)
    pods.await_budget(pods.budget("b1", "p"), desiredHealthy=1)
    assert evict(kube, made)[0] is None
    assert not there(kube, "p")


def test_two_budgets_are_final(kube, pods):
    made = pods.make("p", NODE)
    pods.budget("b1", "p")
    pods.budget("b2", "p")
    for dry_run in (True, False):
        error, outcome = evict(kube, made, dry_run=dry_run)
        assert error.status == 500
        assert outcome.final and outcome.finding.code == "two_budgets"


def test_a_pod_of_a_namespace_that_ends_goes_by_itself(api, kube, pods):
    kube.create("/api/v1/namespaces", {"metadata": {"name": "ending"}})
    wait_until(lambda: kube.get("/api/v1/namespaces/ending/serviceaccounts/default"))
    made = pods.make("p", NODE, namespace="ending")
    pods.budget("b1", "p", namespace="ending")
    with stopped(api):
        # So that the pod is not deleted with it before it is asked for.
        kube.delete("/api/v1/namespaces/ending")
        error, outcome = evict(kube, made)
    assert error.status == 403 and error.causes[0][0] == "NamespaceTerminating"
    assert not outcome.done and not outcome.final
    kube.delete("/api/v1/namespaces/ending/pods/p", grace=0)
    wait_until(lambda: kube.get("/api/v1/namespaces/ending") is None)
