# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from tests.unit.fixtures.mig_node import MigNode, card
from tests.unit.fixtures.plans import nvidia_mig_plan


def test_the_plan_as_json(tmp_path):
    facts = MigNode(tmp_path, card(0, "2330")).facts()
    plan = nvidia_mig_plan(facts, config="all-3g.40gb", at_boot="no")
    assert plan["change"] and plan["devices"][0]["create"] == ["3g.40gb:0", "3g.40gb:4"]
    assert plan["steps"][0]["step"] == "mig"
    assert nvidia_mig_plan(facts)["action"] == "none"


def test_a_wrong_value_is_a_refusal_(tmp_path):
    facts = MigNode(tmp_path, card(0, "2330")).facts()
    plan = nvidia_mig_plan(facts, config="half")
    assert plan["action"] == "refuse" and "'half' is not known" in plan["reasons"][0]


def test_pods_of_the_cluster_are_a_refusal(tmp_path):
    facts = MigNode(tmp_path, card(0, "2330")).facts()
    pods = [{"namespace": "team", "name": "train-0", "count": 1}]
    cluster = {"name": "gpu1", "labels": {}, "resources": {"nvidia.com/gpu": {"pods": pods}}}
    assert nvidia_mig_plan(facts, config="all-3g.40gb", cluster={})["partitions"]
    plan = nvidia_mig_plan(facts, config="all-3g.40gb", cluster=cluster)
    assert plan["action"] == "refuse" and "team/train-0" in plan["reasons"][0]
