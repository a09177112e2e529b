# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of the monitoring, and all that it makes against Kubernetes' own schemas."""

from __future__ import annotations

import json

import kubernetes_validate
import pytest

from tests.unit.fixtures.plans import gpu_monitoring_plan

#: The oldest and the newest Kubernetes that is supported.
KUBERNETES = ("1.28", "1.37")
KINDS = ["ServiceMonitor", "PodMonitor", "PrometheusRule"]
CUSTOM = "monitoring.coreos.com/v1"
NAME = "kubegpu-dcgm-exporter"
REQUESTS = {
    "plain": {},
    "everything": {
        "namespace": "gpus",
        "image": "mirror.example:5000/dcgm-exporter",
        "digest": "sha256:" + "a" * 64,
        "image_pull_policy": "Always",
        "pull_secret": "mirror",
        "runtime_class": "",
        "priority_class": "",
        "tolerations": [{"operator": "Exists"}],
        "node_selector": {"pool": "gpu"},
        "resources": {},
        "max_unavailable": "1",
        "annotations": {"example.com/owner": "team"},
        "environment": {"KUBERNETES_VIRTUAL_GPUS": True},
        "kubelet_directory": "/var/lib/k0s/kubelet",
        "listen": "127.0.0.1:9500",
        "counters": ["DCGM_FI_DEV_GPU_TEMP, gauge, Temperature."],
        "profiling": False,
        "interval": 5,
        "pod_labels": ["app", "team/.*"],
        "labels": {"release": "monitoring"},
        "dashboard_labels": {"grafana_dashboard": "gpu"},
        "alert_labels": {"team": "gpu"},
        "temperature": 80,
        "xids": {63: "error"},
    },
    "no profiling": {"profiling": False},
    "nothing but the exporter": {"scrape": "none", "rules": False, "dashboard": False},
}


def objects(plan):
    return {(one["kind"], one["metadata"]["name"]): one for one in plan["objects"]}


def pod(plan):
    return objects(plan)["DaemonSet", NAME]["spec"]["template"]


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize(
    ("asked", "kinds"), [("plain", []), *((asked, KINDS) for asked in REQUESTS)]
)
def test_kubernetes_own_schema_takes_every_object(version, asked, kinds):
    plan = gpu_monitoring_plan(REQUESTS[asked], kinds=kinds)
    assert plan["action"] == "apply" and len(plan["objects"]) >= 4
    own = [one for one in plan["objects"] if one["apiVersion"] != CUSTOM]
    for one in own:
        kubernetes_validate.validate(one, version, strict=True)
    assert kinds or own == plan["objects"]


@pytest.mark.parametrize("asked", REQUESTS)
def test_what_the_api_server_refuses_beyond_its_schema(asked):
    plan = gpu_monitoring_plan(REQUESTS[asked], kinds=KINDS)
    daemonset = objects(plan)["DaemonSet", NAME]["spec"]
    template = daemonset["template"]
    assert daemonset["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    volumes = {volume["name"] for volume in template["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    names = [pair["name"] for pair in container["env"]]
    assert len(names) == len(set(names))
    assert ("add" in container["securityContext"]["capabilities"]) != (
        container["securityContext"].get("allowPrivilegeEscalation") is False
    )
    assert "" not in template["spec"].values()


def test_prometheus_finds_the_pods_by_what_the_cluster_has():
    def how(kinds, **more):
        plan = gpu_monitoring_plan(more, kinds=kinds)
        found = {kind for kind, _name in objects(plan)}
        annotated = "prometheus.io/scrape" in pod(plan)["metadata"]["annotations"]
        return plan["scrape"], found & {*KINDS, "Service"}, annotated

    assert how(KINDS) == ("ServiceMonitor", {"ServiceMonitor", "Service", "PrometheusRule"}, False)
    assert how(["PodMonitor"]) == ("PodMonitor", {"PodMonitor"}, False)
    assert how([]) == ("annotations", set(), True)
    assert how(KINDS, scrape="pod_monitor") == (
        "PodMonitor", {"PodMonitor", "PrometheusRule"}, False
    )  # fmt: skip
    assert how(KINDS, scrape="annotations", rules=False) == ("annotations", set(), True)
    assert how(KINDS, scrape="none", rules=False) == ("none", set(), False)


@pytest.mark.parametrize(("scrape", "kind", "endpoints"), [
    ("service_monitor", "ServiceMonitor", "endpoints"),
    ("pod_monitor", "PodMonitor", "podMetricsEndpoints"),
])  # fmt: skip
def test_the_labels_of_the_samples_are_kept_and_the_monitors_find_the_pods(scrape, kind, endpoints):
    requests = {"scrape": scrape, "labels": {"release": "x"}, "interval": 60}
    plan = gpu_monitoring_plan(requests, kinds=KINDS)
    monitor = objects(plan)[kind, NAME]
    (endpoint,) = monitor["spec"][endpoints]
    assert endpoint == {
        "port": "metrics", "path": "/metrics", "interval": "60s", "scrapeTimeout": "10s",
        "honorLabels": True, "metricRelabelings": endpoint["metricRelabelings"],
    }  # fmt: skip
    assert monitor["metadata"]["labels"]["release"] == "x"
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    found = pod(plan)["metadata"]["labels"]
    if kind == "ServiceMonitor":
        service = objects(plan)["Service", NAME]
        assert service["spec"]["selector"].items() <= found.items()
        found = service["metadata"]["labels"]
    assert chosen <= found.items()
    assert found[monitor["spec"]["jobLabel"]] == "kubegpu-dcgm"
    (container,) = pod(plan)["spec"]["containers"]
    assert [port["name"] for port in container["ports"]] == ["metrics"]


def test_the_pods_keep_away_from_paused_nodes_and_run_on_gpu_nodes_only():
    spec = pod(gpu_monitoring_plan({}))["spec"]
    assert spec["nodeSelector"] == {"kubegpu.nodes/gpu": "nvidia"}
    node = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert node == {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubegpu.nodes/pause", "operator": "DoesNotExist"}]}]}  # fmt: skip


def test_the_right_to_profile_goes_with_the_counters():
    def container(**requests):
        (found,) = pod(gpu_monitoring_plan(requests))["spec"]["containers"]
        return found["securityContext"]["capabilities"], {one["name"] for one in found["env"]}

    capabilities, names = container()
    assert capabilities["add"] == ["SYS_ADMIN"] and "NVIDIA_MIG_MONITOR_DEVICES" in names
    for requests in (
        {"profiling": False},
        {"counters": ["DCGM_FI_DEV_GPU_TEMP, gauge, Temperature."]},
    ):
        capabilities, names = container(**requests)
        assert "add" not in capabilities and "NVIDIA_MIG_MONITOR_DEVICES" not in names


def test_another_file_of_counters_makes_new_pods():
    def checksum(**requests):
        return pod(gpu_monitoring_plan(requests))["metadata"]["annotations"][
            "kubegpu.nodes/config-checksum"
        ]

    assert checksum() == checksum(interval=5) != checksum(profiling=False)


def test_only_labels_of_pods_need_rights():
    kinds = {kind for kind, _name in objects(gpu_monitoring_plan({}))}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding"}
    plan = gpu_monitoring_plan({"pod_labels": ["app"]})
    assert objects(plan)["ClusterRole", NAME]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    ]
    assert pod(plan)["spec"]["automountServiceAccountToken"] is True


def test_gpus_of_a_dra_driver_need_rights_to_slices():
    plan = gpu_monitoring_plan({"environment": {"KUBERNETES_ENABLE_DRA": "true"}})
    verbs = ["get", "list", "watch"]
    assert objects(plan)["ClusterRole", NAME]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": verbs},
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": verbs},
    ]
    assert ("ClusterRoleBinding", NAME) in objects(plan)
    assert pod(plan)["spec"]["automountServiceAccountToken"] is True
    plan = gpu_monitoring_plan({"environment": {"KUBERNETES_ENABLE_DRA": "false"}})
    assert ("ClusterRole", NAME) not in objects(plan)
    assert pod(plan)["spec"]["automountServiceAccountToken"] is False


def test_the_same_rules_and_dashboard_are_in_the_cluster_and_in_the_plan():
    plan = gpu_monitoring_plan({"temperature": 77}, kinds=KINDS)
    assert objects(plan)["PrometheusRule", "kubegpu-gpus"]["spec"] == plan["rules"]
    data = objects(plan)["ConfigMap", "kubegpu-gpus-dashboard"]["data"]
    assert json.loads(data["kubegpu-gpus.json"]) == plan["dashboard"]
    data = objects(plan)["ConfigMap", f"{NAME}-counters"]["data"]
    assert data["counters.csv"] == plan["counters"]
    assert "GPU_TEMP > 77" in json.dumps(plan["rules"])


def test_a_foreign_exporter_is_named_and_left_alone():
    other = "DCGM exporter (DaemonSet gpu-operator/nvidia-dcgm-exporter)"
    plan = gpu_monitoring_plan({}, kinds=KINDS, others=[other])
    assert plan["action"] == "leave" and plan["objects"] == plan["absent"] == []
    assert other in plan["reasons"][0] and plan["rules"]["groups"]


def existing(plan, **labels):
    return [
        {
            "apiVersion": one["apiVersion"], "kind": one["kind"],
            "metadata": {**one["metadata"], "labels": labels or one["metadata"]["labels"]},
        }
        for one in plan["objects"]
    ]  # fmt: skip


def test_what_is_no_longer_wished_goes_and_the_namespace_stays():
    before = existing(gpu_monitoring_plan({"pod_labels": ["app"]}, kinds=KINDS))
    plan = gpu_monitoring_plan({"scrape": "annotations"}, kinds=KINDS, existing=before)
    gone = {(one["kind"], one["metadata"]["name"]) for one in plan["absent"]}
    assert gone == {
        ("Service", NAME), ("ServiceMonitor", NAME), ("ClusterRole", NAME),
        ("ClusterRoleBinding", NAME),
    }  # fmt: skip
    plan = gpu_monitoring_plan({}, kinds=KINDS, existing=before, teardown=True)
    assert len(plan["absent"]) == len(before) - 1 and plan["objects"] == []
    assert "Namespace" not in {one["kind"] for one in plan["absent"]}


def test_what_an_earlier_run_made_in_another_namespace_goes():
    made = gpu_monitoring_plan({"namespace": "old", "pod_labels": ["app"]}, kinds=KINDS)
    before = existing(made)
    plan = gpu_monitoring_plan({"pod_labels": ["app"]}, kinds=KINDS, existing=before)
    gone = [(one["kind"], one["metadata"].get("namespace")) for one in plan["absent"]]
    inside = [one["kind"] for one in before if one["metadata"].get("namespace")]
    assert sorted(gone) == sorted((kind, "old") for kind in inside)
    # A run that is killed in between finds the namespace again by its DaemonSet.
    assert gone[-1] == ("DaemonSet", "old")
    assert plan["earlier"] == ["old"]
    for options in ({"namespace": "old", "pod_labels": ["app"]}, {"namespace": "old"}):
        assert gpu_monitoring_plan(options, kinds=KINDS, existing=before)["earlier"] == []
    torn = gpu_monitoring_plan({}, kinds=KINDS, existing=before, teardown=True)
    assert len(torn["absent"]) == len(before) - 1
    # What somebody else made there under the same name stays.
    before = existing(made, owner="x")
    plan = gpu_monitoring_plan({}, kinds=KINDS, existing=before)
    assert (plan["action"], plan["absent"], plan["earlier"]) == ("apply", [], [])


def test_what_belongs_to_somebody_else_is_refused_or_left():
    before = existing(gpu_monitoring_plan({}, kinds=KINDS), owner="x")
    namespace = [one for one in before if one["kind"] == "Namespace"]
    plan = gpu_monitoring_plan({}, existing=namespace)
    assert plan["action"] == "apply" and "Namespace" not in {one["kind"] for one in plan["objects"]}
    plan = gpu_monitoring_plan({}, kinds=KINDS, existing=before)
    assert plan["action"] == "refuse" and plan["objects"] == []
    assert f"a DaemonSet kubegpu/{NAME} that this collection did not make" in plan["text"]
    assert {row["next_step"] for row in plan["refusals"]} == {
        "Remove it, or set gpu_monitoring_namespace to another namespace."
    }
    # Another namespace does not help an object that is in none.
    made = gpu_monitoring_plan({"pod_labels": ["app"]})
    role = [one for one in existing(made, owner="x") if one["kind"] == "ClusterRole"]
    plan = gpu_monitoring_plan({"pod_labels": ["app"]}, existing=role)
    assert [row["next_step"] for row in plan["refusals"]] == ["Remove it."]
    plan = gpu_monitoring_plan({}, kinds=KINDS, existing=before, teardown=True)
    assert plan["absent"] == []


@pytest.mark.parametrize(("requests", "words"), [
    ({"unknown": 1}, "has no option unknown"),
    ({"version": "latest"}, "gpu_monitoring_version"),
    ({"image": "dcgm-exporter:1"}, "gpu_monitoring_image"),
    ({"digest": "x"}, "gpu_monitoring_digest"),
    ({"namespace": ""}, "gpu_monitoring_namespace is empty"),
    ({"listen": "9400"}, "gpu_monitoring_listen"),
    ({"listen": ":0"}, "gpu_monitoring_listen"),
    ({"listen": ":70000"}, "gpu_monitoring_listen"),
    ({"interval": 0}, "gpu_monitoring_interval"),
    ({"interval": 121}, "gpu_monitoring_interval"),
    ({"alert_labels": {"a-b": "x"}}, "gpu_monitoring_alert_labels"),
    ({"temperature": 0}, "gpu_monitoring_temperature"),
    ({"max_unavailable": "0"}, "gpu_monitoring_pods.max_unavailable"),
    ({"kubelet_directory": "kubelet"}, "gpu_monitoring_kubelet_directory"),
    ({"pod_labels": ["("]}, "gpu_monitoring_pod_labels"),
    ({"pod_labels": ["a{1,2}"]}, "gpu_monitoring_pod_labels"),
    ({"counters": "all"}, "gpu_monitoring_counters"),
    ({"counters": []}, "gpu_monitoring_counters"),
    ({"counters": ["DCGM_FI_DEV_GPU_TEMP"]}, "gpu_monitoring_counters"),
    ({"counters": ["rm -rf, gauge, x"]}, "gpu_monitoring_counters"),
    ({"counters": ["DCGM_FI_A, gauge, a, b"]}, "gpu_monitoring_counters"),
    ({"counters": ["DCGM_FI_A, histogram, a"]}, "gpu_monitoring_counters"),
    ({"counters": ["DCGM_FI_A, gauge, a", "DCGM_FI_A, gauge, b"]}, "twice"),
    ({"xids": {63: "bad"}}, "gpu_monitoring_xids: 63"),
    ({"scrape": "pod_monitor"}, "the cluster has no PodMonitor"),
    ({"scrape": "guess"}, "gpu_monitoring_scrape"),
])  # fmt: skip
def test_a_wrong_value_is_refused_by_the_name_of_its_variable(requests, words):
    plan = gpu_monitoring_plan(requests)
    assert plan["action"] == "refuse" and plan["objects"] == []
    assert words in plan["text"]


def test_labels_of_alerts_are_texts():
    rules = gpu_monitoring_plan({"alert_labels": {"page": 1}})["rules"]["groups"][0]["rules"]
    assert {rule["labels"]["page"] for rule in rules if "alert" in rule} == {"1"}


def test_options_that_differ_between_hosts_are_refused():
    hosts = {"gpu1": {"options": {"temperature": 90}}, "gpu2": {"options": {"temperature": 80}}}
    plan = gpu_monitoring_plan({}, hosts)
    assert "gpu_monitoring_temperature differs between gpu1 and gpu2" in plan["text"]


def test_an_alert_without_its_metric_is_a_warning():
    plan = gpu_monitoring_plan({"counters": ["DCGM_FI_DEV_GPU_TEMP, gauge, Temperature."]})
    for alert in (
        "KubegpuRowRemapFailed (DCGM_FI_DEV_ROW_REMAP_FAILURE)",
        # By what is recorded of it.
        "KubegpuMemoryError (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL)",
    ):
        assert any(f"the alert {alert} cannot fire" in one for one in plan["warnings"])
    assert not any("kubegpu:" in one or "GpuLost" in one for one in plan["warnings"])
    plan = gpu_monitoring_plan({"counters": ["DCGM_FI_DEV_GPU_UTIL, gauge, Utilization."]})
    assert any("KubegpuGpuLost (DCGM_FI_DEV_GPU_TEMP)" in one for one in plan["warnings"])
    plan = gpu_monitoring_plan({"counters": ["DCGM_FI_DEV_GPU_TEMP, gauge, Temperature."]})
    assert gpu_monitoring_plan({})["warnings"] == []
    titles = [panel["title"] for panel in plan["dashboard"]["panels"]]
    assert "Temperature" in titles and "Tensor cores" not in titles
