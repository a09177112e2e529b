# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one call of a module costs where nothing differs: wall, CPU of both sides, bytes sent."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import node as side
from tests.bench.measure import BIN, Sample, middle, run, tell
from tests.testbed.fleet import Node

CALLS: dict[str, dict[str, Any]] = {
    "ansible.builtin.ping": {},
    "ansible.builtin.setup": {},
    "kubegpu.nodes.gpu_node_facts": {"root": "/"},
    "kubegpu.nodes.containerd_runtime": {"name": "nvidia"},
    "kubegpu.nodes.docker_runtime": {"name": "nvidia", "reload": True, "restart": "if_idle"},
}


def measure(inventories: Sequence[Path], node: Node, rounds: int) -> dict[str, Any]:
    """Return what each module costs on a node that is converged."""
    cases = {
        name: partial(call, inventories, node, name, options) for name, options in CALLS.items()
    }
    return in_turn(cases, rounds)


def call(
    inventories: Sequence[Path], node: Node, name: str, options: Mapping[str, Any], **more: str
) -> tuple[Sample, float, int]:
    """Call a module that has nothing to change; return the run, the node's CPU seconds and bytes.

    :param more: further variables of the run's environment.
    """
    words = [word for path in inventories for word in ("-i", str(path))]
    argv = [str(BIN / "ansible"), *words, node.name, "--become", "-m", name]
    argv += ["-a", json.dumps(options)] if options else []
    cpu, received = side.cpu(node), side.received(node)
    sample = run(argv, **more)
    used, sent = side.cpu(node) - cpu, side.received(node) - received
    if '"changed": true' in sample.output:
        raise SystemExit(f"{name} changed a converged node:\n{sample.output}")
    return sample, used, sent


def in_turn(
    cases: Mapping[str, Callable[[], tuple[Sample, float, int]]], rounds: int
) -> dict[str, Any]:
    """Make the calls in turn, after a round that does not count; return the medians of each."""
    samples: dict[str, list[tuple[Sample, float, int]]] = {name: [] for name in cases}
    for number in range(-1, rounds):
        for name, case in cases.items():
            sample, used, sent = case()
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
