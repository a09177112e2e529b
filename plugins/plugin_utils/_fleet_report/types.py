# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet: what a host gives to it, and what it consists of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding

Object = Mapping[str, Any]

#: Of the JSON. A report with another one is not compared.
SCHEMA = "kubegpu.nodes/report/1"

#: States of a node, the worst first. Of one that was read in part, nothing bad was seen.
FAILED, UNKNOWN, PARTLY = "failed", "unknown", "partly"
ATTENTION, READY, NO_GPU = "attention", "ready", "no_gpu"
STATES = (FAILED, UNKNOWN, PARTLY, ATTENTION, READY, NO_GPU)
#: A version that could not be read; it differs from no other one.
NOT_KNOWN = "unknown"

#: What can be left out of a report, by the name of the GPU's value.
HIDDEN = ("serial", "uuid", "address", "machine_id")


@dataclass(frozen=True)
class Source:
    """What is known of a host.

    :param facts: the fact ``gpu_node``; None if the node was not read.
    :param plan: its row of the plan table.
    :param applied: whether the plan of this host was applied in this run.
    :param left: what is still to be done after the run, as the result table has it.
    :param pending: of that the reboots and restarts.
    :param layers: results of the verification; None if it was not verified.
    :param health: result of ``gpu_node_health``; None if it was not read.
    :param diagnosis: root causes of the host itself that a diagnosis found; None without one.
    :param verdict: that of the diagnosis; empty without one.
    :param root: whether the host was read as root.
    :param failure: why the run stopped at this host, as ``kubegpu_failure`` has it, or
        ``kubegpu_prometheus_failure``.
    :param upgrade: how its upgrade ended.
    :param acceptance: how its acceptance ended in this run.
    :param cluster: its node in the cluster, as ``gpu_cluster_info`` has it.
    :param node: the name of its node in the cluster; empty if it is not known.
    :param unseen: what could not be read, and why.
    :param switches: the variables with which a role leaves a driver alone, with their values.
    """

    name: str
    facts: Object | None = None
    plan: Object = field(default_factory=dict)
    applied: bool = False
    left: tuple[str, ...] = ()
    pending: tuple[Object, ...] = ()
    layers: tuple[Object, ...] | None = None
    health: Object | None = None
    diagnosis: tuple[Object, ...] | None = None
    verdict: str = ""
    root: bool = True
    failure: Object = field(default_factory=dict)
    upgrade: Object = field(default_factory=dict)
    acceptance: Object = field(default_factory=dict)
    cluster: Object | None = None
    node: str = ""
    unseen: tuple[Object, ...] = ()
    switches: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Others:
    """What a diagnosis found that is not about a node of the report.

    :param findings: root causes of pods, and those of no host.
    :param unseen: what could not be seen and belongs to no host, such as the cluster.
    """

    findings: tuple[Object, ...] = ()
    unseen: tuple[Object, ...] = ()


@dataclass(frozen=True)
class Gpu:
    """A GPU. A value that nothing shows is empty, or None for a number.

    :param memory: in MiB.
    :param xids: Xids of the present boot, with their number.
    """

    address: str
    product: str
    index: int | None = None
    uuid: str = ""
    serial: str = ""
    memory: int | None = None
    mig: str = ""
    link: str = ""
    errors: str = ""
    xids: str = ""


@dataclass(frozen=True)
class Layer:
    """A layer of the verification: ``ok``, ``failed`` or ``not tried``, with proof or cause."""

    layer: str
    status: str
    subject: str = ""
    text: str = ""
    evidence: str = ""
    next_step: str = ""


@dataclass(frozen=True)
class Decision:
    """A change that was decided, empty for none, and the reason."""

    change: str
    why: str


@dataclass(frozen=True)
class Unseen:
    """What could not be read, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Resource:
    """GPUs that a node offers in a cluster."""

    name: str
    capacity: int
    allocatable: int
    allocated: int


@dataclass(frozen=True)
class Place:
    """The node of a host in a cluster."""

    node: str
    ready: bool
    cordoned: bool
    resources: tuple[Resource, ...] = ()


@dataclass(frozen=True)
class Node:
    """A node of the report.

    :param why: the worst cause, in one sentence; empty for a ready node.
    :param kind: products and system; only nodes of one kind are compared.
    :param versions: what is compared between nodes of one kind, by its title.
    :param notes: remarks that need no action.
    :param upgrade: how its upgrade ended; empty without one. The same for its acceptance.
    """

    name: str
    state: str
    why: str = ""
    machine_id: str = ""
    kind: str = ""
    system: str = ""
    product: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
    place: Place | None = None
    layers: tuple[Layer, ...] = ()
    causes: tuple[Finding, ...] = ()
    decisions: tuple[Decision, ...] = ()
    notes: tuple[str, ...] = ()
    upgrade: str = ""
    acceptance: str = ""
    unseen: tuple[Unseen, ...] = ()


@dataclass(frozen=True)
class Action:
    """What is to be done, with the findings of all nodes that need it."""

    finding: Finding
    found: tuple[Finding, ...]


@dataclass(frozen=True)
class Value:
    """A value, and the nodes that have it. ``minority`` marks what most nodes do not have."""

    value: str
    nodes: tuple[str, ...]
    minority: bool


@dataclass(frozen=True)
class Drift:
    """A difference between nodes of one kind."""

    kind: str
    what: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Change:
    """A difference of a node from the earlier report."""

    node: str
    kind: str
    text: str


@dataclass(frozen=True)
class Previous:
    """The earlier report: whether it was compared, or why not."""

    compared: bool = False
    generated: str = ""
    why: str = "No earlier report exists."


@dataclass(frozen=True)
class Request:
    """What is requested.

    :param generated: the time of the report; the only one that it has of its own.
    :param hide: values that are left out (:data:`HIDDEN`).
    """

    title: str = "GPU fleet"
    generated: str = ""
    hide: tuple[str, ...] = ()
