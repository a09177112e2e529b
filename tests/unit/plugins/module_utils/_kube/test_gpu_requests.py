# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How pods ask for GPUs: what Kubernetes refuses, what it accepts, and what is a trap."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.gpu_requests import (
    check,
)

GPU = "nvidia.com/gpu"


def pod(limits=None, requests=None, **container):
    resources = {
        name: value for name, value in (("limits", limits), ("requests", requests)) if value
    }
    one = {"name": "main", "image": "cuda", "resources": resources, **container}
    return {"kind": "Pod", "metadata": {"name": "training"}, "spec": {"containers": [one]}}


def codes(manifest, **options):
    return [problem["code"] for problem in check(manifest, **options)]


@pytest.mark.parametrize(
    ("limits", "requests"),
    [
        ({GPU: 1}, None),
        ({GPU: "2"}, {GPU: 2}),
        ({GPU: 1, "memory": "4Gi"}, {"cpu": "500m"}),
        ({"nvidia.com/mig-1g.5gb": 1}, None),
        ({"nvidia.com/mig-1g.10gb.me": 1}, None),
        # Profiles of an RTX PRO 6000 (NVIDIA's MIG user guide), as the plugin names them
        # (k8s-device-plugin v0.20.0, internal/rm/rm.go).
        ({"nvidia.com/mig-1g.24gb-me": 1}, None),
        ({"nvidia.com/mig-2g.48gb-me.shared": 1}, None),
        ({"nvidia.com/mig-1g.24gb.me.all": 1, "nvidia.com/mig-4g.96gb.gfx": 1}, None),
        ({"nvidia.com/gpu.shared": 1}, None),
        ({"amd.com/gpu": 1}, None),
        ({"gpu.intel.com/i915": 1, "gpu.intel.com/xe": 1}, None),
        # intel-device-plugins-for-kubernetes 0.36.0, cmd/gpu_plugin/README.md.
        ({"gpu.intel.com/monitoring": 1}, None),
        ({"gpu.intel.com/i915_monitoring": 1}, None),
        # A thousand thousandths are one, as the API server sees it.
        ({GPU: "1000m"}, {GPU: 1}),
        ({"memory": "4Gi", "hugepages-2Mi": "4Mi", "example.com/fpga": 1}, None),
        (None, None),
    ],
)
def test_s18_limits_alone_or_with_equal_requests_are_good(limits, requests):
    assert check(pod(limits, requests)) == []


@pytest.mark.parametrize(
    ("limits", "requests", "code", "word"),
    [
        (None, {GPU: 1}, "requests_alone", "limits: {nvidia.com/gpu: 1}"),
        ({"cpu": 1}, {GPU: 2}, "requests_alone", "limits: {nvidia.com/gpu: 2}"),
        ({GPU: 2}, {GPU: 1}, "request_differs", "equal"),
        ({GPU: "0.5"}, None, "not_a_whole_number", "time-slicing"),
        ({GPU: 0.5}, None, "not_a_whole_number", "time-slicing"),
        ({GPU: "500m"}, None, "not_a_whole_number", "whole number"),
        ({GPU: -1}, None, "not_a_whole_number", "whole number"),
        ({GPU: "one"}, None, "not_a_quantity", "whole number"),
        ({GPU: True}, None, "not_a_quantity", "whole number"),
        ({"nvidia.com/gpus": 1}, None, "wrong_name", "Write nvidia.com/gpu"),
        ({"nvidia/gpu": 1}, None, "wrong_name", "Write nvidia.com/gpu"),
        ({"gpu": 1}, None, "wrong_name", "Write nvidia.com/gpu"),
        ({"nvidia.com/GPU": 1}, None, "wrong_name", "Write nvidia.com/gpu"),
        ({"amd.com/gpus": 1}, None, "wrong_name", "Write amd.com/gpu"),
        ({"alpha.kubernetes.io/nvidia-gpu": 1}, None, "wrong_name", "Write nvidia.com/gpu"),
        ({"nvidia.com/mig-1g5gb": 1}, None, "wrong_name", "nvidia.com/mig-1g.5gb"),
        ({"gpu.intel.com/i916": 1}, None, "wrong_name", "gpu.intel.com/i915"),
        ({"gpu.intel.com/monitor": 1}, None, "wrong_name", "gpu.intel.com"),
        ({"nvidia.com/mig-1g.24gb-you": 1}, None, "wrong_name", "nvidia-smi mig -lgip"),
    ],
)
def test_s18_what_is_refused_or_never_starts(limits, requests, code, word):
    (problem,) = check(pod(limits, requests))
    assert (problem["code"], problem["severity"]) == (code, "error")
    assert problem["pod"] == "training"
    assert problem["container"] == "containers[main]"
    assert word in problem["next_step"]


def test_each_container_is_looked_at():
    manifest = pod({GPU: 1})
    manifest["spec"]["initContainers"] = [
        {"name": "prepare", "resources": {"requests": {GPU: 1}}},
        {"name": "fetch", "resources": {"limits": {GPU: "1.5"}}},
    ]
    manifest["spec"]["ephemeralContainers"] = [{"name": "debug", "resources": {"limits": {GPU: 1}}}]
    found = {problem["container"]: problem["code"] for problem in check(manifest)}
    assert found == {
        "initContainers[prepare]": "requests_alone",
        "initContainers[fetch]": "not_a_whole_number",
        "ephemeralContainers[debug]": "gpu_in_ephemeral_container",
    }


def test_two_things_wrong_are_both_said():
    manifest = pod({GPU: "0.5", "nvidia.com/gpus": 1}, {GPU: "0.25"})
    assert sorted(codes(manifest)) == [
        "not_a_whole_number", "not_a_whole_number", "request_differs", "wrong_name",
    ]  # fmt: skip


def test_gpus_of_the_whole_pod_are_refused():
    manifest = pod({"cpu": 1})
    manifest["spec"]["resources"] = {"limits": {GPU: 1, "memory": "1Gi"}}
    (problem,) = check(manifest)
    assert problem["code"] == "gpu_at_pod_level"


@pytest.mark.parametrize("value", ["all", "0", "GPU-5ca1ab1e"])
def test_an_environment_that_goes_around_the_plugin_is_a_warning(value):
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}, {"name": "HOME", "value": "/"}]
    for limits in ({GPU: 1}, None):
        (problem,) = check(pod(limits, env=env))
        assert (problem["code"], problem["severity"]) == ("visible_devices", "warning")


def test_an_environment_that_takes_no_gpu_is_good():
    for value in ("void", "none", ""):
        env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}]
        assert check(pod({GPU: 1}, env=env)) == []
    source = [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {}}}]
    assert check(pod({GPU: 1}, env=source)) == []


def test_no_gpu_at_all_is_wrong_only_where_one_is_required():
    assert check(pod({"cpu": 1})) == []
    assert codes(pod({"cpu": 1}), required=True) == ["no_gpu"]
    assert codes(pod({GPU: 1}), required=True) == []
    (problem,) = check(pod({GPU: 0}), required=True)
    assert (problem["code"], problem["severity"]) == ("zero", "warning")


HAMI = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
        "nvidia.com/priority")  # fmt: skip


@pytest.mark.parametrize("name", HAMI)
def test_names_of_hami_may_be_right(name):
    manifest = pod({GPU: 1, name: 30})
    (problem,) = check(manifest)
    assert (problem["code"], problem["severity"]) == ("wrong_name", "warning")
    assert "HAMi" in problem["cause"] and "Write nvidia.com/gpu" not in problem["next_step"]
    assert check(manifest, resources=[name]) == []


def test_a_name_close_to_those_of_hami_is_wrong():
    (problem,) = check(pod({GPU: 1, "nvidia.com/gpumemory": 30}))
    assert (problem["code"], problem["severity"]) == ("wrong_name", "error")


def test_names_of_ones_own():
    manifest = pod({"nvidia.com/v100": 1, "example.com/my-gpu": 1})
    assert codes(manifest) == ["wrong_name", "wrong_name"]
    assert codes(manifest, resources=["nvidia.com/v100", "example.com/my-gpu"]) == []
    requests = pod(None, {"nvidia.com/v100": 1})
    assert codes(requests, resources=["nvidia.com/v100"]) == ["requests_alone"]


BAD = pod(None, {GPU: 1})["spec"]


@pytest.mark.parametrize(
    "manifest",
    [
        BAD,
        {"kind": "Pod", "spec": BAD},
        {"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"spec": BAD}}},
        {"kind": "Job", "spec": {"template": {"metadata": {"labels": {}}, "spec": BAD}}},
        {"kind": "CronJob",
         "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": BAD}}}}},
        {"kind": "PodTemplate", "template": {"spec": BAD}},
        {"kind": "List", "items": [{"kind": "Pod", "spec": BAD}]},
    ],
    ids=["spec", "Pod", "Deployment", "Job", "CronJob", "PodTemplate", "List"],
)  # fmt: skip
def test_a_pod_is_found_wherever_it_is(manifest):
    assert codes(manifest) == ["requests_alone"]


def test_a_pod_in_a_template_has_the_name_of_what_makes_it():
    template = {"metadata": {"labels": {"app": "x"}}, "spec": BAD}
    deployment = {"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": template}}
    listed = {"kind": "List", "items": [deployment, pod(None, {GPU: 1})]}
    assert [problem["pod"] for problem in check(listed)] == ["a", "training"]


@pytest.mark.parametrize(
    "manifest", [{"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": []}}, {}, "x"]
)
def test_what_has_no_pod_is_an_error(manifest):
    with pytest.raises(InputError):
        check(manifest)
