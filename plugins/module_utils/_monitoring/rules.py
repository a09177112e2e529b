# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules for Prometheus: which alerts there are, and when they fire. Pure.

The same rules serve a cluster (PrometheusRule) and hosts (a file): where both kinds of exporters
have a metric, the expression asks for either. The table of Xids decides the severity of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._known_faults.rules.xids_data import ACTIONS, ERROR, INFO, WARNING
from .._known_faults.xids import XIDS, Xid, numbers_of
from .metrics import JOB, TEXTFILE

GROUP = "kubegpu-gpus"
CRITICAL = "critical"

# DCGM gives numbers around 2^63 for what a card does not have.
_NO_VALUE = "1000"
_HOST = "{{ or $labels.hostname $labels.instance }}"
# An Xid of the kernel's log is known by the address of its GPU alone.
_GPU = f"GPU {{{{ or $labels.gpu $labels.pci_bus_id }}}} of {_HOST}"
_METRIC = re.compile(r"\b(?:DCGM|kubegpu)_\w+")
# A sample of DCGM's has the pod that uses the GPU, or an instance of MIG, as labels too. They end
# with the pod, and with them the wait and the increase of an alert.
_OF_GPU = "hostname, UUID, gpu, pci_bus_id, modelName"
# How long an alert about an Xid stays: an error of the GPU for the next morning's reader, one of a
# program for those who look now.
_ERROR_WINDOW = "1h"
_INFO_WINDOW = "15m"
# Fewer GPUs than in this time before.
_LOST_WINDOW = "6h"
_COUNT = "kubegpu:gpus:count"
_MEMORY_ERRORS = "kubegpu:uncorrected_memory_errors:max"
_EXPECTED = "kubegpu_gpus_expected"
_UP = f'up{{job="{JOB}"}}'


@dataclass(frozen=True)
class Rule:
    """One alert, or with ``record`` one recorded expression."""

    name: str
    expression: str
    severity: str = ""
    hold: str = ""
    summary: str = ""
    next_step: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    record: bool = False

    @property
    def metrics(self) -> frozenset[str]:
        """The names of the exporters' metrics in the expression."""
        return frozenset(_METRIC.findall(self.expression))

    def document(self, labels: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rule as Prometheus reads it."""
        if self.record:
            return {"record": self.name, "expr": self.expression}
        return {
            "alert": self.name,
            "expr": self.expression,
            **({"for": self.hold} if self.hold else {}),
            # A PrometheusRule takes texts only.
            "labels": {
                **{name: str(value) for name, value in labels.items()},
                **dict(self.labels),
                "severity": self.severity,
            },
            "annotations": {"summary": self.summary, "next_step": self.next_step},
        }


def alert_rules(temperature: int = 90, xids: Mapping[int, Xid] = XIDS) -> tuple[Rule, ...]:
    """Return the rules.

    :param temperature: Celsius above which a GPU is too hot.
    """
    return (
        *_records(),
        *_exporter_rules(),
        Rule(
            "KubegpuGpuLost",
            f"{_fewer_than_before()} or {_fewer_than_expected()}",
            CRITICAL,
            "5m",
            f"{_HOST} has lost {{{{ $value }}}} of its GPUs.",
            "Check dmesg | grep -i xid and lspci -d 10de: on the node. Drain the node and power "
            "it off and on. If it comes again: seat, power and cooling of the card, then the card.",
        ),
        *_xid_rules(xids),
        *_memory_rules(),
        *_condition_rules(temperature),
    )


def _records() -> Iterator[Rule]:
    # With MIG there is a sample for each instance.
    temperatures = "max by (hostname, instance, UUID) (DCGM_FI_DEV_GPU_TEMP)"
    yield Rule(_COUNT, f"count by (hostname, instance) ({temperatures})", record=True)
    yield Rule(_MEMORY_ERRORS, _of_gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL < 1e15"), record=True)


def _of_gpu(expression: str, *more: str) -> str:
    """Return the highest sample of each GPU."""
    return f"max by ({', '.join((_OF_GPU, *more))}) ({expression})"


def _fewer_than_before() -> str:
    """Return how many GPUs DCGM's exporter shows less than before, of nodes without a number.

    A node whose exporter has gone, or whose address is another node's now, has lost none.
    """
    before = f"max_over_time({_COUNT}[{_LOST_WINDOW}])"
    none_left = f"({before} unless on (instance) {_COUNT}) and on (instance) ({_UP} == 1)"
    lost = (
        f"max by (hostname) ({before} unless on (instance) {_EXPECTED}) "
        f"- (max by (hostname) ({_COUNT}) or 0 * max by (hostname) ({none_left}))"
    )
    return f"({lost}) > 0"


def _fewer_than_expected() -> str:
    """Return how many of its expected GPUs a host does not show.

    Two jobs that read one node_exporter have the same samples.
    """
    present = "sum by (instance) (max by (instance, pci_bus_id) (kubegpu_gpu_present))"
    shown = f"{present} or sum by (instance) ({_COUNT}) or 0 * max by (instance) ({_UP} == 1)"
    return f"(max by (instance) ({_EXPECTED}) - ({shown})) > 0"


def _exporter_rules() -> Iterator[Rule]:
    yield Rule(
        "KubegpuExporterDown",
        f"{_UP} == 0 "
        f'or (time() - node_textfile_mtime_seconds{{file=~"(?:.*/)?{_literal(TEXTFILE)}"}}) > 300 '
        "or kubegpu_textfile_source_up == 0",
        WARNING,
        "5m",
        "The metrics of the GPUs of {{ $labels.instance }} are missing.",
        "Run kubegpu.nodes.verify for the node: its layer metrics names the cause.",
    )


def _xid_rules(xids: Mapping[int, Xid]) -> Iterator[Rule]:
    """Return an alert for each action after an error, and one each for the milder Xids."""
    errors = [xids[number] for number in numbers_of(ERROR, xids)]
    for action in ACTIONS:
        numbers = [xid.number for xid in errors if xid.action == action]
        if numbers:
            yield Rule(
                "KubegpuXidError",
                _xid_expression(f'xid=~"{_one_of(numbers)}"', _ERROR_WINDOW),
                CRITICAL,
                summary=f"{_GPU} had Xid {{{{ $labels.xid }}}}, an error of the GPU or its links.",
                next_step=ACTIONS[action][2],
                labels=(("action", action),),
            )
    known = [*numbers_of(ERROR, xids), *numbers_of(INFO, xids)]
    yield Rule(
        "KubegpuXidWarning",
        # Also those that the table does not have. 0 is no Xid.
        _xid_expression(f'xid!~"{_one_of([0, *known])}"', _ERROR_WINDOW),
        WARNING,
        summary=f"{_GPU} had Xid {{{{ $labels.xid }}}}.",
        next_step="Check the line in the kernel's log (dmesg | grep -i xid), and other "
        "Xids of the same GPU.",
    )
    yield Rule(
        "KubegpuXidOfProgram",
        _xid_expression(f'xid=~"{_one_of(numbers_of(INFO, xids))}"', _INFO_WINDOW),
        INFO,
        summary=f"{_GPU} had Xid {{{{ $labels.xid }}}}, usually caused by a program.",
        next_step="Check the program's log. If other programs have it on the same GPU too, test "
        "the GPU.",
    )


def _xid_expression(selector: str, window: str) -> str:
    """Return an expression that is true while an Xid is not older than the window.

    DCGM's exporter forgets them after five minutes. The other one counts since boot; a counter that
    begins with 1 has no increase. One that was read at any time in the window before is not new.
    """
    counter = f"kubegpu_gpu_xid_errors_total{{{selector}}}"
    return (
        f"max_over_time(DCGM_EXP_XID_ERRORS_COUNT{{{selector}}}[{window}]) > 0 "
        f"or increase({counter}[{window}]) > 0 "
        f"or ({counter} unless max_over_time({counter}[{window}] offset {window})) > 0"
    )


def _memory_rules() -> Iterator[Rule]:
    yield Rule(
        "KubegpuMemoryError",
        f"increase({_MEMORY_ERRORS}[1h]) > 0 "
        'or increase(kubegpu_gpu_ecc_errors_total{type="uncorrected"}[1h]) > 0',
        CRITICAL,
        summary=f"{_GPU} had a memory error that could not be corrected.",
        next_step=ACTIONS["memory"][2],
    )
    yield Rule(
        "KubegpuRowRemapFailed",
        f"{_of_gpu('DCGM_FI_DEV_ROW_REMAP_FAILURE == 1')} or kubegpu_gpu_row_remap_failure == 1",
        CRITICAL,
        summary=f"{_GPU} could not take a bad row of its memory out of use.",
        next_step="Drain the node and have the card replaced.",
    )
    yield Rule(
        "KubegpuRowRemapPending",
        f"{_of_gpu('DCGM_FI_DEV_ROW_REMAP_PENDING == 1')} or kubegpu_gpu_row_remap_pending == 1",
        WARNING,
        "1h",
        f"{_GPU} takes a bad row of its memory out of use with the next reset.",
        "Reset the GPU or reboot when the node is free; work may continue until then.",
    )


def _condition_rules(temperature: int) -> Iterator[Rule]:
    hot = f"DCGM_FI_DEV_GPU_TEMP > {temperature} and DCGM_FI_DEV_GPU_TEMP < {_NO_VALUE}"
    yield Rule(
        "KubegpuHot",
        f"{_of_gpu(hot)} or kubegpu_gpu_temperature_celsius > {temperature}",
        WARNING,
        "5m",
        f"{_GPU} has {{{{ $value }}}} degrees Celsius.",
        "Check the machine's fans and air flow.",
    )
    slow = (
        'DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=~"hw_thermal|hw_power_brake|hw_slowdown'
        '|sw_thermal"} > 0'
    )
    yield Rule(
        "KubegpuSlowedDown",
        f"{_of_gpu(slow, 'clock_event')} or kubegpu_gpu_clock_slowdown == 1",
        WARNING,
        "10m",
        f"{_GPU} runs slower because of {{{{ or $labels.clock_event $labels.reason }}}}.",
        "Check the machine's fans and air flow for heat, and its power supplies for "
        "hw_power_brake.",
    )
    # 10 is a warning, 20 a failure.
    failed = "DCGM_EXP_GPU_HEALTH_STATUS >= 20 and DCGM_EXP_GPU_HEALTH_STATUS < 1000"
    yield Rule(
        "KubegpuUnhealthy",
        _of_gpu(failed, "health_watch", "health_error_code"),
        CRITICAL,
        "5m",
        f"{_GPU} is not healthy according to DCGM: {{{{ $labels.health_watch }}}} "
        "{{ $labels.health_error_code }}.",
        "Run dcgmi diag -r 2 on the drained node.",
    )


def rules_document(
    rules: Sequence[Rule], labels: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the rules as a file of Prometheus, which is also the ``spec`` of a PrometheusRule.

    :param labels: further labels of each alert.
    """
    return {"groups": [{"name": GROUP, "rules": [rule.document(labels or {}) for rule in rules]}]}


def silent(rules: Sequence[Rule], collected: frozenset[str]) -> tuple[str, ...]:
    """Return the alerts that cannot fire for DCGM, because a metric is not collected."""
    missing = {rule.name: rule.metrics - collected for rule in rules if rule.record}
    names = []
    for rule in rules:
        # What an alert compares may be recorded first.
        used = [missing[name] for name in missing if name in rule.expression]
        without = (rule.metrics - collected).union(*used)
        if without and not rule.record:
            names.append(f"{rule.name} ({', '.join(sorted(without))})")
    return tuple(dict.fromkeys(names))


def _one_of(numbers: Sequence[int]) -> str:
    return "|".join(str(number) for number in numbers)


def _literal(text: str) -> str:
    return text.replace(".", "[.]")
