# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply labels, annotations and taints: list the nodes once, patch only those that differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .._core.errors import InputError
from .._kube.errors import KubeError
from .match_hosts import Match, match
from .node import has_discovery, managed_metadata, read_node
from .plan import plan, view, with_version, without_discovered
from .result import Result, build_warnings, strangers_error
from .types import TAINTS_ANNOTATION, Conflict, Node, Plan, Request

if TYPE_CHECKING:
    from .._kube.api import Cluster

NODES = "/api/v1/nodes"
_SINGULAR = {"labels": "label", "annotations": "annotation", "spec": "taint"}


@dataclass(frozen=True)
class Settings:
    """The module's options apart from the nodes."""

    field_manager: str
    force: bool = False
    #: ``auto``, ``present`` or ``absent``
    feature_discovery: str = "auto"
    #: Number of nodes that are changed in parallel.
    concurrency: int = 8


@dataclass(frozen=True)
class _Job:
    match: Match
    plan: Plan

    @property
    def node(self) -> Node:
        if self.match.node is None:
            raise InputError(f"The node {self.match.request.name} is gone")
        return self.match.node


@dataclass(frozen=True)
class _Applied:
    """A node before and after. ``after`` is None where it was deleted meanwhile."""

    plan: Plan
    before: Node
    after: Node | None


class Labeller:
    """Applies requests to the nodes of a cluster; in check mode by dry runs on the server."""

    def __init__(self, cluster: Cluster, settings: Settings, dry_run: bool) -> None:
        self._cluster = cluster
        self._settings = settings
        self._dry_run = dry_run

    def __call__(self, requests: Sequence[Request]) -> Result:
        manager = self._settings.field_manager
        nodes = [read_node(data, manager) for data in self._cluster.list(NODES)]
        discovery = self._discovery(nodes)
        left_out: set[str] = set()
        jobs: list[_Job] = []
        matches = []
        for one in match(requests, nodes):
            request = one.request
            if discovery:
                request, left = without_discovered(request)
                left_out.update(left)
            found = dataclasses.replace(one, request=request)
            matches.append(found)
            if found.node is not None:
                jobs.append(_Job(found, plan(request, found.node, force=self._settings.force)))
        differing = [job for job in jobs if job.plan.differs]
        answers = self._apply_all(differing)
        applied = {job.node.name: answer for job, answer in zip(differing, answers)}
        return self._build_result(matches, jobs, applied, discovery, left_out)

    def _discovery(self, nodes: Sequence[Node]) -> bool:
        if self._settings.feature_discovery == "auto":
            return has_discovery(nodes)
        return self._settings.feature_discovery == "present"

    def _apply_all(self, jobs: Sequence[_Job]) -> Sequence[_Applied | KubeError]:
        if not jobs:
            return []
        # An error such as a missing permission concerns every node: try one node first.
        first = self._cluster.each(self._worker(), jobs[:1], at_once=1)[0]
        if isinstance(first, KubeError) and _concerns_all(first):
            raise first
        rest = self._cluster.each(self._worker(), jobs[1:], at_once=self._settings.concurrency)
        return [first, *rest]

    def _worker(self) -> Any:
        tried: set[str] = set()

        def work(job: _Job) -> _Applied:
            node, change = job.node, job.plan
            if node.name in tried:
                # The node changed meanwhile: read it and plan again. "before" remains the node as
                # listed, so that the diff includes what an earlier attempt changed.
                read = self._read(node.name)
                if read is None:
                    return _Applied(change, node, None)
                node, change = read, plan(job.match.request, read, force=self._settings.force)
            tried.add(node.name)
            after = self._send(node, change)
            shown = dataclasses.replace(change, shown=change.shown | job.plan.shown)
            return _Applied(shown, job.node, after)

        return work

    def _send(self, node: Node, change: Plan) -> Node:
        path = f"{NODES}/{quote(node.name)}"
        manager = self._settings.field_manager
        applied = None
        if change.apply is not None:
            data = self._cluster.apply(
                path,
                change.apply,
                field_manager=manager,
                force=self._settings.force,
                dry_run=self._dry_run,
            )
            applied = read_node(data, manager)
        if change.taints is None:
            return applied or node
        version = node.resource_version
        if applied is not None and not self._dry_run:
            version = applied.resource_version
        data = self._cluster.patch(
            path, with_version(change.taints, version), field_manager=manager, dry_run=self._dry_run
        )
        tainted = read_node(data, manager)
        if applied is not None and self._dry_run:
            # One dry run does not see the other.
            return _with_taints_of(tainted, applied)
        return tainted

    def _read(self, name: str) -> Node | None:
        """Read one node with the ``list`` permission, which the module needs in any case."""
        for data in self._cluster.list(NODES, fieldSelector=f"metadata.name={name}"):
            return read_node(data, self._settings.field_manager)
        return None

    def _build_result(
        self,
        matches: Sequence[Match],
        jobs: Sequence[_Job],
        applied: Mapping[str, _Applied | KubeError],
        discovery: bool,
        left_out: set[str],
    ) -> Result:
        changes = _compare(jobs, applied)
        rows = {}
        for found in matches:
            node = None
            if found.node is not None and found.node.name not in changes.deleted:
                node = changes.nodes[found.node.name]
            listed = found.node.labels if found.node else {}
            rows[found.request.key] = _row(found, node, changes.after, listed)
        # A host without GPUs needs nothing, whichever node it is.
        named = [found for found in matches if not found.request.empty]
        refused = {found.request.key: found.refusal for found in named if found.refusal}
        unknown = [
            found.request.key
            for found in named
            if rows[found.request.key]["node"] is None and found.request.key not in refused
        ]
        not_ready = [
            rows[found.request.key]["node"]
            for found in named
            if rows[found.request.key]["ready"] is False
        ]
        strangers = None
        if unknown and len(unknown) == len(named):
            strangers = strangers_error(unknown, self._cluster.server.host)
        known = [] if strangers else unknown
        warnings = build_warnings(matches, known, not_ready, self._dry_run)
        if strangers and self._dry_run:
            # The hosts may join before the real run.
            warnings.append(str(strangers))
        return Result(
            changed=bool(changes.before or changes.after),
            nodes=rows,
            unknown=unknown,
            not_ready=not_ready,
            conflicts=changes.conflicts,
            errors=changes.errors,
            refused=refused,
            feature_discovery=discovery,
            left_out=sorted(left_out),
            warnings=warnings,
            strangers=None if self._dry_run else strangers,
            before=changes.before,
            after=changes.after,
        )


@dataclass
class _Changes:
    """What changed on the nodes, and what failed there."""

    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    errors: dict[str, KubeError] = field(default_factory=dict)
    #: The newest known state of each node, and the nodes deleted meanwhile.
    nodes: dict[str, Node] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)


def _compare(jobs: Sequence[_Job], applied: Mapping[str, _Applied | KubeError]) -> _Changes:
    """Compare the nodes before and after.

    :param applied: by node; a node without an entry already was as requested.
    """
    changes = _Changes()
    for job in jobs:
        name = job.node.name
        answer = applied.get(name)
        changes.nodes[name] = job.node
        if answer is None or isinstance(answer, KubeError):
            changes.conflicts.extend(job.plan.conflicts)
            if answer is None:
                continue
            if answer.field_conflicts:
                changes.conflicts.extend(_conflicts_of(answer, job))
            else:
                changes.errors[name] = answer
            continue
        changes.conflicts.extend(answer.plan.conflicts)
        if answer.after is None:
            changes.deleted.add(name)
            continue
        changes.nodes[name] = answer.after
        old = view(answer.before, answer.plan, job.match.request)
        new = view(answer.after, answer.plan, job.match.request)
        if old != new:
            changes.before[name], changes.after[name] = old, new
    return changes


def _concerns_all(error: KubeError) -> bool:
    """Return whether an error concerns every node. A policy may deny a single one."""
    return error.status in (None, 401) or (error.status == 403 and error.reason != "Denied")


def _row(
    found: Match, node: Node | None, after: Mapping[str, Any], listed: Mapping[str, str]
) -> dict[str, Any]:
    """Return the entry of a host in ``nodes``.

    :param listed: the labels of the node before the change.
    """
    if node is None:
        return {
            "node": None,
            "found_by": None,
            "ready": None,
            "changed": False,
            "added": [],
            "labels": {},
            "annotations": {},
            "taints": [],
        }
    managed = managed_metadata(node)
    return {
        "node": node.name,
        "found_by": found.found_by,
        "ready": node.ready,
        "changed": node.name in after,
        "added": [name for name in managed["labels"] if name not in listed],
        **managed,
    }


def _with_taints_of(tainted: Node, applied: Node) -> Node:
    """Return ``applied`` with the changes of the patch of the taints."""
    annotations = dict(applied.annotations)
    annotations.pop(TAINTS_ANNOTATION, None)
    if TAINTS_ANNOTATION in tainted.annotations:
        annotations[TAINTS_ANNOTATION] = tainted.annotations[TAINTS_ANNOTATION]
    return dataclasses.replace(
        applied,
        annotations=annotations,
        taints=tainted.taints,
        taint_owners=tainted.taint_owners,
    )


def _conflicts_of(error: KubeError, job: _Job) -> list[Conflict]:
    """Return the conflicts that only the server detected."""
    found = []
    for item in error.field_conflicts:
        # metadata.labels.NAME; a name has dots of its own.
        parts = item.field.split(".", 2)
        kind = parts[1] if len(parts) == 3 else "spec"
        name = parts[2] if len(parts) == 3 else item.field
        wanted = job.match.request.of(kind).get(name, "")
        now = job.node.of(kind).get(name, "") if kind != "spec" else ""
        found.append(
            Conflict(job.node.name, _SINGULAR.get(kind, kind), name, item.manager, now, wanted)
        )
    return found
