# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What it costs to drain the nodes of a cluster: ``python -m tests.bench.drain``.

Made nodes and pods in a real API server with its controllers. There are no kubelets: a pod is gone
with its eviction (no grace period), or a stand-in ends all pods some seconds after the drain has
begun. With ``--kubelets``, the nodes of the test bed's cluster, which must run (``make cluster``),
and pods that their kubelets run and end. The requests are those that the module counts. The time
has all of ``ansible-playbook`` in it; a drain is one task for all nodes, and the module is called
again every 30 seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plugins.module_utils._kube.api import Cluster, Connection
from tests.bench.measure import BIN, Sample, run, tell
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ControlPlane
from tests.testbed.cluster_images import BUSYBOX
from tests.testbed.paths import REPOSITORY

# The cluster of `make cluster`, which is another fleet than that of this process.
CLUSTER = REPOSITORY / "build" / (os.environ.get("KUBEGPU_TESTBED_NAME") or "cluster") / "control"
PODS = "/api/v1/namespaces/default/pods"
# Pods of each node: those with a GPU leave, the others stay.
WITH_GPU, WITHOUT = 4, 6
NAMESPACE = "bench-drain"
# Seconds after which the stand-in ends the pods.
ENDS = 20


@dataclass(frozen=True)
class Measured:
    step: str
    seconds: float
    cpu: float
    requests: dict[str, int]


class Bench:
    """One API server, its nodes, and their pods."""

    def __init__(self, plane: ControlPlane, names: list[str], folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.names = names
        self.pods = "gpu"
        self.results: list[Measured] = []

    def each(self, work: Callable[[Cluster, str], None], items: list[str]) -> None:
        """Do something with eight connections."""

        def share(part: list[str]) -> None:
            cluster = Cluster.connect(Connection(kubeconfig=str(self.plane.kubeconfig)))
            for item in part:
                work(cluster, item)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(share, [items[number::8] for number in range(8)]))

    def make_pods(self, *, gpus: int, number: int, grace: int) -> None:
        """Put pods on each node, of a controller that the garbage collector does not know."""
        owner = {
            "apiVersion": "example.com/v1", "kind": "Trainer", "name": "t", "uid": "1",
            "controller": True,
        }  # fmt: skip
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        container = {"name": "c", "image": "x", "resources": {"limits": limits}}

        def make(cluster: Cluster, node: str) -> None:
            for index in range(number):
                name = f"{node}-{gpus}-{index}"
                spec = {
                    "nodeName": node,
                    "containers": [container],
                    "terminationGracePeriodSeconds": grace,
                }
                meta = {"name": name, "ownerReferences": [owner]}
                cluster.create(
                    PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
                )
                running = {
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                }
                cluster.patch(f"{PODS}/{name}/status", {"status": running}, kind="strategic")

        self.each(make, self.names)

    def end_pods(self) -> None:
        """End the pods that were told to: a kubelet's part."""
        cluster = Cluster.connect(Connection(kubeconfig=str(self.plane.kubeconfig)))
        told = [
            pod["metadata"]["name"]
            for pod in cluster.list(PODS)
            if pod["metadata"].get("deletionTimestamp")
        ]

        def end(one: Cluster, name: str) -> None:
            one.delete(f"{PODS}/{name}", grace=0)

        self.each(end, told)

    def count_pods(self) -> int:
        found: Any = self.plane.get(PODS)["items"]
        return len(found)

    def play(self, step: str, state: str, *options: str) -> dict[str, Any]:
        """Measure a play with the module as its task; return the module's answer."""
        answer = self.folder / "answer.json"
        task = {
            "kubegpu.nodes.gpu_node_maintenance": {
                "kubeconfig": str(self.plane.kubeconfig),
                "nodes": {name: {} for name in self.names},
                "state": state,
                "run": "bench",
                "pods": self.pods,
            },
            "vars": {"ansible_python_interpreter": sys.executable},
            "register": "answer",
        }
        keep = {
            "ansible.builtin.copy": {"content": "{{ answer | to_json }}", "dest": str(answer)},
            "check_mode": False,
        }
        path = self.folder / "play.yml"
        play = [{"hosts": "localhost", "gather_facts": False, "tasks": [task, keep]}]
        path.write_text(json.dumps(play))
        argv = [str(BIN / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(path)]
        sample: Sample = run([*argv, *options])
        found: dict[str, Any] = json.loads(answer.read_text())
        self.results.append(Measured(step, sample.seconds, sample.cpu, found["requests"]))
        tell(f"{step}: {sample.seconds:.1f} s, CPU {sample.cpu:.1f} s, {found['requests']}")
        return found

    def all(self) -> None:
        total = len(self.names)
        self.make_pods(gpus=0, number=WITHOUT, grace=0)
        self.make_pods(gpus=1, number=WITH_GPU, grace=0)
        self.play("check mode", "drained", "--check")
        self._see(self.count_pods() == total * (WITH_GPU + WITHOUT))
        done = self.play("drain, the pods end at once", "drained")
        self._see(done["ok"] and self.count_pods() == total * WITHOUT)
        again = self.play("no change", "drained")
        self._see(not again["changed"])
        self._see(self.play("release", "released")["changed"])
        self.make_pods(gpus=1, number=WITH_GPU, grace=600)
        timer = threading.Timer(ENDS, self._end_all, (total * WITHOUT,))
        timer.start()
        done = self.play(f"drain, the pods end after {ENDS} seconds", "drained")
        timer.join()
        self._see(done["ok"] and self.count_pods() == total * WITHOUT)

    def with_kubelets(self) -> None:
        """The same steps on nodes whose kubelets run the pods, and end them."""
        self.pods = "all"
        self.plane.kubectl("create", "namespace", NAMESPACE)
        try:
            self._run_pods()
            self.play("check mode", "drained", "--check")
            self._see(self._running() == len(self.names) * WITH_GPU)
            done = self.play("drain, the kubelets end the pods", "drained")
            self._see(done["ok"] and self._running() == 0)
            self._see(not self.play("no change", "drained")["changed"])
            self._see(self.play("release", "released")["changed"])
        finally:
            self.plane.kubectl("delete", "namespace", NAMESPACE, "--wait")

    def _run_pods(self) -> None:
        """Run pods on each node; their StatefulSets make no others elsewhere."""
        for number, name in enumerate(self.names):
            labels = {"app": f"bench-{number}"}
            container = {"name": "c", "image": BUSYBOX, "command": ["sleep", "86400"]}
            spec = {
                "nodeSelector": {"kubernetes.io/hostname": name},
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
            }
            body = {
                "apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": {"name": labels["app"], "namespace": NAMESPACE},
                "spec": {
                    "replicas": WITH_GPU, "serviceName": "bench",
                    "podManagementPolicy": "Parallel", "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            }  # fmt: skip
            self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        for number in range(len(self.names)):
            self.plane.kubectl("-n", NAMESPACE, "rollout", "status", f"statefulset/bench-{number}",
                               "--timeout=300s")  # fmt: skip

    def _running(self) -> int:
        found: Any = self.plane.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return sum(bool(pod["spec"].get("nodeName")) for pod in found)

    def _end_all(self, left: int) -> None:
        while self.count_pods() > left:
            self.end_pods()

    @staticmethod
    def _see(right: object) -> None:
        """See that the work was done: what did not do it does not count."""
        if not right:
            raise RuntimeError("the nodes are not as the step leaves them")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--kubelets", action="store_true", help="the nodes of the cluster instead")
    parser.add_argument("--json", type=Path, help="where the numbers are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plays = Path(folder) / "plays"
        plays.mkdir()
        if options.kubelets:
            plane = ControlPlane(CLUSTER)
            if not plane.runs():
                parser.error("the cluster does not run: make cluster")
            items: Any = plane.get("/api/v1/nodes")["items"]
            bench = Bench(plane, [item["metadata"]["name"] for item in items], plays)
            bench.with_kubelets()
        else:
            plane = ControlPlane(Path(folder) / "plane")
            try:
                plane.up(with_parent=True)
                names = cluster_made.create_many(plane, options.nodes, "bench")
                bench = Bench(plane, names, plays)
                bench.all()
            finally:
                plane.remove()
    if options.json:
        data = {
            "nodes": len(bench.names),
            "pods": [WITH_GPU, 0 if options.kubelets else WITHOUT],
            "load": os.getloadavg()[0],
            "results": [asdict(one) for one in bench.results],
        }
        options.json.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    main()
