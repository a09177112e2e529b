# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""This checkout beside another commit: the same converged work, in turn, in one run.

Each side has GPU nodes of its own, since what one version records on a node is not the other's.
Facts are read on one node by both, and both label the same nodes of one API server.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import converged, modules
from tests.bench.converged import Case, Sides
from tests.bench.labels import Bench
from tests.bench.measure import alternate, run, tell
from tests.testbed.cluster_control import ControlPlane
from tests.testbed.fleet import Node
from tests.testbed.paths import BUILD, REPOSITORY

FACTS = "kubegpu.nodes.gpu_node_facts"
# Nodes of the API server that are labelled.
LABELLED = 500
HERE = "this checkout"


@contextmanager
def checked_out(commit: str) -> Iterator[dict[str, str]]:
    """Yield the environment in which the collection is that of a commit."""
    with tempfile.TemporaryDirectory(prefix="kubegpu-beside-") as folder:
        archive = Path(folder) / "commit.tar"
        subprocess.run(
            ["git", "archive", "--output", str(archive), commit], cwd=REPOSITORY, check=True
        )
        place = Path(folder) / "ansible_collections" / "kubegpu" / "nodes"
        place.mkdir(parents=True)
        with tarfile.open(archive) as files:
            files.extractall(place, filter="data")
        yield {"ANSIBLE_COLLECTIONS_PATH": folder}


def measure(
    sides: Sides,
    ours: Sequence[Node],
    others: Sequence[Node],
    commit: str,
    variables: Mapping[str, Any],
    rounds: int,
) -> dict[str, Any]:
    """Return the figures of both sides: site, site with labels, facts, labels alone.

    :param ours: the nodes of this checkout, in the group ``ours_gpu``.
    :param others: the nodes of the other commit, in the group ``plain_gpu``.
    :param variables: what the other commit calls by other names; values are templates.
    """
    with checked_out(commit) as environment:
        their = replace(sides, requests=[*sides.requests, "-e", json.dumps(variables)])
        both = {
            HERE: (sides, "ours_gpu", ours, {}),
            commit: (their, "plain_gpu", others, environment),
        }
        plain, labelled = {}, {}
        for name, (side, group, nodes, more) in both.items():
            limit = ("--limit", group)
            plain[name] = Case(side.site(*limit), nodes, more)
            labelled[name] = Case(side.site_with_labels(*limit), nodes, more)
        # The first run makes the nodes ready, the second records that nothing is left to do.
        for case in (*plain.values(), *labelled.values(), *plain.values()):
            run(case.argv, **case.environment)
        node = ours[0]
        calls = {
            name: partial(modules.call, sides.inventories, node, FACTS, {"root": "/"}, **more)
            for name, (_side, _group, _nodes, more) in both.items()
        }
        return {
            "site": converged.in_turn(plain, rounds),
            "site with labels": converged.in_turn(labelled, rounds),
            "gpu_node_facts": modules.in_turn(calls, 2 * rounds),
            f"node_gpu_label, {LABELLED} nodes": _labels(
                {name: more for name, (_side, _group, _nodes, more) in both.items()}, rounds
            ),
        }


def _labels(environments: Mapping[str, Mapping[str, str]], rounds: int) -> dict[str, Any]:
    """Measure ``node_gpu_label`` where no label differs, on an API server of its own."""
    plane = ControlPlane(BUILD / "labels")
    with tempfile.TemporaryDirectory(prefix="kubegpu-bench-") as folder:
        try:
            plane.up(with_parent=True)
            bench = Bench(plane, LABELLED, 0, Path(folder))
            cases = {name: bench.module(None, more) for name, more in environments.items()}
            found = alternate(cases, rounds)
            bench.check(bench.names)
        finally:
            plane.remove()
    return {name: median.to_json() for name, median in found.items()}


def rows(found: Mapping[str, Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Return a row for each case: both sides' figures, and this checkout's by the other's."""
    lines: list[tuple[object, ...]] = []
    for case, by_side in found.items():
        here, other = by_side[HERE], next(one for name, one in by_side.items() if name != HERE)
        figures = [("seconds", "s"), ("cpu", "s CPU")]
        if "node_cpu" in here:
            figures += [("node_cpu", "s CPU of the node"), ("bytes", "bytes sent to the node")]
        for key, unit in figures:
            ratio = here[key] / other[key]
            lines.append((f"{case}, {unit}", f"{here[key]:g}", f"{other[key]:g}", f"{ratio:.3f}"))
        if "calls_per_node" in here:
            calls = (here["calls_per_node"], other["calls_per_node"])
            lines.append((f"{case}, module calls a node", *calls, ""))
    tell("ratios are those of medians, both sides in turn")
    return lines
