# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG on a node of the real cluster, from the plan to what the kubelet offers.

API server, scheduler, controllers and kubelet are real. The device plugin and nvidia-smi are
stand-ins: the two GPUs of the node show the profiles of an H100, and the plugin has their device
files open while it serves. The tests of this file are one story, in their order.
"""

from __future__ import annotations

import contextlib
import json
import re
import time

import pytest

from tests.integration.cluster.cards import give_cards, take_cards
from tests.integration.fleet.playbooks import ETC, on_nodes, play
from tests.testbed.cluster_images import BUSYBOX
from tests.testbed.fleet import chosen

HOST = "kube-a10"
GPU, SMALL, LARGE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
PAUSE, PLACED = "kubegpu.nodes/pause", "kubegpu.nodes/gpu"
MODES = "nvidia-smi --query-gpu=mig.mode.current"
# The programs with the device file of a GPU open, in the kernel's 15 characters.
HOLDERS = (
    "find /proc/[0-9]*/fd -lname '/dev/nvidia[0-9]*' 2>/dev/null | cut -d/ -f3 | sort -u "
    "| while read -r pid; do cat /proc/$pid/comm; done"
)
PLUGIN = "nvidia-device-p"
CDI = "nvidia-ctk cdi list"
# The calls of the stand-in nvidia-smi that change something.
LOG = "/run/standin-log"
# All that a change can leave on the node.
FILES = (
    f"{ETC}; ls -d /var/lib/kubegpu 2>/dev/null; find /run/cdi -type f 2>/dev/null; "
    "systemctl list-units --all --no-legend 'kubegpu-mig*'"
)
pytestmark = pytest.mark.full(why="a node of the cluster is changed several times")


def half(**counts):
    """Return a configuration with these instances on the first GPU; the other one stays whole."""
    entries = [
        {"devices": [0], "mig-enabled": True, "mig-devices": counts},
        {"devices": [1], "mig-enabled": False},
    ]
    return {"nvidia_mig_config": "half", "nvidia_mig_configs": {"half": entries}}


class Bed:
    """The node that is partitioned, by its host and by its name in Kubernetes."""

    def __init__(self, kube):
        self.kube = kube
        self.machine = next(one for one in chosen() if one.name == HOST)
        self.name = self.machine.kubernetes
        self.strategy = "mixed"

    def site(self, *arguments, **variables):
        common = {"nvidia_device_plugin_mig_strategy": self.strategy}
        limits = ("--limit", HOST, "--skip-tags", "verify")
        return play("site", *limits, *arguments, variables={**common, **variables})

    def mig(self, *arguments, **variables):
        return self.site("--tags", "mig", *arguments, **variables)

    def node(self):
        return json.loads(self.kube.kubectl("get", "node", self.name, "-o", "json"))

    def offers(self):
        """Return what can be allocated, without resources that are no more."""
        found = self.node()["status"]["allocatable"]
        return {
            name: int(count)
            for name, count in found.items()
            if name.startswith("nvidia.com/") and count != "0"
        }

    def comes_to_offer(self, wanted):
        """Return whether it does: the kubelet publishes one resource after the other."""
        deadline = time.monotonic() + 60
        while self.offers() != wanted and time.monotonic() < deadline:
            time.sleep(1)
        return self.offers() == wanted

    def free(self):
        """Return whether the node has no pause and no cordon."""
        found = self.node()
        return PAUSE not in found["metadata"]["labels"] and "unschedulable" not in found["spec"]

    def plugin(self):
        """Return the plugin's pods on the node."""
        text = self.kube.kubectl(
            "-n", "kubegpu", "get", "pods", "-l", "app.kubernetes.io/name=nvidia-device-plugin",
            "--field-selector", f"spec.nodeName={self.name}", "-o", "name",
        )  # fmt: skip
        return set(text.split())

    def run_pod(self, name, resource):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
                # With the strategy single other nodes offer the same resource.
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {
                                            "key": "metadata.name",
                                            "operator": "In",
                                            "values": [self.name],
                                        }
                                    ]
                                }
                            ]
                        }
                    }
                },
                "containers": [
                    {
                        "name": "main",
                        "image": BUSYBOX,
                        "command": ["sleep", "3600"],
                        "resources": {"limits": {resource: 1}},
                    }
                ],
            },
        }
        self.kube.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        self.kube.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=180s")

    def end_pod(self, name):
        self.kube.kubectl("delete", "pod", name, "--ignore-not-found", "--timeout=120s")

    def holders(self):
        return self.smi(HOLDERS).split()

    def comes_to_be_held_by(self, programs):
        """Return whether it is: a unit that has begun has not opened its file yet."""
        deadline = time.monotonic() + 30
        while sorted(self.holders()) != programs and time.monotonic() < deadline:
            time.sleep(0.5)
        return sorted(self.holders()) == programs

    @contextlib.contextmanager
    def training(self):
        """A program outside of the cluster uses the first GPU, beside the plugin."""
        self.smi(
            "touch /dev/nvidia0; systemd-run --unit training sh -c 'exec sleep 900 < /dev/nvidia0'"
        )
        try:
            assert self.comes_to_be_held_by([PLUGIN, "sleep"])
            yield
        finally:
            self.smi("systemctl stop training; rm -f /dev/nvidia0")

    def cdi(self):
        """Return the names of the devices in the CDI specifications."""
        return {line.partition("=")[2] for line in self.smi(CDI).splitlines()}

    def modes(self):
        return [line.partition(",")[0] for line in self.smi(MODES).split("\n")]

    def smi(self, command):
        return on_nodes(command, HOST)[HOST]


@pytest.fixture(scope="module")
def bed(cluster):
    made = Bed(cluster)
    if (
        made.smi("ls -d /var/lib/kubegpu 2>/dev/null")
        or PLACED in made.node()["metadata"]["labels"]
    ):
        # Of other tests.
        run = play("teardown", "--limit", HOST)
        assert run.status == 0, run.output
    # A GPU of Ampere by its PCI id.
    give_cards(made.machine, generation="ampere")
    made.before = made.smi(FILES)
    made.labels_before = set(made.node()["metadata"]["labels"])
    run = made.site()
    assert run.status == 0, run.output
    assert made.comes_to_offer({GPU: 2})
    yield made
    made.end_pod("train")
    play("teardown", "--limit", HOST)
    take_cards(made.machine)


def test_s15_a_pod_with_a_gpu_is_named_and_nothing_is_changed(bed):
    bed.run_pod("train", GPU)
    try:
        pods = bed.plugin()
        refused = bed.mig(nvidia_mig_config="all-3g.40gb")
        assert refused.status != 0
        table = refused.screen.partition("Planned changes")[2]
        assert "mig: refused" in table and "pods: default/train" in table
        assert "Pods use GPUs of the node" in refused.messages()
        assert bed.modes() == ["Disabled", "Disabled"]
        assert bed.free() and bed.plugin() == pods and bed.offers() == {GPU: 2}
    finally:
        bed.end_pod("train")


def test_s15_a_program_that_stays_refuses_before_the_plugin_leaves(bed):
    pods = bed.plugin()
    with bed.training():
        for arguments in (["--check"], []):
            refused = bed.mig(*arguments, **half(**{"1g.10gb": 1}))
            assert refused.status != 0
            assert "is in use: its MIG mode cannot be changed" in refused.messages()
            assert "used by sleep (pid " in refused.messages()
            assert PLUGIN not in refused.messages()
            assert bed.modes() == ["Disabled", "Disabled"] and bed.free()
            # The node was not paused: the pod would have left, and another one come.
            assert bed.plugin() == pods
    assert bed.holders() == [PLUGIN]


def test_s15_mixed_offers_the_instances_and_the_gpu_that_is_whole(bed):
    request = half(**{"1g.10gb": 1})
    pods = bed.plugin()
    # The plugin holds the GPU whose mode changes, until the pause of the node ends its pod.
    assert bed.holders() == [PLUGIN]
    predicted = bed.mig("--check", "--diff", **request)
    assert predicted.status == 0, predicted.output
    assert bed.modes() == ["Disabled", "Disabled"] and bed.free()
    run = bed.mig("--diff", **request)
    assert run.status == 0, run.output
    assert run.changed() == predicted.changed()
    assert bed.modes() == ["Enabled", "Disabled"]
    # The run has waited for it.
    assert bed.offers() == {GPU: 1, SMALL: 1}
    assert bed.free()
    # It lists devices when it starts.
    assert bed.plugin() and not bed.plugin() & pods
    assert bed.cdi() == {"0", "1", "0:0", "all"}
    again = bed.mig(**request)
    assert again.status == 0, again.output
    assert again.stats[HOST]["changed"] == 0, again.changed()


def test_s15_a_pod_goes_on_where_only_something_is_added(bed):
    bed.run_pod("train", SMALL)
    bed.smi(f"mv {LOG} {LOG}.before")
    try:
        run = bed.mig(**half(**{"1g.10gb": 1, "3g.40gb": 1}))
        calls = bed.smi(f"cat {LOG}")
    finally:
        bed.smi(f"cat {LOG} >>{LOG}.before; mv {LOG}.before {LOG}")
    assert run.status == 0, run.output
    # The instance of the pod is not made again.
    assert "-cgi" in calls, calls
    assert not re.search(r"-dgi|-dci|-mig|--gpu-reset", calls), calls
    assert bed.comes_to_offer({GPU: 1, SMALL: 1, LARGE: 1})
    assert bed.cdi() == {"0", "1", "0:0", "0:1", "all"}
    phase = bed.kube.kubectl("get", "pod", "train", "-o", "jsonpath={.status.phase}")
    assert phase == "Running" and bed.free()
    refused = bed.mig(nvidia_mig_config="all-3g.40gb")
    assert refused.status != 0 and "default/train" in refused.messages()
    assert bed.offers() == {GPU: 1, SMALL: 1, LARGE: 1} and bed.free()
    bed.end_pod("train")


def test_s15_what_an_ended_run_left_is_taken_back(bed):
    """The node is paused and cordoned, as by a run that was killed; the next labels end it."""
    kept = bed.node()["metadata"]["managedFields"]
    (ours,) = [
        one for one in kept if one["manager"] == "kubegpu.nodes" and one["operation"] == "Apply"
    ]
    names = [name[2:] for name in ours["fieldsV1"]["f:metadata"]["f:labels"] if name != "."]
    labels = {name: bed.node()["metadata"]["labels"][name] for name in names}
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": bed.name, "labels": {**labels, PAUSE: "mig"}},
        "spec": {"unschedulable": True},
    }
    bed.kube.kubectl(
        "apply", "--server-side", "--field-manager=kubegpu.nodes", "-f", "-",
        stdin=json.dumps(body),
    )  # fmt: skip
    assert not bed.free()
    run = bed.site("--tags", "labels")
    assert run.status == 0, run.output
    assert bed.free()


def test_s15_single_offers_instances_as_gpus(bed):
    bed.strategy = "single"
    predicted = bed.site("--check", "--diff", nvidia_mig_config="all-1g.10gb")
    assert predicted.status == 0, predicted.output
    run = bed.site("--diff", nvidia_mig_config="all-1g.10gb")
    assert run.status == 0, run.output
    # The labels of the node, and no pod that is made again twice.
    assert run.changed() == predicted.changed()
    assert bed.modes() == ["Enabled", "Enabled"]
    assert bed.comes_to_offer({GPU: 14})
    assert bed.free()
    again = bed.site(nvidia_mig_config="all-1g.10gb")
    assert again.stats[HOST]["changed"] == 0, again.changed()
    fewer = bed.mig(nvidia_mig_config="all-3g.40gb")
    assert fewer.status == 0, fewer.output
    assert bed.comes_to_offer({GPU: 4})


def test_s15_teardown_refuses_a_node_in_use_before_it_takes_anything_away(bed):
    pods, labels = bed.plugin(), bed.node()["metadata"]["labels"]
    files = bed.smi(FILES)
    bed.run_pod("train", GPU)
    try:
        for arguments in (["--check"], []):
            refused = play("teardown", *arguments, "--limit", HOST)
            assert refused.status != 0
            assert f"Pods use GPUs of the node {bed.name}" in refused.messages()
            assert "pods: default/train" in refused.messages()
            assert f"kubectl drain {bed.name} --ignore-daemonsets" in refused.messages()
            assert refused.stats[HOST]["changed"] == 0, refused.changed()
    finally:
        bed.end_pod("train")
    with bed.training():
        refused = play("teardown", "--limit", HOST)
        assert refused.status != 0
        assert "used by sleep (pid " in refused.messages()
        assert PLUGIN not in refused.messages()
    assert bed.modes() == ["Enabled", "Enabled"] and bed.offers() == {GPU: 4}
    assert bed.plugin() == pods and bed.node()["metadata"]["labels"] == labels
    assert bed.smi(FILES) == files and bed.free()


def test_s15_teardown_of_a_divided_node_leaves_nothing(bed):
    # As after a boot.
    bed.smi("systemctl restart kubegpu-mig.service")
    assert bed.smi("systemctl is-active kubegpu-mig.service") == "active"
    # In check mode the plugin, which a teardown removes first, still holds the GPUs.
    assert bed.holders() == [PLUGIN]
    predicted = play("teardown", "--check", "--limit", HOST)
    assert predicted.status == 0, predicted.output
    assert bed.modes() == ["Enabled", "Enabled"] and bed.offers() == {GPU: 4}
    run = play("teardown", "--limit", HOST)
    assert run.status == 0, run.output
    assert bed.modes() == ["Disabled", "Disabled"]
    assert bed.smi(FILES) == bed.before
    assert bed.free() and set(bed.node()["metadata"]["labels"]) == bed.labels_before
    assert bed.comes_to_offer({})
    again = play("teardown", "--limit", HOST)
    assert again.status == 0, again.output
    assert again.stats[HOST]["changed"] == 0, again.changed()
