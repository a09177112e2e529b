# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a host that have the name of a variable of this collection. Pure.

With ``inject_facts_as_vars`` each fact is also a variable of its host, stronger than those of the
inventory: a node that returns such a fact would choose files of the controller. Any module on a
node can return facts. This file imports little, because each process that runs a task imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import parts
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable

from ._variables_data import PREFIX, ROLES

#: The only fact of this collection.
FACT = "gpu_node"
_PREFIXES = tuple(
    f"{private}{prefix}"
    for prefix in (PREFIX, *(f"{role}_" for role in ROLES))
    for private in ("", "__")
)
# Variables of Ansible that facts override, and that say where files of a host are searched.
_OF_ANSIBLE = ("inventory_dir", "inventory_file")
# Functions of templates. A variable of the name hides the function, also in a task that runs once
# for all hosts.
_FUNCTIONS = (
    "cycler", "dict", "joiner", "lipsum", "lookup", "namespace", "now", "omit", "q", "query",
    "range", "undef",
)  # fmt: skip
_REFUSED = frozenset((*_OF_ANSIBLE, *_FUNCTIONS))
_MOST_NAMES = 5


def variable_names(facts: object) -> list[str]:
    """Return the names of facts that would replace what this collection's templates read.

    :param facts: ``ansible_facts`` of a host.
    """
    names: Iterable[object] = facts if isinstance(facts, Mapping) else ()
    return sorted(
        name
        for name in names
        if isinstance(name, str) and (name.startswith(_PREFIXES) or name in _REFUSED)
    )


def refusal(host: str, facts: object) -> InputError | None:
    """Return why a host with these facts is refused; None if it is not."""
    names = variable_names(facts)
    if not names:
        return None
    shown = ", ".join(printable(name)[:100] for name in names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    if more > 0:
        shown += f" and {more} more"
    return InputError(
        f"{host} has facts with names of variables: {shown}. "
        "A node would decide by them what the controller reads and writes.",
        next_step="Find what sets them: a module on the node that returns facts it should not "
        "(check the node for intruders), a fact cache (ansible-playbook --flush-cache), or your "
        "set_fact with cacheable (leave cacheable out).",
    )


def refused_facts(host: str, variables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a host's facts that are refused, as the wrong values of variables are."""
    found = refusal(host, variables.get("ansible_facts"))
    if found is None:
        return []
    return [
        {
            "variable": printable(variable_names(variables["ansible_facts"])[0])[:100],
            "part": "facts",
            "message": str(found),
            "cluster": False,
            "why": "is a fact of the node",
            **parts(found),
        }
    ]
