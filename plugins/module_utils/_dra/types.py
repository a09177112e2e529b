# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for NVIDIA's DRA driver, and the preconditions that a node or a cluster meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .data import DRIVER_MANAGED, FEATURE_GATES

_TOLERATIONS: tuple[Mapping[str, Any], ...] = (
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
)


@dataclass(frozen=True)
class Request:
    """The desired DRA driver. Fields are named as the role's variables, without their prefix."""

    gpus: bool = True
    #: ``auto``: if a node of the run is a tray of a rack with NVLink between its nodes.
    compute_domains: str = "auto"
    #: The version of resource.k8s.io; ``auto`` is the newest that the cluster serves.
    api: str = "auto"
    device_plugin: str = "refuse"
    beside_others: bool = False
    namespace: str = "kubegpu"
    image: str = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu"
    version: str = "v0.5.0"
    digest: str = ""
    image_pull_policy: str = "IfNotPresent"
    pull_secret: str = ""
    feature_gates: Mapping[str, Any] = field(default_factory=dict)
    imex_mode: str = DRIVER_MANAGED
    driver_root: str = "/"
    kubelet_directory: str = "/var/lib/kubelet"
    priority_class: str = "system-node-critical"
    tolerations: Sequence[Mapping[str, Any]] = _TOLERATIONS
    node_selector: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    max_unavailable: str = "10%"
    annotations: Mapping[str, str] = field(default_factory=dict)
    log_verbosity: int = 4
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The image with tag or digest."""
        return f"{self.image}@{self.digest}" if self.digest else f"{self.image}:{self.version}"

    def gate(self, name: str) -> bool:
        """Return whether a feature gate of the driver is on."""
        return bool(self.feature_gates.get(name, FEATURE_GATES.get(name, False)))


@dataclass(frozen=True)
class Layout:
    """What is deployed: decided from the request, the cluster and its nodes."""

    #: The version of resource.k8s.io.
    api: str
    compute_domains: bool
    #: Whether the driver sets the label of the NVLink clique, because nothing else does.
    clique_label: bool = False
    #: Whether the cluster has admission policies.
    policy: bool = True


@dataclass(frozen=True)
class Precondition:
    """Something that the DRA driver needs of the cluster or of a node.

    :param node: the host; empty is the cluster.
    :param value: what is there.
    :param met: None where it cannot be told, which is a warning and no refusal.
    """

    node: str
    name: str
    value: str
    met: bool | None
    evidence: str = ""
    next_step: str = ""

    @property
    def verdict(self) -> str:
        return {True: "met", False: "missing", None: "unknown"}[self.met]

    def to_json(self) -> dict[str, Any]:
        return {
            "node": self.node or None,
            "name": self.name,
            "value": self.value,
            "verdict": self.verdict,
            "evidence": self.evidence,
            "next_step": self.next_step,
        }
