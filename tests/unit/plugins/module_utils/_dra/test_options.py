# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.options import read_request


def test_the_defaults_are_a_request():
    request = read_request({})
    assert request.reference == "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.5.0"
    assert request.gate("ComputeDomainCliques") and not request.gate("MPSSupport")
    assert read_request({"compute_domains": True}).compute_domains == "true"
    pinned = read_request({"digest": "sha256:" + "a" * 64})
    assert pinned.reference.endswith("dra-driver-nvidia-gpu@sha256:" + "a" * 64)


def test_a_service_of_the_host_turns_its_gate_on():
    assert read_request({"imex_mode": "hostManaged"}).gate("HostManagedIMEXDaemon")
    off = {"imex_mode": "hostManaged", "feature_gates": {"HostManagedIMEXDaemon": False}}
    with pytest.raises(InputError, match="nvidia_dra_driver_imex_mode is hostManaged"):
        read_request(off)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpu": True}, "no option gpu"),
        ({"gpus": False, "compute_domains": "false"}, "would serve nothing"),
        ({"api": "v2"}, "nvidia_dra_driver_api"),
        ({"device_plugin": "keep"}, "nvidia_dra_driver_device_plugin"),
        ({"namespace": ""}, "nvidia_dra_driver_namespace is empty"),
        ({"kubelet_directory": "kubelet"}, "nvidia_dra_driver_kubelet_directory"),
        ({"version": "latest"}, "nvidia_dra_driver_version is 'latest', which pins no version"),
        ({"image": "a/b:v1"}, "nvidia_dra_driver_image is 'a/b:v1', with a version"),
        ({"max_unavailable": "0"}, "nvidia_dra_driver_pods.max_unavailable"),
        ({"feature_gates": {"DynamicMig": True}}, "DynamicMig, which the DRA driver does not know"),
        ({"feature_gates": {"DynamicMIG": "yes"}}, "feature_gates.DynamicMIG is 'yes'"),
        ({"feature_gates": {"PassthroughSupport": True}}, "GPUs of virtual machines"),
        ({"environment": {"FEATURE_GATES": "A=true"}}, "has FEATURE_GATES, which this role sets"),
        ({"environment": {"a b": "1"}}, "'a b': '1', which is no variable"),
        ({"environment": {"A": ["1"]}}, "which is no variable with a value"),
        ({"environment": {"CONSUMABLE_SHARES": 0}}, "CONSUMABLE_SHARES is '0'"),
        ({"environment": {"CONSUMABLE_SHARES": 4}}, "do nothing without each other"),
        ({"feature_gates": {"ConsumableShares": True}}, "do nothing without each other"),
        (
            {"feature_gates": {"DynamicMIG": True, "MPSSupport": True}},
            "enables DynamicMIG and MPSSupport",
        ),
        (
            {"feature_gates": {"IMEXDaemonsWithDNSNames": False}},
            "ComputeDomainCliques needs IMEXDaemonsWithDNSNames",
        ),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        read_request(options)


@pytest.mark.parametrize("shares", ["memory", "unlimited", "4", 4])
def test_shares_need_the_gate_and_the_variable(shares):
    given = {"environment": {"CONSUMABLE_SHARES": shares}}
    assert read_request({**given, "feature_gates": {"ConsumableShares": True}}).environment == {
        "CONSUMABLE_SHARES": shares
    }


def test_the_gates_of_the_logs_are_known():
    gates = {"ContextualLogging": False, "LoggingAlphaOptions": True, "LoggingBetaOptions": False}
    assert read_request({"feature_gates": gates}).feature_gates == gates
