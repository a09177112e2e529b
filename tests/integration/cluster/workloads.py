# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods on made nodes: real controllers make them, and a stand-in for kubelet runs and ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass, field

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    Cluster,
    Connection,
    KubeError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import unix_time
from tests.testbed import cluster_made

GPU = "nvidia.com/gpu"
NODES = "/api/v1/nodes"
BASE = "/api/v1/namespaces/default"
#: A pod with this annotation ends only when its grace period is over.
STUBBORN = "testbed.example/ignores-sigterm"


def admin(plane):
    return Cluster.connect(Connection(kubeconfig=str(plane.kubeconfig)))


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


@contextlib.contextmanager
def stopped(plane, name="kube-controller-manager"):
    """Hold one program of the control plane for a moment."""
    pid = int((plane.home / f"{name}.pid").read_text().split()[0])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def spec(gpus=1, grace=30, **more):
    limits = {GPU: str(gpus)} if gpus else {}
    return {
        "containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}],
        "terminationGracePeriodSeconds": grace,
        **more,
    }


def template(name, gpus=1, **more):
    return {"metadata": {"labels": {"app": name}}, "spec": spec(gpus, **more)}


@dataclass
class Pods:
    """The pods of the namespace default, and what a scheduler and kubelets do with them."""

    kube: Cluster
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def list(self, name=""):
        found = self.kube.list(f"{BASE}/pods")
        return {
            item["metadata"]["name"]: item
            for item in found
            if item["metadata"]["name"].startswith(name)
        }

    def make(self, name, node, *, ready=True, phase="Running", namespace="default", gpus=1,
             owner=None, annotations=None, labels=None, **more):  # fmt: skip
        """Make a pod that is on a node already."""
        meta = {"name": name, "labels": {"app": name, **(labels or {})}}
        meta["annotations"] = annotations or {}
        if owner:
            meta["ownerReferences"] = [{"apiVersion": "apps/v1", "controller": True, **owner}]
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta,
                "spec": {"nodeName": node, **spec(gpus, **more)}}  # fmt: skip
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = self.kube.create(path, body)
        self.status(f"{path}/{name}", ready, phase)
        return made

    def status(self, path, ready=True, phase="Running"):
        conditions = [{"type": "Ready", "status": str(ready)}]
        body = {"status": {"phase": phase, "conditions": conditions}}
        self.kube.patch(f"{path}/status", body, kind="strategic")

    def place(self, prefix, node, number=1, **more):
        """Bind the pods that a controller has made, as a scheduler would, and run them."""

        def unbound():
            found = [
                name for name, item in self.list(prefix).items()
                if not item["spec"].get("nodeName")
            ]  # fmt: skip
            return sorted(found)[:number] if len(found) >= number else None

        names = wait_until(unbound)
        for name in names:
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": target}  # fmt: skip
            self.kube.create(f"{BASE}/pods/{name}/binding", body)
            self.status(f"{BASE}/pods/{name}", **more)
        return names

    def workload(self, kind, name, **more):
        """Make a Deployment, StatefulSet, DaemonSet or Job of pods with a label ``app``."""
        group = "batch/v1" if kind == "Job" else "apps/v1"
        selector = {"selector": {"matchLabels": {"app": name}}}
        body = {
            "apiVersion": group, "kind": kind, "metadata": {"name": name},
            "spec": {**({} if kind == "Job" else selector), "template": template(name), **more},
        }  # fmt: skip
        return self.kube.create(f"/apis/{group}/namespaces/default/{kind.lower()}s", body)

    def budget(self, name, app, namespace="default", **rule):
        """Make a budget, and wait until its controller has looked at it."""
        path = f"/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets"
        body = {
            "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": app}}, **(rule or {"minAvailable": 1})},
        }  # fmt: skip
        self.kube.create(path, body)
        return f"{path}/{name}"

    def await_budget(self, path, **expected):
        def as_expected():
            status = self.kube.get(path).get("status") or {}
            return all(status.get(name) == value for name, value in expected.items())

        wait_until(as_expected)

    def end_pods(self):
        """Do a kubelet's part in the background: end the pods that were deleted."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        kube = self.kube
        while not self._stop.wait(0.1):
            for item in kube.list("/api/v1/pods"):
                meta = item["metadata"]
                due = unix_time(meta.get("deletionTimestamp"))
                if due is None or not item["spec"].get("nodeName"):
                    continue
                if STUBBORN in (meta.get("annotations") or {}) and kube.server_time < due:
                    continue
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                with contextlib.suppress(KubeError):
                    kube.delete(path, uid=meta["uid"], grace=0)

    def clear(self):
        """Remove all that a test made."""
        self._stop.set()
        if self._thread:
            self._thread.join()
        for group, kind in (
            ("apps/v1", "deployments"), ("apps/v1", "statefulsets"), ("apps/v1", "daemonsets"),
            ("batch/v1", "jobs"), ("policy/v1beta1", "poddisruptionbudgets"),
        ):  # fmt: skip
            path = f"/apis/{group}/namespaces/default/{kind}"
            for item in self.kube.list(path):
                self.kube.delete(f"{path}/{item['metadata']['name']}")

        def nothing_left():
            # A ReplicaSet outlives its Deployment for a moment, and makes its pods again meanwhile:
            # a test after this one would take them for its own.
            sets = "/apis/apps/v1/namespaces/default/replicasets"
            found = [item["metadata"]["name"] for item in self.kube.list(sets)]
            for name in found:
                self.kube.delete(f"{sets}/{name}")
            for name in self.list():
                self.kube.delete(f"{BASE}/pods/{name}", grace=0)
            return not found and not self.list()

        wait_until(nothing_left)


def make_nodes(plane, kube, names):
    """Make nodes that pods may be bound to."""
    cluster_made.create(plane, [cluster_made.node(name) for name in names])
    for name in names:
        # The API server gives a new node the taint not-ready, which a controller would take away.
        kube.patch(f"{NODES}/{name}", {"spec": {"taints": None}})
