# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The main job on a local fleet: plan, site, containers that prove it, and site again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.testbed import calls, engine, inventory, nodes, repository
from tests.testbed.fleet import FLEET, Node, chosen
from tests.testbed.nodes import execute
from tests.testbed.paths import INVENTORY
from tests.testbed.playbook import play
from tests.testbed.proof import WAYS, Shown, prove
from tests.testbed.shell import TestbedError, say


def demo() -> None:
    """Fails with the reason where a container has no mark or the second run is not empty."""
    fleet = chosen()
    _step("a bare fleet: machines with systemd, containerd and Docker, reached over ssh")
    engine.up()
    nodes.down(FLEET)
    served = repository.up()
    nodes.up(fleet)
    inventory.write(fleet, served)
    say("drivers are left out here (nvidia_driver_enabled: false): these nodes have no chip")
    _step("kubegpu.nodes.plan: what would be done, and why")
    play("plan")
    _step("kubegpu.nodes.site: the GPU nodes get toolkit and configured runtimes")
    play("site")
    _step("containers through the new handler (the GPUs and NVIDIA's programs are stand-ins)")
    shown = {node.name: _show(node) for node in fleet if node.gpus}
    _step("kubegpu.nodes.site again: nothing may change")
    calls.reset(fleet)
    again = play("site", log_name="site-again").changed
    counted = calls.count(fleet)
    _step("the fleet")
    _table(fleet, shown, again, counted)
    say("done. Look around:")
    for line in _hints(fleet):
        print(f"  {line}")
    _judge(shown, again)


def _step(text: str) -> None:
    print()
    say(f"=== {text}")


def _show(node: Node) -> list[Shown]:
    results = prove(node)
    for one in results:
        say(f"{node.name}: {one.way}: {one.mark or 'FAILED: ' + one.why}")
    return results


def _version(node: Node, *argv: str) -> str:
    words = execute(node, *argv, check=False).replace(",", " ").split()
    return next((word for word in words if word[:1].isdigit()), "-").split("+")[0].split("~")[0]


def _table(
    fleet: Sequence[Node],
    shown: dict[str, list[Shown]],
    again: dict[str, int],
    counted: dict[str, int],
) -> None:
    ways = [way.name for way in WAYS]
    rows = [
        ["node", "Debian", "GPUs", "containerd", "docker", *ways, "changed again", "module calls"]
    ]
    for node in fleet:
        marks = {one.way: "marked" if one.mark else "FAILED" for one in shown.get(node.name, [])}
        rows.append(
            [
                node.name,
                node.suite,
                node.gpu_names,
                _version(node, "containerd", "--version"),
                _version(node, "dockerd", "--version"),
                *(marks.get(way, "-") for way in ways),
                str(again.get(node.name, "?")),
                str(counted[node.name]),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _hints(fleet: Sequence[Node]) -> list[str]:
    """Commands that work as they stand, on a machine that had neither Ansible nor Docker before."""
    ansible = Path(sys.executable).parent / "ansible"
    return [
        shlex.join([str(ansible), "-i", str(INVENTORY), "all", "-m", "ansible.builtin.ping"]),
        engine.docker_line("exec", "-it", fleet[0].container, "bash"),
    ]


def _judge(shown: dict[str, list[Shown]], again: dict[str, int]) -> None:
    wrong = [
        f"{node}: {one.way}: {one.why}"
        for node, results in shown.items()
        for one in results
        if not one.mark
    ]
    wrong += [
        f"{node}: the second run changed {number}" for node, number in again.items() if number
    ]
    if wrong:
        raise TestbedError("the demo did not show what it should:\n" + "\n".join(wrong))
