# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection to a cluster: its variable, fixed before any node is read, and what modules get.

This file imports little, because each process that runs a filter imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ._fact_names import refusal
from ._variables_data import PLAYBOOK_VARIABLES

FLEET = "kubegpu_kube"
#: The registered result of ``fleet_variables``.
REGISTERED = "__kubegpu_variables"
_KEYS: Mapping[str, Mapping[str, Any]] = PLAYBOOK_VARIABLES[FLEET]["options"]
_SECRET = frozenset(key for key, one in _KEYS.items() if one.get("no_log"))
#: The options of the modules, which are those of ``kubernetes.core``.
_OPTIONS: Mapping[str, str] = {
    "kubeconfig": "kubeconfig",
    "context": "context",
    "host": "host",
    "token": "api_key",
    "ca_file": "ca_cert",
    "client_cert": "client_cert",
    "client_key": "client_key",
}
_CERTIFICATE = ("client_cert", "client_key")
_DEFAULTS = {**dict.fromkeys(_KEYS, ""), "delegate": "localhost"}

Variables = Mapping[str, Any]


def public(value: object) -> dict[str, Any]:
    """Return what is kept of a connection: no secret, and no key that is not set."""
    found = value if isinstance(value, Mapping) else {}
    return {key: one for key, one in found.items() if key not in _SECRET and one is not None}


def names_cluster(value: object) -> bool:
    """Return whether a connection names a cluster; the other keys alone do not."""
    return isinstance(value, Mapping) and bool(value.get("kubeconfig") or value.get("host"))


def incomplete(value: object) -> list[str]:
    """Return the keys of a connection that names no cluster; empty if none is set, or it does.

    A context is one of a kubeconfig, and a default kubeconfig is never used.
    """
    return (
        []
        if names_cluster(value)
        else [key for key, one in public(value).items() if one and key in _KEYS]
    )


def fixed(name: str, variables: Variables) -> Mapping[str, Any] | None:
    """Return a connection of a host as it was before any node was read; None if it was not set.

    :param variables: the host's own variables, without those of the play.
    """
    checked = variables.get(REGISTERED)
    known = checked.get("connections") if isinstance(checked, Mapping) else None
    own = (known or {}).get(variables.get("inventory_hostname")) or {}
    found: Mapping[str, Any] | None = own.get(name)
    return found


def connected(given: Any, hostvars: Mapping[str, Variables], host: str) -> dict[str, Any]:
    """Return the connection of a host's task: its keys, and what the modules are given.

    The variable of the host itself is what it was before any node was read, but for its token:
    facts of a node could change it since, also by a template of it. One that the play, an include
    or the caller of a role sets is taken as it is.

    :param given: ``kubegpu_kube`` as the task has it.
    :raises InputError: the host has facts with names of variables.
    """
    variables: Variables = {}
    if host in hostvars:
        variables = hostvars[host]
    found = refusal(host or "The host", variables.get("ansible_facts"))
    if found is not None:
        raise found
    mapping = given if isinstance(given, Mapping) else {}
    before = fixed(FLEET, variables)
    if before is not None and mapping == variables.get(FLEET):
        mapping = {**before, **{key: mapping[key] for key in _SECRET & mapping.keys()}}
    result = {**_DEFAULTS, **{key: one for key, one in mapping.items() if one is not None}}
    options = {option: result[key] for key, option in _OPTIONS.items() if result[key]}
    return {
        **result,
        "in_cluster": names_cluster(result),
        "options": options,
        # The environment can tell these modules not to verify TLS.
        "core": {**options, "validate_certs": True},
        # Helm takes no client certificate but that of a kubeconfig.
        "helm": {
            "validate_certs": True,
            **{option: one for option, one in options.items() if option not in _CERTIFICATE},
        },
        "interpreter": _interpreter(str(result["delegate"]), hostvars),
    }


def _interpreter(delegate: str, hostvars: Mapping[str, Variables]) -> str:
    """Return the Python that has the client: the controller's own, or what the delegate names."""
    if delegate == "localhost":
        return sys.executable
    if delegate not in hostvars:
        # It is refused by name (one_cluster).
        return "auto"
    return str(hostvars[delegate].get("ansible_python_interpreter", "auto"))
