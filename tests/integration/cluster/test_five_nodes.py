# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""S15 and S17 in one fleet: H100 with MIG, T4, MI300X, Flex 170, and a node without a GPU.

API server, scheduler, kubelets and containerd are real. Device plugins, drivers and nvidia-smi are
stand-ins. The tests are one story, in their order; the printed tables are in FIVE for the docs.
"""

from __future__ import annotations

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from tests.integration.cluster.cards import give_cards
from tests.integration.fleet.playbooks import ETC, play
from tests.testbed import calls, cluster_images, cluster_nodes, network, nodes
from tests.testbed.fleet import APART, FLEET
from tests.testbed.nodes import execute
from tests.testbed.paths import BUILD

pytestmark = pytest.mark.full(why="four more nodes; test_site.py has one of NVIDIA's")

FIVE = BUILD / "five-nodes"
H100, T4, MI300X, FLEX, NONE = "kube-h100", "kube-t4", "kube-mi300x", "kube-flex", "kube-cpu"
# What each offers, and nothing else of these vendors.
OFFERED = {
    H100: {"nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-2g.20gb": 2, "nvidia.com/mig-3g.40gb": 2},
    T4: {"nvidia.com/gpu": 1},
    MI300X: {"amd.com/gpu": 2},
    FLEX: {"gpu.intel.com/i915": 1},
    NONE: {},
}
MACHINES = {one.name: one for one in (*APART, *FLEET) if one.name in OFFERED}
VENDORS = {H100: "nvidia", T4: "nvidia", MI300X: "amd", FLEX: "intel", NONE: None}
DOMAINS = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
KINDS = "namespaces,runtimeclasses,daemonsets,configmaps,serviceaccounts,clusterroles"
OWNED = "app.kubernetes.io/managed-by=kubegpu.nodes"
OBJECTS = "kubegpu.nodes.gpu_kubernetes_objects"
# The DaemonSets of this collection leave out nodes with this label.
PAUSE = "kubegpu.nodes/pause"
# Seven nodes on one machine.
PATIENCE = 2700
VARIABLES = {
    "nvidia_device_plugin_mig_strategy": "mixed",
    "amd_device_plugin_image": cluster_images.AMD_PLUGIN_NAME,
    "intel_device_plugin_image": cluster_images.INTEL_PLUGIN_NAME,
    "gpu_verify_amd": {"image": cluster_images.BUSYBOX},
    "gpu_verify_intel": {"image": cluster_images.BUSYBOX},
}
# What all-balanced is on each of the two cards.
LAYOUT = "nvidia-smi mig -lgi | grep -o 'MIG .*' | awk '{print $2, $5}' | sort"
BALANCED = [place for place in ("1g.10gb 2:1", "1g.10gb 3:1", "2g.20gb 0:2", "3g.40gb 4:4")
            for _card in range(2)]  # fmt: skip
# The kubelet makes the folder /run/cdi for Intel's plugin, and keeps it.
FILES = f"{ETC}; ls -d /var/lib/kubegpu 2>/dev/null; find /run/cdi -type f 2>/dev/null"
LAYERS = {
    "nvidia": ("pci", "module", "nvml", "toolkit", "runtime", "allocatable", "pod"),
    "amd": ("pci", "module", "devices", "allocatable", "pod"),
    "intel": ("pci", "module", "devices", "allocatable", "pod"),
}


class Five:
    """The five nodes, by their names in the inventory."""

    def __init__(self, kube, inventory):
        self.kube = kube
        self.inventory = inventory
        if self.objects():
            # Other tests' nodes: a device plugin of theirs would stay after the teardown of these.
            run = play("teardown", timeout=PATIENCE)
            assert run.status == 0, run.output
        self.before = self.files()
        self.labels_before = {name: set(self.node(name)["metadata"]["labels"]) for name in MACHINES}

    def play(self, name, *arguments, keep=""):
        """Run a playbook on the five, and keep what it printed."""
        limits = ("-i", str(self.inventory), "--limit", ",".join(MACHINES))
        run = play(name, *limits, *arguments, timeout=PATIENCE)
        if keep:
            FIVE.mkdir(exist_ok=True)
            (FIVE / f"{keep}.txt").write_text(run.screen)
        return run

    def node(self, name):
        text = self.kube.kubectl("get", "node", MACHINES[name].kubernetes, "-o", "json")
        return json.loads(text)

    def offered(self, name):
        """What can be allocated, without resources that are no more."""
        return {
            resource: int(count)
            for resource, count in self.node(name)["status"]["allocatable"].items()
            if resource.startswith(DOMAINS) and count != "0"
        }

    def plugins(self, name):
        """The device plugins whose pods are on the node."""
        text = self.kube.kubectl(
            "-n", "kubegpu", "get", "pods", "-o", "json",
            "--field-selector", f"spec.nodeName={MACHINES[name].kubernetes}", check=False,
        )  # fmt: skip
        pods = json.loads(text)["items"] if text.startswith("{") else []
        return {one["metadata"]["labels"]["app.kubernetes.io/name"] for one in pods}

    @contextlib.contextmanager
    def without_plugins(self, name):
        """End the device plugins of a node, which have its GPUs open, for a while."""
        node = MACHINES[name].kubernetes
        before = self.plugins(name)
        self.kube.kubectl("label", "node", node, f"{PAUSE}=boot")
        try:
            assert self.comes_to_have(name, set())
            yield
        finally:
            self.kube.kubectl("label", "node", node, f"{PAUSE}-")
        assert self.comes_to_have(name, before)

    def comes_to_have(self, name, plugins):
        """Return whether these are the device plugins of a node, after a while."""
        deadline = time.monotonic() + 120
        while self.plugins(name) != plugins and time.monotonic() < deadline:
            time.sleep(1)
        return self.plugins(name) == plugins

    def on_each(self, command):
        with ThreadPoolExecutor(max_workers=len(MACHINES)) as pool:
            answers = pool.map(
                lambda one: execute(one, "sh", "-c", f"{command}; true").strip(), MACHINES.values()
            )
            return dict(zip(MACHINES, answers, strict=True))

    def files(self):
        return self.on_each(FILES)

    def layout(self):
        """Profile and place of each instance of the H100."""
        return execute(MACHINES[H100], "sh", "-c", LAYOUT).splitlines()

    def objects(self):
        """What the collection has made in the cluster."""
        return self.kube.kubectl("get", KINDS, "-A", "-l", OWNED, "-o", "name").split()


@pytest.fixture(scope="module")
def five(cluster, tmp_path_factory):
    try:
        nodes.up(APART)
        cluster_nodes.join(cluster, APART)
        give_cards(MACHINES[H100])
        bridge = network.look()
        hosts = {one.name: {"ansible_host": network.address(one, bridge)} for one in APART}
        hosts[H100]["nvidia_mig_config"] = "all-balanced"
        path = tmp_path_factory.mktemp("five") / "more.yml"
        # Of these hosts alone: other tests' nodes keep the fleet's variables.
        group = {"hosts": {**hosts, NONE: {}}, "vars": VARIABLES}
        path.write_text(yaml.safe_dump({"all": {"children": {"five": group}}}))
        yield Five(cluster, path)
    finally:
        for one in APART:
            cluster.kubectl("delete", "node", one.kubernetes, "--ignore-not-found", check=False)
        nodes.down(APART)
        cluster_nodes.remove_cgroups(APART)


@pytest.fixture(scope="module")
def predicted(five):
    run = five.play("site", "--check", "--diff")
    assert run.status == 0, run.output
    assert five.files() == five.before
    return run


@pytest.fixture(scope="module")
def first(five, predicted):
    run = five.play("site", "--diff", keep="site")
    assert run.status == 0, run.output
    return run


def test_s15_s17_plan_gives_each_node_its_own(five, tmp_path):
    run = five.play("plan", "-e", f"kubegpu_plan_file={tmp_path}/plan.json", keep="plan")
    assert run.status == 0, run.output
    rows = {row["node"]: row for row in json.loads((tmp_path / "plan.json").read_text())}
    parts = {name: {step["part"] for step in row["steps"]} for name, row in rows.items()}
    assert {"mig", "toolkit"} <= parts[H100]
    assert "toolkit" in parts[T4] and "mig" not in parts[T4]
    assert not parts[MI300X] and not parts[FLEX] and not parts[NONE]
    in_cluster = run.screen.partition("Planned changes in Kubernetes")[2]
    for name in (*(name for name in MACHINES if name != NONE), "AMD", "Intel"):
        assert name in in_cluster
    assert five.files() == five.before


def test_s15_s17_check_mode_predicts_the_run(predicted, first):
    said, done = predicted.changed(), first.changed()
    # Without their namespace the API server tries no objects: check mode has another task.
    new, applied = (
        {where for where in changed if where[0] == f"{OBJECTS} : {task}"}
        for changed, task in (
            (said, "Predict the objects of the new namespace"), (done, "Apply the objects")
        )
    )  # fmt: skip
    assert {host for _task, host in new} == {host for _task, host in applied} >= {NONE}
    for where in new:
        del said[where]
    for where in applied:
        del done[where]
    assert said.keys() == done.keys()
    for where, diffs in done.items():
        assert said[where] == diffs, where


def test_s15_s17_each_node_offers_its_own(five, first):
    deadline = time.monotonic() + 60
    # The kubelet publishes one resource after the other.
    while five.offered(H100) != OFFERED[H100] and time.monotonic() < deadline:
        time.sleep(1)
    assert {name: five.offered(name) for name in MACHINES} == OFFERED
    for name, vendor in VENDORS.items():
        labels = five.node(name)["metadata"]["labels"]
        assert labels.get("kubegpu.nodes/gpu") == vendor
        assert "kubegpu.nodes/pause" not in labels
        assert "unschedulable" not in five.node(name)["spec"]
        assert five.plugins(name) == ({f"{vendor}-device-plugin"} if vendor else set()), name
    files = five.files()
    for name in (MI300X, FLEX, NONE):
        assert files[name] == five.before[name], name


def test_s15_s17_the_second_run_changes_nothing_and_the_next_costs_one_call(five, first):
    for budget in (3, 1):
        calls.reset(MACHINES.values())
        run = five.play("site")
        counted = calls.count(MACHINES.values())
        assert run.status == 0, run.output
        assert {name: run.stats[name]["changed"] for name in MACHINES} == dict.fromkeys(MACHINES, 0)
        for name, vendor in VENDORS.items():
            assert 1 <= counted[name] <= (budget if vendor == "nvidia" else 1), counted


def test_s15_s17_verify_shows_a_pod_on_each_node_with_a_gpu(five, first, tmp_path):
    run = five.play("verify", "-e", f"kubegpu_verify_file={tmp_path}/verify.json", keep="verify")
    assert run.status == 0, run.output
    rows = {row["node"]: row for row in json.loads((tmp_path / "verify.json").read_text())}
    for name, vendor in VENDORS.items():
        if vendor:
            assert {layer: rows[name][layer] for layer in LAYERS[vendor]} == dict.fromkeys(
                LAYERS[vendor], "ok"
            )
    proofs = {
        name: {one["layer"]: one["proof"] for one in row["layers"]} for name, row in rows.items()
    }
    assert "1 amd.com/gpu said 'given /dev/dri/renderD" in proofs[MI300X]["pod"]
    assert "1 gpu.intel.com/i915 said 'given /dev/dri/renderD128'" in proofs[FLEX]["pod"]
    assert "nvidia.com/mig-" in proofs[H100]["pod"]
    assert not any(stat["changed"] for stat in run.stats.values()), run.changed()


def test_s17_a_node_whose_amdgpu_is_not_loaded_says_why(five, first, tmp_path):
    machine = MACHINES[MI300X]
    cards = " ".join(f"/opt/standin/pci/{gpu.address}" for gpu in machine.gpus)
    execute(
        machine, "sh", "-c", f"for one in {cards}; do mv $one/driver $one/away; done; "
        "mv /opt/standin/over-module/amdgpu /opt/standin/away",
    )  # fmt: skip
    try:
        planned = five.play(
            "plan", "-e", f"kubegpu_plan_file={tmp_path}/plan.json", "--limit", MI300X
        )
        run = five.play("verify", "-e", f"kubegpu_verify_file={tmp_path}/verify.json")
    finally:
        execute(
            machine, "sh", "-c", f"for one in {cards}; do mv $one/away $one/driver; done; "
            "mv /opt/standin/away /opt/standin/over-module/amdgpu",
        )  # fmt: skip
    (row,) = json.loads((tmp_path / "plan.json").read_text())
    assert planned.status == 0, planned.output
    (why,) = row["why"]
    assert why.startswith("AMD: no driver serves it; amd_driver_enabled: true installs AMD's")
    assert run.status != 0
    rows = {row["node"]: row for row in json.loads((tmp_path / "verify.json").read_text())}
    assert {name for name, row in rows.items() if row["failed"]} == {MI300X}
    assert (rows[MI300X]["pci"], rows[MI300X]["module"]) == ("failed", "failed")
    causes = "\n".join(rows[MI300X]["causes"])
    assert "bound to no driver, amdgpu is needed" in causes
    assert "The kernel module amdgpu is not loaded." in causes


def test_s22_plan_says_what_this_cluster_lacks_for_dra(five, first, tmp_path, monkeypatch):
    # No line of the table is wrapped.
    monkeypatch.setenv("COLUMNS", "1000")
    before = five.objects()
    run = five.play(
        "plan", "-e", f"kubegpu_plan_file={tmp_path}/plan.json",
        "-e", json.dumps({"nvidia_dra_driver_enabled": True}),
    )  # fmt: skip
    assert run.status == 0, run.output
    table = run.screen.partition("Planned changes in Kubernetes")[2]
    assert "DRA: not possible" in table
    for row in ("DRA: cluster", f"DRA: {H100}", f"DRA: {T4}"):
        assert row in table
    assert not any(f"DRA: {name}" in table for name in (MI300X, FLEX, NONE))
    assert five.objects() == before


def test_s15_the_layout_is_what_was_asked_for_and_comes_back_at_boot(five, first):
    machine = MACHINES[H100]
    assert five.layout() == BALANCED
    # Cards from Hopper on lose mode and instances at a reboot. The node goes on: its address in
    # the test bed would be another one.
    # At a boot nothing holds the GPUs yet.
    with five.without_plugins(H100):
        execute(machine, "sh", "-c", "rm /run/standin-mig.json /run/standin-mig-mode.json")
        assert five.layout() == []
        execute(machine, "systemctl", "restart", "kubegpu-mig.service")
        assert five.layout() == BALANCED
    order = execute(machine, "systemctl", "show", "kubegpu-mig.service", "--property=Before")
    assert {"kubelet.service", "containerd.service"} <= set(order.strip()[len("Before=") :].split())


def test_s15_s17_teardown_leaves_nothing(five, first):
    predicted = five.play("teardown", "--check")
    assert predicted.status == 0, predicted.output
    run = five.play("teardown")
    assert run.status == 0, run.output
    assert five.files() == five.before
    left = "ls /etc/kubegpu /etc/systemd/system/*kubegpu-mig* /var/lib/kubegpu 2>/dev/null"
    assert set(five.on_each(left).values()) == {""}
    modes = execute(MACHINES[H100], "nvidia-smi", "--query-gpu=mig.mode.current")
    assert "Enabled" not in modes
    for name in MACHINES:
        node = five.node(name)
        assert set(node["metadata"]["labels"]) == five.labels_before[name]
        assert "unschedulable" not in node["spec"] and five.plugins(name) == set()
    assert five.objects() == []
    again = five.play("teardown")
    assert again.status == 0 and not any(one["changed"] for one in again.stats.values())
