# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of the labels' module: request, node, conflict and plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .names import PREFIX

#: Annotation with the taints that this module has set, as ``key=value:effect``. Server-side apply
#: tracks no ownership of single taints: the list is one field.
TAINTS_ANNOTATION = f"{PREFIX}/taints"
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
class Request:
    """The complete desired labels, annotations and taints of a host's node.

    What this module manages and the request does not name is removed.
    """

    key: str
    name: str
    machine_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    #: Keys of taints that go, whoever set them.
    drop_taints: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.labels or self.annotations or self.taints)

    def of(self, kind: str) -> Mapping[str, str]:
        return self.labels if kind == "labels" else self.annotations


@dataclass(frozen=True)
class Node:
    """The parts of a Node object that decide on labels and taints."""

    name: str
    uid: str
    resource_version: str
    machine_id: str
    ready: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    #: Unchanged, with ``timeAdded``, because the patch sends the whole list.
    taints: tuple[Mapping[str, Any], ...]
    #: ``(labels, key)`` -> the other field managers that own it.
    owners: Mapping[tuple[str, str], tuple[str, ...]]
    #: ``(labels, key)`` of the fields that this module applied.
    managed: frozenset[tuple[str, str]]
    taint_owners: tuple[str, ...] = ()
    cordoned: bool = False
    #: Whether this module cordoned it.
    cordons: bool = False

    def of(self, kind: str) -> Mapping[str, str]:
        return self.labels if kind == "labels" else self.annotations


@dataclass(frozen=True)
class Conflict:
    """A requested field that another field manager owns with another value."""

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
            f"(requested: {self.wanted!r})"
        )


@dataclass(frozen=True)
class Plan:
    """What to send for a node: an apply, a patch of the taints, both or nothing."""

    apply: Mapping[str, Any] | None
    taints: Mapping[str, Any] | None
    conflicts: tuple[Conflict, ...]
    #: Fields that the diff shows, as ``(labels, key)``.
    shown: frozenset[tuple[str, str]]

    @property
    def differs(self) -> bool:
        return self.apply is not None or self.taints is not None
