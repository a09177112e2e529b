# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.plan import (
    default_handler,
    plan,
    restarts,
)
from tests.unit.fixtures.device_plugin import device, with_devices
from tests.unit.fixtures.node_facts import P4, node

ROOT = Path(__file__).parents[5]
SLICING = {"sharing": {"timeSlicing": {"resources": [{"name": "gpu", "replicas": 4}]}}}
MPS = {"sharing": {"mps": {"resources": [{"name": "gpu", "replicas": 20}]}}}
OURS = {"app.kubernetes.io/managed-by": "kubegpu.nodes"}
NVIDIA = {"runtimes__containerd__default_handler": "nvidia"}
DOCKER = {"runtimes__containerd__cri_enabled": False}
DOCKER_NVIDIA = {**DOCKER, "runtimes__docker__default_runtime": "nvidia"}


def host(config="", *, gpus=(P4,), **facts):
    return {"gpu_node": node(gpus=list(gpus), **facts), "config": config}


def existing(kind, name, labels=None, **more):
    return {"kind": kind, "metadata": {"name": name, "labels": labels or {}}, **more}


def kinds(made):
    return [identity(one)[0] for one in made["objects"]]


def test_the_plan_says_what_each_node_has_to_show():
    made = plan({}, {"a": host(gpus=[P4, P4]), "b": host(), "web": host(gpus=[])})
    assert made["action"] == "apply"
    assert {name: one["resources"] for name, one in made["expected"].items()} == {
        "a": {"nvidia.com/gpu": 2},
        "b": {"nvidia.com/gpu": 1},
    }
    assert made["expected"]["a"]["machine_id"] == "0" * 32


def test_a_host_that_is_found_by_name_is_not_looked_for_by_machine_id():
    made = plan({}, {"a": {**host(), "match": "name"}, "b": {**host(), "match": "machine_id"}})
    assert made["expected"]["a"]["machine_id"] is None
    assert made["expected"]["b"]["machine_id"] == "0" * 32


@pytest.mark.parametrize(
    "part",
    [
        {"a": host(**NVIDIA)},
        {"b": host()},
        {"a": host(**NVIDIA), "b": host()},
        {"c": host(runtimes__containerd=None, runtimes__crio={"default_runtime": "nvidia"})},
        {"web": host(gpus=[])},
        # What its containerd does is not asked.
        {"web": host(gpus=[], runtimes__containerd__cri_enabled=None)},
        {"bare": host(runtimes__containerd=None, runtimes__docker=None)},
        {},
    ],
)
def test_s12_runs_that_see_different_nodes_want_the_same_objects(part):
    whole = plan({}, {"a": host(**NVIDIA), "b": host(), "web": host(gpus=[])})
    made = plan({}, part)
    assert made["runtime_class"] == "nvidia"
    assert (made["objects"], made["absent"]) == (whole["objects"], whole["absent"])


def test_s12_the_class_is_left_out_where_docker_serves_kubernetes_with_nvidia_as_its_default():
    both = {"a": host(**DOCKER_NVIDIA), "b": host(**DOCKER)}
    made = plan({}, both)
    assert made["runtime_class"] == "nvidia"
    assert "is not the default runtime on b" in made["reasons"][0]
    assert plan({}, {"a": host(**DOCKER_NVIDIA)})["runtime_class"] == ""
    # A node without a GPU has no say.
    web = host(gpus=[], **DOCKER)
    assert plan({}, {"a": host(**DOCKER_NVIDIA), "web": web})["runtime_class"] == ""
    # What this run changed is newer than the facts.
    newer = {"b": {**host(**DOCKER), "default_runtime": {"containerd": "", "docker": "nvidia"}}}
    assert plan({}, newer)["runtime_class"] == ""


def test_s12_the_class_is_what_is_wished():
    assert plan({"runtime_class": ""}, {"a": host()})["runtime_class"] == ""
    assert plan({"runtime_class": "gpu"}, {"a": host()})["runtime_class"] == "gpu"


def test_a_run_that_sees_some_nodes_only_keeps_the_class():
    running = existing("DaemonSet", "kubegpu-nvidia-device-plugin")
    running["metadata"]["namespace"] = "kubegpu"
    running["spec"] = {"template": {"spec": {"runtimeClassName": "nvidia"}}}
    made = plan({}, {"a": host(**DOCKER_NVIDIA)}, existing=[running])
    assert made["runtime_class"] == "nvidia"
    assert "runs with it already" in made["reasons"][0]


@pytest.mark.parametrize(
    ("facts", "handler"),
    [
        (node(), "runc"),
        (node(**NVIDIA), "nvidia"),
        # Only Docker uses this containerd.
        (node(runtimes__containerd__cri_enabled=False,
              runtimes__docker__default_runtime="nvidia"), "nvidia"),
        (node(runtimes__containerd=None, runtimes__docker=None), None),
        (node(runtimes__containerd=None, runtimes__crio={"version": "1"}), None),
        (node(runtimes__containerd__cri_enabled=False,
              runtimes__crio={"default_runtime": "nvidia"}), "nvidia"),
    ],
)  # fmt: skip
def test_the_default_handler_is_that_of_the_engine_that_serves_kubernetes(facts, handler):
    assert default_handler(facts) == handler


def test_s15_an_unknown_config_is_refused_and_names_the_host():
    made = plan({"configs": {"shared": SLICING}}, {"a": host("shared"), "b": host("sharde")})
    assert made["action"] == "refuse"
    assert made["objects"] == made["absent"] == []
    (refusal,) = made["refusals"]
    assert refusal["host"] == "b"
    assert refusal["evidence"] == "there are: default, shared"
    assert made["text"].startswith("b: unknown config 'sharde'\nSeen: ")
    none = plan({}, {"b": host("shared")})
    assert "nvidia_device_plugin_configs is empty" in none["text"]


def test_s15_what_is_impossible_on_a_node_is_refused_before_anything_is_applied():
    made = plan({"configs": {"mps": MPS}}, {"a": host("mps"), "b": host()})
    assert [(one["host"], one["evidence"]) for one in made["refusals"]] == [("a", "Tesla P4")]
    assert made["objects"] == []


def test_s15_a_layout_that_is_not_made_yet_is_what_counts():
    addresses = ["0000:01:00.0", "0000:02:00.0"]
    now = [
        {**device("enabled", "3g.20gb"), "address": addresses[0]},
        {**device(), "address": addresses[1]},
    ]
    one = {"gpu_node": with_devices(*now), "config": ""}
    single = {"mig_strategy": "single"}
    assert "on all GPUs of a node or on none" in plan(single, {"a": one})["refusals"][0]["cause"]
    planned = [
        {"address": address, "mig_mode": "enabled", "mig_devices": ["1g.5gb"] * 7}
        for address in addresses
    ]
    made = plan(single, {"a": {**one, "mig": planned}})
    assert made["refusals"] == []
    assert made["expected"]["a"]["resources"] == {"nvidia.com/gpu": 14}
    made = plan({"mig_strategy": "mixed"}, {"a": {**one, "mig": planned[:1]}})
    assert made["expected"]["a"]["resources"] == {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 7}


def test_the_example_of_the_page_has_shared_partitioned_and_whole_gpus():
    text = (ROOT / "docs" / "device-plugin.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    shared = next(block for block in blocks if "nvidia_device_plugin_configs" in block)
    training = next(block for block in blocks if "nvidia_mig_config" in block)
    configs = shared["nvidia_device_plugin_configs"]
    seven = {"address": "0000:01:00.0", "mig_mode": "enabled", "mig_devices": ["1g.10gb"] * 7}
    mig = {**host(training["nvidia_device_plugin_config"]), "mig": [seven]}
    mig["gpu_node"] = with_devices({**device(), "address": "0000:01:00.0"})
    hosts = {"notebooks": host("shared4"), "training": mig, "serving": host()}
    made = plan({"configs": configs}, hosts)
    assert made["action"] == "apply" and made["refusals"] == []
    offered = {name: one["resources"] for name, one in made["expected"].items()}
    assert offered["training"] == {"nvidia.com/mig-1g.10gb": 7}
    assert offered["notebooks"] == {"nvidia.com/gpu": 4 * offered["serving"]["nvidia.com/gpu"]}


def test_s15_nodes_share_as_they_chose():
    made = plan({"configs": {"shared": SLICING}}, {"a": host("shared"), "b": host()})
    assert made["expected"]["a"]["resources"] == {"nvidia.com/gpu": 4}
    assert made["expected"]["b"]["resources"] == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("requests", "login", "words"),
    [
        ({}, ["registry", "username", "password"], "nvidia_device_plugin_pods.pull_secret is not"),
        ({"pull_secret": "x"}, ["registry", "username"], "pull_secret_login lacks password"),
        ({"pull_secret": "x"}, ["password", "registry", "user"],
         "lacks username and does not know user"),
    ],
)  # fmt: skip
def test_a_login_that_is_not_whole_is_refused_before_its_silent_task(requests, login, words):
    made = plan(requests, {"a": host()}, login=login)
    assert made["action"] == "refuse" and words in made["text"]
    assert made["objects"] == []
    whole = ["registry", "username", "password"]
    assert plan({"pull_secret": "x"}, {"a": host()}, login=whole)["action"] == "apply"
    assert plan({"pull_secret": "x"}, {"a": host()})["action"] == "apply"


def test_wrong_options_are_refusals_not_errors():
    made = plan({"version": "latest"}, {"a": host()})
    assert made["action"] == "refuse"
    assert "pins no version" in made["text"]
    assert "has to be one of manifest, helm" in plan({}, {}, method="kustomize")["text"]
    assert "has no option nonsense" in plan({"nonsense": 1}, {})["text"]


def test_hosts_that_see_the_options_differently_are_refused_with_both_names():
    hosts = {
        "a": {**host(), "options": {"version": "v0.20.0", "image": "x"}},
        "b": {**host(), "options": {"version": "v0.19.0", "image": "x"}},
    }
    (refusal,) = plan({}, hosts)["refusals"]
    assert "nvidia_device_plugin_version differs between a and b" in refusal["cause"]
    assert refusal["evidence"] == "a: 'v0.20.0'; b: 'v0.19.0'"


def test_a_namespace_and_a_class_of_somebody_else_stay_theirs():
    there = [
        existing("Namespace", "kubegpu"),
        existing("RuntimeClass", "nvidia", handler="nvidia"),
    ]
    made = plan({}, {"a": host()}, existing=there)
    assert kinds(made) == ["ServiceAccount", "DaemonSet"]
    assert "Namespace kubegpu was there before and is left as it is" in made["reasons"]
    ours = [
        existing("Namespace", "kubegpu", OURS),
        existing("RuntimeClass", "nvidia", OURS, handler="nvidia"),
    ]
    assert kinds(plan({}, {"a": host()}, existing=ours))[:2] == ["Namespace", "RuntimeClass"]


def test_a_class_of_that_name_for_another_handler_is_refused():
    there = [existing("RuntimeClass", "nvidia", handler="nvidia-cdi")]
    (refusal,) = plan({}, {"a": host()}, existing=there)["refusals"]
    assert "for another handler" in refusal["cause"]
    assert refusal["evidence"] == "handler: nvidia-cdi"


def test_the_chart_brings_its_own_objects_and_ours_go():
    made = plan({"configs": {"shared": SLICING}}, {"a": host()}, method="helm")
    assert kinds(made) == ["Namespace", "RuntimeClass"]
    assert ("DaemonSet", "kubegpu", "kubegpu-nvidia-device-plugin") in {
        identity(one) for one in made["absent"]
    }
    assert made["values"]["config"]["default"] == "default"


def test_a_node_of_which_nobody_can_tell_is_named():
    requests = {"mig_strategy": "mixed"}
    made = plan(requests, {"a": host(nvml=None)})
    assert "the MIG devices are unknown" in made["unknown"]["a"]
    # It is waited for all the same: no GPU at all is not right.
    (one,) = made["expected"].values()
    assert (one["resources"], one["some_of"]) == ({}, ["nvidia"])


def test_warnings_of_nodes():
    made = plan({}, {"a": host()})
    assert made["warnings"] == [
        "a: containerd has no handler nvidia; the plugin cannot start there before the container "
        "toolkit is set up (role nvidia_container_toolkit)"
    ]
    # The same run is about to.
    assert plan({}, {"a": {**host(), "planned": True}})["warnings"] == []
    guest = {**P4, "vgpu": {"guest": True}}
    words = plan({"feature_discovery": True, "runtime_class": ""}, {"a": host(gpus=[guest])})
    assert "where it is privileged" in words["warnings"][0]


def test_remarks_of_options_are_warnings_and_what_cdi_lacks_is_a_refusal_of_its_host():
    config = {"a": {"flags": {"newThing": 1}}}
    made = plan({"version": "v0.21.0", "configs": config}, {"a": {**host(), "planned": True}})
    assert made["action"] == "apply"
    assert "newThing is not known here" in made["warnings"][0]
    requests = {"device_list_strategy": ["cdi-annotations"]}
    made = plan(requests, {"old": host(), "web": host(gpus=[])})
    assert [one["host"] for one in made["refusals"]] == ["old"]
    newer = host(runtimes__containerd__version="1.7.24", runtimes__containerd__cdi_enabled=False)
    assert plan(requests, {"a": newer})["action"] == "refuse"
    assert plan(requests, {"a": {**newer, "cdi": True}})["action"] == "apply"


def test_the_charts_version_says_what_its_values_can_say():
    requests = {"environment": {"GDRCOPY_ENABLED": "true"}}
    made = plan(requests, {"a": host()}, method="helm", chart_version="0.20.0")
    assert made["values"]["gdrcopyEnabled"] is True
    made = plan(requests, {"a": host()}, method="helm", chart_version="0.17.4")
    assert made["action"] == "refuse" and "has no value for" in made["text"]


def test_a_gpu_that_the_plugin_leaves_out_is_a_warning():
    nvml = {"devices": [{"mig_mode": "enabled", "mig_devices": [], "address": "0000:01:00.0",
                         "name": "A100"}]}  # fmt: skip
    made = plan({"mig_strategy": "mixed"}, {"a": {**host(nvml=nvml), "planned": True}})
    assert made["action"] == "apply"
    assert "no MIG device is there on 0000:01:00.0" in made["warnings"][0]


POD = {
    "metadata": {"name": "p", "namespace": "kubegpu"},
    "spec": {"nodeName": "n1"},
    "status": {"startTime": "2026-11-21T10:00:00Z"},
}


@pytest.mark.parametrize(
    ("row", "node", "reason"),
    [
        ({"started": "2026-11-21T10:00:01Z"}, "n1",
         "the runtime was started at 2026-11-21T10:00:01Z, after the pod (2026-11-21T10:00:00Z)"),
        ({"started": "2026-11-21T09:59:59Z"}, "n1", None),
        ({"started": "2026-11-21T10:00:00Z"}, "n1", None),
        ({"started": None}, "n1", None),
        ({"changed": "containerd"}, "n1", "containerd changed in this run"),
        ({"changed": "containerd", "new": False}, "n1", "containerd changed in this run"),
        # The plugin was there already, and its pod came after the change, by the node's label.
        ({"changed": "containerd", "new": True}, "n1", None),
        ({"changed": "containerd", "new": True, "started": "2026-11-21T10:00:01Z"}, "n1",
         "the runtime was started at 2026-11-21T10:00:01Z, after the pod (2026-11-21T10:00:00Z)"),
        ({"started": "2027-01-01T00:00:00Z"}, "n2", None),
        ({"started": "2027-01-01T00:00:00Z"}, None, None),
    ],
)  # fmt: skip
def test_s20_pods_older_than_their_runtime_are_made_again(row, node, reason):
    found = restarts([POD], {"gpu1": {"changed": "", **row}}, {"gpu1": node})
    assert [one["reason"] for one in found] == ([reason] if reason else [])
    definition = {"apiVersion": "v1", "kind": "Pod", "metadata": POD["metadata"]}
    assert all(one["definition"] == definition and one["node"] == "n1" for one in found)


def test_s20_a_pod_that_has_not_started_is_left_alone():
    hosts = {"gpu1": {"started": "2026-11-21T10:00:01Z"}}
    assert restarts([{**POD, "status": {}}], hosts, {"gpu1": "n1"}) == []


def test_an_operator_of_somebody_else_is_said_and_not_fought():
    made = plan({}, {"a": host()}, others=["NVIDIA GPU operator Deployment gpu/gpu-operator"])
    assert made["action"] == "leave"
    assert made["objects"] == made["absent"] == []
    assert made["expected"] == {}


def inside(kind, name, labels=None, **more):
    made = existing(kind, name, labels, **more)
    made["metadata"]["namespace"] = "kubegpu"
    return made


SYSTEM = [
    inside("ConfigMap", "kube-root-ca.crt"),
    # OpenShift and Istio put these into each namespace.
    inside("ConfigMap", "openshift-service-ca.crt"),
    inside("ConfigMap", "istio-ca-root-cert"),
    inside("ServiceAccount", "builder"),
    inside("Secret", "deployer-dockercfg-x2x4z", type="kubernetes.io/dockercfg"),
    inside("Secret", "default-token-x", type="kubernetes.io/service-account-token"),
    inside("Pod", "kubegpu-nvidia-device-plugin-x", OURS),
    inside("Secret", "mirror", OURS, type="kubernetes.io/dockerconfigjson"),
]


@pytest.mark.parametrize(
    ("there", "gone"),
    [
        ([], []),
        ([existing("Namespace", "kubegpu", OURS), existing("RuntimeClass", "nvidia", OURS),
          *SYSTEM], ["Secret", "RuntimeClass", "Namespace"]),
        ([existing("Namespace", "kubegpu", OURS), inside("Pod", "web")], []),
        ([existing("Namespace", "kubegpu", OURS), inside("Secret", "web", type="Opaque")], []),
        # Somebody's login has the same type.
        ([existing("Namespace", "kubegpu", OURS),
          inside("Secret", "my-login", type="kubernetes.io/dockercfg")], []),
        ([existing("Namespace", "kubegpu"), existing("RuntimeClass", "nvidia"), *SYSTEM[:7]], []),
    ],
)  # fmt: skip
def test_teardown_removes_what_we_made_and_no_namespace_with_things_of_others(there, gone):
    made = plan({}, {}, existing=there, teardown=True)
    assert [identity(one)[0] for one in made["absent"]][9:] == gone
    assert len(made["absent"]) == 9 + len(gone)
