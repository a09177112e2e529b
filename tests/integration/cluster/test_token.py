# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""diagnose, accept and upgrade with the one token of playbooks/files/rbac.yml on a real cluster.

The token of test_site.py, with the playbooks that come later in a node's life. API server, kubelet,
scheduler and apt are real; GPUs, device plugin, the packages of the toolkit and the programs of the
acceptance are stand-ins. The tests of this file are one story, in their order.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.integration.cluster import accepting, rights
from tests.integration.cluster.diagnosing import diagnose, errors
from tests.integration.fleet.playbooks import play
from tests.integration.printed import report_of
from tests.testbed.cluster_images import BUSYBOX
from tests.testbed.fleet import chosen
from tests.testbed.paths import BUILD
from tests.unit.fixtures.rights import lacking, rights_of

pytestmark = pytest.mark.full(why="test_site.py has the token, test_rights.py each right of it")

HOST, GPU, NAMESPACE = "kube-a10", "nvidia.com/gpu", "token-jobs"
OLD, NEW = "1.19.0-1", "1.20.1-1"


@pytest.fixture(scope="module")
def machine():
    return next(one for one in chosen() if one.name == HOST)


@pytest.fixture(scope="module")
def run(cluster, machine):
    """Run a playbook for the one host with the token."""
    rights.apply(cluster)
    token = rights.kubeconfig(cluster, BUILD / "token-kubeconfig")
    given = {
        "kubegpu_kube": {"kubeconfig": token},
        "nvidia_container_toolkit_version": OLD,
        "gpu_acceptance_required": True,
        "gpu_acceptance_file": str(BUILD / "token-acceptance.json"),
        "gpu_upgrade_file": str(BUILD / "token-upgrade.json"),
        "gpu_upgrade_pods": "gpu",
        "gpu_upgrade_soak": 0,
    }

    def run(name, **variables):
        return play(name, "--limit", HOST, variables={**given, **variables})

    accepting.install(machine)
    yield run
    cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait")
    run("teardown")
    accepting.remove(machine)
    rights.delete(cluster)


def job(machine):
    """A Deployment with a pod that has a GPU of the node."""
    container = {
        "name": "main", "image": BUSYBOX, "command": ["sleep", "86400"],
        "resources": {"limits": {GPU: 1}},
    }  # fmt: skip
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": machine.kubernetes},
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    labels = {"app": "job"}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "job", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }  # fmt: skip


def log_of_the_job(resource, namespace):
    return (resource, namespace) == ("pods/log", NAMESPACE)


def test_a_node_joins_and_is_accepted(cluster, run):
    site = run("site")
    assert site.status == 0, site.output
    accepted = run("accept")
    assert accepted.status == 0, accepted.output
    report = report_of(accepted.output, "__gpu_acceptance_report", BUILD / "token-acceptance.json")
    assert report["hosts"][HOST]["outcome"] == "passed"


def test_its_pods_are_diagnosed(cluster, run, machine):
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([namespace, job(machine)]))
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/job", "--timeout=180s")
    pods = cluster.kubectl("-n", NAMESPACE, "get", "pods", "-o", "json")
    (pod,) = (one["metadata"]["name"] for one in json.loads(pods)["items"])
    kubeconfig = {"kubeconfig": str(BUILD / "token-kubeconfig")}
    done, result = diagnose(
        "token", "--limit", HOST, kubegpu_kube=kubeconfig, gpu_diagnose_pods=[f"{NAMESPACE}/{pod}"]
    )
    assert errors(result) == {}, result["findings"]
    # docs/rights.md: the log of a pod of another namespace needs a right there; all else is read.
    missing = set(re.findall(r"The right '(\S+)' on '(\S+)'", done.output))
    assert missing == {("get", "pods/log")}


def test_it_is_upgraded(run):
    done = run("upgrade", nvidia_container_toolkit_version=NEW)
    assert done.status == 0, done.output
    report = report_of(done.output, "__gpu_upgrade_report", BUILD / "token-upgrade.json")
    one = report["hosts"][HOST]
    assert one["outcome"] == "done" and len(one["evicted"]) == 1, one


def test_the_one_token_was_enough(cluster, run):
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait")
    torn = run("teardown", nvidia_container_toolkit_version=NEW)
    assert torn.status == 0, torn.output
    used = {one for one in rights.asked(cluster) if not log_of_the_job(one.resource, one.namespace)}
    refused = [
        (verb, where, why)
        for verb, where, why in rights.refused(cluster)
        if not log_of_the_job(f"{where['resource']}/{where.get('subresource')}", where["namespace"])
    ]
    assert refused == []
    assert {
        ("nodes", "patch"), ("pods/eviction", "create"), ("leases", "create"), ("leases", "delete"),
    } <= {(one.resource, one.verb) for one in used}  # fmt: skip
    assert lacking(used, rights_of()) == []
