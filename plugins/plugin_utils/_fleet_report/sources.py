# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the hosts of a play give to a report: facts, and the public facts of the roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import parts
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.types import (
    DONE,
    KEPT,
    UNCHANGED,
)

from .._hosts import (
    facts,
    form_error,
    plans,
    select_hosts,
    switches,
)
from .._reading import read_parts
from .._report.hosts import plan_rows, result_row
from .texts import mapping, sequence, text
from .types import Object, Others, Source

Variables = Mapping[str, Any]
_PLAN, _DIAGNOSED = "gpu_report_plan", "gpu_diagnose_plan"
_UPGRADED, _ACCEPTED = "gpu_upgrade_result", "gpu_acceptance_result"
# Nodes are released after their gate, which is the last to ask the cluster.
_BEFORE_RELEASE = {"what": "cluster", "why": "it was asked before the upgrade released the node"}


def host_sources(
    hosts: Sequence[str],
    hostvars: Mapping[str, Variables],
    diagnosis: Object | None = None,
    applied: bool = False,
) -> list[Source]:
    """Return what is known of each host.

    :param diagnosis: the result of a diagnosis.
    :param applied: whether the run applies plans; a host may not have got as far.
    """
    known = [host for host in hosts if host in hostvars]
    shared = _verified(known, hostvars)
    rows = _layers(shared)
    result = mapping(diagnosis)
    verdicts = mapping(result.get("hosts"))
    findings, unseen = (_by_host(result.get(key)) for key in ("findings", "unseen"))
    upgrades = any("gpu_upgrade_plan" in hostvars[host] for host in known)
    found = []
    for host in known:
        variables = hostvars[host]
        cluster, layers = _place(host, shared), rows.get(host, ())
        if _UPGRADED in variables or _ACCEPTED in variables:
            # Each batch has a verification of its own.
            own = mapping(variables.get("gpu_verify_result"))
            cluster = _place(host, own) or cluster
            layers = _layers(own).get(host) or layers
        found.append(
            _source(
                host,
                variables,
                layers=layers,
                cluster=cluster,
                verdict=mapping(verdicts.get(host)),
                diagnosis=findings.get(host, ()),
                unseen=unseen.get(host, ()),
                applied=applied and _is_applied(host, variables, upgrades=upgrades),
            )
        )
    return found


def others(hosts: Sequence[str], diagnosis: Object | None) -> Others:
    """Return what a diagnosis found of pods, and of no host."""
    known = set(hosts)
    return Others(
        tuple(
            one
            for one in sequence(mapping(diagnosis).get("findings"))
            if one.get("pod") or one.get("host") not in known
        ),
        tuple(
            one
            for one in sequence(mapping(diagnosis).get("unseen"))
            if one.get("host") not in known
        ),
    )


def _by_host(rows: Any) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for row in sequence(rows):
        found.setdefault(str(row.get("host") or ""), []).append(row)
    return found


def _is_applied(host: str, variables: Variables, *, upgrades: bool) -> bool:
    """Return whether the run has brought the host to its plan, or failed at that.

    :param upgrades: whether the run is an upgrade, which leaves some hosts as they are.
    """
    if upgrades:
        return mapping(variables.get(_UPGRADED)).get("outcome") in (DONE, UNCHANGED)
    own = {host: variables}
    # After a batch that failed, no other one is begun.
    works = select_hosts([host], own, "work") or select_hosts([host], own, "amd_work")
    waits = works and variables.get("kubegpu_begun") is False
    return bool(variables.get("kubegpu_failure")) or not waits


def _verified(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Object:
    """Return the result of the verification, which is the same on all hosts that have it.

    A host that the run has lost may have an earlier one.
    """
    for host in hosts:
        found = mapping(hostvars[host].get("gpu_verify_result"))
        if "rows" in found:
            return found
    return {}


def _layers(verified: Object) -> dict[str, tuple[Object, ...]]:
    found: dict[str, tuple[Object, ...]] = {}
    for row in sequence(verified.get("rows")):
        found[row["node"]] = (*found.get(row["node"], ()), *row["layers"])
    return found


def _place(host: str, verified: Object) -> Object:
    cluster = mapping(verified.get("cluster"))
    node = mapping(cluster.get("node_of")).get(host)
    return mapping(mapping(cluster.get("nodes")).get(str(node)))


def _source(
    host: str,
    variables: Variables,
    *,
    layers: tuple[Object, ...],
    cluster: Object,
    verdict: Object,
    diagnosis: Sequence[Object],
    unseen: Sequence[Object],
    applied: bool,
) -> Source:
    facts_of = facts(variables)
    result: Object = result_row(host, variables) if facts_of else {"open": ()}
    planned = bool(plans(variables))
    own, read = mapping(variables.get(_PLAN)), mapping(variables.get(_DIAGNOSED))
    upgrade = mapping(variables.get(_UPGRADED))
    unseen = (*sequence(own.get("unseen")), *unseen)
    name = text(verdict.get("node") or cluster.get("name"))
    if cluster and upgrade and upgrade.get("outcome") not in KEPT:
        cluster, unseen = {}, (*unseen, _BEFORE_RELEASE)
    return Source(
        name=host,
        facts=facts_of,
        # A verification plans nothing.
        plan=plan_rows([host], {host: variables})[0] if planned else {},
        applied=applied,
        left=tuple(result["open"]),
        pending=tuple(result.get("pending") or ()),
        layers=layers or None,
        health=own.get("health") or read.get("health") or None,
        diagnosis=tuple(one for one in diagnosis if not one.get("pod")) if verdict else None,
        verdict=text(verdict.get("verdict")),
        root=bool(read.get("root", _read_by_root(facts_of))),
        failure=_failure(variables),
        upgrade=upgrade,
        acceptance=mapping(variables.get(_ACCEPTED)),
        cluster=cluster or None,
        node=name,
        unseen=unseen,
        switches=switches(variables),
    )


def _failure(variables: Variables) -> Object:
    """Return why a host failed, or why it was not read."""
    failure = mapping(
        variables.get("kubegpu_failure") or variables.get("kubegpu_prometheus_failure")
    )
    error = form_error(variables)
    if failure:
        return failure
    return read_parts(variables) if error is None else {"message": str(error), **parts(error)}


def _read_by_root(facts_of: Object | None) -> bool:
    """Return whether root has read the facts: nobody else sees the record of this collection."""
    return mapping(mapping(facts_of).get("driver")).get("managed", False) is not None
