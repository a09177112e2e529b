# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the table of verified nodes, with one column for each layer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import message
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LAYERS, PCI

# Codes of untested layers for which other columns of the table show the reason.
_OBVIOUS = frozenset({"waits", "needs_driver", "no_gpu", "not_asked"})
_WORDS = {True: "ok", False: "failed", None: "not tried"}
# Of the entry that says why the cluster could not be asked; the first host has it for all of them.
_NOT_ASKED = "cluster_not_asked"
#: The row of the cluster, which could not be asked.
CLUSTER = "cluster"
#: Of a host that has none, unless something is wrong with what its cluster offers.
NO_GPU = "no GPU"


def rows(
    entries: Iterable[Mapping[str, Any]],
    hosts: Sequence[str] = (),
    layers: Sequence[str] = LAYERS,
    reasons: Mapping[str, str] | None = None,
    missing: str = "the node could not be read",
    without: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return one row for each node, from the entries of all layers.

    :param entries: ``{node, layer, ok, cause, evidence, next_step}`` of any layer, in any order.
    :param hosts: nodes that get a row in any case; one without entries has failed.
    :param layers: the layers that have a column.
    :param reasons: cause of failure of a host without entries, by its name.
    :param missing: the same, for others.
    :param without: hosts that have no GPU; without entries they have not failed.
    """
    by_node: dict[str, list[Mapping[str, Any]]] = {host: [] for host in hosts}
    for entry in entries:
        by_node.setdefault(str(entry["node"]), []).append(entry)
    found = {
        name: _row(name, own, layers, (reasons or {}).get(name, missing))
        for name, own in by_node.items()
    }
    for name in without:
        found[name] = _without_gpu(found[name])
    return [*found.values(), *_cluster_rows(found.values(), layers)]


def _cluster_rows(
    rows_of_hosts: Iterable[Mapping[str, Any]], layers: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the row of a cluster that could not be asked; it is not a fault of one of its nodes.

    The hosts keep the entries, by which a playbook fails and an upgrade decides.
    """
    entries = [one for row in rows_of_hosts for one in row["layers"] if _is_not_asked(one)]
    if not entries:
        return []
    asked = {one["layer"] for one in entries}
    told = dict.fromkeys(message(one, head=str(one["cause"]), flat=True) for one in entries)
    return [
        {
            "node": CLUSTER,
            **{layer: _WORDS[False] if layer in asked else None for layer in layers},
            "result": _WORDS[False],
            "failed": True,
            "causes": [*told],
            "not_tried": [],
            "notes": [*told],
            "proof": [],
            "layers": [],
        }
    ]


def _is_not_asked(entry: Mapping[str, Any]) -> bool:
    return entry["ok"] is False and entry.get("code") == _NOT_ASKED


def _without_gpu(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a host that has no GPU."""
    shown = {**row, PCI: NO_GPU} if PCI in row and row[PCI] is None else dict(row)
    nothing = {"result": NO_GPU, "failed": False, "causes": [], "notes": []}
    return shown if row["layers"] else {**shown, **nothing}


def _row(
    name: str, entries: Sequence[Mapping[str, Any]], layers: Sequence[str], missing: str
) -> dict[str, Any]:
    order = {layer: number for number, layer in enumerate(LAYERS)}
    entries = sorted(entries, key=lambda entry: order.get(entry["layer"], len(order)))
    row: dict[str, Any] = {"node": name}
    for layer in layers:
        oks = [
            None if _is_not_asked(entry) else entry["ok"]
            for entry in entries
            if entry["layer"] == layer
        ]
        # A runtime that was not tested does not change the result of another one.
        value = False if False in oks else True if True in oks else None
        row[layer] = _WORDS[value] if oks else None
    failures = [entry for entry in entries if entry["ok"] is False and not _is_not_asked(entry)]
    untested = [entry for entry in entries if entry["ok"] is None and entry.get("cause")]
    row["result"] = (
        "failed" if failures or not entries else "ok" if _any_ok(entries) else "not tried"
    )
    row["failed"] = row["result"] == "failed"
    row["causes"] = list(
        dict.fromkeys(
            [
                *(_told(entry) for entry in failures),
                *([missing] if not entries else []),
            ]
        )
    )
    row["not_tried"] = list(
        dict.fromkeys(f"{_place(entry)}: {entry['cause']}" for entry in untested)
    )
    # Shown below the table: failures, and layers that should have been tested and were not.
    row["notes"] = [
        *row["causes"],
        *dict.fromkeys(
            message(
                entry, head=f"{_place(entry)}: not tried. {entry['cause']}", names=("next_step",)
            )
            for entry in untested
            if row.get(entry["layer"]) == _WORDS[None] and entry.get("code") not in _OBVIOUS
        ),
    ]
    row["proof"] = [f"{_place(entry)}: {entry['proof']}" for entry in entries if entry.get("proof")]
    row["layers"] = [dict(entry) for entry in entries]
    return row


def _any_ok(entries: Sequence[Mapping[str, Any]]) -> bool:
    return any(entry["ok"] for entry in entries)


def _place(entry: Mapping[str, Any]) -> str:
    subject = entry.get("subject")
    return f"{entry['layer']} ({subject})" if subject else str(entry["layer"])


def _told(entry: Mapping[str, Any]) -> str:
    return message(entry, head=f"{_place(entry)}: {entry.get('cause') or 'failed'}", flat=True)
