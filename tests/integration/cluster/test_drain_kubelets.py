# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_node_maintenance with real kubelets: pods of each kind, ended by containerd and its kubelet.

API server, controllers, scheduler, kubelets and containerd are real. The pods ask for no GPU, so
that all leave by ``pods: all``; test_upgrade.py has pods with GPUs and the device plugin's. The
tests of this file are one story, in their order.
"""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_maintenance
from tests.integration.cluster.workloads import wait_until
from tests.testbed.cluster_images import BUSYBOX
from tests.testbed.fleet import chosen
from tests.testbed.nodes import execute
from tests.unit.module_process import run_module

pytestmark = pytest.mark.full(
    why="the same drain with kubelets, whose pods take many seconds to end"
)

CPU, OTHER, NAMESPACE = "kube-cpu", "kube-a10", "drains"
STATIC = "/etc/kubernetes/manifests/guard.yaml"
# As the first process of its container, it ends with the grace period alone.
SLEEP = ["sleep", "86400"]
GRACE = 6


class Bed:
    """The node to drain, another one, and the namespace with the pods."""

    def __init__(self, kube):
        self.kube = kube
        self.machines = {one.name: one for one in chosen()}
        self.node, self.other = (self.machines[name].kubernetes for name in (CPU, OTHER))

    def maintain(self, state, *, check=False, **options):
        given = {"run": "kinds", "pods": "all", "timeout": 120, "poll": 1, **options}
        arguments = {"kubeconfig": str(self.kube.kubeconfig), "nodes": {self.node: {}}}
        answer = run_module(
            gpu_node_maintenance.main, {**arguments, "state": state, **given}, check=check
        )
        print(state, "check" if check else "", json.dumps(answer.get("nodes", answer), indent=1))
        return answer

    def apply(self, kind, name, spec, api="v1"):
        meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": name}}
        body = {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}
        self.kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(body))

    def pod(self, command=None, grace=1, **more):
        return {
            "nodeSelector": {"kubernetes.io/hostname": self.node},
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": BUSYBOX, "command": command or SLEEP}],
            **more,
        }

    def workload(self, kind, name, pod=None, **more):
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": pod or self.pod()}
        selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
        api = "batch/v1" if kind == "Job" else "apps/v1"
        self.apply(kind, name, {**selector, "template": template, **more}, api)

    def budget(self, name, **limit):
        spec = {"selector": {"matchLabels": {"app": name}}, **limit}
        self.apply("PodDisruptionBudget", name, spec, "policy/v1beta1")

    def pods(self, *arguments):
        text = self.kube.kubectl("-n", NAMESPACE, "get", "pods", "-o", "json", *arguments)
        return json.loads(text)["items"]

    def uids(self, app, *, node=None):
        """Return the pods of a workload, those that end left out: by uid, whether it is ready."""
        return {
            one["metadata"]["uid"]: _is_ready(one)
            for one in self.pods("-l", f"app={app}")
            if not one["metadata"].get("deletionTimestamp")
            and node in (None, one["spec"].get("nodeName"))
        }

    def runs(self, app, count=1):
        return sum(self.uids(app).values()) == count

    def cordoned(self):
        node = json.loads(self.kube.kubectl("get", "node", self.node, "-o", "json"))
        return bool(node["spec"].get("unschedulable"))

    def remove(self, kind, name):
        self.kube.kubectl("-n", NAMESPACE, "delete", kind, name)
        # Only its kubelet ends a pod.
        wait_until(lambda: not self.pods("-l", f"app={name}"), 120)


def _is_ready(pod):
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def codes(answer, bed):
    return sorted((one["code"], one["pod"]) for one in answer["nodes"][bed.node]["findings"])


def apps(items):
    """Return the workloads of pods: their names without what a controller adds."""
    return sorted(one["name"].partition("-")[0] for one in items)


@pytest.fixture(scope="module")
def bed(cluster):
    made = Bed(cluster)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(namespace))
    static = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "guard", "namespace": NAMESPACE, "labels": {"app": "guard"}},
        "spec": {"containers": [{"name": "main", "image": BUSYBOX, "command": SLEEP}]},
    }  # fmt: skip
    try:
        execute(made.machines[CPU], "tee", STATIC, stdin=yaml.safe_dump(static))
        # Both pods start on the node, and have another one to go to.
        names = {"key": "kubernetes.io/hostname", "operator": "In",
                 "values": [made.node, made.other]}  # fmt: skip
        terms = {"nodeSelectorTerms": [{"matchExpressions": [names]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        cluster.kubectl("cordon", made.other)
        web = made.pod(affinity=affinity)
        del web["nodeSelector"]
        made.workload("Deployment", "web", web, replicas=2)
        made.budget("web", minAvailable=1)
        wait_until(lambda: made.runs("web", 2), 180)
        cluster.kubectl("uncordon", made.other)
        made.workload("StatefulSet", "db", replicas=1, serviceName="db")
        made.workload("DaemonSet", "agent")
        memory = {"name": "shm", "emptyDir": {"medium": "Memory"}}
        made.workload("Deployment", "shm", made.pod(volumes=[memory]), replicas=1)
        made.workload("Deployment", "stubborn", made.pod(grace=GRACE), replicas=1)
        for name in ("db", "agent", "shm", "stubborn", "guard"):
            wait_until(lambda app=name: made.runs(app), 180)
        yield made
    finally:
        execute(made.machines[CPU], "rm", "-f", STATIC)
        for node in (made.node, made.other):
            cluster.kubectl("uncordon", node)
        cluster.kubectl("annotate", "node", made.node, "kubegpu.nodes/maintenance-")
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait")


def test_what_can_never_leave_is_refused_before_anything_is_touched(bed):
    scratch = {"name": "scratch", "emptyDir": {}}
    bed.workload("Deployment", "scratch", bed.pod(volumes=[scratch]), replicas=1)
    bed.apply("Pod", "bare", bed.pod())
    wait_until(lambda: bed.runs("scratch") and bed.runs("bare"), 180)
    (pod,) = bed.pods("-l", "app=scratch")
    before = {one["metadata"]["uid"] for one in bed.pods()}
    for check in (True, False):
        answer = bed.maintain("drained", check=check)
        assert codes(answer, bed) == [
            ("local_data", f"{NAMESPACE}/{pod['metadata']['name']}"),
            ("unmanaged_pod", f"{NAMESPACE}/bare"),
        ]
        assert answer["failed"] and not answer["changed"] and not bed.cordoned()
    assert {one["metadata"]["uid"] for one in bed.pods()} == before
    bed.remove("pod", "bare")
    bed.remove("deployment", "scratch")


def test_a_guarded_pod_that_crashes_is_named_and_the_node_released(bed):
    bed.workload("Deployment", "crash", bed.pod(["false"]), replicas=1)
    bed.budget("crash", minAvailable=1)

    def crashed():
        return any(
            status.get("restartCount")
            for one in bed.pods("-l", "app=crash")
            for status in one["status"].get("containerStatuses", ())
        )

    wait_until(crashed, 180)
    answer = bed.maintain("drained", check=True)
    (pod,) = bed.pods("-l", "app=crash")
    assert codes(answer, bed) == [("unready_guarded", f"{NAMESPACE}/{pod['metadata']['name']}")]
    (found,) = answer["nodes"][bed.node]["findings"]
    assert (found["budget"], found["needs"], found["has"]) == ("crash", 1, 0)
    # For real the others leave, and the node is released when the time is over. Those of the
    # budget leave one after the other, which takes a minute on a busy machine.
    answer = bed.maintain("drained", timeout=150)
    assert codes(answer, bed) == [("unready_guarded", f"{NAMESPACE}/{pod['metadata']['name']}")]
    assert not bed.cordoned() and pod["metadata"]["uid"] in bed.uids("crash")
    bed.kube.kubectl("-n", NAMESPACE, "delete", "pdb", "crash")
    for app in ("db", "shm", "stubborn"):
        wait_until(lambda app=app: bed.runs(app), 180)


def test_each_kind_of_pod_leaves_or_stays(bed):
    # The node has them both again.
    bed.kube.kubectl("cordon", bed.other)
    bed.kube.kubectl("-n", NAMESPACE, "delete", "pods", "-l", "app=web")
    wait_until(lambda: len(bed.uids("web", node=bed.node)) == 2 and bed.runs("web", 2), 180)
    bed.kube.kubectl("uncordon", bed.other)
    stay = {app: set(bed.uids(app)) for app in ("agent", "guard")}
    database = set(bed.uids("db"))
    job = bed.pod(["sleep", "15"], restartPolicy="Never")
    bed.workload("Job", "train", job)
    wait_until(lambda: bed.runs("train"), 180)
    answer = bed.maintain("drained", wait_for={"timeout": 120})
    assert answer["ok"] and bed.cordoned(), answer
    row = answer["nodes"][bed.node]
    assert apps(row["evicted"]) == ["crash", "db", "shm", "stubborn", "web", "web"]
    seconds = {one["name"].partition("-")[0]: one["seconds"] for one in row["evicted"]}
    assert seconds["stubborn"] >= GRACE
    assert {(one["name"].partition("-")[0], one["why"]) for one in row["kept"]} >= {
        ("agent", "daemonset"), ("guard", "static"),
    }  # fmt: skip
    # The job had its time, and its pod is there for its log.
    (train,) = bed.pods("-l", "app=train")
    assert train["status"]["phase"] == "Succeeded"
    assert {app: set(bed.uids(app)) for app in stay} == stay
    # The StatefulSet's new pod waits for a node; those of the Deployment have one, one by one.
    (uid,) = bed.uids("db")
    assert uid not in database and bed.uids("db", node=bed.node) == {}
    wait_until(lambda: len(bed.uids("web", node=bed.other)) == 2 and bed.runs("web", 2), 120)
    left = {
        one["metadata"]["labels"]["app"]
        for one in bed.pods("--field-selector", f"spec.nodeName={bed.node}")
    }
    assert left == {"agent", "guard", "train"}
    # There is nothing more to do.
    assert not bed.maintain("drained")["changed"]


def test_the_node_takes_pods_again(bed):
    answer = bed.maintain("released")
    assert answer["ok"] and answer["changed"] and not bed.cordoned()
    for app in ("db", "shm", "stubborn"):
        wait_until(lambda app=app: bed.runs(app), 180)
    assert len(bed.uids("db", node=bed.node)) == 1
