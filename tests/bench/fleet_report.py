# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``python -m tests.bench.fleet_report``: what a report of 1,000 hosts with 8 GPUs each costs.

The hosts are made (tests/unit/fixtures/fleet.py): every 50th has another driver, every 40th a
finding. Nothing of Ansible runs. ``make bench BENCH="--only report --write"`` runs it in a process
of its own, whose memory is a figure too, and writes the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.fleet.playbooks import COLLECTIONS, environment
from tests.unit.fixtures import fleet as made

_HOSTS = 1000
_PACKAGE = "ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report"


def make_hosts(count: int) -> dict[str, dict[str, Any]]:
    """Return the variables of hosts that were verified and whose health was read."""
    hosts, rows = {}, []
    for number in range(1, count + 1):
        name = f"gpu-{number:04d}"
        driver = "570.195.03" if number % 50 == 0 else "580.126.09"
        facts = made.facts(number, gpus=8, driver=driver)
        found = [made.remap()] if number % 40 == 0 else []
        hosts[name] = made.host(facts, made.health(facts, *found))
        rows.append({"node": name, "layers": made.layers(name)})
    for variables in hosts.values():
        variables["gpu_verify_result"] = {"rows": rows, "cluster": {}}
    return hosts


def measured(step: str, work: Callable[[], Any], rows: list[dict[str, Any]]) -> Any:
    """Do a step, add its row, and return its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    size = len(done.encode()) / 1e6 if isinstance(done, str) else None
    rows.append({"step": step, "seconds": wall, "cpu": cpu, "mb": size})
    return done


def measure() -> dict[str, Any]:
    """Return the rows of the steps, and what the page and the process need."""
    environment()
    sys.path.insert(0, str(COLLECTIONS))
    build, html, markdown, sources, types = (
        importlib.import_module(f"{_PACKAGE}.{name}")
        for name in ("build", "html", "markdown", "sources", "types")
    )
    load = os.getloadavg()[0]
    hosts = make_hosts(_HOSTS)
    rows: list[dict[str, Any]] = []
    known = measured("variables of the hosts", lambda: sources.host_sources([*hosts], hosts), rows)
    request = types.Request()
    first = measured("report without an earlier one", lambda: build.build(known, request), rows)
    again = measured("report, compared", lambda: build.build(known, request, first), rows)
    page = measured("HTML", lambda: html.render(again), rows)
    measured("JSON", lambda: build.dump(again), rows)
    measured("Markdown", lambda: markdown.render(again), rows)
    return {
        "hosts": _HOSTS,
        "load": load,
        "results": rows,
        "gzip_mb": len(gzip.compress(page.encode())) / 1e6,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--json", type=Path, required=True, help="where the figures are written")
    options = parser.parse_args()
    options.json.write_text(json.dumps(measure(), indent=2) + "\n")


if __name__ == "__main__":
    main()
