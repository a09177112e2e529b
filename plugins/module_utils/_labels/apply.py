# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Label the nodes of a cluster: one list, a comparison here, a patch where something differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .._core.errors import InputError, KubegpuError
from .._kube.errors import KubeError
from .match import Match, match
from .node import has_discovery, ours, read_node
from .plan import plan, view, with_version, without_discovered
from .types import REMEMBERED, Conflict, Node, Plan, Wish

if TYPE_CHECKING:
    from .._kube.api import Cluster

NODES = "/api/v1/nodes"
_KIND = {"labels": "label", "annotations": "annotation", "spec": "taint"}
_MOST_NAMED = 10


@dataclass(frozen=True)
class Settings:
    """How it is done."""

    field_manager: str
    force: bool = False
    #: ``auto``, ``present`` or ``absent``
    feature_discovery: str = "auto"
    at_once: int = 8


@dataclass(frozen=True)
class _Job:
    match: Match
    plan: Plan

    @property
    def node(self) -> Node:
        if self.match.node is None:
            raise InputError(f"The node {self.match.wish.name} is gone")
        return self.match.node


@dataclass(frozen=True)
class _Done:
    """A node before and after. ``after`` is None where it was deleted meanwhile."""

    plan: Plan
    before: Node
    after: Node | None


@dataclass(frozen=True)
class Outcome:
    """What the module returns; ``errors`` are by node, ``refused`` by host."""

    changed: bool
    nodes: dict[str, dict[str, Any]]
    unknown: list[str]
    not_ready: list[str]
    conflicts: list[Conflict]
    errors: dict[str, KubeError]
    refused: dict[str, InputError]
    feature_discovery: bool
    left_out: list[str]
    warnings: list[str]
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


class Labeller:
    """Brings the nodes of a cluster to the wishes. In check mode the server only tries."""

    def __init__(self, cluster: Cluster, settings: Settings, dry_run: bool) -> None:
        self._cluster = cluster
        self._settings = settings
        self._dry_run = dry_run

    def __call__(self, wishes: Sequence[Wish]) -> Outcome:
        manager = self._settings.field_manager
        nodes = [read_node(data, manager) for data in self._cluster.list(NODES)]
        discovery = self._discovery(nodes)
        left_out: set[str] = set()
        jobs: list[_Job] = []
        matches = []
        for one in match(wishes, nodes):
            wish = one.wish
            if discovery:
                wish, left = without_discovered(wish)
                left_out.update(left)
            found = dataclasses.replace(one, wish=wish)
            matches.append(found)
            if found.node is not None:
                jobs.append(_Job(found, plan(wish, found.node, force=self._settings.force)))
        differing = [job for job in jobs if job.plan.differs]
        answers = self._bring(differing)
        done = {job.node.name: answer for job, answer in zip(differing, answers)}
        return self._outcome(matches, jobs, done, discovery, left_out)

    def _discovery(self, nodes: Sequence[Node]) -> bool:
        if self._settings.feature_discovery == "auto":
            return has_discovery(nodes)
        return self._settings.feature_discovery == "present"

    def _bring(self, jobs: Sequence[_Job]) -> Sequence[_Done | KubeError]:
        if not jobs:
            return []
        # What is wrong for the first is wrong for all: a missing right is not asked for 500 times.
        first = self._cluster.each(self._worker(), jobs[:1], at_once=1)[0]
        if isinstance(first, KubeError) and _concerns_all(first):
            raise first
        rest = self._cluster.each(self._worker(), jobs[1:], at_once=self._settings.at_once)
        return [first, *rest]

    def _worker(self) -> Any:
        tried: set[str] = set()

        def work(job: _Job) -> _Done:
            node, todo = job.node, job.plan
            if node.name in tried:
                # Somebody changed it in between: look again, and decide again. What an attempt
                # before this one did is shown too, so "before" is what was listed.
                read = self._read(node.name)
                if read is None:
                    return _Done(todo, node, None)
                node, todo = read, plan(job.match.wish, read, force=self._settings.force)
            tried.add(node.name)
            after = self._send(node, todo)
            shown = dataclasses.replace(todo, shown=todo.shown | job.plan.shown)
            return _Done(shown, job.node, after)

        return work

    def _send(self, node: Node, todo: Plan) -> Node:
        path = f"{NODES}/{quote(node.name)}"
        manager = self._settings.field_manager
        applied = None
        if todo.apply is not None:
            data = self._cluster.apply(
                path,
                todo.apply,
                field_manager=manager,
                force=self._settings.force,
                dry_run=self._dry_run,
            )
            applied = read_node(data, manager)
        if todo.taints is None:
            return applied or node
        version = node.resource_version
        if applied is not None and not self._dry_run:
            version = applied.resource_version
        data = self._cluster.patch(
            path, with_version(todo.taints, version), field_manager=manager, dry_run=self._dry_run
        )
        tainted = read_node(data, manager)
        if applied is not None and self._dry_run:
            # Two trials do not see each other.
            return _with_taints_of(tainted, applied)
        return tainted

    def _read(self, name: str) -> Node | None:
        """Read one node by the right that the list needs anyway."""
        for data in self._cluster.list(NODES, fieldSelector=f"metadata.name={name}"):
            return read_node(data, self._settings.field_manager)
        return None

    def _outcome(
        self,
        matches: Sequence[Match],
        jobs: Sequence[_Job],
        done: Mapping[str, _Done | KubeError],
        discovery: bool,
        left_out: set[str],
    ) -> Outcome:
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        conflicts: list[Conflict] = []
        errors: dict[str, KubeError] = {}
        now: dict[str, Node] = {}
        gone: set[str] = set()
        for job in jobs:
            name = job.node.name
            answer = done.get(name)
            now[name] = job.node
            if isinstance(answer, KubeError):
                conflicts.extend(job.plan.conflicts)
                if answer.field_conflicts:
                    conflicts.extend(_conflicts_of(answer, job))
                else:
                    errors[name] = answer
                continue
            if answer is None:
                conflicts.extend(job.plan.conflicts)
                continue
            conflicts.extend(answer.plan.conflicts)
            if answer.after is None:
                gone.add(name)
                continue
            now[name] = answer.after
            was = view(answer.before, answer.plan, job.match.wish)
            will_be = view(answer.after, answer.plan, job.match.wish)
            if was != will_be:
                before[name], after[name] = was, will_be
        rows = {}
        for found in matches:
            node = None if found.node is None or found.node.name in gone else now[found.node.name]
            listed = found.node.labels if found.node else {}
            rows[found.wish.key] = _row(found, node, after, listed)
        # For a host without GPUs there is nothing to do on whichever node it is.
        refused = {
            found.wish.key: found.refusal
            for found in matches
            if found.refusal and not found.wish.empty
        }
        unknown = [
            found.wish.key
            for found in matches
            if rows[found.wish.key]["node"] is None
            and not found.wish.empty
            and found.wish.key not in refused
        ]
        asked = [found for found in matches if not found.wish.empty]
        not_ready = [
            rows[found.wish.key]["node"]
            for found in asked
            if rows[found.wish.key]["ready"] is False
        ]
        return Outcome(
            changed=bool(before or after),
            nodes=rows,
            unknown=unknown,
            not_ready=not_ready,
            conflicts=conflicts,
            errors=errors,
            refused=refused,
            feature_discovery=discovery,
            left_out=sorted(left_out),
            warnings=_warnings(matches, unknown, not_ready),
            before=before,
            after=after,
        )


def _concerns_all(error: KubeError) -> bool:
    """Return whether what went wrong for a node would for every other; a policy may be of one."""
    return error.status in (None, 401) or (error.status == 403 and error.reason != "Denied")


def _row(
    found: Match, node: Node | None, after: Mapping[str, Any], listed: Mapping[str, str]
) -> dict[str, Any]:
    """Return what is told of a node. ``listed``: its labels before."""
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
    mine = ours(node)
    return {
        "node": node.name,
        "found_by": found.found_by,
        "ready": node.ready,
        "changed": node.name in after,
        "added": [name for name in mine["labels"] if name not in listed],
        **mine,
    }


def _with_taints_of(tainted: Node, applied: Node) -> Node:
    """Return ``applied`` with what the patch of the taints changes."""
    annotations = dict(applied.annotations)
    annotations.pop(REMEMBERED, None)
    if REMEMBERED in tainted.annotations:
        annotations[REMEMBERED] = tainted.annotations[REMEMBERED]
    return dataclasses.replace(
        applied,
        annotations=annotations,
        taints=tainted.taints,
        taint_owners=tainted.taint_owners,
    )


def _conflicts_of(error: KubeError, job: _Job) -> list[Conflict]:
    """Return the conflicts that only the server saw, in our words."""
    found = []
    for item in error.field_conflicts:
        # metadata.labels.NAME; a name has dots of its own.
        parts = item.field.split(".", 2)
        kind = parts[1] if len(parts) == 3 else "spec"
        name = parts[2] if len(parts) == 3 else item.field
        wanted = job.match.wish.of(kind).get(name, "")
        now = job.node.of(kind).get(name, "") if kind != "spec" else ""
        found.append(
            Conflict(job.node.name, _KIND.get(kind, kind), name, item.manager, now, wanted)
        )
    return found


def _warnings(
    matches: Sequence[Match], unknown: Sequence[str], not_ready: Sequence[str]
) -> list[str]:
    warnings = [found.note for found in matches if found.note]
    if unknown:
        warnings.append(
            f"These hosts are no nodes of the cluster, by machine id or name: {named(unknown)}. "
            "The others were done."
        )
    if not_ready:
        warnings.append(f"These nodes are not ready: {named(not_ready)}. They were labelled.")
    return warnings


def named(names: Sequence[str]) -> str:
    """Return names in one line, the first ten of them."""
    more = len(names) - _MOST_NAMED
    text = ", ".join(names[:_MOST_NAMED])
    return f"{text} and {more} more" if more > 0 else text


def failure(outcome: Outcome) -> dict[str, str] | None:
    """Return cause, evidence and next step of what went wrong; None where nothing did."""
    causes: list[str] = []
    first: KubegpuError | None = None
    if outcome.refused:
        first = next(iter(outcome.refused.values()))
        causes.append(
            f"Which node these hosts are is not certain: {named(list(outcome.refused))}. The first "
            f"of them: {first.cause}"
        )
    if outcome.errors:
        error = next(iter(outcome.errors.values()))
        first = first or error
        causes.append(
            f"These nodes could not be labelled: {named(list(outcome.errors))}. The first "
            f"of them: {error.cause}"
        )
    if outcome.conflicts:
        theirs = named([str(item) for item in outcome.conflicts])
        causes.append(
            ("" if causes else "Not all that is wanted could be set, all else was done. ")
            + f"These belong to somebody else: {theirs}"
        )
    if not causes:
        return None
    return {
        "cause": ". ".join(causes),
        "evidence": first.evidence if first else "",
        "next_step": first.next_step
        if first
        else "Ask the owner to give it up, leave it out, or take it over with "
        "force_conflicts: true (gpu_node_labels_force_conflicts in the role).",
    }
