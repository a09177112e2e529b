# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures as tables: on the screen, and in docs/benchmarks.md between its marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.testbed.paths import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "benchmarks.md"
_MARK = "<!-- {0}: made by `make bench` -->"
_PART = re.compile(r"(<!-- (\w+): made by `make bench` -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of Markdown; columns after the first are figures."""
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def parts(found: dict[str, Any]) -> dict[str, str]:
    """Return the tables by the name of their place."""
    makers = {
        "machine": _machine,
        "goals": _goals,
        "converged": _converged,
        "first": _first,
        "disruption": _disruption,
        "modules": _modules,
        "growth": _growth,
        "labels": _labels,
        "drain": _drain,
        "report": _report,
    }
    needs = {"goals": "machine", "disruption": "first"}
    return {name: maker(found) for name, maker in makers.items() if needs.get(name, name) in found}


def text(found: dict[str, Any]) -> str:
    return "\n\n".join(f"{name}\n\n{part}" for name, part in parts(found).items())


def write(found: dict[str, Any], only: Sequence[str] = ()) -> Path:
    """Write the tables to the page.

    :param only: what was measured now. The machine of the page stays that of the other parts.
    """
    made = parts(found)
    if only:
        new = {name: found[name] for name in only}
        goals = {"goals": made["goals"]} if any(ratios(new)) else {}
        made = {**parts(new), **goals}

    def place(match: re.Match[str]) -> str:
        part = made.get(match[2])
        return match[0] if part is None else f"{match[1]}\n{part}\n\n{match[3]}"

    DOCUMENT.write_text(_PART.sub(place, DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    return DOCUMENT


def _machine(found: dict[str, Any]) -> str:
    here = found["machine"]
    return (
        f"{here['date']}: {here['cores']} cores of {here['cpu']}, {here['memory_gib']} GiB, Linux "
        f"{here['kernel']}; ansible-core {here['ansible-core']}, Python {here['python']}, "
        f"kubegpu.nodes {here['kubegpu.nodes']}."
    )


def ratios(found: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Return what was aimed at, the goal and what was measured; each is a ratio of one run."""
    if "converged" in found:
        gpu, other = found["converged"]["GPU nodes"], found["converged"]["other nodes"]
        many = found["converged"]["many other nodes"]
        yield (
            "converged site / setup, wall, GPU nodes (at most)",
            1.5,
            gpu["site"]["seconds"] / gpu["setup"]["seconds"],
        )
        yield (
            "converged site / ping, wall, one other node (at most)",
            1.2,
            other["site"]["seconds"] / other["ping"]["seconds"],
        )
        yield (
            f"converged site / ping, wall, {many['ping']['nodes']} other nodes (at most)",
            1.2,
            many["site"]["seconds"] / many["ping"]["seconds"],
        )
        yield (
            "by hand / converged site, wall (at least)",
            5,
            gpu["by hand"]["seconds"] / gpu["site"]["seconds"],
        )
        yield (
            "by hand / converged site, wall, both with labels (at least)",
            5,
            gpu["by hand with labels"]["seconds"] / gpu["site with labels"]["seconds"],
        )
    sizes = found.get("growth", {})
    if {"50", "1000"} <= set(sizes):
        yield (
            "CPU per node, 1,000 nodes / 50 nodes (at most)",
            1.1,
            sizes["1000"]["plan"]["cpu_per_node"] / sizes["50"]["plan"]["cpu_per_node"],
        )
    if "labels" in found:
        yield (
            "labelling 500 nodes / the bare client, wall (at most)",
            2,
            found["labels"]["500"]["ratio"],
        )
    if "modules" in found:
        ping, facts = (
            found["modules"][name]["node_cpu"]
            for name in ("ansible.builtin.ping", "kubegpu.nodes.gpu_node_facts")
        )
        yield "gpu_node_facts / ping, CPU of the node (at most)", 1.5, facts / ping


def _goals(found: dict[str, Any]) -> str:
    rows = []
    for name, goal, measured in ratios(found):
        reached = measured >= goal if "at least" in name else measured <= goal
        rows.append((name, goal, f"{measured:.2f}", "yes" if reached else "no"))
    return table(("ratio", "goal", "measured", "reached"), rows)


def _converged(found: dict[str, Any]) -> str:
    rows = []
    for group, cases in found["converged"].items():
        for name, one in cases.items():
            setup = cases["setup"]["seconds"]
            rows.append(
                (
                    f"{group}: {name}",
                    f"{one['seconds']:.2f}",
                    f"{one['seconds'] / setup:.2f}",
                    f"{one['cpu_per_node']:.2f}",
                    one["tasks"],
                    one["skipped"],
                    one["calls_per_node"],
                )
            )
    head = ("play", "seconds", "x setup", "CPU s a node", "tasks", "skipped", "module calls a node")
    return table(head, rows)


def _first(found: dict[str, Any]) -> str:
    run = found["first"]["site"]["first"]
    rows = [(name, f"{seconds:.1f}") for name, seconds in run["phases"].items()]
    rows.append(("all", f"{run['seconds']:.1f}"))
    return table(("phase of the first run", "seconds"), rows)


def _disruption(found: dict[str, Any]) -> str:
    rows = []
    for side, runs in found["first"].items():
        for which, run in runs.items():
            one = run["disruption"]
            rows.append(
                (
                    f"{side}, {which} run",
                    f"{run['seconds']:.1f}",
                    f"{one['containers_stopped']} of {one['containers']}",
                    one["containerd_restarts"],
                    one["docker_restarts"],
                    f"{one['without_cri']['seconds']:.2f}",
                )
            )
    head = (
        *("run", "seconds", "containers stopped", "containerd restarts", "Docker restarts"),
        "seconds without CRI",
    )
    return table(head, rows)


def _modules(found: dict[str, Any]) -> str:
    ping = found["modules"]["ansible.builtin.ping"]
    rows = [
        (
            name.rpartition(".")[2],
            f"{one['seconds']:.2f}",
            f"{one['node_cpu']:.3f}",
            f"{one['node_cpu'] / ping['node_cpu']:.2f}",
            f"{one['bytes'] / 1024:.0f}",
        )
        for name, one in found["modules"].items()
    ]
    head = ("module", "seconds of `ansible`", "CPU s of the node", "x ping", "KiB sent to the node")
    return table(head, rows)


def _growth(found: dict[str, Any]) -> str:
    rows = [
        (
            f"{size} nodes: {name}",
            f"{one['seconds']:.1f}",
            f"{one['cpu']:.1f}",
            f"{one['cpu_per_node']:.3f}",
            f"{one['memory']:.0f}",
        )
        for size, cases in found["growth"].items()
        for name, one in cases.items()
    ]
    head = ("play", "seconds", "CPU s", "CPU s a node", "MiB of the biggest process")
    return table(head, rows)


def _labels(found: dict[str, Any]) -> str:
    rows = []
    for count, one in found["labels"].items():
        for line in one["results"]:
            requests = ", ".join(f"{number} {verb}" for verb, number in line["requests"].items())
            all_nodes = line["extrapolated"]
            rows.append(
                (
                    f"{count} nodes: {line['way']}, {line['step']}",
                    f"{line['seconds']:.2f}",
                    f"{line['cpu']:.2f}",
                    requests or "none",
                    "" if all_nodes is None else f"about {all_nodes:.0f}",
                )
            )
    head = ("way", "seconds", "CPU s", "requests for nodes", "seconds for all, extrapolated")
    return table(head, rows)


def _drain(found: dict[str, Any]) -> str:
    one = found["drain"]
    rows = [
        (
            f"{one['nodes']} nodes: {line['step']}",
            f"{line['seconds']:.1f}",
            f"{line['cpu']:.1f}",
            ", ".join(f"{number} {verb}" for verb, number in sorted(line["requests"].items())),
        )
        for line in one["results"]
    ]
    return table(("step", "seconds", "CPU s", "requests"), rows)


def _report(found: dict[str, Any]) -> str:
    one = found["report"]
    rows = [
        (
            line["step"],
            f"{line['seconds']:.2f}",
            f"{line['cpu']:.2f}",
            "" if line["mb"] is None else f"{line['mb']:.2f}",
        )
        for line in one["results"]
    ]
    return (
        f"Measured once, {one['date']}, at a load of {one['load']:.1f} before it began.\n\n"
        f"{table(('step', 'seconds', 'CPU s', 'MB'), rows)}\n\n"
        f"The HTML compressed by gzip has {one['gzip_mb']:.2f} MB, and the process "
        f"{one['memory_mib']:.0f} MiB of memory at most."
    )
