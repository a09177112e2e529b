# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever a node answers, it costs itself only: it is refused, or all that is made of it works."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_plan import gpu_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import plan_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Run
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._bundle import archive, bundle_files
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._diagnose import diagnose_hosts
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report import html, markdown
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import build, dump
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.sources import (
    host_sources,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Request
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import answer_fault
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import (
    _SELECT,
    host_groups,
    select_hosts,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import (
    changed_hosts,
    plan_rows,
    result_rows,
    verification_rows,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import (
    TABLES,
    notes,
    paragraph,
    render,
)
from tests.tools.tiers import is_full
from tests.unit.fixtures.answers import broken, good_answers
from tests.unit.fixtures.plans import registered

COUNT = 2000 if is_full() else 60
ASKED = {"nvidia_mig_config": "all-balanced", "cuda_toolkit_versions": ["12.8"]}
GOOD = good_answers()


def variables_of(answers: dict[str, Any]) -> dict[str, Any]:
    """Return what plays leave of a host's answers; what is refused is not there."""
    seen = {name: one for name, one in answers.items() if not answer_fault(name, one)}
    facts = seen.get("gpu_node_facts", {}).get("ansible_facts")
    found: dict[str, Any] = {
        "ansible_facts": facts or {},
        "nvidia_mig_config": "all-balanced",
        "gpu_monitoring_enabled": True,
        "amd_driver_enabled": True,
        "gpu_report_plan": {"health": seen.get("gpu_node_health"), "unseen": []},
        "gpu_diagnose_plan": {
            "health": seen.get("gpu_node_health"), "texts": seen.get("gpu_node_texts"),
        },
    }  # fmt: skip
    if "gpu_node_verify" in seen:
        found["layers"] = seen["gpu_node_verify"]["layers"]
    if not facts:
        found["__kubegpu_read"] = {"failed": True, "msg": "It has another form."}
        return found
    own = facts["gpu_node"]
    # What is wrong with a host is a refusal of its parts.
    plans = plan_node(own, {**found, **ASKED}, PARTS, Run(today="2026-11-28"))
    found.update({f"{role}_plan": plan for role, plan in plans.items()})
    gpu_plan(own, {}, ["gpu_verify"])
    return found


def use(hostvars: dict[str, Any]) -> dict[str, Any]:
    """Make all that plays make of the hosts; return the rows of the plan by host."""
    hosts = [*hostvars]
    hostvars = registered(hostvars)
    host_groups(hosts, hostvars)
    for word in _SELECT:
        select_hosts(hosts, hostvars, word)
    changed_hosts(hosts, hostvars)
    rows = verification_rows(hosts, hostvars, "layers")
    for name, table in (
        ("plan", plan_rows(hosts, hostvars)),
        ("result", result_rows(hosts, hostvars, hosts)),
        ("result", result_rows(hosts, hostvars, hosts, [], stop="x", predicted=True)),
    ):
        columns, key = TABLES[name]
        json.dumps(table, allow_nan=False).encode()
        shown = render(columns, table, 100)
        shown += "".join(paragraph(one, 100) for one in notes(table, str(key), "node"))
        shown.encode()
        assert "\x1b" not in shown and "\u202e" not in shown
    shared = {"gpu_verify_result": {"rows": rows}}
    report = {name: {**one, **shared} for name, one in hostvars.items()}
    found = diagnose_hosts(hosts, report, rows, {})
    for diagnosis in ({}, found):
        made = build(host_sources(hosts, report, diagnosis), Request("x", "y", ()))
        for text in (dump(made), html.render(made), markdown.render(made)):
            text.encode()
    archive(bundle_files(hosts, report, found, rows, {}))
    return {row["node"]: row for row in plan_rows(hosts, hostvars)}


def test_good_answers_are_accepted_and_used():
    for answers in GOOD:
        assert {name: answer_fault(name, one) for name, one in answers.items()} == dict.fromkeys(
            answers, ""
        )
        assert use({"a": variables_of(answers)})["a"]["action"] != "unknown"


def test_whatever_a_node_answers_costs_itself_only():
    seed = int(os.environ.get("KUBEGPU_PROPERTY_SEED") or 0)
    good = variables_of(GOOD[1])
    before = use({"good": good})["good"]
    refused = 0
    for number in range(COUNT):
        made = random.Random(seed + number)
        answers = broken(made.choice(GOOD), made)
        refused += any(answer_fault(name, one) for name, one in answers.items())
        try:
            rows = use({"good": good, "bad": variables_of(answers), "other": good})
        except Exception as error:
            raise AssertionError(f"KUBEGPU_PROPERTY_SEED={seed + number}") from error
        assert set(rows) == {"good", "bad", "other"} and rows["good"] == before
    # Both ends are reached.
    assert COUNT // 10 < refused < COUNT


@pytest.mark.parametrize("how", ["cached", "set by a play"])
def test_facts_that_did_not_arrive_in_this_run_cost_their_host_only(how):
    """A cache of facts, or a play, has them without the check of the action."""
    good = variables_of(GOOD[1])
    seed = int(os.environ.get("KUBEGPU_PROPERTY_SEED") or 0)
    for number in range(COUNT // 3):
        made = random.Random(seed + number)
        answers = broken(made.choice(GOOD), made)
        facts = answers["gpu_node_facts"].get("ansible_facts")
        if not isinstance(facts, dict):
            continue
        plans = {} if how == "cached" else {f"{name}_plan": good[f"{name}_plan"] for name in PARTS}
        try:
            rows = use({"good": good, "bad": {"ansible_facts": facts, **plans}})
        except Exception as error:
            raise AssertionError(f"KUBEGPU_PROPERTY_SEED={seed + number}") from error
        assert set(rows) == {"good", "bad"}
