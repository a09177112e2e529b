# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``kubegpu.nodes.plan`` prints of a cluster, for the guides: the cluster is in memory.

Facts come from trees of files, options from the variables that the guide shows. Plans, rows and
tables are made by the code of the collection. The API server, which would try the objects, is a
stand-in that takes them all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_node_labels import gpu_node_labels
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_result
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.snapshot import take_snapshot
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    Subject,
    read_finding,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.apply import Labeller, Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.evidence import (
    from_finding,
    works,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LayerResult
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import cluster_rows
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import (
    TABLES,
    paragraph,
    render,
)
from tests.integration.plans import guides
from tests.unit.fixtures.machines import Machine
from tests.unit.fixtures.make_tree import make_machine
from tests.unit.fixtures.plans import (
    gpu_monitoring_plan,
    nvidia_device_plugin_plan,
    nvidia_dra_driver_plan,
)
from tests.unit.plugins.module_utils._labels.test_apply import StandinCluster

TITLE = "Planned changes in Kubernetes"
#: Of a role, and not options of its plan.
_NOT_OF_THE_PLAN = ("config", "enabled", "wait_timeout")

#: What verify tries on a node itself.
ON_NODES = ("pci", "module", "nvml", "toolkit", "runtime")
LAYERS = (*ON_NODES, "allocatable", "pod")

Facts = Mapping[str, Any]
LayerMaker = Callable[..., "list[dict[str, Any]]"]


def with_files(machine: Machine, files: Mapping[str, str]) -> Machine:
    """Return a machine that has these files too."""
    return replace(machine, files={**machine.files, **files})


def facts_of(machine: Machine) -> dict[str, Any]:
    """Return the fact ``gpu_node`` of a machine."""
    with tempfile.TemporaryDirectory() as folder:
        root = make_machine(Path(folder) / "root", machine)
        return gather(NodeReader(str(root)), RuntimePaths())


def variables(guide: str, *files: str) -> dict[str, Any]:
    """Return the variables in files of the inventory that a guide shows."""
    shown = guides.files_of((guides.GUIDES / f"guide_{guide}.rst").read_text(encoding="utf-8"))
    return {key: value for name in files for key, value in yaml.safe_load(shown[name]).items()}


def options(given: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return the variables of a role without its prefix."""
    short = {name.partition(f"{role}_")[2]: value for name, value in given.items()}
    return {name: value for name, value in short.items() if name and name not in _NOT_OF_THE_PLAN}


def labels(
    facts: Mapping[str, Facts],
    given: Mapping[str, Any],
    configs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what node_gpu_label answers in check mode.

    :param configs: the config of the device plugin of each host that chose one.
    """
    requests = {}
    for name, one in facts.items():
        config = (configs or {}).get(name, "")
        own = gpu_node_labels(one, device_plugin_config=config)
        taints = given.get("gpu_node_labels_taints", []) if own else []
        requests[name] = {"name": name, "labels": own, "annotations": {}, "taints": taints}
    label = Labeller(StandinCluster(*facts), Settings("kubegpu.nodes"), True)
    return label(read_requests(requests)).to_json({})


def plugin(
    facts: Mapping[str, Facts],
    given: Mapping[str, Any],
    configs: Mapping[str, str] | None = None,
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the plan of the device plugin.

    :param configs: the config of each host that chose one.
    """
    chosen = configs or {}
    hosts = {
        name: {"gpu_node": one, "config": chosen.get(name, ""), "planned": True}
        for name, one in facts.items()
    }
    return nvidia_device_plugin_plan(
        options(given, "nvidia_device_plugin"), hosts, others=list(others)
    )


def monitoring(given: Mapping[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    """Return the plan of the monitoring, in a cluster with these kinds of Prometheus' operator."""
    return gpu_monitoring_plan(options(given, "gpu_monitoring"), kinds=kinds)


def dra(
    facts: Mapping[str, Facts], given: Mapping[str, Any], cluster: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the plan of the DRA driver."""
    cdi = bool(given.get("nvidia_container_toolkit_runtime_cdi"))
    hosts = {name: {"gpu_node": one, "cdi": cdi} for name, one in facts.items()}
    return nvidia_dra_driver_plan(options(given, "nvidia_dra_driver"), hosts, cluster)


def table(marked: Mapping[str, Any] | None = None, **plans: Mapping[str, Any]) -> str:
    """Return the table of the cluster.

    :param marked: the result of :func:`labels`.
    :param plans: the plan of each role.
    """
    facts: dict[str, Any] = {"gpu_node_labels_result": marked or {}}
    for role, plan in plans.items():
        facts[f"{role}_plan"] = plan
        facts[f"{role}_result"] = {"changed": plan.get("action") == "apply"}
    columns, _notes = TABLES["cluster"]
    return render(columns, cluster_rows(["any"], {"any": facts}), guides.WIDTH, TITLE)


def judged(
    facts: Mapping[str, Facts], given: Mapping[str, Any], cluster: Cluster, *more: LayerMaker
) -> dict[str, list[LayerResult]]:
    """Return the layers of each host as verify has them: those of the node are all well.

    :param cluster: the nodes and pods that the module reads.
    :param more: further layers of the cluster.
    """
    expected = read_expected(plugin(facts, given)["expected"])
    snapshot = take_snapshot(Reader(cluster), expected)
    entries = build_result(snapshot, expected)["layers"]
    for maker in more:
        entries = [*entries, *maker(cluster, snapshot, expected)]
    found = {name: [works(layer, "") for layer in ON_NODES] for name in facts}
    for entry in entries:
        finding = read_finding(entry, lambda value: str(value or ""), Subject())
        subject = str(entry["subject"])
        layer = from_finding(entry["layer"], finding, entry["ok"], subject)
        if entry["ok"]:
            layer = works(entry["layer"], entry["proof"], subject)
        found[entry["node"]].append(layer)
    return found


def with_pods(found: Mapping[str, Sequence[LayerResult]]) -> dict[str, list[LayerResult]]:
    """Return the layers with a test pod that passed on each node whose GPUs are offered."""
    return {
        name: [*layers, works("pod", "")] if all(one.ok for one in layers) else [*layers]
        for name, layers in found.items()
    }


def said(*errors: Any) -> str:
    """Return messages with cause, evidence and next step as they are printed, one below another."""
    return "\n\n".join(paragraph(_message(one), guides.WIDTH) for one in errors)


def _message(one: Any) -> str:
    if isinstance(one, (str, BaseException)):
        return str(one)
    return str(KubegpuError(one.cause, evidence=one.evidence, next_step=one.next_step))
