# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rolling upgrade of the hosts of a play, from their variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.results import (
    result_parts,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade import stages
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.etcd_quorum import find_quorum
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.plan import (
    count_elsewhere,
    out_elsewhere,
    plan_upgrade,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.result import (
    report,
    why_stop,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.types import Host

from ._hosts import facts, plans
from ._report.nodes import PARTS
from ._rollout import failed_finding, failure
from ._variables_data import NODE_ROLES

Variables = Mapping[str, Any]
Hostvars = Mapping[str, Variables]
Object = Mapping[str, Any]

# Of a host whose node is changed.
_CHANGES = ("change", "resume")
_AGAIN = (
    "run the upgrade again, which continues with this node; or release it as it is with "
    "gpu_upgrade_release=true."
)


def plan_hosts(
    hosts: Sequence[str],
    hostvars: Hostvars,
    options: Object,
    cluster: Object,
    nodes: Mapping[str, Object] | None = None,
    drains: Sequence[Object] = (),
    rollbacks: Mapping[str, Object] | None = None,
    savable: Mapping[str, Object] | None = None,
    not_read: Sequence[str] = (),
    began: str = "",
) -> dict[str, Any]:
    """Return the plan of the hosts as JSON values.

    :param options: the variables of the role, without their prefix.
    :param cluster: the result of ``gpu_node_maintenance`` for the hosts of the cluster; for hosts
        without one, those of ``gpu_host_maintenance``, with ``without_cluster``.
    :param nodes: all nodes of the cluster by name, as ``gpu_cluster_info`` has them.
    :param drains: results of ``gpu_node_maintenance`` for drains in check mode.
    :param rollbacks: results of ``package_set`` with ``state: available``, by host.
    :param savable: results of ``package_set`` with ``state: saved`` in check mode, by host.
    :param not_read: the hosts that did not answer when the run began.
    :param began: when that was.
    :raises InputError: a value is wrong.
    """
    rows, nodes = _rows(cluster), nodes or {}
    without = bool(cluster.get("without_cluster"))
    drained = {host: row for result in drains for host, row in (result.get("nodes") or {}).items()}
    labels = {name: node["labels"] for name, node in nodes.items()}
    request = read_request(options)
    plan = plan_upgrade(
        request,
        [
            _with_rollback(
                _host(
                    host, hostvars[host], rows.get(host), drained.get(host), labels, without=without
                ),
                (rollbacks or {}).get(host) or {},
                (savable or {}).get(host) or {},
                request.run,
            )
            for host in hosts
        ],
        find_quorum(nodes),
        out_elsewhere(nodes, _names(rows)),
        count_elsewhere(nodes, _names(rows)),
    )
    return {**replace(plan, not_read=tuple(not_read)).to_json(), "began": began}


def tried(hosts: Sequence[str], hostvars: Hostvars, seen: Object) -> dict[str, Any]:
    """Return what :func:`plan_hosts` is given besides the cluster, from the tasks of each host.

    :param seen: ``nodes``, ``drains``, ``not_read`` and ``began``; ``registered`` has the names of
        the results that each host has of ``rollbacks``, ``savable`` and, without a cluster,
        ``drains``.
    """
    names = seen.get("registered") or {}

    def noted(what: str) -> dict[str, Object]:
        found = {host: hostvars[host].get(names[what]) for host in hosts if what in names}
        return {host: one for host, one in found.items() if one}

    cluster = seen.get("cluster") or {}
    without = bool(cluster.get("without_cluster"))
    drains = noted("drains").values() if without else seen.get("drains") or ()
    return {
        "nodes": seen.get("nodes") or {},
        "drains": [one for one in drains if "nodes" in one],
        "rollbacks": noted("rollbacks"),
        "savable": noted("savable"),
        "not_read": seen.get("not_read") or (),
        "began": seen.get("began") or "",
    }


def drained_nodes(plan: Object, hostvars: Hostvars, fact: str) -> dict[str, dict[str, Any]]:
    """Return the nodes whose drain is tried, by which pods leave them.

    :param fact: the variable in which each host has which node it is.
    """
    leaving = {
        host: one["pods"] for host, one in plan["hosts"].items() if one["action"] in _CHANGES
    }
    return {
        pods: {host: hostvars[host][fact] for host in leaving if leaving[host] == pods}
        for pods in ("gpu", "all")
    }


def failed(
    result: Object, task: Object | None, answer: Object | None, code: str | None
) -> dict[str, Any]:
    """Return the result of a host after a task failed.

    :param task: ``ansible_failed_task``. It and the answer are missing if a file of tasks could not
        be loaded.
    :param answer: ``ansible_failed_result``.
    """
    stored = failure(task or {"name": "A file of tasks"}, answer or {})
    finding = {**failed_finding(stored, _AGAIN), "code": code or "task_failed"}
    lost = bool((answer or {}).get("lost_connection"))
    return stages.failed(result, finding, lost=lost)


def _names(rows: Mapping[str, Object]) -> set[str]:
    """Return the names of the nodes of the hosts of the run."""
    return {str(row.get("node") or "") for row in rows.values()}


def _with_rollback(host: Host, answer: Object, savable: Object, run: str) -> Host:
    """Return the host with what its package manager said, if it was asked.

    :param savable: what it said of saving those that no repository has.
    :param run: the name of the run. On a node that it holds already nothing is saved.
    """
    missing = answer.get("not_available")
    if missing is None and answer and not answer.get("skipped"):
        return replace(host, unasked=result_parts(answer)["cause"])
    saved = (savable.get("packages") or {}) if host.held_by != run else {}
    return replace(host, missing=tuple(name for name in missing or () if name not in saved))


def _rows(cluster: Object) -> dict[str, Object]:
    """Return the rows of the nodes as they were read: check mode has what a cordon would make."""
    return {
        host: {**row, **(row.get("found") or {})}
        for host, row in (cluster.get("nodes") or {}).items()
    }


def _host(
    name: str,
    variables: Variables,
    row: Object | None,
    drain: Object | None,
    labels: Mapping[str, Mapping[str, str]],
    *,
    without: bool,
) -> Host:
    found = plans(variables)
    node = facts(variables)
    # The folder alone may be of a package that was never used.
    kubelet = (node or {}).get("kubelet") or {}
    containerd = ((node or {}).get("runtimes") or {}).get("containerd") or {}
    parts = {part: found.get(role) or {} for part, role in zip(PARTS, NODE_ROLES)}
    reboots = boolean(variables.get("nvidia_mig_reboot", False), strict=False)
    return Host(
        name=name,
        plans={**parts, "mig": {**parts["mig"], "reboots": reboots}},
        row=row,
        drain=drain,
        labels=labels.get(str((row or {}).get("node") or "")) or {},
        failure=variables.get("kubegpu_failure") or {},
        driver=str(((node or {}).get("driver") or {}).get("installed") or ""),
        kubelet=str(kubelet["directory"]) if without and kubelet.get("plugin_folders") else "",
        control_plane=bool(containerd.get("control_plane")),
    )


def find_plan(hosts: Sequence[str], hostvars: Hostvars) -> Object:
    """Return the plan that the hosts have in common; empty before it is made."""
    for host in hosts:
        found: Object = hostvars[host].get("gpu_upgrade_plan") or {} if host in hostvars else {}
        if found:
            return found
    return {}


def rolling_hosts(hosts: Sequence[str], hostvars: Hostvars) -> list[str]:
    """Return the hosts that are upgraded, in the order of their batches."""
    return [host for batch in find_plan(hosts, hostvars).get("batches") or () for host in batch]


def rolling_sizes(hosts: Sequence[str], hostvars: Hostvars) -> list[int]:
    """Return the sizes of the batches, as Ansible's ``serial``."""
    return [len(batch) for batch in find_plan(hosts, hostvars).get("batches") or ()] or [1]


def select_hosts(
    hosts: Sequence[str],
    hostvars: Hostvars,
    outcomes: Sequence[str],
    pods: Sequence[str] | None = None,
) -> list[str]:
    """Return the hosts with one of the outcomes; an empty outcome is that of a host in work.

    :param pods: which pods leave the node, as the plan has it; None for any.
    """
    planned = find_plan(hosts, hostvars).get("hosts") or {}
    return [
        host
        for host in hosts
        if _outcome(hostvars[host]) in outcomes
        and (pods is None or (planned.get(host) or {}).get("pods") in pods)
    ]


def _outcome(variables: Variables) -> str | None:
    result = variables.get("gpu_upgrade_result")
    return None if result is None else str(result.get("outcome") or "")


def stop_batch(
    batch: Sequence[str],
    hostvars: Hostvars,
    options: Object,
    cluster: Object,
    nodes: Mapping[str, Object] | None = None,
) -> str:
    """Return why a batch is not started; empty if it may be.

    :param cluster: the result of ``gpu_node_maintenance`` for all hosts of the upgrade, now.
    :param nodes: all nodes of the cluster, now; none for hosts without one.
    """
    plan, nodes = find_plan(batch, hostvars), nodes or {}
    rows = _rows(cluster)
    if not rows:
        return f"the cluster did not answer: {cluster.get('msg') or 'no message'}"
    outcomes = {host: _outcome(hostvars[host]) or "" for host in plan["hosts"] if host in hostvars}
    known = {host: row for host, row in rows.items() if row.get("node")}
    unready = [host for host, row in known.items() if not row.get("ready")]
    out = [host for host, row in known.items() if row.get("unschedulable") or host in unready]
    out += out_elsewhere(nodes, _names(rows))
    quorum = find_quorum(nodes)
    restarts = [
        host
        for host in batch
        if plan["hosts"][host]["member"] and quorum.has(str(known.get(host, {}).get("node")))
    ]
    failed = read_request(options).max_failed
    return why_stop(failed, outcomes, batch, out, plan, quorum, restarts)


def report_hosts(
    hosts: Sequence[str], hostvars: Hostvars, *, ended: str, checked: bool
) -> dict[str, Any]:
    """Return the content of the report.

    :param ended: when it ended.
    :param checked: whether the run only planned.
    """
    known = [host for host in hosts if host in hostvars]
    # What an upgrade did not record of a host is what was read of it.
    noted: dict[str, Object] = {
        host: hostvars[host].get("gpu_upgrade_result") or {} for host in known
    }
    results = {
        host: {**one, "from": one.get("from") or _installed(hostvars[host])}
        for host, one in noted.items()
    }
    plan = find_plan(hosts, hostvars)
    return report(plan, results, began=plan["began"], ended=ended, checked=checked)


def _installed(variables: Variables) -> dict[str, str | None]:
    """Return the versions on a host, as the role records them."""
    node = facts(variables)
    if node is None:
        return {}
    return {"driver": node["driver"]["installed"], "toolkit": node["container_toolkit"]["version"]}
