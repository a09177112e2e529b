# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of each named table of hosts, from their variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .hosts import (
    cluster_rows,
    cluster_teardown_rows,
    dra_rows,
    monitoring_rows,
    plan_rows,
    result_rows,
    teardown_rows,
    unverified_rows,
    verification_rows,
)

Object = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """What the task of a table has.

    :param hosts: the hosts of the table.
    :param batch: the hosts of the batch; empty outside of a play in batches.
    :param alive: the hosts that Ansible has not lost.
    :param stop: why no other batch is started.
    :param checked: whether the run is in check mode.
    :param content: what the table shows, where it is not of hosts.
    :param key: the variable in which each host has its layers.
    """

    hosts: Sequence[str]
    hostvars: Mapping[str, Object]
    batch: Sequence[str] = ()
    alive: Sequence[str] | None = None
    stop: str = ""
    run_tags: Sequence[str] = ("all",)
    skip_tags: Sequence[str] = ()
    checked: bool = False
    content: Object = field(default_factory=dict)
    key: str = ""


def asked(options: Object, variables: Object, *, checked: bool) -> Asked:
    """Return what a task with these options and variables has."""
    return Asked(
        hosts=options["hosts"] or (),
        hostvars=variables.get("hostvars") or {},
        batch=variables.get("ansible_play_batch") or (),
        alive=variables.get("ansible_play_hosts"),
        stop=options["stop"],
        run_tags=variables.get("ansible_run_tags") or ("all",),
        skip_tags=variables.get("ansible_skip_tags") or (),
        checked=checked,
        content=options["content"] or {},
        key=options["key"],
    )


def _plan(given: Asked) -> Rows:
    return plan_rows(given.hosts, given.hostvars, given.run_tags, given.skip_tags)


def _whole_plan(given: Asked) -> Rows:
    """Return the rows of hosts that are not planned: the tags of the run mean nothing for them."""
    return plan_rows(given.hosts, given.hostvars)


def _result(given: Asked) -> Rows:
    return result_rows(
        given.hosts,
        given.hostvars,
        given.batch,
        given.alive,
        given.stop,
        predicted=given.checked,
        run_tags=given.run_tags,
        skip_tags=given.skip_tags,
    )


def _teardown(given: Asked) -> Rows:
    return teardown_rows(given.hosts, given.hostvars, given.batch, given.alive, given.stop)


#: By the option ``table`` of ``fleet_table``; the others are in ``stages.py``.
ROWS: Mapping[str, Callable[[Asked], Rows]] = {
    "plan": _plan,
    "not_read": _whole_plan,
    "refused": _whole_plan,
    "result": _result,
    "unverified": lambda given: unverified_rows(given.hosts, given.hostvars),
    "teardown": _teardown,
    "cluster": lambda given: cluster_rows(given.hosts, given.hostvars),
    "cluster_teardown": lambda given: cluster_teardown_rows(given.hosts, given.hostvars),
    "dra": lambda given: dra_rows(given.hosts, given.hostvars),
    "monitoring": lambda given: monitoring_rows(given.hosts, given.hostvars),
    "verification": lambda given: verification_rows(given.hosts, given.hostvars, given.key),
}
