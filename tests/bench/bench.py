# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All parts of the benchmark, on a fleet and an API server of their own."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from tests.bench import beside, converged, first, growth, modules, report
from tests.bench.converged import Sides
from tests.bench.measure import run, tell
from tests.testbed import calls, cluster_made, engine, inventory, nodes, repository
from tests.testbed.cluster_control import ControlPlane
from tests.testbed.fleet import FLEET, Node
from tests.testbed.nodes import execute
from tests.testbed.paths import BUILD, REPOSITORY

RESULTS = REPOSITORY / "build" / "bench.json"
# Of both sides. The stand-in driver brings nothing into a container that could be looked at.
REQUESTS = {
    "nvidia_driver_source": "nvidia",
    "nvidia_driver_branch": "580",
    "gpu_verify_container": False,
}
# What is once for a run counts less with more hosts.
MANY = 20
OURS = tuple(node for node in FLEET if node.name.startswith("ours"))
PLAIN = tuple(node for node in FLEET if node.name.startswith("plain"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parts = ("first", "converged", "modules", "growth", "labels", "drain", "report")
    parser.add_argument("--only", choices=parts, action="append", help="one part; can be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(growth.SIZES))
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md too")
    parser.add_argument("--keep", action="store_true", help="leave the nodes there at the end")
    parser.add_argument("--beside", metavar="COMMIT", help="this checkout and a commit, in turn")
    parser.add_argument(
        "--beside-variables",
        type=json.loads,
        default={},
        metavar="JSON",
        help="variables that the commit calls otherwise, as templates of those of today",
    )
    options = parser.parse_args()
    if options.beside:
        return _beside(options)
    wanted = options.only or parts
    found = _earlier() if options.only else {}
    found["machine"] = machine()
    if {"first", "converged", "modules"} & {*wanted}:
        with fleet(keep=options.keep) as sides:
            found.update(_on_fleet(sides, wanted, options.rounds))
            _keep(found)
    if "growth" in wanted:
        with tempfile.TemporaryDirectory(prefix="kubegpu-bench-") as folder:
            sizes = tuple(sorted(options.sizes))
            found["growth"] = growth.measure(Path(folder), sizes, min(options.rounds, 3))
            _keep(found)
    if "labels" in wanted:
        found["labels"] = {
            "500": _labels(500, options.rounds),
            "5000": _labels(5000, 3, "--without-loops"),
        }
        _keep(found)
    if "drain" in wanted:
        found["drain"] = _drain(200)
        _keep(found)
    if "report" in wanted:
        found["report"] = {**_report(), "date": found["machine"]["date"]}
        _keep(found)
    print(report.text(found))
    if options.write:
        print(f"written: {report.write(found, options.only or ())}")
    return 0


def _beside(options: argparse.Namespace) -> int:
    with fleet(keep=options.keep) as sides:
        ours, others = ([node for node in nodes if node.gpus] for nodes in (OURS, PLAIN))
        found = beside.measure(
            sides, ours, others, options.beside, options.beside_variables, options.rounds
        )
    RESULTS.parent.mkdir(exist_ok=True)
    path = RESULTS.with_name("bench-beside.json")
    path.write_text(json.dumps({"machine": machine(), **found}, indent=2) + "\n")
    head = ("case", beside.HERE, options.beside, "ratio")
    print(report.table(head, beside.rows(found)))
    return 0


def machine() -> dict[str, Any]:
    """Return where this was measured, and with what."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "?")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "ansible-core": version("ansible-core"),
        "kubegpu.nodes": yaml.safe_load((REPOSITORY / "galaxy.yml").read_text())["version"],
    }


@contextmanager
def fleet(*, keep: bool) -> Iterator[Sides]:
    """Both sides' nodes, bare, and an API server that knows them."""
    engine.up()
    nodes.down(FLEET)
    plane = ControlPlane(BUILD / "api")
    try:
        served = repository.up()
        nodes.up(FLEET)
        plane.up(with_parent=True)
        cluster_made.create(plane, [_registered(node) for node in FLEET])
        path = inventory.write(FLEET, served)
        groups = BUILD / "groups.yml"
        groups.write_text(yaml.safe_dump({**_groups(), **_many(MANY)}))
        for place in (path, groups):
            tell(f"inventory: {place}")
        yield Sides(
            (path, groups),
            ["-e", json.dumps(REQUESTS)],
            [
                *("-e", json.dumps({"kubegpu_kube": {"kubeconfig": str(plane.kubeconfig)}})),
                *("-e", f"plain_kubeconfig={plane.kubeconfig}"),
            ],
            MANY,
        )
    finally:
        plane.remove()
        if not keep:
            nodes.down(FLEET)
            repository.down()


def _groups() -> dict[str, Any]:
    kinds: dict[str, Callable[[Node], bool]] = {
        "ours_gpu": lambda node: node in OURS and bool(node.gpus),
        "ours_other": lambda node: node in OURS and not node.gpus,
        "plain_gpu": lambda node: node in PLAIN and bool(node.gpus),
    }
    return {
        name: {"hosts": {node.name: {} for node in FLEET if fits(node)}}
        for name, fits in kinds.items()
    }


def _many(count: int) -> dict[str, Any]:
    """Return a group of one node without a GPU under many names, with a connection for each."""
    node = next(node for node in OURS if not node.gpus)
    return {
        "ours_many": {
            "hosts": {f"{node.name}-{number:02d}": {} for number in range(count)},
            "vars": {
                "ansible_host": f"{{{{ hostvars['{node.name}'].ansible_host }}}}",
                "ansible_control_path": "%(directory)s/{{ inventory_hostname }}",
            },
        }
    }


def _registered(node: Node) -> dict[str, Any]:
    """Return the node as its kubelet would have registered it."""
    made = cluster_made.node(node.name)
    made["status"]["nodeInfo"]["machineID"] = execute(node, "cat", "/etc/machine-id").strip()
    return made


def _on_fleet(sides: Sides, wanted: Any, rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    gpu = next(node for node in OURS if node.gpus)
    other = next(node for node in PLAIN if node.gpus)
    site, by_hand = sides.site("--limit", "ours_gpu:ours_other"), sides.by_hand()
    if "first" in wanted:
        found["first"] = {
            "site": first.measure(gpu, site),
            "by hand": first.measure(other, by_hand),
        }
    for argv in (site, by_hand):
        run(argv)
    run(sides.site_with_labels("--limit", "ours_gpu"))
    run(sides.by_hand_with_labels())
    # What a run found as it should be is known to the next one.
    calls.reset(OURS)
    run(site)
    tell(f"module calls of a run that has nothing to change: {calls.count(OURS)}")
    if "converged" in wanted:
        found["converged"] = converged.measure(sides, OURS, PLAIN, rounds)
    if "modules" in wanted:
        found["modules"] = modules.measure(sides.inventories, gpu, 2 * rounds)
    return found


def _labels(count: int, rounds: int, *more: str) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        argv = [sys.executable, "-m", "tests.bench.labels", "--nodes", str(count)]
        argv += ["--rounds", str(rounds), "--json", file.name, *more]
        tell(f"labels of {count} nodes")
        tell(run(argv).output)
        found: dict[str, Any] = json.loads(Path(file.name).read_text())
    return found


def _drain(count: int) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        argv = [sys.executable, "-m", "tests.bench.drain", "--nodes", str(count)]
        tell(f"drain of {count} nodes")
        tell(run([*argv, "--json", file.name]).output)
        found: dict[str, Any] = json.loads(Path(file.name).read_text())
    return found


def _report() -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        tell("report of made hosts")
        run([sys.executable, "-m", "tests.bench.fleet_report", "--json", file.name])
        found: dict[str, Any] = json.loads(Path(file.name).read_text())
    return found


def _earlier() -> dict[str, Any]:
    if RESULTS.exists():
        found: dict[str, Any] = json.loads(RESULTS.read_text())
        return found
    return {}


def _keep(found: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
