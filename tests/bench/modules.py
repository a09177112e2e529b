# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one call of a module costs where nothing differs: wall, CPU of both sides, bytes sent."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench import node as side
from tests.bench.measure import BIN, middle, run, tell
from tests.testbed.fleet import Node

CALLS = {
    "ansible.builtin.ping": {},
    "ansible.builtin.setup": {},
    "kubegpu.nodes.gpu_node_facts": {"root": "/"},
    "kubegpu.nodes.containerd_runtime": {"name": "nvidia"},
    "kubegpu.nodes.docker_runtime": {"name": "nvidia", "reload": True, "restart": "if_idle"},
}


def measure(inventories: Sequence[Path], node: Node, rounds: int) -> dict[str, Any]:
    """Return what each module costs on a node that is converged."""
    samples: dict[str, list[Any]] = {name: [] for name in CALLS}
    for number in range(-1, rounds):
        for name, options in CALLS.items():
            words = [word for path in inventories for word in ("-i", str(path))]
            argv = [str(BIN / "ansible"), *words, node.name, "--become", "-m", name]
            argv += ["-a", json.dumps(options)] if options else []
            cpu, received = side.cpu(node), side.received(node)
            sample = run(argv)
            used, sent = side.cpu(node) - cpu, side.received(node) - received
            if '"changed": true' in sample.output:
                raise SystemExit(f"{name} changed a converged node:\n{sample.output}")
            if number >= 0:
                samples[name].append((sample, used, sent))
                tell(f"{name}: {sample.seconds:.2f} s, node CPU {used:.2f} s, {sent} bytes")
    return {
        name: {
            **middle([sample for sample, _used, _sent in found]).to_json(),
            "node_cpu": round(statistics.median(used for _sample, used, _sent in found), 3),
            "bytes": statistics.median(sent for _sample, _used, sent in found),
        }
        for name, found in samples.items()
    }
