# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has changed since an earlier report, by the JSON of both. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import INFO

from .texts import mapping, sequence, text
from .types import FAILED, NOT_KNOWN, PARTLY, READY, SCHEMA, UNKNOWN, Change, Previous

#: By what a GPU is known again, the best first.
_IDENTITIES = ("uuid", "serial", "address")
_WORDS = {
    "failed": "failed",
    "unknown": "not read",
    "partly": "read in part",
    "attention": "ready, with attention needed",
    "ready": "ready",
    "no_gpu": "without a GPU",
}


def find_changes(
    previous: Any, nodes: Sequence[Mapping[str, Any]]
) -> tuple[Previous, list[Change]]:
    """Return whether the earlier report could be compared, and what has changed since.

    :param previous: the JSON of the earlier report; None without one.
    :param nodes: the nodes of this report.
    """
    if previous is None:
        return Previous(), []
    report = mapping(previous)
    if report.get("schema") != SCHEMA:
        schema = text(report.get("schema")) or "none"
        return Previous(why=f"The earlier report has the schema {schema}, not {SCHEMA}."), []
    earlier = [mapping(one) for one in sequence(report.get("nodes"))]
    pairs = _pairs(earlier, nodes)
    found = [change for one in nodes for change in _node(pairs.get(one["name"]), one)]
    known = {id(one) for one in pairs.values()}
    found += [
        Change(text(one.get("name")), "gone", "is gone") for one in earlier if id(one) not in known
    ]
    return Previous(True, text(report.get("generated")), ""), found


def _pairs(
    before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return the earlier node of each name: that of the name, or else the one of its machine.

    Machines that were cloned can have one machine id, which then shows nothing.
    """
    by_name = {text(one.get("name")): one for one in before}
    pairs = {one["name"]: by_name[one["name"]] for one in now if one["name"] in by_name}
    ids = Counter(
        text(one.get("machine_id")) for one in (*before, *now) if one.get("name") not in pairs
    )
    by_id = {
        text(one.get("machine_id")): one for one in before if text(one.get("name")) not in pairs
    }
    for one in now:
        machine_id = one["machine_id"]
        if one["name"] not in pairs and machine_id in by_id and ids[machine_id] == 2:
            pairs[one["name"]] = by_id[machine_id]
    return pairs


def _node(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[Change]:
    name = now["name"]
    if before is None:
        return [Change(name, "new", f"is new: {now['product'] or _WORDS[now['state']]}")]
    found = []
    earlier = text(before.get("name"))
    if earlier != name:
        found.append(Change(name, "renamed", f"was called {earlier}"))
    found += _state(name, before, now)
    if UNKNOWN in (before.get("state"), now["state"]):
        # Of a node that was not read, nothing else is known.
        return found
    found += _versions(name, mapping(before.get("versions")), now["versions"])
    found += _gpus(name, sequence(before.get("gpus")), now["gpus"])
    causes = _causes(name, sequence(before.get("causes")), now["causes"])
    # What was not seen of a node that was read in part may still be there.
    found += [one for one in causes if one.kind != "cause_gone" or now["state"] != PARTLY]
    return found


def _state(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    old, new = text(before.get("state")), now["state"]
    if old == new:
        return []
    was = f"was {_WORDS.get(old, old)}, is {_WORDS[new]}"
    kind = "state"
    if new in (FAILED, UNKNOWN):
        kind = "broke"
    elif new == READY or (old in (FAILED, UNKNOWN) and new != PARTLY):
        kind = "recovered"
    return [Change(name, kind, was)]


def _versions(name: str, before: Mapping[str, Any], now: Mapping[str, str]) -> list[Change]:
    found = []
    for what in dict.fromkeys((*before, *now)):
        # The GPUs are told one by one.
        old, new = text(before.get(what)), now.get(what, "")
        if what != "GPUs" and old != new and NOT_KNOWN not in (old, new):
            found.append(Change(name, "version", f"{what}: {old or 'none'} → {new or 'none'}"))
    return found


def _gpus(name: str, before: Sequence[Any], now: Sequence[Mapping[str, Any]]) -> list[Change]:
    old = [mapping(one) for one in before]
    for key in _IDENTITIES:
        if all(one.get(key) for one in (*old, *now)):
            break
    else:
        return _counts(name, old, now)
    there = {text(one[key]): one for one in old}
    here = {one[key]: one for one in now}
    found = [
        Change(name, "gpu_lost", f"GPU {_gpu(one)} is gone")
        for value, one in there.items()
        if value not in here
    ]
    for value, one in here.items():
        earlier = there.get(value)
        if earlier is None:
            found.append(Change(name, "gpu_new", f"GPU {_gpu(one)} is new"))
        elif earlier.get("address") and one["address"] not in ("", earlier["address"]):
            moved = f"GPU {_gpu(one)} was at {text(earlier['address'])}"
            found.append(Change(name, "gpu_moved", moved))
    return found


def _counts(
    name: str, before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]
) -> list[Change]:
    """Return GPUs that came or went, where nothing distinguishes them."""
    old = Counter(text(one.get("product")) for one in before)
    new = Counter(one["product"] for one in now)
    found = []
    for product in dict.fromkeys((*old, *new)):
        change = new[product] - old[product]
        if change:
            kind, words = ("gpu_new", "new") if change > 0 else ("gpu_lost", "gone")
            found.append(Change(name, kind, f"GPU {product}: {abs(change)} {words}"))
    return found


def _gpu(gpu: Mapping[str, Any]) -> str:
    product, address = text(gpu.get("product")), text(gpu.get("address"))
    return f"{product} at {address}" if address else product


def _causes(name: str, before: Sequence[Any], now: Sequence[Mapping[str, Any]]) -> list[Change]:
    """Return causes that came or went; the text of one may differ from report to report."""
    old = {_key(mapping(one)): mapping(one) for one in before if _counts_as(mapping(one))}
    new = {_key(one): one for one in now if _counts_as(one)}
    came = [
        Change(name, "cause_new", f"new: {one['cause']}")
        for key, one in new.items()
        if key not in old
    ]
    went = [
        Change(name, "cause_gone", f"no longer: {text(one.get('cause'))}")
        for key, one in old.items()
        if key not in new
    ]
    return [*came, *went]


def _key(cause: Mapping[str, Any]) -> tuple[str, str]:
    return text(cause.get("id")), text(cause.get("subject"))


def _counts_as(cause: Mapping[str, Any]) -> bool:
    return cause.get("severity") != INFO
