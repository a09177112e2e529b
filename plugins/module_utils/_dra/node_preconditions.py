# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVIDIA's DRA driver needs of a node: driver, CDI, labels, kubelet, and free GPUs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._cluster.allocation import is_gpu_resource
from .._core.versions import version_numbers
from .._device_plugin.daemonsets import MARKER
from .._nvidia.fabric import RACKS
from .cluster_preconditions import dotted
from .data import (
    CLIQUE_LABEL,
    CONTAINERD_CDI,
    CONTAINERD_CDI_ON,
    CRIO_CDI_ON,
    DNS_NAMES,
    DRIVER_DOMAINS,
    DRIVER_GPUS,
    DYNAMIC_MIG,
    HOST_MANAGED,
    PRESENT_LABELS,
)
from .options import PREFIX
from .types import Layout, Precondition, Request

_IMEX = "nvidia-imex"
_FOLDERS = ("plugins_registry", "plugins")
_MASK = "systemctl disable --now nvidia-imex.service && systemctl mask nvidia-imex.service"


def node_preconditions(
    request: Request,
    layout: Layout,
    name: str,
    host: Mapping[str, Any],
    state: Mapping[str, Any] | None,
) -> list[Precondition]:
    """Return the preconditions of a host with GPUs.

    :param host: ``gpu_node`` (the facts), ``driver`` (the version that this run will load),
        ``cdi`` (whether the run enables CDI in containerd) and ``labelled`` (whether the run labels
        the node).
    :param state: its node in the result of gpu_cluster_info; None if the cluster does not have it.
    """
    node = host["gpu_node"]
    labels = (state or {}).get("labels") or {}
    found = [
        _driver(request, layout, name, host),
        _cdi(name, node, bool(host.get("cdi"))),
        _label(name, labels, state is not None),
        _kubelet(request, name, node),
    ]
    if request.gpus:
        found += _free(name, state or {})
    if request.gate(DYNAMIC_MIG):
        found.append(_partitions(name, host))
    if layout.compute_domains:
        found += [
            _nvlink(name, node),
            _clique(layout, name, labels),
            _imex(request, name, node),
        ]
    return found


def is_in_rack(node: Mapping[str, Any]) -> str:
    """Return the rack whose tray the node is, with NVLink between its nodes; empty for none."""
    ids = [str(gpu.get("device_id")) for gpu in node.get("gpus") or ()]
    return next((RACKS[one] for one in ids if one in RACKS), "")


def _driver(request: Request, layout: Layout, name: str, host: Mapping[str, Any]) -> Precondition:
    loaded = (host["gpu_node"].get("driver") or {}).get("loaded") or ""
    coming = str(host.get("driver") or "")
    given = coming or loaded
    needed = DRIVER_GPUS
    if layout.compute_domains and request.gate(DNS_NAMES):
        needed = DRIVER_DOMAINS
    what = "driver"
    step = (
        f"Install {dotted(needed)} or later (nvidia_driver_branch), which the run then does first."
    )
    if not given:
        return Precondition(name, what, "none", False, "no module nvidia is loaded", step)
    evidence = f"this run loads it; {dotted(needed)} is needed"
    if not coming or coming == loaded:
        evidence = f"/proc/driver/nvidia/version; {dotted(needed)} is needed"
    met = version_numbers(given) >= needed
    return Precondition(name, what, given, met, evidence, "" if met else step)


def _cdi(name: str, node: Mapping[str, Any], asked_for: bool) -> Precondition:
    runtimes = node.get("runtimes") or {}
    containerd, crio = runtimes.get("containerd") or {}, runtimes.get("crio") or {}
    if containerd.get("cri_enabled"):
        return _cdi_of_containerd(name, containerd, asked_for)
    if crio:
        version = str(crio.get("version") or "")
        value = f"CRI-O {version or 'of unknown version'}"
        evidence = f"CRI-O has CDI from {dotted(CRIO_CDI_ON)} on by default"
        if not version:
            return Precondition(name, "CDI", value, None, evidence, "Check: crio --version")
        met = version_numbers(version)[:2] >= CRIO_CDI_ON
        return Precondition(name, "CDI", value, met, evidence, "" if met else "Upgrade CRI-O.")
    if runtimes.get("docker") and not containerd:
        return Precondition(
            name, "CDI", "Docker", None, "neither containerd's CRI nor CRI-O is on the node",
            "See that cri-dockerd passes CDI devices on to Docker, or use containerd.",
        )  # fmt: skip
    return Precondition(
        name, "CDI", "unknown", None, "the configuration of containerd could not be read",
        "Check: containerd config dump",
    )  # fmt: skip


def _cdi_of_containerd(name: str, containerd: Mapping[str, Any], asked_for: bool) -> Precondition:
    version = str(containerd.get("version") or "")
    numbers, enabled = version_numbers(version)[:2], containerd.get("cdi_enabled")
    value = f"containerd {version or 'of unknown version'}"
    dump = "containerd config dump: enable_cdi "
    if enabled:
        return Precondition(name, "CDI", f"{value}, enabled", True, f"{dump}is true")
    if numbers and numbers < CONTAINERD_CDI:
        return Precondition(
            name, "CDI", f"{value}, without CDI", False,
            f"containerd has CDI from {dotted(CONTAINERD_CDI)} on",
            "Upgrade containerd (2.0 has CDI on by default), then run again.",
        )  # fmt: skip
    if asked_for:
        evidence = "nvidia_container_toolkit_runtime_cdi: this run enables it"
        return Precondition(name, "CDI", value, True, evidence)
    if enabled is None:
        on = numbers >= CONTAINERD_CDI_ON
        return Precondition(
            name, "CDI", value, True if on else None, f"{dump}is not shown",
            "" if on else "Check: containerd config dump",
        )  # fmt: skip
    return Precondition(
        name, "CDI", f"{value}, off", False, f"{dump}is false",
        "Set nvidia_container_toolkit_runtime_cdi: true, which switches it on.",
    )  # fmt: skip


def _label(name: str, labels: Mapping[str, str], known: bool) -> Precondition:
    marker, wanted = next(iter(MARKER.items()))
    if not known:
        return Precondition(
            name, "node", "not in the cluster", None, "no node has its machine id or its name",
            "Join it to the cluster, or set gpu_node_labels_node_name.",
        )  # fmt: skip
    others = [one for one in PRESENT_LABELS if labels.get(one) == "true"]
    evidence = f"feature discovery: {', '.join(others) or 'no labels of it, and none is needed'}"
    if labels.get(marker) == wanted:
        return Precondition(name, "label", f"{marker}={wanted}", True, evidence)
    return Precondition(
        name, "label", f"no {marker}={wanted}", True, evidence,
        "The role gpu_node_labels sets it, in the same run of site.",
    )  # fmt: skip


def _kubelet(request: Request, name: str, node: Mapping[str, Any]) -> Precondition:
    kubelet = node.get("kubelet")
    what, option = "kubelet's folder", f"{PREFIX}kubelet_directory"
    if not kubelet:
        return Precondition(
            name, what, "none", False, "no kubelet has made its folder on the node",
            f"Join the node to the cluster, or set {option} to the kubelet's --root-dir.",
        )  # fmt: skip
    value = str(kubelet["directory"])
    if value != request.kubelet_directory:
        return Precondition(
            name, what, value, None, f"{option} is {request.kubelet_directory}",
            f"Set {option}: {value} if the kubelet uses it.",
        )  # fmt: skip
    lacking = [one for one in _FOLDERS if one not in kubelet["plugin_folders"]]
    if lacking:
        return Precondition(
            name, what, value, False, f"without {', '.join(lacking)}",
            "Start the kubelet, which makes them.",
        )  # fmt: skip
    return Precondition(name, what, value, True, f"with {', '.join(_FOLDERS)}")


def _free(name: str, state: Mapping[str, Any]) -> list[Precondition]:
    """Return whether pods hold GPUs that a device plugin gave them."""
    mine = {
        resource: one
        for resource, one in (state.get("resources") or {}).items()
        if resource.startswith("nvidia.com/") and is_gpu_resource(resource) and not one["dra"]
    }
    pods = sorted(
        {f"{pod['namespace']}/{pod['name']}" for one in mine.values() for pod in one["pods"]}
    )
    offered = ", ".join(
        f"{one['allocatable']} {resource}" for resource, one in mine.items() if one["allocatable"]
    )
    if not pods:
        return [Precondition(name, "GPUs of the device plugin", offered or "none", True, "no pods")]
    return [
        Precondition(
            name, "GPUs of the device plugin", offered or "none offered", False,
            f"pods have them: {', '.join(pods)}",
            "Drain the node or wait for the pods: the DRA driver would give their GPUs to others.",
        )
    ]  # fmt: skip


def _partitions(name: str, host: Mapping[str, Any]) -> Precondition:
    managed = bool((host["gpu_node"].get("mig") or {}).get("managed") or host.get("mig"))
    if managed:
        return Precondition(
            name, "MIG", "partitioned by nvidia_mig", False,
            f"{DYNAMIC_MIG} destroys partitions that the DRA driver did not make",
            f"Leave {DYNAMIC_MIG} out, or stop partitioning the node (nvidia_mig_config).",
        )  # fmt: skip
    return Precondition(name, "MIG", "not partitioned by this collection", True)


def _nvlink(name: str, node: Mapping[str, Any]) -> Precondition:
    rack = is_in_rack(node)
    if rack:
        return Precondition(name, "NVLink between nodes", rack, True, "PCI ids of the GPUs")
    products = ", ".join(sorted({str(gpu["product"]) for gpu in node["gpus"]}))
    return Precondition(
        name, "NVLink between nodes", "none known", None, f"GPUs: {products}",
        f"Compute domains are for racks (GB200 NVL72); set {PREFIX}compute_domains: false.",
    )  # fmt: skip


def _clique(layout: Layout, name: str, labels: Mapping[str, str]) -> Precondition:
    value = labels.get(CLIQUE_LABEL)
    if value:
        return Precondition(name, "NVLink clique", value, True, f"label {CLIQUE_LABEL}")
    if layout.clique_label:
        evidence = f"no label {CLIQUE_LABEL}; the DRA driver sets it, as no feature discovery does"
        return Precondition(name, "NVLink clique", "no label", True, evidence)
    return Precondition(
        name, "NVLink clique", "no label", None, f"no label {CLIQUE_LABEL}",
        "See that GPU feature discovery runs on the node, and that its GPUs joined the fabric.",
    )  # fmt: skip


def _imex(request: Request, name: str, node: Mapping[str, Any]) -> Precondition:
    driver = node.get("driver") or {}
    packages = [one for one in driver.get("packages") or {} if one.startswith(_IMEX)]
    unit = (driver.get("services") or {}).get(_IMEX)
    value = f"{', '.join(packages) or 'no package'}; service {unit or 'not there'}"
    evidence = f"{PREFIX}imex_mode is {request.imex_mode}"
    if request.imex_mode == HOST_MANAGED:
        met = unit == "active"
        step = (
            "Install and start nvidia-imex (nvidia_driver_imex, nvidia_driver_imex_nodes), with "
            "IMEX_CMD_ENABLED=1 and IMEX_CMD_UNIX_DOMAIN_PATH=/etc/nvidia-imex/imex_ctrl.sock in "
            "/etc/nvidia-imex/config.cfg."
        )
        return Precondition(name, "IMEX", value, met, evidence, "" if met else step)
    if not packages and not unit:
        return Precondition(
            name, "IMEX", value, False, evidence,
            "Install the package (nvidia_driver_imex: true); its service remains off.",
        )  # fmt: skip
    met = unit in (None, "masked")
    evidence += ": the DRA driver starts IMEX itself"
    return Precondition(name, "IMEX", value, met, evidence, "" if met else f"Run: {_MASK}")
