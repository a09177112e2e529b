# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG on a node of the real cluster, from the plan to what the kubelet offers.

API server, scheduler, controllers and kubelet are real. The device plugin and nvidia-smi are
stand-ins: the two GPUs of the node show the profiles of an H100. The tests of this file are one
story, in their order.
"""

from __future__ import annotations

import json
import time

import pytest

from tests.integration.fleet.playbooks import on_nodes, play
from tests.testbed.cluster_images import BUSYBOX
from tests.testbed.fleet import chosen
from tests.testbed.nodes import execute
from tests.unit.fixtures.mig_node import SMI, card

HOST = "kube-a10"
GPU, SMALL, LARGE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
PAUSE = "kubegpu.nodes/pause"
MODES = "nvidia-smi --query-gpu=mig.mode.current"
pytestmark = pytest.mark.full(why="a node of the cluster is changed several times")


def half(number):
    """Return a configuration with that many 3g.40gb on the first GPU; the other one stays whole."""
    entries = [
        {"devices": [0], "mig-enabled": True, "mig-devices": {"3g.40gb": number}},
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

    def modes(self):
        return [line.partition(",")[0] for line in self.smi(MODES).split("\n")]

    def smi(self, command):
        return on_nodes(command, HOST)[HOST]


@pytest.fixture(scope="module")
def bed(cluster):
    made = Bed(cluster)
    cards = [
        {
            **card(index, "2330"),
            "address": device.address,
            "uuid": f"GPU-5ca1ab1e-0000-4000-8000-{index:012d}",
            "generation": "ampere",
        }
        for index, device in enumerate(made.machine.gpus)
    ]
    execute(made.machine, "cp", "-a", "/usr/bin/nvidia-smi", "/root/nvidia-smi")
    execute(made.machine, "tee", "/usr/bin/nvidia-smi", stdin=SMI.read_text(encoding="utf-8"))
    execute(made.machine, "tee", "/etc/standin-mig.json", stdin=json.dumps(cards))
    run = made.site()
    assert run.status == 0, run.output
    assert made.comes_to_offer({GPU: 2})
    yield made
    made.end_pod("train")
    play("teardown", "--limit", HOST)
    execute(
        made.machine, "sh", "-c", "mv /root/nvidia-smi /usr/bin/nvidia-smi; "
        "rm -f /etc/standin-mig.json /run/standin-* /var/lib/standin-mig-mode.json",
    )  # fmt: skip


def test_s15_a_pod_with_a_gpu_is_named_and_nothing_is_changed(bed):
    bed.run_pod("train", GPU)
    try:
        pods = bed.plugin()
        refused = bed.mig(nvidia_mig_config="all-3g.40gb")
        assert refused.status != 0
        table = refused.output.partition("What will be done, and why")[2]
        assert "mig: refused" in table and "pods: default/train" in table
        assert "Pods use GPUs of the node" in refused.messages()
        assert bed.modes() == ["Disabled", "Disabled"]
        assert bed.free() and bed.plugin() == pods and bed.offers() == {GPU: 2}
    finally:
        bed.end_pod("train")


def test_s15_mixed_offers_the_instances_and_the_gpu_that_is_whole(bed):
    wish = half(1)
    pods = bed.plugin()
    predicted = bed.mig("--check", "--diff", **wish)
    assert predicted.status == 0, predicted.output
    assert bed.modes() == ["Disabled", "Disabled"] and bed.free()
    run = bed.mig("--diff", **wish)
    assert run.status == 0, run.output
    assert run.changed() == predicted.changed()
    assert bed.modes() == ["Enabled", "Disabled"]
    assert bed.comes_to_offer({GPU: 1, LARGE: 1})
    assert bed.free()
    # It lists devices when it starts.
    assert bed.plugin() and not bed.plugin() & pods
    again = bed.mig(**wish)
    assert again.status == 0, again.output
    assert again.stats[HOST]["changed"] == 0, again.changed()


def test_s15_a_pod_goes_on_where_only_something_is_added(bed):
    bed.run_pod("train", LARGE)
    run = bed.mig(**half(2))
    assert run.status == 0, run.output
    assert bed.comes_to_offer({GPU: 1, LARGE: 2})
    phase = bed.kube.kubectl("get", "pod", "train", "-o", "jsonpath={.status.phase}")
    assert phase == "Running" and bed.free()
    refused = bed.mig(nvidia_mig_config="all-1g.10gb")
    assert refused.status != 0 and "default/train" in refused.messages()
    assert bed.offers() == {GPU: 1, LARGE: 2} and bed.free()
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
    run = bed.site(nvidia_mig_config="all-1g.10gb")
    assert run.status == 0, run.output
    assert bed.modes() == ["Enabled", "Enabled"]
    assert bed.comes_to_offer({GPU: 14})
    assert bed.free()
    again = bed.site(nvidia_mig_config="all-1g.10gb")
    assert again.stats[HOST]["changed"] == 0, again.changed()
    fewer = bed.mig(nvidia_mig_config="all-3g.40gb")
    assert fewer.status == 0, fewer.output
    assert bed.comes_to_offer({GPU: 4})
