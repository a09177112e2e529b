# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's decision, by the table of tests/unit/fixtures/driver_table.py."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from tests.unit.fixtures.driver_cases import facts, request
from tests.unit.fixtures.driver_table import TABLE

ROWS = [
    tuple(cell.strip() for cell in line.split(" | ", 4))
    for line in TABLE.splitlines()
    if line.strip() and not line.startswith("#")
]
OUTCOME = re.compile(
    r"(?P<what>[^:~\[]+?)\s*(?:: (?P<reasons>[^~\[]+?))?\s*(?:~ (?P<warnings>[^\[]+?))?\s*"
    r"(?:\[(?P<steps>[^\]]*)\])?\Z"
)


def test_the_table_is_as_large_as_promised():
    assert len(ROWS) >= 200
    assert len({row[:4] for row in ROWS}) == len(ROWS), "a row is there twice"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " | ".join(row[:4]))
def test_decision(row):
    gpus, on, stands, requested, outcome = row
    plan = plan_driver(facts(gpus, on, stands), *read_options(request(requested)))
    expected = OUTCOME.match(outcome)
    assert expected, f"cannot be read: {outcome}"
    action, *rest = expected["what"].split()
    said = " ".join([*plan.reasons, *plan.warnings])
    if action == "keep":
        assert (plan.action, plan.change) == ("none", False), said
    else:
        assert plan.action == action, said
    if rest:
        assert (plan.branch, plan.kernel_module, plan.source) == tuple(rest), said
    reasons = "\n".join(plan.reasons)
    for word in (expected["reasons"] or "").split(", "):
        assert word in reasons
    warnings = "\n".join(plan.warnings)
    if expected["warnings"] == "-":
        assert not plan.warnings
    else:
        for word in (expected["warnings"] or "").split(", "):
            assert word in warnings
    if expected["steps"] is not None:
        assert [step.step for step in plan.steps] == expected["steps"].split(), said
