# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read Node objects: labels, annotations, taints, and who owns them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .names import is_discovered
from .types import KINDS, TAINTS_ANNOTATION, Node, Taint

_UNTRACKED = "before-first-apply"


def read_node(data: Mapping[str, Any], field_manager: str) -> Node:
    """Return the parsed Node object, with ownership as seen by ``field_manager``."""
    metadata = data.get("metadata") or {}
    status = data.get("status") or {}
    owners: dict[tuple[str, str], list[str]] = {}
    managed: set[tuple[str, str]] = set()
    taint_owners = []
    cordons = False
    for entry in metadata.get("managedFields") or ():
        fields = entry.get("fieldsV1") or {}
        manager = str(entry.get("manager") or "unknown")
        is_own_apply = (
            manager == field_manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        )
        for kind in KINDS:
            for name in (fields.get("f:metadata") or {}).get(f"f:{kind}") or ():
                if name.startswith("f:"):
                    if is_own_apply:
                        managed.add((kind, name[2:]))
                    else:
                        owners.setdefault((kind, name[2:]), []).append(manager)
        spec = fields.get("f:spec") or {}
        if "f:taints" in spec and manager != field_manager:
            taint_owners.append(manager)
        cordons = cordons or (is_own_apply and "f:unschedulable" in spec)
    if not metadata.get("managedFields"):
        # At the first apply, the API server assigns the existing fields to this manager.
        for kind in KINDS:
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
        managed=frozenset(managed),
        taint_owners=tuple(dict.fromkeys(taint_owners)),
        cordoned=bool((data.get("spec") or {}).get("unschedulable")),
        cordons=cordons,
    )


def has_discovery(nodes: Iterable[Node]) -> bool:
    """Return whether GPU feature discovery labels this cluster."""
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


def recorded_taints(node: Node) -> dict[tuple[str, str], Taint]:
    """Return the taints that this module has set, as it set them, by identity."""
    try:
        texts = json.loads(node.annotations.get(TAINTS_ANNOTATION, "[]"))
    except (ValueError, RecursionError):
        return {}
    found = {}
    for text in texts if isinstance(texts, list) else ():
        pair, colon, effect = str(text).rpartition(":")
        key, _equals, value = pair.partition("=")
        if colon and key:
            found[(key, effect)] = Taint(key, value, effect)
    return found


def read_taint(data: Mapping[str, Any]) -> Taint:
    return Taint(str(data.get("key")), str(data.get("value") or ""), str(data.get("effect")))


def managed_metadata(node: Node) -> dict[str, Any]:
    """Return the labels, annotations and taints of the node that this module manages."""
    recorded = recorded_taints(node)
    return {
        "labels": _owned(node, "labels"),
        "annotations": _owned(node, "annotations"),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in map(read_taint, node.taints)
            if recorded.get(taint.identity) == taint
        ],
    }


def _owned(node: Node, kind: str) -> dict[str, str]:
    names = sorted(name for one_kind, name in node.managed if one_kind == kind)
    return {name: node.of(kind)[name] for name in names if name in node.of(kind)}
