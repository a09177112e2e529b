# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gather the findings of all sources. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from .._core.finding import read_finding, safe_text
from .data import CAUSES, ROOT_ONLY, VERIFIED
from .states import judge_facts
from .types import (
    BUS,
    ERROR,
    GPU,
    INFO,
    MODULE,
    NODE,
    POD,
    RUNTIME,
    Host,
    Object,
    Observed,
    Subject,
)

_NOT_LOADED = "driver_not_loaded"
_NO_CLUSTER = "kubegpu_kube has neither kubeconfig nor host"
_ROOT = "only root can read it (become)"


def observe(hosts: Iterable[Host], pods: Iterable[Object]) -> list[Observed]:
    """Return all findings, in any order.

    :param pods: the list ``pods`` of ``gpu_cluster_info``.
    """
    known = list(hosts)
    on_node = {host.node: host.name for host in known if host.node}
    return [
        *(one for host in known for one in _of_host(host)),
        *(one for pod in pods for one in _of_pod(pod, on_node)),
    ]


def _of_host(host: Host) -> Iterator[Observed]:
    whole = Subject(host.name)
    installed = host.facts is None or bool(host.facts["driver"]["installed"])
    if host.facts is not None:
        for finding in judge_facts(host.facts):
            subject = Subject(host.name, finding.subject.gpu)
            yield _observed(finding.as_problem(), subject, _layer(finding.code, MODULE))
        for problem in host.facts["problems"]:
            if host.root or problem["code"] not in ROOT_ONLY:
                yield _observed(problem, whole, _layer(problem["code"], BUS), ERROR)
    for layer in host.layers:
        where = VERIFIED.get(layer["layer"])
        if where is None or layer["ok"] is not False or (where == RUNTIME and not host.root):
            continue
        # That there is nothing to load is a finding of the facts.
        if installed or layer["code"] != _NOT_LOADED:
            code = layer["code"] or f"{layer['layer']}_failed"
            source = NODE if _layer(code, where) == NODE else where
            yield _observed({**layer, "code": code}, whole, source, ERROR)
    for finding in (host.health or {}).get("findings") or ():
        if installed or finding["code"] != _NOT_LOADED:
            subject = Subject(host.name, safe_text(finding.get("address")))
            yield _observed(finding, subject, _layer(finding["code"], GPU))


def _layer(code: str, otherwise: str) -> str:
    return CAUSES[code].layer if code in CAUSES else otherwise


def _of_pod(pod: Object, on_node: Mapping[str, str]) -> Iterator[Observed]:
    name = f"{pod['namespace']}/{pod['name']}"
    node = str(pod.get("node") or "")
    subject = Subject(on_node.get(node, ""), pod=safe_text(name), placed=bool(node))
    for finding in pod.get("findings") or ():
        yield _observed(finding, subject, POD, ERROR)


def _observed(given: Object, subject: Subject, source: str, severity: str = "") -> Observed:
    """Return the finding of an item.

    :param severity: of all findings of its source; empty if each has one.
    """
    item = {**given, "severity": severity or given.get("severity")}
    found = read_finding(item, safe_text, subject, INFO, "unknown")
    row = CAUSES.get(found.code)
    shown = replace(found, severity=row.severity) if row and row.severity else found
    return Observed(**vars(shown), source=source)


def unseen(hosts: Iterable[Host], asked: bool) -> list[dict[str, str]]:
    """Return what could not be seen of each host, and why; of the cluster with an empty host.

    :param asked: whether the cluster was asked.
    """
    rows = [
        {"host": host.name, "what": what, "why": safe_text(why)}
        for host in hosts
        for what, why in _unseen(host, asked)
    ]
    if not asked:
        rows.append({"host": "", "what": "the cluster", "why": _NO_CLUSTER})
    unique = {(row["host"], row["what"], row["why"]): row for row in rows}
    return [unique[key] for key in sorted(unique)]


def _unseen(host: Host, asked: bool) -> Iterator[tuple[str, str]]:
    if host.facts is None:
        yield "the node", host.failure or "its facts could not be read"
        return
    if host.failure:
        yield "a part of the node", host.failure
    for row in (host.health or {}).get("unseen") or ():
        yield safe_text(row.get("what")), safe_text(row.get("why"))
    if not host.root and any(host.facts["runtimes"].values()):
        yield "the container runtimes", _ROOT
    gpus: Sequence[Object] = host.facts["gpus"]
    if any(gpu["vendor"] == "nvidia" and gpu["vgpu"]["guest"] is None for gpu in gpus):
        yield "whether the GPUs are virtual", _ROOT
    if host.facts["driver"]["managed"] is None:
        yield "the record of this collection", _ROOT
    if asked and gpus and not host.node:
        yield "its node in Kubernetes", "the cluster did not answer, or has no such node"
