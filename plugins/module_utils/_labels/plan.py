# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between the labels, annotations and taints that a node has and shall have.

Nothing here speaks to a cluster: objects of its API come in, bodies for it come out. Who owns a
label is read from ``managedFields``, as the API server itself does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .desired import LONGEST, PREFIX, is_discovered, label_text

#: The taints that we set, as ``key=value:effect``; server-side apply cannot remember them for us.
REMEMBERED = f"{PREFIX}/taints"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KINDS = ("labels", "annotations")
_UNTRACKED = "before-first-apply"

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_DOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")
_WISH_KEYS = {"name", "machine_id", "labels", "annotations", "taints"}
_TAINT_KEYS = {"key", "value", "effect"}


@dataclass(frozen=True)
class Taint:
    """A taint; key and effect together are its identity."""

    key: str
    value: str
    effect: str

    @property
    def identity(self) -> tuple[str, str]:
        return (self.key, self.effect)

    def __str__(self) -> str:
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )


@dataclass(frozen=True)
class Wish:
    """What a node shall have of us: all of it, so that what is not named, goes."""

    key: str
    name: str
    machine_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.labels or self.annotations or self.taints)

    def of(self, kind: str) -> Mapping[str, str]:
        return self.labels if kind == "labels" else self.annotations


@dataclass(frozen=True)
class Node:
    """What matters here of a Node object."""

    name: str
    uid: str
    resource_version: str
    machine_id: str
    ready: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    #: As they are, with ``timeAdded``: the list goes back whole.
    taints: tuple[Mapping[str, Any], ...]
    #: ``(labels, key)`` -> the other managers that own it.
    owners: Mapping[tuple[str, str], tuple[str, ...]]
    #: ``(labels, key)`` of what we applied.
    ours: frozenset[tuple[str, str]]
    taint_owners: tuple[str, ...] = ()

    def of(self, kind: str) -> Mapping[str, str]:
        return self.labels if kind == "labels" else self.annotations


@dataclass(frozen=True)
class Conflict:
    """Something that we want and that belongs to somebody else."""

    node: str
    #: ``label``, ``annotation`` or ``taint``
    kind: str
    name: str
    owner: str
    value: str
    wanted: str

    def __str__(self) -> str:
        return (
            f"{self.node}: {self.kind} {self.name} is {self.value!r} and belongs to {self.owner} "
            f"(wanted: {self.wanted!r})"
        )


@dataclass(frozen=True)
class Plan:
    """What to send for a node: an apply, a patch of the taints, both or nothing."""

    apply: Mapping[str, Any] | None
    taints: Mapping[str, Any] | None
    conflicts: tuple[Conflict, ...]
    #: What is shown of the node before and after: ``(labels, key)``, and whether its taints are.
    shown: frozenset[tuple[str, str]]

    @property
    def differs(self) -> bool:
        return self.apply is not None or self.taints is not None


def read_wishes(nodes: Mapping[str, Any]) -> list[Wish]:
    """Return the wishes of the option ``nodes``, having checked all that a server would refuse."""
    return [_read_wish(str(key), value) for key, value in nodes.items()]


def _read_wish(key: str, given: Any) -> Wish:
    where = f"nodes.{key}"
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise InputError(
            f"The option {where} is no mapping",
            evidence=f"{given!r}",
            next_step="Give labels, annotations, taints, machine_id and name, or nothing of it.",
        )
    unknown = sorted(set(given) - _WISH_KEYS)
    if unknown:
        raise InputError(
            f"The option {where} has unknown keys: {', '.join(unknown)}",
            next_step=f"It may have {', '.join(sorted(_WISH_KEYS))}.",
        )
    wish = Wish(
        key=key,
        name=str(given.get("name") or key),
        machine_id=str(given["machine_id"]).strip() if given.get("machine_id") else None,
        labels=_texts(where, "labels", given.get("labels")),
        annotations=_texts(where, "annotations", given.get("annotations")),
        taints=_read_taints(where, given.get("taints")),
    )
    for name, value in wish.labels.items():
        _check_key(f"{where}.labels", name)
        _check_value(f"{where}.labels", name, value)
    for name in wish.annotations:
        _check_key(f"{where}.annotations", name)
    if REMEMBERED in wish.annotations:
        raise InputError(
            f"The annotation {REMEMBERED} in {where}.annotations is kept by this module itself",
            next_step="Leave it out, and name taints by the key taints.",
        )
    return wish


def _texts(where: str, kind: str, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"The option {where}.{kind} is no mapping", evidence=f"{given!r}")
    found = {}
    for name, value in given.items():
        if isinstance(value, (Mapping, list, tuple)):
            raise InputError(
                f"The value of {name} in {where}.{kind} is no text", evidence=f"{value!r}"
            )
        # Null is a label that is not wanted: a template can leave one out so.
        if value is not None:
            found[str(name)] = label_text(value)
    return found


def _read_taints(where: str, given: Any) -> tuple[Taint, ...]:
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)) or not all(isinstance(item, Mapping) for item in given):
        raise InputError(
            f"The option {where}.taints is no list of mappings",
            evidence=f"{given!r}",
            next_step="Write [{key: nvidia.com/gpu, value: present, effect: NoSchedule}].",
        )
    taints: dict[tuple[str, str], Taint] = {}
    for item in given:
        unknown = sorted(set(item) - _TAINT_KEYS)
        effect = str(item.get("effect") or "")
        if unknown or not item.get("key") or effect not in EFFECTS:
            raise InputError(
                f"A taint in {where}.taints is not valid",
                evidence=f"{dict(item)!r}",
                next_step=f"Give key, effect ({', '.join(EFFECTS)}) and, if wanted, value.",
            )
        value = item.get("value")
        taint = Taint(str(item["key"]), "" if value is None else label_text(value), effect)
        _check_key(f"{where}.taints", taint.key)
        _check_value(f"{where}.taints", taint.key, taint.value)
        if taint.identity in taints:
            raise InputError(f"{where}.taints has {taint.key} with {effect} twice")
        taints[taint.identity] = taint
    return tuple(taints.values())


def _check_key(where: str, name: str) -> None:
    domain, slash, rest = name.rpartition("/")
    valid = len(rest) <= LONGEST and bool(_NAME.match(rest))
    if slash:
        valid = valid and len(domain) <= 253 and bool(_DOMAIN.match(domain))
    if not valid:
        raise InputError(
            f"{where} has a key that Kubernetes does not take: {name!r}",
            next_step="A key is at most 63 letters, digits, '-', '_' and '.', with a letter or "
            "digit at both ends, and in front of it, if wanted, a domain and a slash.",
        )


def _check_value(where: str, name: str, value: str) -> None:
    if value and not (len(value) <= LONGEST and _NAME.match(value)):
        raise InputError(
            f"{where} has a value that Kubernetes does not take: {name} is {value!r}",
            next_step="A value is at most 63 letters, digits, '-', '_' and '.', with a letter or "
            "digit at both ends. The filter kubegpu.nodes.gpu_node_labels makes such values.",
        )


def read_node(data: Mapping[str, Any], field_manager: str) -> Node:
    """Return what matters of a Node object, seen by this field manager."""
    metadata = data.get("metadata") or {}
    status = data.get("status") or {}
    owners: dict[tuple[str, str], list[str]] = {}
    ours: set[tuple[str, str]] = set()
    taint_owners = []
    for entry in metadata.get("managedFields") or ():
        fields = entry.get("fieldsV1") or {}
        manager = str(entry.get("manager") or "unknown")
        applied_by_us = (
            manager == field_manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        )
        for kind in _KINDS:
            for name in (fields.get("f:metadata") or {}).get(f"f:{kind}") or ():
                if name.startswith("f:"):
                    if applied_by_us:
                        ours.add((kind, name[2:]))
                    else:
                        owners.setdefault((kind, name[2:]), []).append(manager)
        if "f:taints" in (fields.get("f:spec") or {}) and manager != field_manager:
            taint_owners.append(manager)
    if not metadata.get("managedFields"):
        # The API server gives what is there to this name when the first apply comes.
        for kind in _KINDS:
            owners.update({(kind, name): [_UNTRACKED] for name in metadata.get(kind) or ()})
    return Node(
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        resource_version=str(metadata.get("resourceVersion") or ""),
        machine_id=str((status.get("nodeInfo") or {}).get("machineID") or ""),
        ready=any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        ),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        taints=tuple((data.get("spec") or {}).get("taints") or ()),
        owners={key: tuple(dict.fromkeys(names)) for key, names in owners.items()},
        ours=frozenset(ours),
        taint_owners=tuple(dict.fromkeys(taint_owners)),
    )


def has_discovery(nodes: Iterable[Node]) -> bool:
    """Tell whether GPU feature discovery labels this cluster."""
    for node in nodes:
        if "nvidia.com/gfd.timestamp" in node.labels:
            return True
        for (kind, name), managers in node.owners.items():
            # node-feature-discovery's master writes what GPU feature discovery found.
            if (
                kind == "labels"
                and is_discovered(name)
                and name.startswith("nvidia.com/")
                and any("nfd" in manager or "feature-discovery" in manager for manager in managers)
            ):
                return True
    return False


def without_discovered(wish: Wish) -> tuple[Wish, tuple[str, ...]]:
    """Return the wish without the labels that feature discovery owns, and their names."""
    left = tuple(sorted(name for name in wish.labels if is_discovered(name)))
    if not left:
        return wish, ()
    labels = {name: value for name, value in wish.labels.items() if name not in left}
    return Wish(wish.key, wish.name, wish.machine_id, labels, wish.annotations, wish.taints), left


def plan(wish: Wish, node: Node, *, force: bool = False) -> Plan:
    """Compare, and return what to send and what is in the way.

    What belongs to somebody else with another value is left out unless ``force``: server-side
    apply would refuse all of the node's labels for one of them.
    """
    conflicts = []
    wanted: dict[str, dict[str, str]] = {kind: {} for kind in _KINDS}
    for kind in _KINDS:
        for name, value in wish.of(kind).items():
            owners = node.owners.get((kind, name), ())
            now = node.of(kind).get(name)
            if owners and now != value and not force:
                conflicts.append(
                    Conflict(node.name, kind[:-1], name, ", ".join(owners), now or "", value)
                )
            else:
                wanted[kind][name] = value
    keys = {(kind, name) for kind in _KINDS for name in wanted[kind]}
    differs = keys != node.ours or any(
        node.of(kind).get(name) != wanted[kind][name] for kind, name in keys
    )
    taints, taint_conflicts = _plan_taints(wish, node, force)
    return Plan(
        apply=_apply_body(node, wanted) if differs else None,
        taints=taints,
        conflicts=(*conflicts, *taint_conflicts),
        shown=frozenset(keys | node.ours),
    )


def _apply_body(node: Node, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    # With its uid, the apply of a node that was just deleted does not make a new one.
    metadata: dict[str, Any] = {"name": node.name, "uid": node.uid}
    metadata.update({kind: dict(wanted[kind]) for kind in _KINDS if wanted[kind]})
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def remembered(node: Node) -> dict[tuple[str, str], Taint]:
    """Return the taints that we set on the node, as we set them."""
    try:
        texts = json.loads(node.annotations.get(REMEMBERED, "[]"))
    except (ValueError, RecursionError):
        return {}
    found = {}
    for text in texts if isinstance(texts, list) else ():
        pair, colon, effect = str(text).rpartition(":")
        key, _equals, value = pair.partition("=")
        if colon and key:
            found[(key, effect)] = Taint(key, value, effect)
    return found


def _read_taint(data: Mapping[str, Any]) -> Taint:
    return Taint(str(data.get("key")), str(data.get("value") or ""), str(data.get("effect")))


def _plan_taints(
    wish: Wish, node: Node, force: bool
) -> tuple[dict[str, Any] | None, list[Conflict]]:
    """Return the patch of ``spec.taints`` with our memory of it, and what is in the way."""
    before = remembered(node)
    wanted = {taint.identity: taint for taint in wish.taints}
    memory: dict[tuple[str, str], Taint] = {}
    conflicts = []
    after: list[Mapping[str, Any]] = []
    for data in node.taints:
        taint = _read_taint(data)
        mine = before.get(taint.identity) == taint
        wish_now = wanted.pop(taint.identity, None)
        if wish_now is None:
            if not mine:
                after.append(data)
        elif wish_now == taint:
            # Somebody else's that is as we want it stays somebody else's.
            after.append(data)
            if mine:
                memory[taint.identity] = taint
        elif mine or force:
            after.append(_taint_body(wish_now))
            memory[taint.identity] = wish_now
        else:
            owner = ", ".join(node.taint_owners) or "somebody else"
            name = f"{taint.key}:{taint.effect}"
            conflicts.append(Conflict(node.name, "taint", name, owner, taint.value, wish_now.value))
            after.append(data)
    for taint in wanted.values():
        after.append(_taint_body(taint))
        memory[taint.identity] = taint
    annotation = json.dumps(sorted(str(taint) for taint in memory.values())) if memory else None
    if list(node.taints) == after and node.annotations.get(REMEMBERED) == annotation:
        return None, conflicts
    return {
        "metadata": {"annotations": {REMEMBERED: annotation}},
        "spec": {"taints": after or None},
    }, conflicts


def with_version(patch: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the patch of the taints for the node as it was read.

    The list is one value: whoever changed it in between must not lose what they wrote.
    """
    return {**patch, "metadata": {**patch["metadata"], "resourceVersion": version}}


def _taint_body(taint: Taint) -> dict[str, str]:
    body = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        body["value"] = taint.value
    return body


def view(node: Node, plan_of_node: Plan, wish: Wish) -> dict[str, Any]:
    """Return what is shown of a node before or after: what is or was ours, and its owners."""
    shown: dict[str, Any] = {}
    for kind in _KINDS:
        values = {}
        for one_kind, name in sorted(plan_of_node.shown):
            if one_kind != kind or name not in node.of(kind):
                continue
            values[name] = node.of(kind)[name]
            owners = node.owners.get((kind, name))
            if owners and (kind, name) not in node.ours:
                values[name] += f" (of {', '.join(owners)})"
        if values:
            shown[kind] = values
    identities = set(remembered(node)) | {taint.identity for taint in wish.taints}
    if plan_of_node.taints is not None:
        identities |= {_read_taint(data).identity for data in node.taints}
    taints = [str(taint) for taint in map(_read_taint, node.taints) if taint.identity in identities]
    if taints:
        shown["taints"] = taints
    return shown


def ours(node: Node) -> dict[str, Any]:
    """Return what of the node is ours: labels, annotations and taints."""
    mine = remembered(node)
    return {
        "labels": _owned(node, "labels"),
        "annotations": _owned(node, "annotations"),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in map(_read_taint, node.taints)
            if mine.get(taint.identity) == taint
        ],
    }


def _owned(node: Node, kind: str) -> dict[str, str]:
    names = sorted(name for one_kind, name in node.ours if one_kind == kind)
    return {name: node.of(kind)[name] for name in names if name in node.of(kind)}
