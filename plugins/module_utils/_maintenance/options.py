# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of gpu_node_maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._cluster.types import Expected
from .._core.checks import check_at_least, wrong_value
from .._core.errors import InputError
from .._core.options import read_arguments
from .._labels.names import PREFIX
from .types import STATES, LeaseRequest, Request, WaitFor

_NODE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "machine_id": {"type": "str"},
    "boot_id": {"type": "str"},
}
_LEASE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "kubegpu"},
    "duration": {"type": "int", "default": 3600},
    "done": {"type": "bool", "default": False},
}
_WAIT_ARGUMENTS: dict[str, dict[str, Any]] = {
    "owners": {"type": "list", "elements": "str", "default": ["Job"]},
    "labels": {"type": "dict", "default": {}},
    "namespaces": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 3600},
    "on_timeout": {"type": "str", "choices": ["refuse", "evict"], "default": "refuse"},
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "nodes": {"type": "dict", "required": True},
    "state": {"type": "str", "choices": list(STATES), "required": True},
    "run": {"type": "str", "required": True},
    "reason": {"type": "str", "default": ""},
    "take_over": {"type": "bool", "default": False},
    "pods": {"type": "str", "choices": ["gpu", "all"], "default": "gpu"},
    "pause_plugins": {"type": "bool", "default": False},
    "keep_labels": {"type": "dict", "default": {f"{PREFIX}/maintenance": "keep"}},
    "wait_for": {"type": "dict", "options": _WAIT_ARGUMENTS},
    "unmanaged": {"type": "str", "choices": ["refuse", "delete"], "default": "refuse"},
    "local_data": {"type": "str", "choices": ["refuse", "memory", "delete"], "default": "memory"},
    "grace_period": {"type": "int"},
    "eviction": {"type": "str", "choices": ["evict", "delete"], "default": "evict"},
    "timeout": {"type": "int", "default": 900},
    "poll": {"type": "int", "default": 5},
    "concurrency": {"type": "int", "default": 8},
    "ready_timeout": {"type": "int", "default": 0},
    "lease": {"type": "dict", "options": _LEASE_ARGUMENTS},
}

# Seconds after which the module returns unfinished (0: none), and what the slice before returned;
# the process of this run, and one that has ended, whose Lease is free.
INTERNAL: dict[str, dict[str, Any]] = {
    "_slice": {"type": "int", "default": 0},
    "_carry": {"type": "dict"},
    "_process": {"type": "str", "default": ""},
    "_ended": {"type": "str", "default": ""},
}


def read_request(params: Mapping[str, Any]) -> Request:
    """Return the request of the module's parameters.

    :raises InputError: a value is wrong.
    """
    if not params["run"].strip():
        raise InputError(
            "run is empty.", next_step="Give the maintenance a name, by which it is released again."
        )
    for name in ("timeout", "concurrency", "poll"):
        check_at_least(name, params[name], 0 if name == "timeout" else 1)
    check_at_least("ready_timeout", params["ready_timeout"], 0)
    if params["grace_period"] is not None:
        check_at_least("grace_period", params["grace_period"], 0)
    nodes = _read_nodes(params["nodes"])
    return Request(
        hosts=_read_hosts(nodes),
        state=params["state"],
        run=params["run"].strip(),
        reason=params["reason"],
        take_over=params["take_over"],
        all_pods=params["pods"] == "all",
        pause=params["pause_plugins"],
        keep_labels=_read_labels("keep_labels", params["keep_labels"]),
        wait_for=_read_wait_for(params["wait_for"]),
        unmanaged=params["unmanaged"],
        local_data=params["local_data"],
        grace_period=params["grace_period"],
        delete=params["eviction"] == "delete",
        timeout=params["timeout"],
        poll=params["poll"],
        concurrency=params["concurrency"],
        lease=_read_lease(params),
        boots={key: (one["boot_id"] or "").strip() for key, one in nodes.items()},
        ready_timeout=params["ready_timeout"],
    )


def _read_nodes(nodes: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    spec = {str(key): {"type": "dict", "options": _NODE_ARGUMENTS} for key in nodes}
    given = {str(key): {} if value is None else value for key, value in nodes.items()}
    return read_arguments(spec, given, "nodes.")


def _read_hosts(nodes: Mapping[str, Mapping[str, Any]]) -> tuple[Expected, ...]:
    return tuple(
        Expected(key, one["name"] or key, (one["machine_id"] or "").strip() or None)
        for key, one in nodes.items()
    )


def _read_lease(params: Mapping[str, Any]) -> LeaseRequest | None:
    given = params["lease"]
    if given is None:
        return None
    check_at_least("lease.duration", given["duration"], 60)
    return LeaseRequest(
        name=given["name"],
        namespace=given["namespace"],
        duration=given["duration"],
        done=given["done"],
        process=params["_process"],
        ended=params["_ended"],
    )


def _read_labels(name: str, given: Mapping[str, Any]) -> dict[str, str]:
    for key, value in given.items():
        if not isinstance(value, str):
            raise wrong_value(f"{name}.{key}", "a text", value)
    return {str(key): value for key, value in given.items()}


def _read_wait_for(given: Mapping[str, Any] | None) -> WaitFor | None:
    if given is None:
        return None
    check_at_least("wait_for.timeout", given["timeout"], 0)
    return WaitFor(
        owners=tuple(given["owners"]),
        labels=_read_labels("wait_for.labels", given["labels"]),
        namespaces=tuple(given["namespaces"]),
        timeout=given["timeout"],
        evict=given["on_timeout"] == "evict",
    )
