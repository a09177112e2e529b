# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The diagnosis of the hosts of a play, from their variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import diagnose
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import Host

from ._hosts import facts, form_error, switches
from ._reading import read_parts

Object = Mapping[str, Any]
Hostvars = Mapping[str, Object]


def diagnose_hosts(
    hosts: Sequence[str], hostvars: Hostvars, rows: Sequence[Object], cluster: Object
) -> dict[str, Any]:
    """Return the diagnosis.

    :param rows: ``gpu_verify_result.rows``.
    :param cluster: the result of ``gpu_cluster_info``; empty if the cluster was not asked.
    """
    layers = {str(row["node"]): row["layers"] for row in rows}
    offered: dict[str, list[Object]] = {}
    for layer in cluster.get("layers") or ():
        offered.setdefault(str(layer["node"]), []).append(layer)
    nodes = cluster.get("node_of") or {}
    known = [
        _host(
            name,
            hostvars.get(name) or {},
            [*layers.get(name, ()), *offered.get(name, ())],
            str(nodes.get(name) or ""),
        )
        for name in hosts
    ]
    return diagnose(known, list(cluster.get("pods") or ()), asked=bool(cluster))


def _host(name: str, variables: Object, layers: Sequence[Object], node: str) -> Host:
    read: Object = variables.get("gpu_diagnose_plan") or {}
    error = form_error(variables)
    if error is not None:
        # As a whole: the first line alone does not name the key.
        return Host(name, None, node=node, failure=" ".join(str(error).split()))
    failure = (variables.get("kubegpu_failure") or read_parts(variables)).get("cause") or ""
    return Host(
        name=name,
        facts=facts(variables),
        layers=layers,
        health=read.get("health"),
        node=node,
        root=bool(read.get("root", True)),
        failure=failure,
        switches=switches(variables),
    )
