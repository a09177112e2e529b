# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of the DRA driver.

CEL expressions are compared as text: no test here evaluates them. Kubernetes' own schemas judge the
objects in tests/unit/plugins/filter/test_nvidia_dra_driver_schemas.py, as the controller alone has
them.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.data import VARIABLES
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.manifests import manifests
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.types import Layout
from tests.unit.fixtures.dra_objects import OPTIONS, made, named


def pod(objects, kind="DaemonSet"):
    return named(objects, kind)["spec"]["template"]["spec"]


def test_gpus_alone_have_no_controller_and_few_rights():
    objects = made(domains=False)
    assert {one["kind"] for one in objects}.isdisjoint({"Deployment", "CustomResourceDefinition"})
    assert [one["metadata"]["name"] for one in objects if one["kind"] == "DeviceClass"] == [
        "gpu.nvidia.com", "mig.nvidia.com",
    ]  # fmt: skip
    (container,) = pod(objects)["containers"]
    assert container["command"] == ["gpu-kubelet-plugin", "-v", "4"]
    rules = {one["resources"][0]: one["verbs"] for one in named(objects, "ClusterRole")["rules"]}
    assert rules["nodes"] == ["get", "list", "watch"]
    assert "secrets" not in rules and "delete" in rules["resourceslices"]


def test_compute_domains_alone_serve_no_gpu():
    objects = made({"gpus": False, "compute_domains": "true"})
    (container,) = pod(objects)["containers"]
    assert container["command"][0] == "compute-domain-kubelet-plugin"
    classes = [one["metadata"]["name"] for one in objects if one["kind"] == "DeviceClass"]
    assert classes == [
        "compute-domain-default-channel.nvidia.com", "compute-domain-daemon.nvidia.com",
    ]  # fmt: skip


def test_with_imex_of_the_host_no_daemon_is_made():
    objects = made({"imex_mode": "hostManaged"})
    names = {one["metadata"]["name"] for one in objects}
    assert "compute-domain-daemon.nvidia.com" not in names
    assert "compute-domain-daemon-service-account" not in names
    assert "compute-domain-daemon-service-account" in {one["metadata"]["name"] for one in made()}


@pytest.mark.parametrize(("api", "lent"), [("v1", "nvidia.com/gpu"), ("v1beta1", None)])
def test_only_v1_lends_the_name_of_the_device_plugins_resource(api, lent):
    gpu = named(made(api=api), "DeviceClass", "gpu.nvidia.com")
    assert gpu["spec"].get("extendedResourceName") == lent
    (rule,) = gpu["spec"]["selectors"]
    assert rule["cel"]["expression"] == (
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    )


def test_pods_run_where_the_label_is_and_the_node_is_not_paused():
    spec = pod(made({"node_selector": {"pool": "gpu"}}))
    assert spec["nodeSelector"] == {"kubegpu.nodes/gpu": "nvidia", "pool": "gpu"}
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "kubegpu.nodes/pause", "operator": "DoesNotExist"}]}
    ]


@pytest.mark.parametrize("case", OPTIONS)
def test_what_the_api_server_refuses_beyond_its_schema(case):
    """Rules of the API server's own code that no schema has."""
    for one in made(OPTIONS[case]):
        if one["kind"] not in ("DaemonSet", "Deployment"):
            continue
        template = one["spec"]["template"]
        labels = template["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"].items() <= labels.items()
        volumes = {volume["name"] for volume in template["spec"].get("volumes", ())}
        for container in (
            *template["spec"]["containers"], *template["spec"].get("initContainers", ()),
        ):  # fmt: skip
            mounts = container.get("volumeMounts", ())
            assert {mount["name"] for mount in mounts} <= volumes
            variables = [pair["name"] for pair in container["env"]]
            assert len(variables) == len(set(variables))
            if any(mount.get("mountPropagation") == "Bidirectional" for mount in mounts):
                assert container["securityContext"] == {"privileged": True}


def test_the_folders_of_another_kubelet():
    spec = pod(made({"kubelet_directory": "/var/lib/k0s/kubelet"}))
    paths = {one["name"]: one["hostPath"]["path"] for one in spec["volumes"]}
    assert paths["plugins"] == "/var/lib/k0s/kubelet/plugins"
    for container in spec["containers"]:
        variables = {pair["name"]: pair.get("value") for pair in container["env"]}
        assert variables["KUBELET_REGISTRAR_DIRECTORY_PATH"] == paths["plugins-registry"]
        assert variables["NVIDIA_VISIBLE_DEVICES"] == "void"


@pytest.mark.parametrize(("root", "parent"), [("/", "/"), ("/run/nvidia/driver", "/run/nvidia")])
def test_the_parent_of_the_drivers_root_is_mounted(root, parent):
    volumes = pod(made({"driver_root": root}))["volumes"]
    paths = {one["name"]: one["hostPath"]["path"] for one in volumes}
    assert (paths["driver-root"], paths["driver-root-parent"]) == (root, parent)


def test_the_driver_labels_cliques_only_where_nothing_else_does():
    def label(**layout):
        container = pod(made(**layout))["containers"][-1]
        return {one["name"]: one.get("value") for one in container["env"]}[
            "GPU_CLIQUE_LABEL_ENABLED"
        ]

    assert (label(clique_label=True), label()) == ("true", "false")


def test_the_policy_names_the_account_of_the_plugin():
    objects = made({"namespace": "gpus"})
    policy = named(objects, "ValidatingAdmissionPolicy")
    account = named(objects, "ServiceAccount", pod(objects)["serviceAccountName"])
    assert account["metadata"]["namespace"] == "gpus"
    (condition,) = policy["spec"]["matchConditions"]
    assert condition["expression"] == (
        f"request.userInfo.username == 'system:serviceaccount:gpus:{account['metadata']['name']}'"
    )
    binding = named(objects, "ValidatingAdmissionPolicyBinding")
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert not [one for one in made(policy=False) if "Admission" in one["kind"]]


def containers_of(options):
    objects = manifests(read_request(options), Layout("v1", True, clique_label=True))
    kinds = ("DaemonSet", "Deployment")
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] in kinds]
    return [(part, one) for pod in pods for part in ("initContainers", "containers")
            for one in pod.get(part, ())]  # fmt: skip


def test_the_variables_of_a_user_are_in_each_container_that_the_driver_runs_in():
    found = containers_of({"environment": {"MAX_NODES_PER_IMEX_DOMAIN": 18}})
    assert [part for part, _one in found].count("containers") == 3
    for part, container in found:
        values = {one["name"]: one.get("value") for one in container["env"]}
        assert values.pop("MAX_NODES_PER_IMEX_DOMAIN", "") == ("18" if part == "containers" else "")
        assert {*values} <= VARIABLES


def test_every_variable_of_the_role_is_known_so_that_a_user_cannot_replace_it():
    options = {"pull_secret": "login", "feature_gates": {"MPSSupport": True}}
    found = {one["name"] for _part, container in containers_of(options) for one in container["env"]}
    assert found == VARIABLES
