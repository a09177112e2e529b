# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What to do: the causes of all nodes, with equal ones as one action. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    Subject,
    general_step,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import (
    Fix,
    find_fix,
    fix_of_hosts,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.switches import switch_on

from .types import SEVERITIES, Action, Affected, Cause

#: A cause with the host that has it; an empty name for none.
Found = tuple[str, Cause]


def make_actions(found: Iterable[Found], nodes: Mapping[str, str]) -> list[Action]:
    """Return the actions: errors first, then what most nodes need.

    Causes are equal if they have the same id, and next step and command differ in names only.

    :param nodes: the name of the node in the cluster of each host.
    """
    groups: dict[tuple[str, str, str, str], list[tuple[str, Cause, Fix]]] = {}
    for host, cause in found:
        fix = _fix(cause, host, nodes.get(host, ""))
        step = general_step(cause.next_step, cause.template, cause.names)
        groups.setdefault((cause.id, cause.severity, step, fix.general), []).append(
            (host, cause, fix)
        )
    actions = [_action(step, group) for (_id, _severity, step, _fix), group in groups.items()]
    return sorted(
        actions,
        key=lambda one: (SEVERITIES.index(one.severity), -_count(one), one.id, one.next_step),
    )


def _fix(cause: Cause, host: str, node: str) -> Fix:
    """Return the command of a cause; only those of a diagnosis have names in it."""
    plain = Fix(cause.fix.replace("{", "{{").replace("}", "}}"))
    if not cause.confidence or not cause.fix:
        return plain
    found = find_fix(cause.id, Subject(host, pod=cause.pod), cause.names, node)
    switch = cause.names.get("switch", "")
    if not found.template:
        return plain
    return Fix(switch_on(switch, found.template), found.names) if switch else found


def _count(action: Action) -> int:
    return len({one.node or one.subject for one in action.nodes})


def _action(step: str, group: Sequence[tuple[str, Cause, Fix]]) -> Action:
    causes = [cause for _host, cause, _fix in group]
    first = causes[0]
    steps = {one.next_step for one in causes}
    return Action(
        first.id,
        first.severity,
        # What most of them say.
        Counter(one.cause for one in causes).most_common(1)[0][0],
        first.next_step if len(steps) == 1 else step,
        fix_of_hosts([fix for _host, _cause, fix in group]),
        first.confidence,
        tuple(Affected(host, one.subject, one.cause, one.evidence) for host, one, _fix in group),
        tuple(dict.fromkeys(text for one in causes for text in one.follows)),
    )
