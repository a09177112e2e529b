# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expectations of hosts, what was read of the cluster, and what nodes lack. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.finding import Finding
from .._core.printable import printable
from .._hardware.vendors import container_gpus, gpu_vendor
from .._known_faults.predicates import partial
from .allocation import NodeState
from .dra import Dra
from .pods import PodView
from .workloads import (
    DEVICE_PLUGIN,
    Workload,
)

_VENDORS = {"nvidia.com": "nvidia", "amd.com": "amd", "gpu.intel.com": "intel"}
VENDORS = tuple(_VENDORS.values())
#: Codes of causes that waiting does not resolve.
_FINAL = frozenset(
    {
        "node_uncertain", "node_unknown", "no_plugin", "plugin_selects_not",
        "plugin_tolerates_not", "two_allocators", "dra_device_tainted", "dra_too_few",
        "discovery_selects_not",
    }
)  # fmt: skip


def vendor_of(resource: str) -> str:
    """Return the vendor of a resource's name; empty if it is unknown."""
    return _VENDORS.get(resource.partition("/")[0], "")


@dataclass(frozen=True)
class Expected:
    """The resources that a host should offer, and relevant facts of the host."""

    key: str
    name: str
    machine_id: str | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    #: Version of the loaded driver; empty for none, None if unknown.
    driver: str | None = None
    default_runtime: str | None = None
    gpus: tuple[Mapping[str, Any], ...] = ()
    #: Whether it has GPUs whose resource names are unknown.
    some: bool = False
    #: The vendors whose number of GPUs is unknown: each has to offer at least one.
    some_of: tuple[str, ...] = ()
    #: What else decides what a message of a pod means, as :func:`.predicates.deciding` returns it.
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def known(self) -> Mapping[str, Any]:
        """What is known of the host, as a part of the fact ``gpu_node``."""
        return {**partial(self.driver), **self.facts, "gpus": self.gpus}

    @property
    def none(self) -> bool:
        """Whether the host has no GPU, so that it should offer nothing."""
        return not self.some and not self.some_of and not any(self.resources.values())

    @property
    def counted(self) -> set[str]:
        """The vendors with a known number of GPUs."""
        return {vendor_of(name) for name, count in self.resources.items() if count} - {""}

    @property
    def uncounted(self) -> set[str]:
        """The vendors of whose GPUs any number is right, and none is not."""
        # Of any GPU, the vendor that the node is named by: another one may be there for the screen.
        first = gpu_vendor(self.gpus) if self.some else "none"
        there = bool(container_gpus({"gpus": self.gpus}, first))
        return {*self.some_of, *([first] if there else [])}

    @property
    def vendors(self) -> set[str]:
        return {vendor for vendor in map(vendor_of, self.resources) if vendor} | self.uncounted


@dataclass(frozen=True)
class View:
    """The workloads and pods of a cluster that explain missing GPUs."""

    parts: Sequence[Workload] = ()
    #: Pods of device plugins by node, with log and events if these were read.
    pods: Mapping[str, Sequence[PodView]] = field(default_factory=dict)
    #: Messages of the events of a plugin's DaemonSet, by ``namespace/name``.
    events: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dra: Dra = field(default_factory=Dra)
    #: Pods of DRA drivers by node, as :attr:`pods`.
    dra_pods: Mapping[str, Sequence[PodView]] = field(default_factory=dict)
    #: Pods of this collection's GPU feature discovery by node.
    discovery: Mapping[str, Sequence[PodView]] = field(default_factory=dict)
    #: Pods of exporters of NVIDIA's GPUs by node.
    exporters: Mapping[str, Sequence[PodView]] = field(default_factory=dict)
    #: Hosts with an ambiguous node, and why.
    refused: Mapping[str, Finding] = field(default_factory=dict)

    def plugin_pods(self, node: str) -> Sequence[PodView]:
        return self.pods.get(node, ())


@dataclass(frozen=True)
class Shortfall:
    """A host whose node does not offer the expected resources, and why."""

    expected: Expected
    node: str | None
    allocatable: Mapping[str, int]
    finding: Finding
    pod: str | None = None
    #: The failing component: device plugin or GPU feature discovery.
    part: str = DEVICE_PLUGIN

    @property
    def final(self) -> bool:
        return self.finding.code in _FINAL

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.expected.key,
            "node": self.node,
            "expected": dict(self.expected.resources),
            "allocatable": dict(self.allocatable),
            "pod": self.pod,
            "part": self.part,
            "code": self.finding.code,
            # The roles show them, and a pod's log is in them.
            "cause": printable(self.finding.cause),
            "evidence": printable(self.finding.evidence),
            "next_step": printable(self.finding.next_step),
        }


@dataclass(frozen=True)
class Snapshot:
    """The cluster at one time."""

    states: Mapping[str, NodeState]
    view: View
    matches: Mapping[str, NodeState | None]
    shortfalls: tuple[Shortfall, ...]
    notes: tuple[str, ...] = ()
    #: The container of each pod whose log is read.
    containers: Mapping[str, str] = field(default_factory=dict)

    @property
    def open(self) -> list[Shortfall]:
        """The shortfalls that waiting may resolve."""
        return [short for short in self.shortfalls if not short.final]
