# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node should have, what it has, and what to send: requests, nodes, conflicts, plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .desired import PREFIX

#: The taints that we set, as ``key=value:effect``; server-side apply cannot remember them for us.
REMEMBERED = f"{PREFIX}/taints"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
KINDS = ("labels", "annotations")


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
