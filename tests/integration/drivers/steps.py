# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every test of drivers does on a node: apply a request, look at what is there."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.integration.fleet.playbooks import Run, play, run_module
from tests.testbed import calls
from tests.testbed.fleet import Node
from tests.testbed.nodes import execute

# The facts of a node; the driver's part of a run that has nothing to change needs no more.
QUIET_CALLS = 1

# /etc with content, mode and owner. Left out is what installing any package rewrites.
ETC = (
    "cd / && find etc -xdev ! -name ld.so.cache ! -path 'etc/apt/sources.list.d/.*' "
    "! -path 'etc/.pwd.lock' -printf '%M %u:%g %p %l\\n' | LC_ALL=C sort && "
    "find etc -xdev -type f ! -name ld.so.cache -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"
)


def shell(node: Node, script: str, *, check: bool = True) -> str:
    """Run a script as root in the node."""
    return execute(node, "bash", "-c", script, check=check)


def etc(node: Node) -> list[str]:
    return shell(node, ETC).splitlines()


def apply(node: Node, *options: str, **request: Any) -> Run:
    """Run the driver's part of site; names of the request are the role's without its prefix."""
    variables = {f"nvidia_driver_{name}": value for name, value in request.items()}
    arguments = ("--tags", "driver", "--limit", node.name, *options)
    return play("site", *arguments, variables=variables, timeout=3600)


def converge(node: Node, **request: Any) -> tuple[Run, float]:
    """Check mode, the run, and a second run: equal diffs, then nothing, and no call for it."""
    check = apply(node, "--check", "--diff", **request)
    assert check.status == 0, words(check)
    begin = time.monotonic()
    run = apply(node, "--diff", **request)
    seconds = time.monotonic() - begin
    assert run.status == 0, words(run)
    assert run.stats[node.name]["changed"] >= 1, words(run)
    assert check.changed() == run.changed()
    assert_converged(node, **request)
    return run, seconds


def reached(node: Node, **request: Any) -> Run:
    """The run, and a second one that finds nothing to do: where check mode was shown before."""
    run = apply(node, **request)
    assert run.status == 0, words(run)
    assert run.stats[node.name]["changed"] >= 1, words(run)
    assert_converged(node, **request)
    return run


def assert_converged(node: Node, **request: Any) -> None:
    """Nothing is left to do, and no module but the facts is started to find that out."""
    calls.reset([node])
    again = apply(node, **request)
    assert again.status == 0, words(again)
    assert again.stats[node.name]["changed"] == 0, again.changed()
    assert calls.count([node])[node.name] <= QUIET_CALLS


def facts(node: Node) -> dict[str, Any]:
    """The fact ``gpu_node`` as it is now."""
    answer = run_module(node.name, "kubegpu.nodes.gpu_node_facts", {"root": "/"})[node.name]
    found: dict[str, Any] = answer["ansible_facts"]["gpu_node"]
    return found


def answer(run: Run, node: Node, task: str) -> dict[str, Any]:
    """What one task of a run said of the node."""
    found = [
        value for (name, host), value in run.answers.items()
        if host == node.name and name.rpartition(" : ")[2] == task
    ]  # fmt: skip
    assert found, f"no task {task}: {sorted(name for name, _host in run.answers)}"
    return found[-1]


def held(node: Node) -> set[str]:
    """The driver's packages that are held, and no toolkit's."""
    return set(shell(node, "apt-mark showhold").split())


def installed(node: Node) -> dict[str, str]:
    """The driver's installed packages and their versions."""
    text = shell(
        node,
        "dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n' '*nvidia*' libcuda1 "
        "cuda-drivers* 2>/dev/null || true",
    )
    rows = [line.split() for line in text.splitlines()]
    return {row[1]: row[2] for row in rows if row and row[0][1:2] == "i"}


def dpkg_is_consistent(node: Node) -> bool:
    return not shell(node, "dpkg --audit").strip()


def words(run: Run) -> str:
    """What the person at the keyboard reads of the failure, as plain text."""
    return json.dumps(run.messages()).replace("\\n", "\n")
