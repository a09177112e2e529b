# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What to do: the causes of all nodes, with equal ones as one action. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    SEVERITIES,
    Finding,
    general_step,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import (
    Fix,
    find_fix,
    fix_of_hosts,
)

from .types import Action


def make_actions(found: Iterable[Finding], nodes: Mapping[str, str]) -> list[Action]:
    """Return the actions: errors first, then what most nodes need.

    Findings are equal if they have the same code, and next step and command differ in names only.

    :param nodes: the name of the node in the cluster of each host.
    """
    groups: dict[tuple[str, str, str, str], list[tuple[Finding, Fix]]] = {}
    for one in found:
        fix = _fix(one, nodes.get(one.subject.host, ""))
        step = general_step(one.next_step, one.template, one.details)
        groups.setdefault((one.code, one.severity, step, fix.general), []).append((one, fix))
    actions = [_action(step, group) for (_code, _severity, step, _fix), group in groups.items()]
    return sorted(actions, key=_place)


def _fix(one: Finding, node: str) -> Fix:
    """Return the command of a finding; only those of a diagnosis have names in it."""
    plain = Fix(one.fix.replace("{", "{{").replace("}", "}}"))
    if not one.confidence or not one.fix:
        return plain
    found = find_fix(one.code, one.subject, one.details, node)
    return found if found.template else plain


def _place(action: Action) -> tuple[int, int, str, str]:
    first = action.finding
    count = len({one.subject.host or one.subject.place for one in action.found})
    return SEVERITIES.index(first.severity), -count, first.code, first.next_step


def _action(step: str, group: Sequence[tuple[Finding, Fix]]) -> Action:
    found = tuple(one for one, _fix in group)
    first = replace(
        found[0],
        # What most of them say.
        cause=Counter(one.cause for one in found).most_common(1)[0][0],
        next_step=found[0].next_step if len({one.next_step for one in found}) == 1 else step,
        fix=fix_of_hosts([fix for _one, fix in group]),
        follows=tuple(dict.fromkeys(text for one in found for text in one.follows)),
    )
    return Action(first, found)
