# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A site that has nothing to change: beside ping, setup and what people write by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import first
from tests.bench.measure import REFERENCE, alternate, playbook, run
from tests.testbed import calls
from tests.testbed.fleet import Node

SITE, PLAIN = "kubegpu.nodes.site", REFERENCE / "plain.yml"
# Labels are the cluster's part here; there is no kubelet whose pods could be verified.
LABELS = ("--skip-tags", "device_plugin,verify")


@dataclass(frozen=True)
class Case:
    """A command, the nodes it is for, and further variables of its environment."""

    argv: list[str]
    nodes: Sequence[Node]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sides:
    """The commands of both sides.

    The groups of the inventory are ours_gpu, ours_other, ours_many, plain_gpu; ours_many is a node
    of ours_other under ``many`` names. ``requests`` are the variables of both, ``cluster`` those
    for labels.
    """

    inventories: Sequence[Path]
    requests: Sequence[str]
    cluster: Sequence[str]
    many: int

    def site(self, *more: str) -> list[str]:
        return playbook(self.inventories, SITE, *self.requests, *more)

    def site_with_labels(self, *more: str) -> list[str]:
        return self.site(*LABELS, *self.cluster, *more)

    def by_hand(self) -> list[str]:
        return playbook(self.inventories, PLAIN, *self.requests, "--skip-tags", "labels")

    def by_hand_with_labels(self) -> list[str]:
        return playbook(self.inventories, PLAIN, *self.requests, *self.cluster)

    def floor(self, name: str, *more: str) -> list[str]:
        return playbook(self.inventories, REFERENCE / f"{name}.yml", *more)


def measure(
    sides: Sides, ours: Sequence[Node], plain: Sequence[Node], rounds: int
) -> dict[str, Any]:
    """Return the figures for GPU nodes and for the others, each apart."""
    gpu = [node for node in ours if node.gpus]
    others = [node for node in ours if not node.gpus]
    plain = [node for node in plain if node.gpus]

    def floors(group: str, nodes: Sequence[Node]) -> dict[str, Case]:
        limit = ("--limit", group)
        return {
            "ping": Case(sides.floor("ping", *limit), nodes),
            "setup": Case(sides.floor("setup", *limit), nodes),
            "site": Case(sides.site(*limit), nodes),
        }

    on_gpu_nodes = {
        **floors("ours_gpu", gpu),
        "by hand": Case(sides.by_hand(), plain),
        "site with labels": Case(sides.site_with_labels("--limit", "ours_gpu"), gpu),
        "by hand with labels": Case(sides.by_hand_with_labels(), plain),
    }
    return {
        "GPU nodes": in_turn(on_gpu_nodes, rounds),
        "other nodes": in_turn(floors("ours_other", others), rounds),
        "many other nodes": in_turn(floors("ours_many", others), rounds, names=sides.many),
    }


def in_turn(cases: Mapping[str, Case], rounds: int, *, names: int = 1) -> dict[str, dict[str, Any]]:
    """Measure commands in turn.

    :param names: under how many names each node is in the inventory.
    """
    counted = {name: _counted(case, names) for name, case in cases.items()}
    runs = {
        name: lambda case=case: run(case.argv, **case.environment) for name, case in cases.items()
    }
    return {
        name: {
            **median.to_json(),
            **counted[name],
            "nodes": names * len(cases[name].nodes),
            "cpu_per_node": round(median.cpu / (names * len(cases[name].nodes)), 3),
        }
        for name, median in alternate(runs, rounds).items()
    }


def _counted(case: Case, names: int) -> dict[str, Any]:
    """Return the tasks and module calls of one run, which has to find nothing to change."""
    calls.reset(case.nodes)
    _sample, tasks = first.timed(case.argv, **case.environment)
    changed = [task["task"] for task in tasks if task["changed"]]
    if changed:
        raise SystemExit(f"{' '.join(case.argv)} was to change nothing: {changed}")
    return {
        "tasks": sum(task["run"] for task in tasks),
        "skipped": sum(not task["run"] for task in tasks),
        "calls_per_node": max(calls.count(case.nodes).values()) // names,
    }
