# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What it costs to label the nodes of a cluster: ``python -m tests.bench.labels``.

Made nodes in a real API server (etcd and kube-apiserver on loopback). All ways do the same work on
nodes of the same server: five labels a node. The requests are those that the API server counted
itself (``apiserver_request_total``), for nodes only.

``bare client`` is the Python client alone: the list in pages, then server-side apply from eight
threads, no comparison; and the list alone, which is the least that finds out that nothing differs.
It is what the module is held against; the module's time has all of ``ansible-playbook`` in it.

The loops over one node at a time are measured once and on a sample; the table says so, and what all
nodes would take. A loop does not know which node differs, so that for one changed node it goes over
all of them. After each first run all labels are looked at: what did not do the work does not count.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.measure import BIN, Sample, run
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ControlPlane, kubectl_argv

NODES = "/api/v1/nodes"
_COUNTED = re.compile(
    r'^apiserver_request_total\{(?P<labels>[^}]*resource="nodes"[^}]*)\} (?P<count>\d+)', re.M
)


@dataclass(frozen=True)
class Measured:
    """A way, what it did, and what that took. ``nodes`` is how many were measured."""

    way: str
    step: str
    nodes: int
    requests: dict[str, int]
    seconds: float
    #: Of the processes on our side, which a busy machine does not change much.
    cpu: float
    #: For all nodes, where only a sample was measured.
    extrapolated: float | None = None


class Bench:
    """One API server, and all ways on it."""

    def __init__(self, plane: ControlPlane, count: int, sample: int, folder: Path) -> None:
        self.plane = plane
        self.sample = sample
        self.folder = folder
        self.names = cluster_made.create_many(plane, count, "bench")
        self.results: list[Measured] = []

    def labels(self, version: str = "580.126.09") -> dict[str, str]:
        return {
            "accelerator": "nvidia-tesla-p100",
            "kubegpu.nodes/gpu": "nvidia",
            "kubegpu.nodes/gpu.count": "4",
            "kubegpu.nodes/gpu.memory": "16384",
            "kubegpu.nodes/driver.version": version,
        }

    def measure(self, way: str, step: str, nodes: int, work: Callable[[], Any]) -> None:
        before = self.counted()
        used = _cpu()
        start = time.monotonic()
        work()
        seconds = time.monotonic() - start
        used = _cpu() - used
        after = self.counted()
        requests = {
            verb: number - before.get(verb, 0)
            for verb, number in sorted(after.items())
            if number != before.get(verb, 0)
        }
        total = len(self.names)
        extrapolated = None if nodes in (total, 0, 1) else seconds / nodes * total
        self.results.append(Measured(way, step, nodes, requests, seconds, used, extrapolated))
        print(
            f"{way}, {step}: {seconds:.2f} s, CPU {used:.2f} s {requests}",
            file=sys.stderr,
            flush=True,
        )

    def counted(self) -> dict[str, int]:
        """Return the requests for nodes that the API server counted, by verb."""
        text = self.plane.kubectl("get", "--raw", "/metrics")
        found: dict[str, int] = {}
        for line in _COUNTED.finditer(text):
            verb = re.search(r'verb="([^"]*)"', line["labels"])
            name = verb[1] if verb else "?"
            if name not in ("WATCH", "CONNECT"):
                found[name] = found.get(name, 0) + int(line["count"])
        return found

    # Ours

    def play(
        self,
        tasks: list[dict[str, Any]],
        environment: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> Callable[[], Sample]:
        """Return a run of a playbook with these tasks on localhost.

        :param environment: further variables of its environment.
        """
        play = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
        path = self.folder / f"play-{len(list(self.folder.iterdir()))}.yml"
        path.write_text(json.dumps(play))
        values = path.with_suffix(".vars.json")
        values.write_text(json.dumps({"kubeconfig": str(self.plane.kubeconfig), **variables}))
        argv = [str(BIN / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(path)]
        argv += ["--extra-vars", f"@{values}"]
        return lambda: run(argv, **(environment or {}))

    def wish(self, versions: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
        """Return the labels of all nodes; ``versions`` are those of nodes that differ."""
        return {
            name: {"labels": self.labels((versions or {}).get(name, "580.126.09"))}
            for name in self.names
        }

    def check(self, names: Sequence[str]) -> None:
        """See that the work was done, on these nodes."""
        found: Any = self.plane.get(NODES)["items"]
        items = {item["metadata"]["name"]: item for item in found}
        wanted = self.labels().items()
        bare = [name for name in names if not wanted <= items[name]["metadata"]["labels"].items()]
        if bare:
            raise RuntimeError(f"{len(bare)} nodes have not the labels, the first is {bare[0]}")

    def module(
        self,
        versions: dict[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Callable[[], Sample]:
        wish = self.wish(versions)
        task = {
            "kubegpu.nodes.node_gpu_label": {
                "kubeconfig": "{{ kubeconfig }}",
                "nodes": "{{ wish }}",
            },
            "vars": {"ansible_python_interpreter": sys.executable},
        }
        return self.play([task], environment, wish=wish)

    def empty_play(self) -> Callable[[], Sample]:
        return self.play([{"ansible.builtin.meta": "noop"}])

    # The bare client

    def bare(self, *, apply: bool = True) -> None:
        """The Python client in a process of its own: as the module, it has to start and import."""
        code = _BARE.format(
            kubeconfig=str(self.plane.kubeconfig),
            names=self.names if apply else [],
            labels=self.labels(),
        )
        run([sys.executable, "-c", code])

    # Loops over nodes

    def kubectl(
        self, names: Sequence[str], at_once: int = 1, versions: dict[str, str] | None = None
    ) -> None:
        def one(name: str) -> None:
            argv = [*kubectl_argv(self.plane.kubeconfig), "label", "--overwrite", "node", name]
            labels = self.wish(versions)[name]["labels"]
            run([*argv, *(f"{key}={value}" for key, value in labels.items())])

        if at_once == 1:
            for name in names:
                one(name)
            return
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            list(pool.map(one, names))

    def core(
        self, names: Sequence[str], versions: dict[str, str] | None = None
    ) -> Callable[[], Sample]:
        wish = self.wish(versions)
        task = {
            "kubernetes.core.k8s": {
                "kubeconfig": "{{ kubeconfig }}",
                "apply": True,
                "server_side_apply": {"field_manager": "bench"},
                "definition": {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": "{{ item.name }}", "labels": "{{ item.labels }}"},
                },
            },
            "loop": [{"name": name, **wish[name]} for name in names],
            "vars": {"ansible_python_interpreter": sys.executable},
        }
        return self.play([task])

    def strip(self) -> None:
        """Take all labels away again, whoever set them."""
        body = json.dumps(
            {"metadata": {"labels": dict.fromkeys(self.labels()), "managedFields": [{}]}}
        )
        code = _STRIP.format(kubeconfig=str(self.plane.kubeconfig), names=self.names, body=body)
        run([sys.executable, "-c", code])

    def batches(self, rounds: int) -> None:
        """The ways that take all nodes at once, several times."""
        total = len(self.names)
        for _round in range(rounds):
            self.measure("ansible-playbook without a task", "-", 0, self.empty_play())
            self.strip()
            self.measure("bare client, 8 threads", "first run", total, self.bare)
            self.check(self.names)
            self.measure("bare client, 8 threads", "no change, applied again", total, self.bare)
            self.measure(
                "bare client, the list alone", "no change", total, lambda: self.bare(apply=False)
            )
            self.strip()
            self.measure("node_gpu_label", "first run", total, self.module())
            self.check(self.names)
            self.measure("node_gpu_label", "no change", total, self.module())
            changed = {self.names[0]: "580.130.01"}
            self.measure("node_gpu_label", "one changed node", total, self.module(changed))

    def loops(self) -> None:
        """The ways that take one node after the other, once, on a sample."""
        part = self.names[: self.sample]
        changed = {part[0]: "580.130.01"}
        self.strip()
        self.measure("kubectl label in a loop", "first run", len(part), lambda: self.kubectl(part))
        self.check(part)
        self.measure("kubectl label in a loop", "no change", len(part), lambda: self.kubectl(part))
        self.measure(
            "kubectl label in a loop",
            "one changed node",
            len(part),
            lambda: self.kubectl(part, versions=changed),
        )
        self.strip()
        self.measure(
            "kubectl label, 8 at a time", "first run", len(part), lambda: self.kubectl(part, 8)
        )
        self.check(part)
        self.strip()
        way = "kubernetes.core.k8s in a loop"
        self.measure(way, "first run", len(part), self.core(part))
        self.check(part)
        self.measure(way, "no change", len(part), self.core(part))
        self.measure(way, "one changed node", len(part), self.core(part, changed))


_BARE = """
import concurrent.futures, json
import kubernetes
kubernetes.config.load_kube_config({kubeconfig!r})
core = kubernetes.client.CoreV1Api()
more = {{}}
while more is not None:
    page = json.loads(core.list_node(limit=500, _preload_content=False, **more).data)
    token = page["metadata"].get("continue")
    more = {{"_continue": token}} if token else None
def one(name):
    metadata = {{"name": name, "labels": {labels!r}}}
    body = {{"apiVersion": "v1", "kind": "Node", "metadata": metadata}}
    return core.patch_node(
        name, body, field_manager="bare", _content_type="application/apply-patch+yaml",
        _preload_content=False).data
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(one, {names!r}))
"""
_STRIP = """
import concurrent.futures, json
import kubernetes
kubernetes.config.load_kube_config({kubeconfig!r})
core = kubernetes.client.CoreV1Api()
body = json.loads({body!r})
def one(name):
    return core.patch_node(
        name, body, _content_type="application/merge-patch+json", _preload_content=False).data
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(one, {names!r}))
"""


def _cpu() -> float:
    """Return the CPU time of all processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def medians(results: Sequence[Measured], total: int) -> list[Measured]:
    """Return one line for each way and step: the median of its rounds."""
    grouped: dict[tuple[str, str], list[Measured]] = {}
    for one in results:
        grouped.setdefault((one.way, one.step), []).append(one)
    lines = []
    for (way, step), rounds in grouped.items():
        middle = statistics.median(one.seconds for one in rounds)
        first = rounds[0]
        cpu = statistics.median(one.cpu for one in rounds)
        guess = None if first.extrapolated is None else middle / first.nodes * total
        lines.append(Measured(way, step, first.nodes, first.requests, middle, cpu, guess))
    return lines


def table(lines: Sequence[Measured], total: int) -> str:
    """Return the table as people read it."""
    rows = [("way", "step", "nodes", "requests for nodes", "seconds", "CPU", f"for {total} nodes")]
    for one in lines:
        requests = ", ".join(f"{count} {verb}" for verb, count in one.requests.items()) or "none"
        guess = "" if one.extrapolated is None else f"about {one.extrapolated:.0f} s, extrapolated"
        rows.append(
            (
                one.way,
                one.step,
                str(one.nodes),
                requests,
                f"{one.seconds:.2f}",
                f"{one.cpu:.2f}",
                guess,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--sample", type=int, default=50, help="nodes for the loops")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-loops", action="store_true", help="leave the slow ways out")
    parser.add_argument("--json", type=Path, help="where the numbers are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder) / "plane")
        try:
            plane.up(with_parent=True)
            plays = Path(folder) / "plays"
            plays.mkdir()
            bench = Bench(plane, options.nodes, options.sample, plays)
            bench.batches(options.rounds)
            if not options.without_loops:
                bench.loops()
        finally:
            plane.remove()
    lines = medians(bench.results, options.nodes)
    print(table(lines, options.nodes))
    by_name = {(one.way, one.step): one.seconds for one in lines}
    ratio = (
        by_name[("node_gpu_label", "first run")] / by_name[("bare client, 8 threads", "first run")]
    )
    load = os.getloadavg()[0]
    unchanged = (
        by_name[("node_gpu_label", "no change")]
        / by_name[("bare client, the list alone", "no change")]
    )
    print(f"\nfirst run: {ratio:.2f} times the bare client with 8 threads (goal: at most 2)")
    print(f"no change: {unchanged:.2f} times the bare list")
    print(
        f"{os.cpu_count()} cores, load {load:.1f} at the end; median of {options.rounds} rounds, "
        "the loops once"
    )
    if options.json:
        data = {"nodes": options.nodes, "rounds": options.rounds, "ratio": ratio, "load": load}
        data["ratio_unchanged"] = unchanged
        data["results"] = [asdict(one) for one in lines]
        options.json.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    main()
