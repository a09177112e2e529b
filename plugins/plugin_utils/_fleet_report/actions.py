# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be done: the causes of all nodes, with equal ones as one action. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import (
    HOST,
    NODE,
    POD,
    general_fix,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.switches import (
    switch_in,
    switch_on,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import (
    Observed,
    Subject,
)

from .commands import GPU, fix_of_hosts, general_step
from .texts import ADDRESS
from .types import SEVERITIES, Action, Affected, Cause

#: A cause with the host that has it; an empty name for none.
Found = tuple[str, Cause]


def make_actions(found: Iterable[Found], nodes: Mapping[str, str]) -> list[Action]:
    """Return the actions: errors first, then what most nodes need.

    Causes are equal if they have the same id, and next step and command differ in names only.

    :param nodes: the name of the node in the cluster of each host.
    """
    groups: dict[tuple[str, str, str, str], list[Found]] = {}
    for host, cause in found:
        step = _general_step(cause, host, nodes.get(host, ""))
        fix = _general_fix(cause, host, in_cluster=bool(nodes.get(host)))
        groups.setdefault((cause.id, cause.severity, step, fix), []).append((host, cause))
    actions = [_action(step, fix, group) for (_id, _severity, step, fix), group in groups.items()]
    return sorted(
        actions,
        key=lambda one: (SEVERITIES.index(one.severity), -_count(one), one.id, one.next_step),
    )


def _general_fix(cause: Cause, host: str, in_cluster: bool) -> str:
    """Return the command without names, which only those of a diagnosis have."""
    if not cause.confidence or not cause.fix:
        return cause.fix
    kind, _space, pod = cause.subject.partition(" ")
    subject = Subject(host, pod=pod if kind == "pod" else "")
    texts = (cause.cause, cause.evidence, cause.next_step)
    observed = Observed(cause.id, subject, cause.severity, "", *texts)
    # A text may have lost what names the command.
    general = general_fix(observed, in_cluster)
    name = switch_in(cause.fix)
    return switch_on(name, general) if general and name else general or cause.fix


def _general_step(cause: Cause, host: str, node: str) -> str:
    names = {node: NODE, host: HOST}
    kind, _space, pod = cause.subject.partition(" ")
    if ADDRESS.fullmatch(cause.subject):
        names[cause.subject] = GPU
    elif kind == "pod":
        names |= {pod: POD, pod.rpartition("/")[2]: POD}
    return general_step(cause.next_step, cause.cause, names)


def _count(action: Action) -> int:
    return len({one.node or one.subject for one in action.nodes})


def _action(step: str, fix: str, group: Sequence[Found]) -> Action:
    causes = [cause for _host, cause in group]
    first = causes[0]
    steps = {one.next_step for one in causes}
    return Action(
        first.id,
        first.severity,
        # What most of them say.
        Counter(one.cause for one in causes).most_common(1)[0][0],
        first.next_step if len(steps) == 1 else step,
        fix_of_hosts([(host, one.fix) for host, one in group], fix),
        first.confidence,
        tuple(Affected(host, one.subject, one.cause, one.evidence) for host, one in group),
        tuple(dict.fromkeys(text for one in causes for text in one.follows)),
    )
