# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``make demo``: a mixed fleet from bare to ready, proven; a second run changes nothing."""

from __future__ import annotations

import re
import time

from plugins.module_utils._table import Column, render
from tests.integration.fleet.playbooks import BIN, INVENTORY, environment
from tests.testbed.fleet import Node, chosen
from tests.testbed.paths import BUILD, REPOSITORY
from tests.testbed.proof import Proof, on_node, prove
from tests.testbed.shell import TestbedError, run, say, stream

_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.M)
_CALLS = "/var/lib/testbed/module-calls"
_COLUMNS = [
    Column("node", "Node"),
    Column("os", "System"),
    Column("gpus", "GPUs (stand-ins)"),
    Column("containerd", "containerd"),
    Column("docker", "Docker"),
    Column("cri", "CRI: handler nvidia"),
    Column("runtime", "--runtime nvidia"),
    Column("gpus_all", "--gpus all"),
    Column("changed", "2nd run changed"),
    Column("calls", "2nd run calls"),
]


def demo() -> None:
    """Plan, site, proof, site again, and a table; raises where something is not as it should be.

    The fleet is up already.
    """
    begun = time.monotonic()
    nodes = chosen()
    say("plan: what would be done on each node, and why")
    _play("plan", "--extra-vars", f"kubegpu_plan_file={BUILD / 'plan.json'}")
    say("site: doing it")
    _play("site")
    say("proof: containers through the nvidia runtime, as Kubernetes and as Docker start them")
    proofs = {node.name: prove(node) for node in nodes if node.gpus}
    for name, answers in proofs.items():
        for proof in answers:
            say(f"{name}: {proof.how}: {proof.words or proof.error}")
    say("site again: nothing may change")
    for node in nodes:
        run(on_node(node, "rm", "-f", _CALLS))
    changed = _play("site")
    rows = [_row(node, proofs.get(node.name, []), changed) for node in nodes]
    print(f"\n{render(_COLUMNS, rows, 180, 'The fleet after two runs')}\n", flush=True)
    say(f"plan, site, proof and second run took {time.monotonic() - begun:.0f} s")
    _judge(proofs, changed)
    print("\nLook around: ansible -i build/testbed/inventory.yml all -m ping")
    print("Remove all of it: make demo-clean", flush=True)


def _play(name: str, *arguments: str) -> dict[str, int]:
    """Run a playbook on the screen; give how many tasks changed something, by node."""
    status, output = stream(
        [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), f"kubegpu.nodes.{name}", *arguments],
        environment=environment(),
        cwd=REPOSITORY,
        log=BUILD / f"demo-{name}.log",
    )
    if status != 0:
        raise TestbedError(f"ansible-playbook kubegpu.nodes.{name} failed, see above")
    return {found[1]: int(found[2]) for found in _RECAP.finditer(output)}


def _row(node: Node, proofs: list[Proof], changed: dict[str, int]) -> dict[str, object]:
    cri, runtime, gpus_all = (_words(proof) for proof in proofs) if proofs else ("", "", "")
    return {
        "node": node.name,
        "os": f"Debian {node.suite}",
        "gpus": node.gpu_names,
        "containerd": _version(node, "containerd"),
        "docker": _version(node, "dockerd"),
        "cri": cri,
        "runtime": runtime,
        "gpus_all": gpus_all,
        "changed": str(changed.get(node.name, "unreachable")),
        "calls": run(on_node(node, "sh", "-c", f"wc -l < {_CALLS}")).stdout.strip(),
    }


def _words(proof: Proof) -> str:
    if proof.error:
        return f"failed: {proof.error}"
    return "marked nvidia" if proof.marked else f"ran, {proof.words}"


def _version(node: Node, program: str) -> str:
    words = run(on_node(node, program, "--version"), check=False).stdout
    found = re.search(r"\d+\.\d+(\.\d+)?", words)
    return found[0] if found else ""


def _judge(proofs: dict[str, list[Proof]], changed: dict[str, int]) -> None:
    wrong = [
        f"{name}: {proof.how}: {proof.error or proof.words}"
        for name, answers in proofs.items()
        for proof in answers
        # --gpus adds a hook to runc and leaves the environment's mark to --runtime.
        if proof.error or not (proof.marked or "devices=all" in proof.words)
    ]
    wrong += [
        f"{name}: the second run changed {count} things" for name, count in changed.items() if count
    ]
    if wrong:
        raise TestbedError("not as it should be:\n" + "\n".join(wrong))
