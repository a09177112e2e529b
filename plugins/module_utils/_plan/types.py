# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What plans are made from, besides the facts of the node and the variables of the roles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .._core.options import Spec

#: The parts that a cluster has once (``cluster.py``), which is imported for them only.
CLUSTER_PARTS = (
    "nvidia_dra_driver",
    "nvidia_device_plugin",
    "amd_device_plugin",
    "intel_device_plugin",
    "gpu_monitoring",
)
#: The labels of its nodes, which one call applies.
LABELS = "gpu_node_labels"

Facts = Mapping[str, Any]
Plan = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """The run that plans.

    :param controller: version of its ansible-core, which installs the packages.
    :param today: the date against which support ends are compared, as YYYY-MM-DD.
    :param driver_selected: whether its tags include the driver.
    :param cluster: what ``gpu_cluster_info`` says of the node; empty if it was not asked.
    :param hosts: the hosts of its inventory; None without one.
    """

    controller: str = ""
    today: str = ""
    driver_selected: bool = True
    cluster: Mapping[str, Any] = field(default_factory=dict)
    hosts: Collection[str] | None = None


@dataclass(frozen=True)
class Node:
    """A node whose part is planned.

    :param variables: of its roles, as people set them, and their results.
    :param plans: of its parts, also of those that an earlier call planned.
    :param together: the parts that this call plans.
    """

    facts: Facts
    variables: Mapping[str, Any]
    run: Run
    plans: Mapping[str, Plan]
    together: Collection[str]


@dataclass(frozen=True)
class Part:
    """A part of a node, which one role changes.

    :param arguments: the options that are read from variables, and those that the run sets.
    :param plan: returns the plan for the options.
    :param refused: returns the plan of a wrong value.
    :param internal: the options that no variable sets.
    :param switch: the variable with which there is nothing to plan; empty if there is none.
    :param others: further variables that the plan depends on.
    :param role: the role with its variables, if the part has another name.
    """

    arguments: Spec
    plan: Callable[[Node, dict[str, Any]], Plan]
    refused: Callable[[InputError], Plan]
    internal: Collection[str] = ()
    switch: str = ""
    others: Collection[str] = ()
    role: str = ""
