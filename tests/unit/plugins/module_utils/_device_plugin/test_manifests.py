# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.manifests import (
    absent,
    helm_values,
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.pause import (
    away_from_paused,
    leaves_paused,
)

SLICING = {"sharing": {"timeSlicing": {"resources": [{"name": "gpu", "replicas": 4}]}}}
MPS = {"sharing": {"mps": {"resources": [{"name": "gpu", "replicas": 4}]}}}


def objects(**options):
    return {identity(one)[0::2]: one for one in manifests(read_request(options))}


def pod(name="kubegpu-nvidia-device-plugin", **options):
    return objects(**options)["DaemonSet", name]["spec"]["template"]["spec"]


def container(name="kubegpu-nvidia-device-plugin", **options):
    return pod(name, **options)["containers"][0]


def variables(one):
    return {pair["name"]: pair.get("value") for pair in one["env"]}


def test_the_plain_plugin_needs_no_config_no_rights_and_no_token():
    found = objects()
    assert list(found) == [
        ("Namespace", "kubegpu"),
        ("RuntimeClass", "nvidia"),
        ("ServiceAccount", "kubegpu-nvidia-device-plugin"),
        ("DaemonSet", "kubegpu-nvidia-device-plugin"),
    ]
    spec = pod()
    assert spec["nodeSelector"] == {"kubegpu.nodes/gpu": "nvidia"}
    assert spec["priorityClassName"] == "system-node-critical"
    assert "runtimeClassName" not in spec
    assert "automountServiceAccountToken" not in spec
    assert not found["ServiceAccount", "kubegpu-nvidia-device-plugin"][
        "automountServiceAccountToken"
    ]
    assert [one["key"] for one in spec["tolerations"]] == ["nvidia.com/gpu", "CriticalAddonsOnly"]
    plugin = container()
    assert plugin["name"] == "nvidia-device-plugin"
    assert plugin["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
    assert plugin["volumeMounts"] == [
        {"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"}
    ]
    labels = found["DaemonSet", "kubegpu-nvidia-device-plugin"]["spec"]["template"]["metadata"][
        "labels"
    ]
    assert labels["app.kubernetes.io/name"] == "nvidia-device-plugin"


def test_every_option_is_a_variable_of_the_plugin():
    plugin = container(
        fail_on_init_error=False,
        mig_strategy="mixed",
        pass_device_specs=True,
        device_list_strategy=["envvar", "cdi-cri"],
        device_id_strategy="index",
        driver_root="/run/nvidia/driver",
        container_driver_root="/root-of-driver",
        nvidia_ctk_path="/opt/bin/nvidia-ctk",
        gds_enabled=True,
        mofed_enabled=True,
        environment={"NVIDIA_CDI_HOOK_PATH": "/usr/bin/nvidia-cdi-hook"},
    )
    assert variables(plugin) == {
        "FAIL_ON_INIT_ERROR": "false",
        "MIG_STRATEGY": "mixed",
        "PASS_DEVICE_SPECS": "true",
        "DEVICE_LIST_STRATEGY": "envvar,cdi-cri",
        "DEVICE_ID_STRATEGY": "index",
        "GDS_ENABLED": "true",
        "MOFED_ENABLED": "true",
        "NVIDIA_DRIVER_ROOT": "/run/nvidia/driver",
        "CONTAINER_DRIVER_ROOT": "/root-of-driver",
        "NVIDIA_CTK_PATH": "/opt/bin/nvidia-ctk",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_MIG_MONITOR_DEVICES": "all",
        "NVIDIA_CDI_HOOK_PATH": "/usr/bin/nvidia-cdi-hook",
    }


def test_what_a_config_has_is_no_variable_as_that_would_win():
    plugin = container(configs={"default": SLICING}, mig_strategy="none")
    assert variables(plugin)["CONFIG_FILE"] == "/available-configs/default"
    assert not {"MIG_STRATEGY", "FAIL_ON_INIT_ERROR", "DEVICE_LIST_STRATEGY"} & {*variables(plugin)}


NONE = {"allowPrivilegeEscalation": False}


@pytest.mark.parametrize(
    ("options", "added", "more"),
    [
        ({}, None, NONE),
        ({"device_list_strategy": "cdi-cri"}, None, NONE),
        ({"configs": {"a": SLICING}}, None, NONE),
        ({"configs": {"a": MPS}}, None, NONE),
        ({"mig_strategy": "single"}, ["SYS_ADMIN"], {}),
        ({"device_list_strategy": ["envvar", "volume-mounts"]}, ["SYS_ADMIN"], {}),
        ({"configs": {"a": {"flags": {"migStrategy": "mixed"}}}}, ["SYS_ADMIN"], {}),
    ],
)
def test_capabilities_are_dropped_but_for_those_that_a_strategy_needs(options, added, more):
    dropped = {"drop": ["ALL"], **({"add": added} if added else {})}
    assert container(**options)["securityContext"] == {
        "capabilities": dropped,
        "seccompProfile": {"type": "RuntimeDefault"},
        **more,
    }


def test_only_device_specs_make_the_plugin_privileged():
    assert container(pass_device_specs=True)["securityContext"] == {"privileged": True}
    in_config = {"a": {"flags": {"plugin": {"passDeviceSpecs": True}}}}
    assert container(configs=in_config)["securityContext"] == {"privileged": True}


def test_cdi_gets_its_folder_and_the_drivers_root():
    options = {"device_list_strategy": "cdi-annotations", "driver_root": "/run/nvidia/driver"}
    paths = {one["name"]: one["hostPath"]["path"] for one in pod(**options)["volumes"]}
    assert paths["cdi"] == "/var/run/cdi"
    assert paths["driver-root"] == "/run/nvidia/driver"
    mounts = {one["name"]: one for one in container(**options)["volumeMounts"]}
    assert mounts["driver-root"] == {
        "name": "driver-root",
        "mountPath": "/driver-root",
        "readOnly": True,
    }


def test_s15_one_config_for_all_needs_no_rights():
    found = objects(configs={"default": SLICING})
    assert ("ConfigMap", "kubegpu-nvidia-device-plugin-config") in found
    assert not [kind for kind, _name in found if "Role" in kind]
    assert [one["name"] for one in pod(configs={"default": SLICING})["containers"]] == [
        "nvidia-device-plugin"
    ]


def test_s15_several_configs_are_chosen_by_the_nodes_label():
    found = objects(configs={"shared": SLICING, "whole": {}})
    data = found["ConfigMap", "kubegpu-nvidia-device-plugin-config"]["data"]
    assert sorted(data) == ["default", "shared", "whole"]
    assert json.loads(data["shared"])["sharing"] == {
        "timeSlicing": {
            "renameByDefault": False,
            "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
        }
    }
    role = found["ClusterRole", "kubegpu-nvidia-device-plugin"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    ]
    spec = pod(configs={"shared": SLICING, "whole": {}})
    assert spec["shareProcessNamespace"] is True
    assert spec["automountServiceAccountToken"] is True
    first, manager = spec["initContainers"][0], spec["containers"][1]
    assert first["command"] == manager["command"] == ["config-manager"]
    assert variables(first)["ONESHOT"] == "true"
    assert variables(first)["DEFAULT_CONFIG"] == "default"
    assert variables(manager)["SIGNAL"] == "1"
    # It looks for a process with exactly this first word.
    assert [variables(manager)["PROCESS_TO_SIGNAL"]] == spec["containers"][0]["command"]
    assert manager["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_pods_are_made_again_when_a_config_changes():
    def checksum(configs):
        made = objects(configs=configs)["DaemonSet", "kubegpu-nvidia-device-plugin"]
        return made["spec"]["template"]["metadata"]["annotations"]["kubegpu.nodes/config-checksum"]

    assert checksum({"a": SLICING}) == checksum({"a": SLICING})
    assert checksum({"a": SLICING}) != checksum({"a": {}})


def terms(**options):
    spec = pod("kubegpu-nvidia-mps-control-daemon", **options)
    node = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [one["matchExpressions"][0] for one in node["nodeSelectorTerms"]]


@pytest.mark.parametrize("options", [{}, {"default_config": "mps4"}, {"default_config": "shared"}])
def test_s15_all_daemonsets_leave_a_paused_node(options):
    configs = {"mps4": MPS, "shared": SLICING}
    found = manifests(read_request({"configs": configs, "feature_discovery": True, **options}))
    specs = [one["spec"]["template"]["spec"] for one in found if one["kind"] == "DaemonSet"]
    assert len(specs) == 3
    assert all(leaves_paused(one["affinity"]["nodeAffinity"]) for one in specs)


def test_s15_mps_brings_its_control_daemon_to_the_nodes_that_chose_it():
    key = "nvidia.com/device-plugin.config"
    configs = {"mps4": MPS, "mps2": MPS, "shared": SLICING}
    chosen = {"key": key, "operator": "In", "values": ["mps2", "mps4"]}
    assert terms(configs=configs) == [chosen]
    assert terms(configs=configs, default_config="mps4") == [
        chosen,
        {"key": key, "operator": "DoesNotExist"},
    ]
    spec = pod("kubegpu-nvidia-mps-control-daemon", configs=configs)
    assert spec["hostPID"] is True
    # Both cannot be.
    assert "shareProcessNamespace" not in spec
    assert [one["securityContext"].get("privileged") for one in spec["containers"]] == [True, True]
    mounts = {one["name"]: one["mountPath"] for one in container(configs=configs)["volumeMounts"]}
    assert mounts["mps-shm"] == "/dev/shm"
    assert mounts["mps-root"] == "/mps"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kubegpu-nvidia-device-plugin", {}),
        ("kubegpu-nvidia-device-plugin", {"pass_device_specs": True}),
        ("kubegpu-nvidia-device-plugin", {"mig_strategy": "mixed"}),
        ("kubegpu-nvidia-mps-control-daemon", {}),
        ("kubegpu-gpu-feature-discovery", {"feature_discovery": True}),
        ("kubegpu-gpu-feature-discovery",
         {"feature_discovery": True, "feature_discovery_privileged": True}),
    ],
)  # fmt: skip
def test_who_sends_a_signal_has_the_context_of_who_gets_it(name, options):
    """containerd's AppArmor profile lets a container signal its own profile only
    (contrib/apparmor/template.go), and a privileged container has none."""
    configs = {"mps4": MPS, "shared": SLICING}
    if options.get("mig_strategy"):
        configs = {"shared": SLICING, "whole": {}}
    spec = pod(name, configs=configs, **options)
    first, manager = spec["containers"]
    assert manager["command"] == ["config-manager"]
    assert manager["securityContext"] == first["securityContext"]
    # It sends none before the start.
    init = next(one for one in spec["initContainers"] if one["command"] == ["config-manager"])
    assert init["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_without_mps_nothing_of_it_is_there():
    text = json.dumps(manifests(read_request({"configs": {"shared": SLICING}}))).lower()
    assert "mps" not in text


def test_feature_discovery_writes_for_node_feature_discovery_or_asks_its_api():
    name = "kubegpu-gpu-feature-discovery"
    spec = pod(name, feature_discovery=True)
    paths = {one["name"]: one["hostPath"]["path"] for one in spec["volumes"]}
    assert paths["output-dir"] == "/etc/kubernetes/node-feature-discovery/features.d"
    found = objects(feature_discovery=True, feature_discovery_api=True)
    # As NVIDIA's chart has it (templates/role.yml): it looks at its own pod, too.
    rules = found["Role", "kubegpu-nvidia-device-plugin"]["rules"]
    assert [(one["resources"], one["verbs"]) for one in rules] == [
        (["nodefeatures"], ["get", "list", "watch", "create", "update"]),
        (["pods"], ["get"]),
    ]
    api = container(name, feature_discovery=True, feature_discovery_api=True)
    assert variables(api)["USE_NODE_FEATURE_API"] == "true"
    files = container(name, feature_discovery=True)
    assert variables(files)["USE_NODE_FEATURE_API"] == "false"
    assert container(name, feature_discovery=True)["securityContext"]["capabilities"]
    privileged = container(name, feature_discovery=True, feature_discovery_privileged=True)
    assert privileged["securityContext"] == {"privileged": True}


def test_the_image_comes_from_a_mirror_by_digest_with_a_secret():
    digest = "sha256:" + "0" * 64
    options = {
        "image": "mirror.example:5000/nvidia/k8s-device-plugin",
        "digest": digest,
        "pull_secret": "mirror",
    }
    assert container(**options)["image"] == f"{options['image']}@{digest}"
    assert pod(**options)["imagePullSecrets"] == [{"name": "mirror"}]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"version": "latest"}, "pins no version"),
        ({"version": ""}, "pins no version"),
        ({"image": "nvcr.io/nvidia/k8s-device-plugin:v1"}, "with a version in it"),
        ({"digest": "sha256:abc"}, "64 small hex digits"),
        ({"mig_strategy": "all"}, "nvidia_device_plugin_mig_strategy: is 'all'"),
        ({"device_list_strategy": []}, "nvidia_device_plugin_device_list_strategy: is empty"),
        ({"device_id_strategy": "name"}, "has to be one of uuid, index"),
        ({"image_pull_policy": "never"}, "has to be one of IfNotPresent"),
        ({"driver_root": "run"}, "has to be a path"),
        ({"max_unavailable": "0"}, "above 0"),
        ({"max_unavailable": "many"}, "a number or a percentage"),
        ({"namespace": ""}, "nvidia_device_plugin_namespace is empty"),
        ({"image": "nvcr.io/NVIDIA/x"}, "is not a name of an image"),
        ({"image": "nvcr.io/nvidia/x@sha256:1"}, "nvidia_device_plugin_digest"),
        ({"version": "v0.14.5", "feature_discovery": True}, "it came with v0.15"),
        ({"version": "v0.14.5", "device_list_strategy": "cdi-cri"}, "came with the plugin's v0.15"),
        ({"environment": {"MIG_STRATEGY": "mixed"}}, "Set nvidia_device_plugin_mig_strategy"),
        ({"nonsense": 1}, "has no option nonsense"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(InputError) as error:
        read_request(options)
    assert words in str(error.value)


def test_a_tag_that_yaml_reads_as_a_number_is_a_tag():
    assert container(version=0.2)["image"] == "nvcr.io/nvidia/k8s-device-plugin:0.2"


def test_a_config_may_repeat_what_holds_for_all_nodes():
    flags = {"mpsRoot": "/run/nvidia/mps", "useNodeFeatureAPI": True, "nvidiaDriverRoot": "/"}
    options = {"feature_discovery": True, "feature_discovery_api": True}
    read_request({"configs": {"a": {"flags": flags}}, **options})
    with pytest.raises(InputError, match="Set nvidia_device_plugin_feature_discovery_api instead"):
        read_request({"configs": {"a": {"flags": flags}}})


def test_of_a_release_that_is_newer_than_the_table_remarks_are_kept():
    config = {"a": {"flags": {"newThing": 1}}}
    request = read_request({"version": "v0.21.0", "configs": config})
    assert "newThing is not known here" in request.remarks[0]
    assert (
        json.loads(
            objects(version="v0.21.0", configs=config)[
                "ConfigMap", "kubegpu-nvidia-device-plugin-config"
            ]["data"]["a"]
        )["flags"]["newThing"]
        == 1
    )
    assert read_request({"configs": {"a": {}}}).remarks == ()


def test_what_is_no_longer_wished_is_removed():
    everything = {
        "configs": {"a": SLICING, "m": MPS},
        "feature_discovery": True,
        "feature_discovery_api": True,
    }
    request = read_request(everything)
    assert absent(request, manifests(request)) == []
    plain = read_request({})
    gone = {identity(one)[0::2] for one in absent(plain, manifests(plain))}
    before, after = set(objects(**everything)), set(objects())
    assert gone == before - after
    # Namespace and RuntimeClass are removed by teardown alone, where they are ours.
    assert {identity(one)[0] for one in absent(plain)}.isdisjoint({"Namespace", "RuntimeClass"})


def test_the_charts_values_say_the_same():
    values = helm_values(
        read_request(
            {"pass_device_specs": True, "runtime_class": "nvidia", "max_unavailable": "10%",
             "device_list_strategy": ["envvar", "cdi-cri"]}
        )
    )  # fmt: skip
    assert values["compatWithCPUManager"] is True
    assert values["deviceListStrategy"] == "envvar,cdi-cri"
    assert values["runtimeClassName"] == "nvidia"
    assert values["nodeSelector"] == {"kubegpu.nodes/gpu": "nvidia"}
    assert values["affinity"] == {"nodeAffinity": away_from_paused()}
    assert values["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "10%"}
    shared = helm_values(read_request({"configs": {"a": SLICING}}))
    assert shared["config"]["default"] == "default"
    assert json.loads(shared["config"]["map"]["a"])["sharing"]
    # A value would win over the config.
    assert "migStrategy" not in shared


def test_the_chart_gets_variables_by_its_own_values_or_not_at_all():
    # No release of the chart has devicePlugin.containers.main.env: it was ignored silently.
    values = helm_values(read_request({"environment": {"GDRCOPY_ENABLED": "true"}}), "0.20.0")
    assert values["gdrcopyEnabled"] is True and "devicePlugin" not in values
    hook = helm_values(read_request({"environment": {"NVIDIA_CDI_HOOK_PATH": "/hook"}}))
    assert hook["cdi"] == {"nvidiaHookPath": "/hook"}
    with pytest.raises(InputError, match="nvidia_device_plugin_environment has HTTPS_PROXY"):
        helm_values(read_request({"environment": {"HTTPS_PROXY": "http://x"}}))


def test_the_chart_tells_feature_discovery_how_labels_are_handed_over():
    """From 0.19 on its default is the NodeFeature API, and only a config says otherwise."""
    options = {"feature_discovery": True, "mig_strategy": "mixed"}
    values = helm_values(read_request(options), "0.20.0")
    assert values["config"]["default"] == "default"
    plain = json.loads(values["config"]["map"]["default"])["flags"]
    assert (plain["useNodeFeatureAPI"], plain["migStrategy"]) == (False, "mixed")
    # A value would win over the config.
    assert "migStrategy" not in values
    assert values["gfd"]["securityContext"]["capabilities"]["add"] == ["SYS_ADMIN"]
    shared = helm_values(read_request({**options, "configs": {"a": SLICING}}), "0.20.0")
    assert {
        json.loads(one)["flags"]["useNodeFeatureAPI"] for one in shared["config"]["map"].values()
    } == {False}
    api = helm_values(read_request({**options, "feature_discovery_api": True}), "0.20.0")
    assert "config" not in api
    older = helm_values(read_request(options), "0.18.2")
    assert older["nfd"] == {"enabled": False, "enableNodeFeatureApi": False}
    assert "config" not in older
    # Who does not deploy it gets no config for it.
    assert "config" not in helm_values(read_request({}), "0.20.0")


def test_what_the_chart_cannot_do_is_refused():
    with pytest.raises(InputError, match="knows /driver-root only"):
        helm_values(read_request({"container_driver_root": "/elsewhere"}))
    with pytest.raises(InputError, match="only where GPU feature discovery"):
        helm_values(read_request({"configs": {"a": MPS}}))


def test_the_folder_of_device_plugins_is_the_constant_of_kubelet():
    """k0sproject/k0s#7585: another root of kubelet does not move it."""
    (volume,) = [one for one in pod()["volumes"] if one["name"] == "device-plugins"]
    assert volume["hostPath"] == {
        "path": "/var/lib/kubelet/device-plugins", "type": "Directory",
    }  # fmt: skip
