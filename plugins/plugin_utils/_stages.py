# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts and the results of a host between the stages of an upgrade, acceptance or diagnosis.

For the filter ``rollout``. A function gets what the filter is given, and the options by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance import marks
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance import (
    result as acceptance_result,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance import (
    stages as acceptance_stages,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis import show
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade import gate, result, stages

from . import _acceptance, _upgrade

Object = Mapping[str, Any]
Hostvars = Mapping[str, Object]
Hosts = Sequence[str]

_ENDED = ("done", "rolled_back", "blocked", "released")


def _upgrading(hosts: Hosts, *, hostvars: Hostvars, pods: str | None = None) -> list[str]:
    """Return the hosts of a batch that are in work; with ``pods`` those that such pods leave."""
    return _upgrade.select_hosts(hosts, hostvars, ("",), None if pods is None else (pods,))


def _not_saved(answer: Object, *, packages: Object, rollback: str) -> dict[str, Any]:
    return result.not_saved(answer, packages, required=rollback == "require")


def _restored(record: Object, *, row: Object) -> list[dict[str, Any]]:
    return [finding.as_problem() for finding in gate.judge_restored(record, row)]


def _released(found: Object, *, host: str, plan: Object, answer: Object) -> Any:
    findings = result.taken([answer], host)["findings"]
    return acceptance_stages.released(found, findings, plan)


#: By the option ``what`` of the filter.
STAGES: Mapping[str, Callable[..., Any]] = {
    "upgrade_hosts": _upgrade.rolling_hosts,
    "upgrade_serial": _upgrade.rolling_sizes,
    "upgrading": _upgrading,
    "upgrade_ended": lambda hosts, hostvars: _upgrade.select_hosts(hosts, hostvars, _ENDED),
    "upgrade_row": stages.row_of,
    "upgrade_software": stages.software,
    "upgrade_lease": stages.lease_duration,
    "upgrade_not_saved": _not_saved,
    "upgrade_drained": stages.drained,
    "upgrade_judged": stages.judged,
    "upgrade_rollback": gate.calls_for_rollback,
    "upgrade_restored": _restored,
    "upgrade_not_restored": stages.not_restored,
    "upgrade_released": stages.released,
    "upgrade_failed": _upgrade.failed,
    "upgrade_end": stages.ended,
    "acceptance_hosts": _acceptance.tested_hosts,
    "acceptance_leaving": _acceptance.leaving_hosts,
    "acceptance_back": _acceptance.released,
    "acceptance_plan": _acceptance.plan,
    "acceptance_before_tests": acceptance_result.before_tests,
    "acceptance_begun": acceptance_result.begun,
    "acceptance_drained": _acceptance.drained,
    "acceptance_judged": _acceptance.judged,
    "acceptance_failed": _acceptance.failed,
    "acceptance_released": _released,
    "acceptance_record": acceptance_result.record,
    "acceptance_marks": marks.marks,
    "diagnosis_baselines": show.baselines,
    "diagnosis_failures": show.failures,
}
