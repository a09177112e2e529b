# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the tables of a play, from the facts and the public facts that its hosts have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    Subject,
    read_finding,
    safe_text,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.switches import (
    with_switch,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendors
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LAYERS

from .._hosts import (
    asks_for_cuda,
    asks_for_mig,
    facts,
    form_error,
    is_due,
    plans,
    select_hosts,
    switches,
    wrong_values,
)
from .._reading import read_parts, was_read, why_not_read
from .._rollout import failure_message, selected
from .._variables_data import AMD_ROLES, FAIL_ON, NODE_ROLES, PLAN_FAIL_ON
from .cluster import cluster_plan, cluster_teardown, dra_plan
from .kept import kept_row
from .nodes import AMD_PARTS, NOT_READ, PARTS, node_plan, node_result, unknown_row
from .steps import stop_containers
from .teardown import teardown_row
from .verification import rows as verification

Variables = Mapping[str, Any]
Rows = list[dict[str, Any]]

_STOPPED = "the run stopped at this node; its failed task says why"
_DAEMONS = {"docker": "Docker", "crio": "CRI-O"}
_NOT_PLANNED = "the plan stopped at this node; its failed task says why"


def plan_rows(
    hosts: Sequence[str],
    hostvars: Mapping[str, Variables],
    run_tags: Sequence[str] = ("all",),
    skip_tags: Sequence[str] = (),
) -> Rows:
    """Return the plan table: of each host what would change, or why nothing is known.

    :param run_tags: the tags of the run; steps with other tags are left out, and named.
    :param skip_tags: the tags that the run skips.
    """
    return [_plan_row(host, hostvars[host], run_tags, skip_tags) for host in hosts]


def plan_failures(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Rows:
    """Return ``host`` and ``message`` of the hosts that kubegpu_plan_fail_on lets fail."""
    rows = []
    # ansible-playbook --syntax-check has no hostvars, and those of Ansible have no other default.
    for variables, host in ((hostvars[host], host) for host in hosts if host in hostvars):
        bad = PLAN_FAIL_ON.get(str(variables.get(FAIL_ON, "")), ())
        row: Mapping[str, Any] = {"action": ""}
        if bad:
            row = _plan_row(host, variables, ("all",), ())
        if row["action"] in bad:
            said = "refuses this host" if row["action"] == "refuse" else "has changes for this host"
            causes = [one["cause"] for one in row["refusals"]] or [*row["why"], ""]
            message = (
                f"The plan {said}: {row['changes'][0]}: {causes[0]} The table above has all of it."
            )
            rows.append({"host": host, "message": f"{message} ({FAIL_ON}: {variables[FAIL_ON]})"})
    return rows


def _plan_row(
    host: str, variables: Variables, run_tags: Sequence[str], skip_tags: Sequence[str]
) -> dict[str, Any]:
    node = facts(variables)
    if node is None or not was_read(variables):
        error = form_error(variables)
        told = (
            why_not_read(host, variables) if error is None else (not_read(variables), [str(error)])
        )
        return unknown_row(host, *told)
    plans = _plans(variables)
    wrong = wrong_values(host, variables)
    is_nvidia = bool(select_hosts([host], {host: variables}, "nvidia"))
    planned = all(part in plans for part in PARTS if _is_asked_for(part, variables))
    if is_nvidia and not wrong and not planned:
        return unknown_row(host, _NOT_PLANNED)
    if not is_nvidia:
        plans = {part: plan for part, plan in plans.items() if part in AMD_PARTS}
    queried = variables.get("__kubegpu_runtimes") or {}
    return node_plan(host, node, plans, queried, run_tags, skip_tags, wrong)


def not_read(variables: Variables) -> str:
    """Return why a host was not read, as one line."""
    cause = _read_cause(variables)
    return f"{NOT_READ}: {cause}" if cause else NOT_READ


def _read_cause(variables: Variables) -> str:
    """Return why a host was not read; empty where nothing says it."""
    error = form_error(variables)
    return (
        str(read_parts(variables).get("cause") or "") if error is None else safe_text(error.cause)
    )


def _is_asked_for(part: str, variables: Variables) -> bool:
    asks = {"mig": asks_for_mig, "cuda": asks_for_cuda}.get(part)
    return asks is None or asks(variables)


def result_rows(
    hosts: Sequence[str],
    hostvars: Mapping[str, Variables],
    batch: Sequence[str] = (),
    alive: Sequence[str] | None = None,
    stop: str = "",
    **options: Any,
) -> Rows:
    """Return the result table after a batch.

    :param hosts: all hosts of the play.
    :param batch: the hosts of the batch, of which each gets a row, as do all that failed.
    :param alive: the hosts that Ansible has not lost; all hosts by default.
    :param stop: why no other batch is started. If not empty, each host that waits gets a row.
    :param options: the options of :func:`result_row`.
    """
    ended = _endings(hosts, hostvars, batch, alive, stop)
    rows = []
    for host, (reason, changed) in ended.items():
        if reason:
            rows.append(kept_row(host, facts(hostvars[host]), reason, changed=changed))
        else:
            rows.append(result_row(host, hostvars[host], **options))
    return rows


def _endings(
    hosts: Sequence[str],
    hostvars: Mapping[str, Variables],
    batch: Sequence[str],
    alive: Sequence[str] | None,
    stop: str,
) -> dict[str, tuple[str, bool]]:
    """Return why each host of a table is not as planned, and whether it may have been changed."""
    alive = hosts if alive is None else alive
    lost = [host for host in hosts if host not in set(alive)]
    failed = select_hosts(alive, hostvars, "failed")
    waiting = select_hosts(alive, hostvars, "waiting") if stop else []
    ended = {}
    for host in dict.fromkeys((*batch, *failed, *lost)):
        failure = hostvars[host].get("kubegpu_failure")
        if failure:
            ended[host] = (failure_message(failure), bool(failure["changed"]))
        else:
            ended[host] = (_STOPPED, True) if host in lost else ("", False)
    for host in waiting:
        ended.setdefault(host, (stop, False))
    return ended


def teardown_rows(
    hosts: Sequence[str],
    hostvars: Mapping[str, Variables],
    batch: Sequence[str] = (),
    alive: Sequence[str] | None = None,
    stop: str = "",
) -> Rows:
    """Return the teardown table after a batch; the parameters are those of :func:`result_rows`."""
    return [
        teardown_row(
            host, hostvars[host], facts(hostvars[host]), reason, waits=bool(stop) and reason == stop
        )
        for host, (reason, _changed) in _endings(hosts, hostvars, batch, alive, stop).items()
    ]


def result_row(
    host: str,
    variables: Variables,
    run_tags: Sequence[str] = ("all",),
    skip_tags: Sequence[str] = (),
    predicted: bool = False,
) -> dict[str, Any]:
    """Return the row of one host after its roles ran.

    :param predicted: whether the run was in check mode.
    """
    plans_of = _plans(variables)
    results = {**_runtimes(variables), "mig": _waiting(plans_of.get("mig") or {})}
    for part, role in (
        ("driver", "nvidia_driver"),
        ("mig", "nvidia_mig"),
        ("AMD driver", "amd_driver"),
    ):
        if variables.get(f"{role}_result"):
            own = results.get(part) or {}
            results = {**results, part: {**own, **variables[f"{role}_result"]}}
    toolkits = [
        variables.get(f"{role}_result") or {}
        for role in ("nvidia_container_toolkit", "amd_container_toolkit")
    ]
    return node_result(
        host,
        plans_of,
        results,
        facts(variables),
        predicted=predicted,
        toolkit_done=selected("toolkit", run_tags, skip_tags),
        toolkit_changed=any(one.get("toolkit_changed") for one in toolkits),
    )


def _waiting(mig: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reboot that the plan of a MIG layout waits for; the role's result is newer."""
    reason = mig.get("reboot_reason", "")
    return {"reboot_required": True, "reboot_reason": reason} if reason else {}


def changed_hosts(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> list[str]:
    """Return the hosts with a loaded driver that a run changed, or with ``gpu_verify_all``."""
    able = select_hosts(hosts, hostvars, "driver")
    return [host for host in able if _to_verify(host, hostvars[host])]


def _to_verify(host: str, variables: Variables) -> bool:
    labels = (variables.get("gpu_node_labels_result") or {}).get("nodes") or {}
    vendors = gpu_vendors((facts(variables) or {}).get("gpus") or ())
    return bool(
        boolean(variables.get("gpu_verify_all", False), strict=False)
        or (labels.get(host) or {}).get("changed")
        or any(_result_changed(variables, f"{vendor}_device_plugin") for vendor in vendors)
        or _result_changed(variables, "nvidia_dra_driver")
        or _is_changed(host, variables)
    )


def _is_changed(host: str, variables: Variables) -> bool:
    """Return whether a node was changed, and no reboot or restart is left to be done."""
    return _was_changed(variables) and not result_row(host, variables)["pending"]


def _was_changed(variables: Variables) -> bool:
    """Return whether this run changed a node, or another one that no verification followed."""
    return is_due(variables) or any(
        _result_changed(variables, role) for role in (*NODE_ROLES, *AMD_ROLES)
    )


def unverified_hosts(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> list[str]:
    """Return the hosts that this run changed and does not verify, as they wait for something."""
    able = select_hosts(select_hosts(hosts, hostvars, "verified"), hostvars, "not_failed")
    return [host for host in able if _waits_for(host, hostvars[host])]


def _waits_for(host: str, variables: Variables) -> list[dict[str, Any]]:
    """Return the reboot and the restarts for which a changed node waits."""
    if not _was_changed(variables) or _to_verify(host, variables):
        return []
    pending: list[dict[str, Any]] = result_row(host, variables)["pending"]
    return pending


def unverified_rows(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Rows:
    """Return of each host why it is not verified, and what to do then."""
    return [{"node": host, **_unverified(_waits_for(host, hostvars[host]))} for host in hosts]


def _unverified(pending: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    daemons = [_DAEMONS.get(one["daemon"], one["daemon"]) for one in pending if "daemon" in one]
    # A reboot starts the daemons as well.
    if len(daemons) < len(pending):
        needs, step = "a reboot", "Reboot it"
    else:
        names = " and ".join(daemons)
        needs, step = f"a restart of {names}", f"Restart {names} on it"
        containers = [one["containers"] for one in pending if one.get("containers")]
        if containers and len(pending) == 1:
            return {
                "why": f"It needs {needs}, which waits for running containers.",
                "next_step": stop_containers(containers[0]),
            }
    return {
        "why": f"It needs {needs}.",
        "next_step": f"{step}, then run site again, which verifies it.",
    }


def cluster_rows(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Rows:
    """Return the plan table of the cluster, from the facts that its hosts have in common."""
    variables = hostvars[hosts[0]]
    rows = cluster_plan(
        variables.get("gpu_node_labels_result") or {},
        [
            (name, variables.get(f"{role}_plan") or {}, variables.get(f"{role}_result") or {})
            for name, role in (
                ("device plugin", "nvidia_device_plugin"),
                ("AMD device plugin", "amd_device_plugin"),
                ("Intel device plugin", "intel_device_plugin"),
                ("monitoring", "gpu_monitoring"),
            )
        ],
    )
    dra = variables.get("nvidia_dra_driver_plan") or {}
    return [*rows, *dra_plan(dra, variables.get("nvidia_dra_driver_result") or {})]


def cluster_teardown_rows(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Rows:
    """Return the teardown table of the cluster."""
    variables = hostvars[hosts[0]]
    return cluster_teardown(
        variables.get("gpu_node_labels_result") or {},
        (variables.get("gpu_kubernetes_objects_result") or {}).get("removed") or (),
        (variables.get("gpu_verify_result") or {}).get("foreign_nodes") or (),
    )


def monitoring_rows(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Rows:
    """Return the plan table of the exporters of hosts, as the role has planned each."""
    return [hostvars[host]["gpu_monitoring_host_plan"] for host in hosts]


def dra_rows(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Rows:
    """Return the table of what the DRA driver needs, and what is there."""
    return dra_plan(hostvars[hosts[0]].get("nvidia_dra_driver_plan") or {}, {})


def _result_changed(variables: Variables, role: str) -> bool:
    return bool((variables.get(f"{role}_result") or {}).get("changed"))


def verification_rows(
    hosts: Sequence[str],
    hostvars: Mapping[str, Variables],
    key: str,
    more: Sequence[Mapping[str, Any]] = (),
    layers: Sequence[str] = LAYERS,
    missing: str = NOT_READ,
) -> Rows:
    """Return the table of a verification.

    :param key: the variable in which each host has its list of layers.
    :param more: layers that were verified elsewhere.
    :param layers: the columns.
    :param missing: the reason for a host without layers.
    """
    entries: list[Mapping[str, Any]] = []
    reasons: dict[str, str] = {}
    for host in hosts:
        variables = hostvars[host]
        # The name in the inventory counts, whatever the node calls itself.
        own = variables.get(key) or ()
        node, known = facts(variables), switches(variables) if own else {}
        entries.extend({**entry, "node": host, **_next_step(entry, node, known)} for entry in own)
        reasons[host] = _missing(variables, missing)
    read = [host for host in hosts if facts(hostvars[host]) is not None]
    without = select_hosts(read, hostvars, "none")
    return verification([*entries, *more], hosts, layers, reasons, missing, without)


def _missing(variables: Variables, otherwise: str) -> str:
    """Return why a host has no layers."""
    failure = variables.get("kubegpu_failure")
    if failure:
        return failure_message(failure)
    cause = _read_cause(variables) if facts(variables) is None else ""
    return f"{NOT_READ}: {cause}" if cause else otherwise


def _next_step(
    entry: Mapping[str, Any], node: Mapping[str, Any] | None, known: Mapping[str, bool]
) -> dict[str, Any]:
    """Return next step and names of a layer that failed, with what has to change first."""
    if entry["ok"] is not False or not entry.get("next_step"):
        return {}
    found = with_switch(read_finding(entry, safe_text, Subject()), node, known)
    return {"next_step": found.next_step, **found.named()}


def _plans(variables: Variables) -> dict[str, Mapping[str, Any]]:
    """Return the plans that the host has, by part."""
    parts, roles = (*PARTS, *AMD_PARTS), (*NODE_ROLES, *AMD_ROLES)
    found = plans(variables)
    return {part: found[role] for part, role in zip(parts, roles) if role in found}


def _runtimes(variables: Variables) -> dict[str, Mapping[str, Any]]:
    result = variables.get("nvidia_container_toolkit_result") or {}
    amd = variables.get("amd_container_toolkit_result") or {}
    docker = {"docker": amd["docker"]} if amd.get("docker") else {}
    return {**docker, **(result.get("runtimes") or {})}
