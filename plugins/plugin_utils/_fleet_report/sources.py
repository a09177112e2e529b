# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the hosts of a play give to a report: facts, and the public facts of the roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._hosts import AMD_ROLE, NODE_ROLES, facts
from .._report.hosts import plan_rows, result_row
from .texts import mapping, sequence
from .types import Object, Source

Variables = Mapping[str, Any]
_PLAN = "gpu_report_plan"


def host_sources(
    hosts: Sequence[str],
    hostvars: Mapping[str, Variables],
    diagnoses: Mapping[str, Sequence[Object]] | None = None,
    applied: bool = False,
) -> list[Source]:
    """Return what is known of each host.

    :param diagnoses: the causes that a diagnosis found, by host.
    :param applied: whether the plans were applied in this run.
    """
    known = [host for host in hosts if host in hostvars]
    verified = _verified(known, hostvars)
    layers: dict[str, list[Object]] = {}
    for row in sequence(verified.get("rows")):
        layers.setdefault(row["node"], []).extend(row["layers"])
    cluster = mapping(verified.get("cluster"))
    places, nodes = mapping(cluster.get("node_of")), mapping(cluster.get("nodes"))
    return [
        _source(
            host,
            hostvars[host],
            layers=tuple(layers.get(host, ())),
            cluster=mapping(nodes.get(str(places.get(host)))),
            diagnosis=(diagnoses or {}).get(host),
            applied=applied,
        )
        for host in known
    ]


def _verified(hosts: Sequence[str], hostvars: Mapping[str, Variables]) -> Object:
    """Return the result of the verification, which is the same on all hosts that have it.

    A host that the run has lost may have an earlier one.
    """
    for host in hosts:
        found = mapping(hostvars[host].get("gpu_verify_result"))
        if "rows" in found:
            return found
    return {}


def _source(
    host: str,
    variables: Variables,
    *,
    layers: tuple[Object, ...],
    cluster: Object,
    diagnosis: Sequence[Object] | None,
    applied: bool,
) -> Source:
    node = facts(variables)
    planned = any(f"{role}_plan" in variables for role in (*NODE_ROLES, AMD_ROLE))
    own = mapping(variables.get(_PLAN))
    return Source(
        name=host,
        facts=node,
        # A verification plans nothing.
        plan=plan_rows([host], {host: variables})[0] if planned else {},
        applied=applied,
        left=tuple(result_row(host, variables)["open"]) if node else (),
        layers=layers or None,
        health=own.get("health") or None,
        diagnosis=None if diagnosis is None else tuple(diagnosis),
        failure=mapping(variables.get("kubegpu_failure")),
        upgrade=mapping(variables.get("gpu_upgrade_result")),
        cluster=cluster or None,
        unseen=tuple(sequence(own.get("unseen"))),
    )
