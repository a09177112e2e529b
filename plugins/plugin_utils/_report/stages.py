# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of an upgrade, an acceptance and a diagnosis, and the reports that they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance import (
    result as acceptance_result,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis import show
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade import result as upgrade_result

from .. import _acceptance, _upgrade
from .builders import Asked, Rows


def _acceptance_plan(given: Asked) -> Rows:
    return acceptance_result.plan_rows(_acceptance.plans(given.hosts, given.hostvars))


#: By the option ``table`` of ``fleet_table``.
ROWS: Mapping[str, Callable[[Asked], Rows]] = {
    "upgrade_plan": lambda given: upgrade_result.plan_rows(given.content),
    "upgrade": lambda given: upgrade_result.rows(given.content),
    "acceptance_plan": _acceptance_plan,
    "acceptance": lambda given: acceptance_result.rows(given.content),
    "diagnosis": lambda given: show.rows(given.content),
    "diagnosis_nodes": lambda given: show.node_rows(given.content),
}


def _upgrade_report(given: Asked) -> dict[str, Any]:
    return _upgrade.report_hosts(given.hosts, given.hostvars, ended=_now(), checked=given.checked)


def _acceptance_report(given: Asked) -> dict[str, Any]:
    return _acceptance.report_hosts(
        given.hosts, given.hostvars, ended=_now(), checked=given.checked
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


#: What is shown and written, of the tables that are made from a report of hosts.
REPORTS: Mapping[str, Callable[[Asked], dict[str, Any]]] = {
    "upgrade": _upgrade_report,
    "acceptance": _acceptance_report,
}
