# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of several hosts, as a task that runs once for all of them reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ansible.errors import AnsibleUndefinedVariable
from jinja2 import Undefined


def play_names(task: Any) -> list[str]:
    """Return the names of the variables of a task's play."""
    parent = task._parent
    while parent is not None and getattr(parent, "_play", None) is None:
        parent = getattr(parent, "_parent", None)
    return [] if parent is None else list(parent._play.get_vars())


def fact_of_hosts(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], name: str
) -> dict[str, Any]:
    """Return a variable of each host that has it, by host.

    A value that depends on a variable that is not defined is an exception in an action, and an
    object of Jinja in a filter.
    """
    found = {}
    for host in hosts:
        with suppress(AnsibleUndefinedVariable):
            found[host] = hostvars[host].get(name)
    return {
        host: value
        for host, value in found.items()
        if value is not None and not isinstance(value, Undefined)
    }


class HostVariables:
    """Variables of hosts, with those of the play, which are missing from ``hostvars``.

    :param variables: those of the task.
    :param play: names of variables of the play. They count for each host, also where the host of
        the task has the same value.
    """

    def __init__(self, variables: Mapping[str, Any], play: Collection[str] = ()) -> None:
        self._hostvars = variables["hostvars"]
        own = self._hostvars.raw_get(variables["inventory_hostname"])
        self.of_play = {
            name: value
            for name, value in variables.items()
            if name in play or name not in own or own[name] != value
        }

    def own(self, host: str) -> Mapping[str, Any]:
        """Return the variables of a host that are its own, templates as they are."""
        found: Mapping[str, Any] = self._hostvars.raw_get(host)
        return found

    def every(self, host: str) -> dict[str, Any]:
        """Return the variables of a host and of the play, templates as they are."""
        return {**self.own(host), **self.of_play}
