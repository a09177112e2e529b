# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plans of a node's parts, from its facts and the variables of the roles. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .._core.errors import InputError
from .._core.options import PODS, variable_of, wrong_argument
from .parts import PARTS, is_set
from .types import Facts, Node, Plan, Run

_NO_FACT = (
    "the fact gpu_node has no {}: it is of another release, from a fact cache.",
    "Run kubegpu.nodes.gpu_node_facts on the host again.",
)


def plan_node(
    facts: Facts,
    variables: Mapping[str, Any],
    parts: Iterable[str],
    run: Run,
    earlier: Mapping[str, Plan] | None = None,
    wrong: Mapping[str, InputError] | None = None,
) -> dict[str, Plan]:
    """Return the plans of the parts, by the name of the role.

    A part is planned for what the parts before it change, if they are planned by the same call. A
    wrong value is a plan whose ``action`` is refuse.

    :param facts: the fact ``gpu_node``.
    :param variables: by their full names. One that is missing or None has its default.
    :param parts: a selection of :data:`PARTS`.
    :param earlier: plans of the same node that an earlier call returned.
    :param wrong: variables that have no value, each with its error.
    """
    together = [name for name in PARTS if name in set(parts)]
    plans = dict(earlier or {})
    for name in together:
        node = Node(facts, variables, run, plans, together)
        plans[name] = _plan(name, node, wrong or {})
    return {name: plans[name] for name in together}


def refuse(parts: Iterable[str], error: InputError) -> dict[str, Plan]:
    """Return the plans of a host that is refused as a whole."""
    return {name: PARTS[name].refused(error) for name in parts}


def in_cluster(host: str, answer: Mapping[str, Any], *, drains: bool) -> Mapping[str, Any]:
    """Return what a cluster says of the node of a host; empty if it was not asked.

    :param answer: the result of ``gpu_cluster_info``. An error is ``{'error': text}``.
    :param drains: whether pods that use GPUs leave the node before: they prevent nothing then.
    """
    if answer.get("cause") is not None:
        texts = (answer["cause"], answer.get("evidence"))
        return {"error": " ".join(text for text in texts if text)}
    name = (answer.get("node_of") or {}).get(host) or ""
    node = (answer.get("nodes") or {}).get(name) or {}
    return {key: one for key, one in node.items() if not (drains and key == "resources")}


def variables_of(parts: Iterable[str]) -> set[str]:
    """Return the names of the variables that the plans of these parts depend on."""
    return {name for part in parts for name in _names(part)}


def _names(part: str) -> set[str]:
    found, role = set(PARTS[part].others), PARTS[part].role or part
    for option in PARTS[part].arguments.keys() - set(PARTS[part].internal):
        found.add(variable_of(role, option).partition(".")[0])
    return found


def _plan(name: str, node: Node, wrong: Mapping[str, InputError]) -> Plan:
    part = PARTS[name]
    error = next((wrong[one] for one in sorted(_names(name)) if one in wrong), None)
    try:
        if part.switch and part.switch not in wrong and not is_set(node, part.switch, default=True):
            return {}
        if error is not None:
            raise error
        asked = part.arguments.keys() - set(part.internal)
        return part.plan(node, options_of(part.role or name, asked, node))
    except InputError as refusal:
        return part.refused(refusal)
    except KeyError as missing:
        cause, step = _NO_FACT
        return part.refused(InputError(cause.format(missing), next_step=step))


def options_of(role: str, names: Collection[str], node: Node) -> dict[str, Any]:
    """Return the options that variables of the role set, with the keys of its mappings.

    Of an option of pods, that of the role has precedence over that of all roles.
    """
    found = {}
    for option in names:
        variable = variable_of(role, option)
        value = value_of(variable, node)
        if value is None and variable == f"{role}_pods.{option}":
            value = value_of(f"{PODS}.{option}", node)
        if value is not None:
            found[option] = value
    return found


def value_of(variable: str, node: Node) -> Any:
    """Return the value of a variable, or of a key of a mapping; None if it is not set."""
    name, _dot, key = variable.partition(".")
    value = node.variables.get(name)
    if not key or value is None:
        return value
    if not isinstance(value, Mapping):
        raise wrong_argument(name, {"type": "dict"}, value)
    return value.get(key)
