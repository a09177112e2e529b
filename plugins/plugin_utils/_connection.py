# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection to a cluster: its variables are merged, and fixed before any node is read. Pure.

This file imports little, because each process that runs a filter imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._fact_names import refusal
from ._variables_data import PLAYBOOK_VARIABLES

FLEET = "kubegpu_kube"
#: The registered result of ``fleet_variables``.
REGISTERED = "__kubegpu_variables"
_KEYS: Mapping[str, Mapping[str, Any]] = PLAYBOOK_VARIABLES[FLEET]["options"]
_SECRET = frozenset(key for key, one in _KEYS.items() if one.get("no_log"))
_DEFAULTS = {**dict.fromkeys(_KEYS, ""), "delegate": "localhost"}

Variables = Mapping[str, Any]


def is_connection(name: str) -> bool:
    """Return whether a variable, of the fleet or of a role, has a connection to a cluster."""
    return name.endswith("_kube")


def public(value: object) -> dict[str, Any]:
    """Return what is kept of a connection: no secret, and no key that is not set."""
    found = value if isinstance(value, Mapping) else {}
    return {key: one for key, one in found.items() if key not in _SECRET and one is not None}


def fixed(name: str, variables: Variables) -> Mapping[str, Any] | None:
    """Return a connection of a host as it was before any node was read; None if it was not set.

    :param variables: the host's own variables, without those of the play.
    """
    checked = variables.get(REGISTERED)
    known = checked.get("connections") if isinstance(checked, Mapping) else None
    own = (known or {}).get(variables.get("inventory_hostname")) or {}
    found: Mapping[str, Any] | None = own.get(name)
    return found


def merged(given: Mapping[str, Any], variables: Variables) -> dict[str, Any]:
    """Return the connection of a role: a later mapping replaces keys of those before it.

    A variable of the host itself is what it was before any node was read, but for its token: facts
    of a node could change it since, also by a template of it. One that the play, an include or the
    role's caller sets is taken as it is.

    :param given: the mappings by the names of their variables, as the task has them.
    :param variables: the host's own variables, without those of the play.
    :raises InputError: the host has facts with names of variables.
    """
    host = str(variables.get("inventory_hostname", "The host"))
    found = refusal(host, variables.get("ansible_facts"))
    if found is not None:
        raise found
    result: dict[str, Any] = dict(_DEFAULTS)
    for name, value in given.items():
        mapping = value if isinstance(value, Mapping) else {}
        before = fixed(name, variables)
        if before is not None and mapping == variables.get(name):
            mapping = {**before, **{key: mapping[key] for key in _SECRET & mapping.keys()}}
        result.update({key: one for key, one in mapping.items() if one is not None})
    return result
