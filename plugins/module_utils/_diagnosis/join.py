# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the root causes among all findings, and fold in what follows from them. Pure.

The order of what is given does not matter. A finding that no other one explains is a root cause:
nothing is guessed, an unknown finding remains visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.finding import safe_text
from .data import ANSWERS, CAUSES, FOLLOWS, NOT_IN_CONTAINER
from .fixes import find_fix
from .observe import observe, unseen
from .switches import with_switch
from .types import (
    ERROR,
    INFO,
    LAYERS,
    LIKELY,
    NVML,
    PLUGIN,
    POD,
    SEVERITIES,
    Diagnosis,
    Host,
    Object,
    Observed,
    Rule,
    Subject,
)

_ORDER = {code: number for number, code in enumerate(CAUSES)}
_MOST_EVIDENCE = 2000


def diagnose(
    hosts: Sequence[Host], pods: Sequence[Object] = (), *, asked: bool = False
) -> dict[str, Any]:
    """Return the diagnosis as JSON values: findings, a verdict for each host, what is unseen.

    :param pods: the list ``pods`` of ``gpu_cluster_info``.
    :param asked: whether the cluster was asked.
    """
    found = roots_of(hosts, pods)
    return {
        "ok": not any(one.severity == ERROR for one in found),
        "findings": [one.to_json() for one in found],
        "hosts": {host.name: _verdict(host, found, asked) for host in hosts},
        "pods": [_pod(pod, found) for pod in pods],
        "unseen": unseen(hosts, asked),
    }


def roots_of(hosts: Sequence[Host], pods: Sequence[Object] = ()) -> list[Diagnosis]:
    """Return the root causes of hosts and pods, whose fixes change something on their host."""
    by_name = {host.name: host for host in hosts}
    found = find_roots(observe(hosts, pods), {host.name: host.node for host in hosts})
    return [
        with_switch(one, host.facts, host.switches, host.node) if host else one
        for one, host in ((one, by_name.get(one.subject.host)) for one in found)
    ]


def find_roots(
    found: Iterable[Observed], nodes: Mapping[str, str] | None = None
) -> list[Diagnosis]:
    """Return the root causes, the worst first.

    :param nodes: the name of the node in the cluster of each host.
    """
    merged, names = _merged(found), nodes or {}
    of_host: dict[str, list[Observed]] = {}
    for one in merged:
        of_host.setdefault(one.subject.host, []).append(one)
    above = {
        # Only a pod without a node can be kept off by what is wrong with other hosts.
        one: [
            other
            for other in (of_host[one.subject.host] if one.subject.host else merged)
            if explains(other, one)
        ]
        for one in merged
    }
    roots = [one for one in merged if not above[one]]
    follows: dict[Observed, list[Observed]] = {root: [] for root in roots}
    for one in merged:
        for root in _reached(one, above):
            if root is not one:
                follows[root].append(one)
    return [
        Diagnosis(
            **{
                **vars(root),
                "fix": str(
                    find_fix(
                        root.code, root.subject, root.details, names.get(root.subject.host, "")
                    )
                ),
                "confidence": CAUSES[root.code].confidence if root.code in CAUSES else LIKELY,
                "follows": tuple(dict.fromkeys(one.code for one in follows[root])),
                "folded": tuple(follows[root]),
            }
        )
        for root in sorted(roots, key=_place)
    ]


def _reached(one: Observed, above: Mapping[Observed, Sequence[Observed]]) -> list[Observed]:
    """Return the roots from which a finding follows, over any number of steps."""
    seen, todo = {one}, [one]
    while todo:
        for other in above[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return [other for other in seen if not above[other]]


def _row(one: Observed) -> Rule | None:
    """Return the row of a finding; None where a pod's log names a cause of a lower layer.

    The pod has only noticed it: the layer has a finding of its own, or was not looked at.
    """
    row = CAUSES.get(one.code)
    noticed = row is not None and one.source in (PLUGIN, POD) and row.layer not in (PLUGIN, POD)
    return None if noticed else row


def _layer(one: Observed) -> str:
    row = _row(one)
    return row.layer if row is not None else one.source


def _rank(one: Observed) -> tuple[int, int]:
    known = _row(one) is not None
    return (LAYERS.index(_layer(one)), _ORDER[one.code] if known else len(_ORDER))


def _because(one: Observed) -> tuple[str, ...]:
    row = _row(one)
    if row is not None:
        return row.because
    noticed = CAUSES.get(one.code)
    if one.source == POD and noticed is not None and noticed.layer in NOT_IN_CONTAINER:
        return (*FOLLOWS[POD], "asks_no_gpu")
    return FOLLOWS[one.source]


def explains(cause: Observed, one: Observed) -> bool:
    """Return whether an error explains another finding."""
    if cause.severity != ERROR or cause is one or _rank(cause) >= _rank(one):
        return False
    because = _because(one)
    if _layer(cause) not in because and cause.code not in because:
        return False
    if _layer(one) == NVML and (cause.code in ANSWERS or _of_other_gpus(cause, one)):
        return False
    return _same(cause.subject, one.subject)


def _of_other_gpus(cause: Observed, one: Observed) -> bool:
    """Return whether the driver's answer for all GPUs names GPUs, and none is that of the cause."""
    if not cause.subject.gpu or one.subject.gpu:
        return False
    # A kernel log names a GPU without its function.
    named = {gpu.partition(".")[0] for gpu in one.details.get("gpus", "").split()}
    return bool(named) and cause.subject.gpu.partition(".")[0] not in named


def _same(cause: Subject, one: Subject) -> bool:
    """Return whether what is wrong with one subject can be felt by another one."""
    if one.pod:
        # A pod without a node can be kept off every node.
        return cause.pod == one.pod if cause.pod else not one.placed or cause.host == one.host
    return (
        not cause.pod
        and cause.host == one.host
        and (not cause.gpu or not one.gpu or cause.gpu == one.gpu)
    )


def _merged(found: Iterable[Observed]) -> list[Observed]:
    """Return one finding for each code and subject; of a code, what names a GPU comes first."""
    groups: dict[tuple[str, Subject], list[Observed]] = {}
    for one in sorted(found, key=_place):
        groups.setdefault((one.code, one.subject), []).append(one)
    named = {(code, subject.host) for code, subject in groups if subject.gpu and not subject.pod}
    merged: list[Observed] = []
    for (code, subject), rows in groups.items():
        wider = groups.get((code, Subject(subject.host)), []) if subject.gpu else []
        if not subject.gpu and not subject.pod and (code, subject.host) in named:
            continue
        merged.append(_joined(rows, wider))
    return sorted(merged, key=_place)


def _joined(rows: Sequence[Observed], wider: Sequence[Observed]) -> Observed:
    """Return the findings as one, with the evidence of all of the same subject."""
    evidence = "; ".join(dict.fromkeys(one.evidence for one in rows if one.evidence))
    first = rows[0]
    gpus = dict.fromkeys(gpu for one in rows for gpu in one.details.get("gpus", "").split())
    names = {name: value for one in reversed(rows) for name, value in one.details.items()}
    return replace(
        first,
        severity=min((one.severity for one in (*rows, *wider)), key=SEVERITIES.index),
        source=min((one.source for one in (*rows, *wider)), key=LAYERS.index),
        evidence=evidence[:_MOST_EVIDENCE],
        next_step=first.next_step or next((one.next_step for one in wider), ""),
        details={**names, "gpus": " ".join(gpus)} if gpus else names,
    )


def _place(one: Observed) -> tuple[Any, ...]:
    return (
        SEVERITIES.index(one.severity),
        _rank(one),
        one.code,
        one.subject.host,
        one.subject.gpu,
        one.subject.pod,
        one.source,
        one.cause,
        one.evidence,
        one.next_step,
    )


def _verdict(host: Host, found: Sequence[Diagnosis], asked: bool) -> dict[str, Any]:
    own = [one for one in found if one.subject.host == host.name]
    severities = [one.severity for one in own if not one.subject.pod and one.severity != INFO]
    gpus = None if host.facts is None else len(host.facts["gpus"])
    if gpus is None:
        verdict = "not read"
    elif severities:
        verdict = min(severities, key=SEVERITIES.index)
    else:
        verdict = "ok" if gpus else "no GPU"
        # Nothing was found, but a read failed, or the cluster did not answer.
        if host.failure or (asked and gpus and not host.node):
            verdict = "partly read"
    return {
        "verdict": verdict,
        "gpus": gpus,
        "node": host.node or None,
        "roots": [one.code for one in own],
        "devices": [
            {name: safe_text(gpu.get(name)) for name in ("address", "uuid", "product")}
            for gpu in (host.health or {}).get("gpus") or ()
        ],
    }


def _pod(pod: Object, found: Sequence[Diagnosis]) -> dict[str, Any]:
    name = f"{pod['namespace']}/{pod['name']}"
    return {
        "pod": name,
        "phase": pod.get("phase"),
        "node": pod.get("node"),
        "asks": dict(pod.get("asks") or {}),
        "nodes": [dict(one) for one in pod.get("nodes") or ()],
        "roots": [
            one.code
            for one in found
            if one.subject.pod == name or any(part.subject.pod == name for part in one.folded)
        ],
    }
