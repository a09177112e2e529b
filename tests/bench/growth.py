# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one more node costs the controller: trees of files on the local connection.

The playbook is plan, which reads and plans all nodes as site does first. Nothing runs on a node of
its own here: the CPU of the modules is in the figures, for ping and for plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.bench.measure import REFERENCE, Sample, alternate, playbook, run
from tests.integration.plans import machines
from tests.unit.fixtures.machines import MACHINES

SIZES = (10, 50, 200, 1000)
# Bare machines of four kinds, and one without a GPU.
_KINDS = ("p4", "a100x8", "h100x8", "v100x4", "none")


def measure(folder: Path, sizes: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Return the cost of each size; the biggest is measured once."""
    found = {}
    for size in sizes:
        kinds = {f"node{n:04d}": MACHINES[_KINDS[n % len(_KINDS)]] for n in range(size)}
        top = folder / str(size)
        top.mkdir()
        inventory = machines.write(top, kinds)

        def ping(inventory: Path = inventory) -> Sample:
            return run(playbook([inventory], REFERENCE / "ping.yml"))

        def plan(inventory: Path = inventory) -> Sample:
            return run(playbook([inventory], "kubegpu.nodes.plan"))

        times = 1 if size >= 500 else rounds
        cases = {f"ping, {size} nodes": ping, f"plan, {size} nodes": plan}
        medians = alternate(cases, times, warm=size < 500)
        found[str(size)] = {
            name.split(",", maxsplit=1)[0]: {
                **median.to_json(),
                "cpu_per_node": round(median.cpu / size, 4),
                "seconds_per_node": round(median.seconds / size, 4),
            }
            for name, median in medians.items()
        }
    return found
