# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rolling upgrade of nodes with real kubelets: drain, pause, change, gate, rollback.

API server, scheduler, controllers, kubelets, apt and containerd are real. What is upgraded is the
container toolkit, whose packages are stand-ins, as are the device plugin, nvidia-smi and the GPUs.
There is no driver here and no reboot: node containers share the boot of their machine. The tests of
this file are one story, in their order.
"""

from __future__ import annotations

import json
import subprocess
import time

import pytest
import yaml

from tests.integration.cluster import rights
from tests.integration.fleet.playbooks import BIN, ETC, PATIENT, environment, on_nodes, play
from tests.integration.killing import kill
from tests.integration.printed import report_of
from tests.testbed.cluster_images import BUSYBOX
from tests.testbed.fleet import chosen
from tests.testbed.nodes import execute
from tests.testbed.paths import INVENTORY, REPOSITORY

pytestmark = pytest.mark.full(why="two nodes of the cluster are upgraded several times")

A10, L4 = "kube-a10", "kube-l4"
GPU, NAMESPACE = "nvidia.com/gpu", "upgrades"
RECORD, PAUSE = "kubegpu.nodes/maintenance", "kubegpu.nodes/pause"
OLD, NEW = "1.19.0-1", "1.20.1-1"
LEASES = ("-n", "kubegpu", "get", "leases", "-o", "name")
PACKAGES = "dpkg -l"
#: A release of the toolkit that breaks its node: with it, nvidia-smi is gone. A hook of dpkg stands
#: in for it. A string of apt's configuration is one line.
BAD = (
    "DPkg::Post-Invoke {{ \"if dpkg-query -W -f '${{Version}}' nvidia-container-toolkit "
    "| grep -q '^{0}$'; then [ ! -e /usr/bin/nvidia-smi ] || mv /usr/bin/nvidia-smi "
    "/root/nvidia-smi; elif [ -e /root/nvidia-smi ]; then mv /root/nvidia-smi "
    '/usr/bin/nvidia-smi; fi"; }};\n'
)
HOOK = "/etc/apt/apt.conf.d/99standin-bad-release"


class Bed:
    """The cluster, and the upgrade of its two nodes with GPUs."""

    def __init__(self, kube, folder):
        self.kube = kube
        self.folder = folder
        self.machines = {one.name: one for one in chosen()}
        self.options = {}

    def variables(self, version, **more):
        return {
            "nvidia_container_toolkit_version": version,
            # The change itself disturbs no pod: the drain is what is to be seen.
            "gpu_upgrade_pods": "gpu",
            "gpu_upgrade_soak": 0,
            "gpu_upgrade_drain_timeout": 120,
            "gpu_upgrade_file": str(self.folder / "upgrade.json"),
            **self.options,
            **more,
        }

    def upgrade(self, version, *arguments, **more):
        """Run the playbook; return the run and its report."""
        path = self.folder / "upgrade.json"
        path.unlink(missing_ok=True)
        run = play("upgrade", *arguments, variables=self.variables(version, **more))
        report = report_of(run.output, "__gpu_upgrade_report", path)
        assert report and path.exists() != ("--check" in arguments), run.output
        # What pytest shows of a test that fails.
        print(f"upgrade to {version}: exit status {run.status}, stopped: {report['stopped']!r}")
        for host, one in report["hosts"].items():
            print(f"{host}: {one['outcome']}, batch {one['batch']}, evicted {one['evicted']}, "
                  f"restored because: {one['rolled_back_because']!r}")  # fmt: skip
            for found in one["findings"]:
                print(f"  {found['code']}: {found['cause']} {found['evidence']}")
        return run, report

    def name(self, host):
        return self.machines[host].kubernetes

    def node(self, host):
        return json.loads(self.kube.kubectl("get", "node", self.name(host), "-o", "json"))

    def record(self, host):
        text = self.node(host)["metadata"]["annotations"].get(RECORD)
        return json.loads(text) if text else None

    def cordoned(self):
        return {host for host in (A10, L4) if self.node(host)["spec"].get("unschedulable")}

    def left(self):
        """Return what an upgrade leaves only if it was interrupted."""
        found = []
        for host in (A10, L4):
            meta = self.node(host)["metadata"]
            found += [f"{host} {key}" for key in (RECORD, PAUSE)
                      if key in {**meta["annotations"], **meta["labels"]}]  # fmt: skip
        files = on_nodes("ls /var/lib/kubegpu/upgrade.json 2>/dev/null", f"{A10}:{L4}")
        found += [f"{host} {text}" for host, text in files.items() if text]
        return found + self.kube.kubectl(*LEASES).split()

    def versions(self):
        query = "dpkg-query -W -f '${Version}' nvidia-container-toolkit"
        return on_nodes(query, f"{A10}:{L4}")

    def items(self, kind, *arguments):
        text = self.kube.kubectl("get", kind, "-o", "json", *arguments)
        return json.loads(text)["items"]

    def plugin(self, host):
        """Return the uid of the device plugin's pod on a node."""
        found = self.items(
            "pods", "-n", "kubegpu", "-l", "app.kubernetes.io/name=nvidia-device-plugin",
            "--field-selector", f"spec.nodeName={self.name(host)}",
        )  # fmt: skip
        return {one["metadata"]["uid"] for one in found}

    def pods(self, app):
        found = self.items("pods", "-n", NAMESPACE, "-l", f"app={app}")
        return {one["metadata"]["name"]: one for one in found}

    def deploy(self, app, host, grace=1):
        """Run a pod with a GPU on a node; its Deployment makes it again there."""
        # As the first process of its container, sleep ends with the grace period.
        container = {
            "name": "main", "image": BUSYBOX, "command": ["sleep", "86400"],
            "resources": {"limits": {GPU: 1}},
        }  # fmt: skip
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": self.name(host)},
            "terminationGracePeriodSeconds": grace,
            "containers": [container],
        }
        labels = {"app": app}
        body = {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": app, "namespace": NAMESPACE},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }  # fmt: skip
        self.apply(body)
        self.kube.kubectl("-n", NAMESPACE, "rollout", "status", f"deployment/{app}",
                          "--timeout=180s")  # fmt: skip

    def apply(self, body):
        self.kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(body))

    def everything(self):
        """Return what check mode may not change: nodes, pods, Leases, files and packages."""
        nodes = [
            {**one["metadata"], "managedFields": None, "resourceVersion": None, "spec": one["spec"]}
            for one in self.items("nodes")
        ]
        # One that ends already may be gone at any moment; one that is told to end now is missing.
        pods = {
            one["metadata"]["uid"]
            for one in self.items("pods", "-A")
            if "deletionTimestamp" not in one["metadata"]
        }
        files = on_nodes(f"{ETC}; {PACKAGES}; ls -laR /var/lib/kubegpu", f"{A10}:{L4}")
        return nodes, pods, self.kube.kubectl(*LEASES), files


@pytest.fixture(scope="module")
def bed(cluster, tmp_path_factory):
    made = Bed(cluster, tmp_path_factory.mktemp("upgrade"))
    bare = play("teardown")
    assert bare.status == 0, bare.output
    run = play("site", variables={"nvidia_container_toolkit_version": OLD})
    assert run.status == 0, run.output
    made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    made.deploy("web", A10)
    made.deploy("guarded", L4, grace=25)
    yield made
    on_nodes(f"rm -f {HOOK}; test ! -e /root/nvidia-smi || mv /root/nvidia-smi /usr/bin")
    for host in (A10, L4):
        cluster.kubectl("uncordon", made.name(host))
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait")
    play("teardown")


def outcomes(report):
    return {name: one["outcome"] for name, one in report["hosts"].items()}


def wait_until(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return value


@pytest.fixture(scope="module")
def budget(bed):
    """A budget that lets the only pod of a Deployment never go."""
    bed.apply({
        "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    })  # fmt: skip
    path = f"/apis/policy/v1beta1/namespaces/{NAMESPACE}/poddisruptionbudgets/one"
    wait_until(lambda: (bed.kube.get(path).get("status") or {}).get("currentHealthy") == 1)


def test_a_trial_names_what_blocks_and_changes_nothing(bed, budget):
    before = bed.everything()
    run, report = bed.upgrade(NEW, "--check")
    assert run.status == 0, run.output
    assert bed.everything() == before
    assert outcomes(report) == {A10: "planned", L4: "planned"}
    (found,) = report["hosts"][L4]["findings"]
    (pod,) = bed.pods("guarded")
    assert found["code"] == "pdb_blocks" and found["pod"] == f"{NAMESPACE}/{pod}"
    assert (found["budget"], found["needs"], found["has"]) == ("one", 1, 1)
    assert f"The budget one does not let the pod {NAMESPACE}/{pod} go" in run.output
    assert report["hosts"][A10]["findings"] == []


def test_a_canary_and_a_node_whose_pod_is_guarded(bed, budget):
    plugins, web = bed.plugin(A10), set(bed.pods("web"))
    # A kubelet says only after some ten seconds that a pod is gone.
    run, report = bed.upgrade(NEW, gpu_upgrade_drain_timeout=60)
    assert run.status == 2, run.output
    assert outcomes(report) == {A10: "done", L4: "blocked"}
    assert [report["hosts"][host]["batch"] for host in (A10, L4)] == [1, 2]
    assert report["hosts"][A10]["evicted"] == [f"{NAMESPACE}/{name}" for name in web]
    assert [one["code"] for one in report["hosts"][L4]["findings"]] == ["pdb_blocks"]
    assert bed.versions() == {A10: NEW, L4: OLD}
    # The device plugin left the node and came back.
    assert bed.plugin(A10) and not bed.plugin(A10) & plugins
    # Nothing is left, and the pod of the canary is back.
    assert bed.left() == [] and bed.cordoned() == set()
    wait_until(lambda: any(
        one["status"]["phase"] == "Running" for one in bed.pods("web").values()
    ))  # fmt: skip


def kill_in_the_drain(bed, version, **more):
    """Begin an upgrade, and kill its controller while the guarded pod ends."""
    argv = [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), "kubegpu.nodes.upgrade",
            "--extra-vars", json.dumps(bed.variables(version, **more))]  # fmt: skip
    with (bed.folder / "killed.log").open("wb") as log:
        process = subprocess.Popen(
            argv, env={**environment(), **PATIENT}, cwd=REPOSITORY, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            # The pod was told to end, and ends only with its grace period.
            wait_until(lambda: any(
                one["metadata"].get("deletionTimestamp") for one in bed.pods("guarded").values()
            ))  # fmt: skip
        finally:
            kill(process, workers=True)


def test_a_controller_that_is_killed_in_the_drain(bed):
    """The second run ends what the first one began, on a node that was cordoned by hand."""
    bed.kube.kubectl("-n", NAMESPACE, "delete", "pdb", "one", "--ignore-not-found")
    bed.kube.kubectl("cordon", bed.name(L4))
    kill_in_the_drain(bed, NEW)
    assert bed.versions()[L4] == OLD
    assert bed.record(L4)["was_unschedulable"] and bed.cordoned() == {L4}
    assert "lease.coordination.k8s.io/kubegpu-upgrade" in bed.left()
    run, report = bed.upgrade(NEW)
    assert run.status == 0, run.output
    assert outcomes(report) == {A10: "unchanged", L4: "done"}
    assert "is taken over: its process has ended" in " ".join(run.output.split())
    assert report["hosts"][L4]["from"]["toolkit"] == OLD
    assert bed.versions() == {A10: NEW, L4: NEW}
    assert bed.left() == [] and bed.cordoned() == {L4}
    bed.kube.kubectl("uncordon", bed.name(L4))


def test_nodes_that_a_killed_run_left_are_released(bed):
    """Without a change: the pod that ended comes back, and nobody is upgraded."""
    ready = ("-n", NAMESPACE, "rollout", "status", "deployment/guarded", "--timeout=180s")
    bed.kube.kubectl(*ready)
    kill_in_the_drain(bed, OLD, gpu_upgrade_canary=[L4])
    assert bed.record(L4) and bed.cordoned() == {L4}
    run, report = bed.upgrade(OLD, gpu_upgrade_release=True)
    assert run.status == 0, run.output
    assert outcomes(report) == {A10: "unchanged", L4: "released"}
    assert bed.versions() == {A10: NEW, L4: NEW}
    assert bed.left() == [] and bed.cordoned() == set()
    bed.kube.kubectl(*ready)


def test_again_nothing_is_changed(bed):
    before = bed.everything()
    run, report = bed.upgrade(NEW)
    assert run.status == 0, run.output
    assert outcomes(report) == {A10: "unchanged", L4: "unchanged"}
    assert not any(stat["changed"] for stat in run.stats.values()), run.changed()
    assert bed.everything() == before


def test_a_bad_release_is_taken_back_and_nobody_else_gets_it(bed):
    for host in (A10, L4):
        execute(bed.machines[host], "tee", HOOK, stdin=BAD.format(OLD))
    before = on_nodes(f"{PACKAGES}; {ETC}", f"{A10}:{L4}")
    run, report = bed.upgrade(OLD)
    on_nodes(f"rm {HOOK}", f"{A10}:{L4}")
    assert run.status == 2, run.output
    assert outcomes(report) == {A10: "rolled_back", L4: "not_started"}
    assert "nvidia-smi" in report["hosts"][A10]["rolled_back_because"]
    assert report["hosts"][A10]["to"]["toolkit"] == NEW
    assert "gpu_upgrade_max_failed allows none" in report["stopped"]
    for host in (A10, L4):
        execute(bed.machines[host], "tee", HOOK, stdin=BAD.format(OLD))
    # Packages, holds and all of /etc are those of before, with containerd's configuration.
    after = on_nodes(f"{PACKAGES}; {ETC}", f"{A10}:{L4}")
    on_nodes(f"rm {HOOK}", f"{A10}:{L4}")
    assert after == before
    assert bed.left() == [] and bed.cordoned() == set()


def test_another_upgrade_is_refused_before_anything_is_touched(bed):
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    bed.apply({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kubegpu-upgrade", "namespace": "kubegpu"},
        "spec": {"holderIdentity": "nightly: rack9/pid:[1] 77 5", "renewTime": now,
                 "leaseDurationSeconds": 3600},
    })  # fmt: skip
    before = bed.everything()
    run, report = bed.upgrade(OLD)
    assert run.status == 2, run.output
    assert outcomes(report) == {A10: "refused", L4: "refused"}
    (found,) = report["hosts"][A10]["findings"]
    assert found["code"] == "lease_held"
    assert "The run nightly changes nodes of this cluster now" in found["cause"]
    assert bed.everything() == before
    bed.kube.kubectl("-n", "kubegpu", "delete", "lease", "kubegpu-upgrade")


def test_the_documented_rights_are_enough(bed):
    """A token with the rights of an upgrade, and no others."""
    parts = ("base", "read", "nodes", "pods", "maintenance", "upgrade")
    rights.apply(bed.kube, *parts)
    path = rights.kubeconfig(bed.kube, bed.folder / "account")
    bed.options = {"kubegpu_kube": {"kubeconfig": path}}
    run, report = bed.upgrade(OLD)
    bed.options = {}
    # The namespace is the device plugin's, too.
    rights.delete(bed.kube, *parts[1:])
    assert run.status == 0, run.output
    assert outcomes(report) == {A10: "done", L4: "done"}
    assert report["hosts"][L4]["evicted"] and bed.versions() == {A10: OLD, L4: OLD}
    assert bed.left() == [] and bed.cordoned() == set()
