# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labels from facts, and values that Kubernetes takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci_data import (
    NVIDIA_PRODUCTS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import (
    DRIVERS,
    VENDORS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.desired import (
    label_value,
    model,
    node_labels,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.names import is_discovered
from tests.unit.fixtures.node_facts import P4, node

# As the API server has it: k8s.io/apimachinery/pkg/util/validation.
VALID = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")
P100 = {**P4, "product": "Tesla P100-PCIE-16GB", "device_id": "15f8"}
INTEL = {**P4, "vendor": "intel", "vendor_id": "8086", "product": None, "generation": "xe"}


def device(**changes):
    return {
        "address": P4["address"],
        "name": "Tesla P4",
        "memory_total": 7680,
        "mig_mode": None,
        "mig_devices": [],
        **changes,
    }


def nvml(*devices):
    return {"driver_version": "580.126.09", "cuda_version": "13.0", "devices": list(devices)}


@given(st.text())
def test_any_text_becomes_a_valid_value(text):
    value = label_value(text)
    assert len(value) <= 63
    assert VALID.match(value)
    assert label_value(value) == value


@given(st.from_regex(VALID, fullmatch=True).filter(lambda text: len(text) <= 63))
def test_a_valid_value_stays_as_it_is(text):
    assert label_value(text) == text


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=1))
def test_letters_and_digits_stay_in_their_order(text):
    kept = [letter for letter in text if letter.isalnum()]
    value = [letter for letter in label_value(text) if letter.isalnum()]
    assert value == kept[: len(value)]
    assert bool(value) == bool(kept)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB"),
        ("Quadro RTX 6000/8000", "Quadro-RTX-6000-8000"),
        ("[GeForce GTX 1080 Ti]", "GeForce-GTX-1080-Ti"),
        ("x" * 62 + "--y", "x" * 62),
        ("---", ""),
        ("\u00fc", ""),
        ("13.0", "13.0"),
    ],
)
def test_values(text, value):
    assert label_value(text) == value


@pytest.mark.parametrize(
    ("product", "value"),
    [
        ("Tesla P100-PCIE-16GB", "nvidia-tesla-p100"),
        ("Tesla P100-SXM2-16GB", "nvidia-tesla-p100"),
        ("Tesla K80", "nvidia-tesla-k80"),
        ("NVIDIA A100-SXM4-40GB", "nvidia-a100"),
        ("A100 80GB PCIe", "nvidia-a100"),
        ("GA100 [A100 SXM4 80 GB]", "nvidia-a100"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100"),
        ("H100 NVL", "nvidia-h100-nvl"),
        ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
        ("Quadro RTX 6000/8000", "nvidia-quadro-rtx-6000-8000"),
    ],
)
def test_models_as_accelerator_has_them(product, value):
    assert model(product, "nvidia") == value


@pytest.mark.parametrize("product", sorted(set(NVIDIA_PRODUCTS.values())))
def test_every_product_that_we_know_has_a_valid_model(product):
    value = model(product, "nvidia")
    assert VALID.match(value) and len(value) <= 63
    assert value.startswith("nvidia-") and value == value.lower()


def test_a_machine_without_gpu_has_no_label():
    facts = node(gpus=[])
    assert node_labels(facts, extra={"a": "b"}, device_plugin_config="x") == {}


def test_without_a_driver_what_the_bus_tells():
    facts = node(gpus=[P100, {**P100, "address": "0000:00:06.0"}])
    assert node_labels(facts) == {
        "accelerator": "nvidia-tesla-p100",
        "kubegpu.nodes/gpu": "nvidia",
        "kubegpu.nodes/gpu-nvidia": "true",
        "kubegpu.nodes/gpu.count": "2",
        "kubegpu.nodes/gpu.generation": "pascal",
        "kubegpu.nodes/gpu.product": "Tesla-P100-PCIE-16GB",
    }


def test_with_a_driver_what_it_tells_too():
    facts = node(nvml=nvml(device()), driver__loaded="580.126.09", cuda__driver_supports="13.0")
    labels = node_labels(facts)
    assert labels["kubegpu.nodes/gpu.memory"] == "7680"
    assert labels["kubegpu.nodes/driver.version"] == "580.126.09"
    assert labels["kubegpu.nodes/cuda.version"] == "13.0"
    assert "kubegpu.nodes/mig" not in labels
    theirs = {name: value for name, value in labels.items() if is_discovered(name)}
    assert theirs == {
        # Both forms, as k8s-device-plugin v0.20.0 has them (internal/lm/nvml.go).
        "nvidia.com/cuda.driver.major": "580",
        "nvidia.com/cuda.driver.minor": "126",
        "nvidia.com/cuda.driver.rev": "09",
        "nvidia.com/cuda.driver-version.major": "580",
        "nvidia.com/cuda.driver-version.minor": "126",
        "nvidia.com/cuda.driver-version.revision": "09",
        "nvidia.com/cuda.driver-version.full": "580.126.09",
        "nvidia.com/cuda.runtime.major": "13",
        "nvidia.com/cuda.runtime.minor": "0",
        "nvidia.com/cuda.runtime-version.major": "13",
        "nvidia.com/cuda.runtime-version.minor": "0",
        "nvidia.com/cuda.runtime-version.full": "13.0",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.family": "pascal",
        "nvidia.com/gpu.memory": "7680",
        "nvidia.com/gpu.product": "Tesla-P4",
        "nvidia.com/mig.capable": "false",
    }
    assert not any(map(is_discovered, node_labels(facts, discovery_names=False)))


def test_two_models_have_no_accelerator():
    facts = node(gpus=[P4, P100])
    labels = node_labels(facts)
    assert "accelerator" not in labels and "kubegpu.nodes/gpu.product" not in labels
    assert labels["kubegpu.nodes/gpu.count"] == "2"
    assert labels["kubegpu.nodes/gpu.generation"] == "pascal"


def test_two_forms_of_one_model_have_it():
    other = {**P100, "product": "Tesla P100-SXM2-16GB"}
    labels = node_labels(node(gpus=[P100, other]))
    assert labels["accelerator"] == "nvidia-tesla-p100"
    assert "kubegpu.nodes/gpu.product" not in labels


def test_a_product_that_we_do_not_know_is_asked_of_the_driver():
    unknown = {**P4, "product": None, "generation": "unknown"}
    assert "accelerator" not in node_labels(node(gpus=[unknown]))
    labels = node_labels(node(gpus=[unknown], nvml=nvml(device(name="NVIDIA B500"))))
    assert labels["accelerator"] == "nvidia-b500"
    assert "kubegpu.nodes/gpu.generation" not in labels


@pytest.mark.parametrize(
    ("modes", "said", "devices"),
    [
        (["enabled", "enabled"], "enabled", "2"),
        (["disabled", "disabled"], "disabled", None),
        (["enabled", "disabled"], "mixed", "1"),
        ([None, None], None, None),
    ],
)
def test_mig(modes, said, devices):
    made = [device(mig_mode=mode, mig_devices=[{}] if mode == "enabled" else []) for mode in modes]
    labels = node_labels(node(gpus=[P4, P4], nvml=nvml(*made)))
    assert labels.get("kubegpu.nodes/mig") == said
    assert labels.get("kubegpu.nodes/mig.devices") == devices
    assert labels["nvidia.com/mig.capable"] == ("true" if said else "false")


def test_other_vendors_get_marker_and_count():
    labels = node_labels(node(gpus=[INTEL]), device_plugin_config="x")
    assert labels == {
        "kubegpu.nodes/gpu": "intel",
        "kubegpu.nodes/gpu-intel": "true",
        "kubegpu.nodes/gpu.count": "1",
        "kubegpu.nodes/gpu.generation": "xe",
    }


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("bound", [True, False])
def test_the_labels_of_each_vendor_say_what_hardware_there_is(vendor, bound):
    """They are the same before the driver is loaded; what is said of the driver is not."""
    card = {**P4, "vendor": vendor, "kernel_driver": DRIVERS[vendor][0] if bound else None}
    facts = node(gpus=[card], driver__loaded="580.95.05" if bound else None, nvml=None)
    labels = node_labels(facts, details=False)
    assert labels["kubegpu.nodes/gpu"] == vendor
    markers = {name for name in labels if name.startswith("kubegpu.nodes/gpu-")}
    assert markers == {f"kubegpu.nodes/gpu-{vendor}"}
    told = "kubegpu.nodes/driver.version" in node_labels(facts)
    assert told is (bound and vendor == "nvidia")


def test_an_on_board_chip_beside_a_card_is_not_counted():
    labels = node_labels(node(gpus=[INTEL, P4]))
    assert labels["kubegpu.nodes/gpu"] == "nvidia"
    assert labels["kubegpu.nodes/gpu.count"] == "1"
    assert "kubegpu.nodes/gpu-intel" not in labels


def test_cards_of_two_vendors_have_the_label_of_each():
    amd = {**P4, "vendor": "amd", "address": "0000:00:06.0", "kernel_driver": "amdgpu"}
    labels = node_labels(node(gpus=[P4, amd]))
    assert labels["kubegpu.nodes/gpu"] == "nvidia"
    assert labels["kubegpu.nodes/gpu-nvidia"] == labels["kubegpu.nodes/gpu-amd"] == "true"


def test_options():
    facts = node()
    assert node_labels(facts, "gke", details=False, discovery_names=False) == {
        "gke": "nvidia-tesla-p4",
        "kubegpu.nodes/gpu": "nvidia",
        "kubegpu.nodes/gpu-nvidia": "true",
    }
    labels = node_labels(
        facts,
        "",
        details=False,
        device_plugin_config="shared",
        extra={"rack": 7, "fast": True, "none": None},
    )
    assert labels == {
        "fast": "true",
        "kubegpu.nodes/gpu": "nvidia",
        "kubegpu.nodes/gpu-nvidia": "true",
        "nvidia.com/device-plugin.config": "shared",
        "rack": "7",
    }


def test_a_layout_that_is_planned_is_what_the_labels_say():
    facts = node(nvml=nvml(device(mig_mode="disabled"), device(address="0000:99:00.0")))
    planned = {"address": P4["address"], "mig_mode": "enabled", "mig_devices": ["1g.5gb"] * 7}
    labels = node_labels(facts, mig=[planned])
    after = node_labels(
        node(
            nvml=nvml(
                device(mig_mode="enabled", mig_devices=[{}] * 7), device(address="0000:99:00.0")
            )
        )
    )
    assert labels == after
    assert (labels["kubegpu.nodes/mig"], labels["kubegpu.nodes/mig.devices"]) == ("enabled", "7")
    assert node_labels(facts)["kubegpu.nodes/mig"] == "disabled"
