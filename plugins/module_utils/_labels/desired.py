# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired labels of a Kubernetes node, from the facts of its hardware. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._hardware.nvml import with_planned_mig
from .._hardware.vendors import gpu_vendor, gpu_vendors
from .names import LONGEST, MARKER, PLUGIN_CONFIG, PREFIX, VENDOR_MARKER, label_text

_INVALID = re.compile(r"[^A-Za-z0-9_.-]+")
# Bus, socket and memory: cards that differ only in these are the same model for a pod.
_FORM = re.compile(r"""^(?:pcie|pci|sxm\d*|hbm\d*e?|g?ddr\d*x?|\d+\s*[gt]b)$""", re.IGNORECASE)
_FAMILIES = {"ada": "ada-lovelace"}


def label_value(text: object) -> str:
    """Return a text as a valid label value: at most 63 of ``A-Za-z0-9-_.``, alphanumeric ends.

    Valid text is returned unchanged, text without letters and digits as an empty string.
    """
    value = _INVALID.sub("-", str(text))
    value = re.sub(r"^[^A-Za-z0-9]+", "", value)[:LONGEST]
    return re.sub(r"[^A-Za-z0-9]+$", "", value)


def model(product: str, vendor: str) -> str:
    """Return a product's name as in the label ``accelerator``, such as ``nvidia-tesla-p100``.

    Form factor and memory are omitted, so that all P100 have the same value.
    """
    bracket = re.search(r"\[([^\]]+)\]", product)
    # "80 GB" is one word, and so is each part of A100-SXM4-40GB.
    text = re.sub(r"(\d+)\s+(GB|TB)\b", r"\1\2", bracket[1] if bracket else product)
    words = [word for word in re.split(r"[\s/()-]+", text) if word]
    kept = [word for word in words if not _FORM.match(word)]
    if kept and kept[0].lower() == vendor:
        kept = kept[1:]
    return label_value("-".join([vendor, *kept]).lower())


def node_labels(
    gpu_node: Mapping[str, Any],
    accelerator_key: str = "accelerator",
    details: bool = True,
    discovery_names: bool = True,
    device_plugin_config: str = "",
    extra: Mapping[str, Any] | None = None,
    mig: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Return the labels of a node; none without a GPU.

    :param accelerator_key: name of the label with the model; empty for none.
    :param details: whether to add labels with count, product, memory, driver and so on.
    :param discovery_names: whether to add labels with the names of GPU feature discovery.
    :param device_plugin_config: the plugin's configuration for this node.
    :param extra: more labels for a node with a GPU, by name.
    :param mig: mode and devices that GPUs will have: the ``devices`` of the MIG plan.
    """
    vendor = gpu_vendor(gpu_node["gpus"])
    if vendor == "none":
        return {}
    gpus = [
        gpu
        for gpu in gpu_node["gpus"]
        # Virtual functions of a card are for virtual machines, not for the host.
        if gpu["vendor"] == vendor and not gpu["virtual_function"]
    ] or [gpu for gpu in gpu_node["gpus"] if gpu["vendor"] == vendor]
    devices = _devices(with_planned_mig(gpu_node, mig), vendor)
    labels: dict[str, str] = {MARKER: vendor}
    for one in gpu_vendors(gpu_node["gpus"]):
        labels[VENDOR_MARKER.format(vendor=one)] = "true"
    models = {model(product, vendor) for product in _products(gpus, devices)}
    # A pod that selects a model may get any GPU of the node, so that a mixed node has no model.
    if accelerator_key and len(models) == 1:
        labels[accelerator_key] = models.pop()
    if details:
        labels.update(_details(gpu_node, gpus, devices))
    if discovery_names and vendor == "nvidia":
        labels.update(_discovered(gpu_node, gpus, devices))
    if device_plugin_config and vendor == "nvidia":
        labels[PLUGIN_CONFIG] = device_plugin_config
    for name, value in (extra or {}).items():
        if value is not None:
            labels[name] = label_text(value)
    return dict(sorted(labels.items()))


def _devices(gpu_node: Mapping[str, Any], vendor: str) -> Sequence[Mapping[str, Any]]:
    nvml = gpu_node.get("nvml")
    return nvml["devices"] if nvml and vendor == "nvidia" else []


def _products(
    gpus: Sequence[Mapping[str, Any]], devices: Sequence[Mapping[str, Any]]
) -> Sequence[str]:
    """Return the product of each GPU by PCI ID, which no driver changes, or else from NVML."""
    names = {device["address"]: device["name"] for device in devices}
    found = [gpu["product"] or names.get(gpu["address"]) for gpu in gpus]
    return [name for name in found if name] if all(found) else []


def _details(
    gpu_node: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]],
    devices: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
    products = set(_products(gpus, devices))
    generations = {gpu["generation"] for gpu in gpus} - {"unknown", None}
    memory = [device["memory_total"] for device in devices if device["memory_total"]]
    modes = {device["mig_mode"] for device in devices} - {None}
    values: dict[str, object] = {
        "gpu.count": len(gpus),
        "gpu.product": products.pop() if len(products) == 1 else None,
        "gpu.generation": generations.pop() if len(generations) == 1 else None,
        # The minimum that a pod gets on any GPU.
        "gpu.memory": min(memory) if memory else None,
        "mig": (modes.pop() if len(modes) == 1 else "mixed") if modes else None,
    }
    if "enabled" in {device["mig_mode"] for device in devices}:
        values["mig.devices"] = sum(len(device["mig_devices"]) for device in devices)
    if gpus[0]["vendor"] == "nvidia":
        values["driver.version"] = gpu_node["driver"]["loaded"]
        values["cuda.version"] = gpu_node["cuda"]["driver_supports"]
    return _valid({f"{PREFIX}/{name}": value for name, value in values.items()})


def _discovered(
    gpu_node: Mapping[str, Any],
    gpus: Sequence[Mapping[str, Any]],
    devices: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
    """Return the labels of GPU feature discovery that the facts also provide."""
    if not devices:
        # Feature discovery reads NVML, and sets no labels without it.
        return {}
    names = {device["name"] for device in devices}
    generations = {gpu["generation"] for gpu in gpus} - {"unknown", None}
    memory = [device["memory_total"] for device in devices if device["memory_total"]]
    family = generations.pop() if len(generations) == 1 else None
    values: dict[str, object] = {
        "gpu.count": len(devices),
        "gpu.product": names.pop() if len(names) == 1 else None,
        "gpu.memory": min(memory) if memory else None,
        "gpu.family": _FAMILIES.get(str(family), family),
        "mig.capable": "true" if any(device["mig_mode"] for device in devices) else "false",
    }
    version = str(gpu_node["nvml"]["driver_version"] or "").split(".")
    # The newer names in addition to the older ones (k8s-device-plugin, internal/lm/nvml.go).
    if version != [""]:
        values["cuda.driver-version.full"] = ".".join(version)
        for name, parts in (
            ("cuda.driver", ("major", "minor", "rev")),
            ("cuda.driver-version", ("major", "minor", "revision")),
        ):
            values.update(zip((f"{name}.{part}" for part in parts), version))
    cuda = str(gpu_node["nvml"]["cuda_version"] or "").split(".")
    if len(cuda) == 2:
        values["cuda.runtime-version.full"] = ".".join(cuda)
        for name in ("cuda.runtime", "cuda.runtime-version"):
            values.update(zip((f"{name}.{part}" for part in ("major", "minor")), cuda))
    return _valid({f"nvidia.com/{name}": value for name, value in values.items()})


def _valid(values: Mapping[str, object]) -> dict[str, str]:
    made = {name: label_value(value) for name, value in values.items() if value is not None}
    return {name: value for name, value in made.items() if value}
