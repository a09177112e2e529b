# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the roles of an upgrade and a diagnosis compute once from the variables of their hosts.

For the action ``fleet_result``, which imports this file where it is called: it explains messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _upgrade
from ._diagnose import diagnose_hosts

Object = Mapping[str, Any]
Hostvars = Mapping[str, Object]


def _upgrade_plan(hosts: Sequence[str], hostvars: Hostvars, **given: Any) -> dict[str, Any]:
    options, cluster = given["options"], given.get("cluster") or {}
    tried = _upgrade.tried(hosts, hostvars, given)
    return _upgrade.plan_hosts(hosts, hostvars, options, cluster, **tried)


def _upgrade_draft(
    hosts: Sequence[str], hostvars: Hostvars, *, options: Object, cluster: Object, node: str
) -> dict[str, Any]:
    """Return the plan before packages and drains were tried, and the nodes whose drain is tried.

    :param node: the variable in which each host has which node it is.
    """
    plan = _upgrade.plan_hosts(hosts, hostvars, options, cluster)
    return {**plan, "drains": _upgrade.drained_nodes(plan, hostvars, node)}


#: By the option ``of`` of the action, with the hosts, their variables and what is ``given``.
RESULTS: Mapping[str, Callable[..., Any]] = {
    "diagnosis": diagnose_hosts,
    "upgrade_draft": _upgrade_draft,
    "upgrade_plan": _upgrade_plan,
    "upgrade_stop": _upgrade.stop_batch,
}
