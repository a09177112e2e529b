# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``python -m tests.bench.fleet_report``: what a report of 1,000 hosts with 8 GPUs each costs.

The hosts are made (tests/unit/fixtures/fleet.py): every 50th has another driver, every 40th a
finding. Nothing of Ansible runs. The table is printed.
"""

from __future__ import annotations

import gzip
import importlib
import resource
import sys
import time
from collections.abc import Callable
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


def measured(step: str, work: Callable[[], Any]) -> Any:
    """Do a step, print its row, and return its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    size = f"{len(done.encode()) / 1e6:.2f}" if isinstance(done, str) else ""
    print(f"| {step} | {wall:.2f} | {cpu:.2f} | {size} |")
    return done


def main() -> None:
    environment()
    sys.path.insert(0, str(COLLECTIONS))
    build, html, markdown, sources, types = (
        importlib.import_module(f"{_PACKAGE}.{name}")
        for name in ("build", "html", "markdown", "sources", "types")
    )
    hosts = make_hosts(_HOSTS)
    print("| step | seconds | CPU s | MB |\n| --- | ---: | ---: | ---: |")
    known = measured("variables of the hosts", lambda: sources.host_sources([*hosts], hosts))
    first = measured("report without an earlier one", lambda: build.build(known, types.Request()))
    again = measured("report, compared", lambda: build.build(known, types.Request(), first))
    page = measured("HTML", lambda: html.render(again))
    measured("JSON", lambda: build.dump(again))
    measured("Markdown", lambda: markdown.render(again))
    packed = len(gzip.compress(page.encode())) / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nHTML compressed by gzip: {packed:.2f} MB; largest size in memory: {memory:.0f} MiB")


if __name__ == "__main__":
    main()
