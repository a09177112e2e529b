# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The dashboard's shape, and that it asks for collected metrics only."""

from __future__ import annotations

import itertools
import re

from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.dashboard import (
    PANELS,
    dashboard_document,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.metrics import (
    DCGM,
    metric_names,
    read_counters,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.rules import (
    alert_rules,
    silent,
)

METRIC = re.compile(r"\b(?:DCGM|kubegpu)_\w+")


def test_each_panel_is_a_time_series_with_a_place_of_its_own():
    document = dashboard_document(metric_names(DCGM))
    panels = document["panels"]
    assert len(panels) == len(PANELS) and {panel["type"] for panel in panels} == {"timeseries"}
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        set(itertools.product(range(grid["x"], grid["x"] + grid["w"]),
                              range(grid["y"], grid["y"] + grid["h"])))
        for grid in (panel["gridPos"] for panel in panels)
    ]  # fmt: skip
    assert sum(map(len, cells)) == len(set().union(*cells))
    assert max(x for x, _y in set().union(*cells)) < 24
    for panel in panels:
        assert panel["datasource"]["uid"] == "${datasource}"
        names = [target["refId"] for target in panel["targets"]]
        assert len(names) == len(set(names))


def test_the_variables_of_the_expressions_are_those_of_the_dashboard():
    document = dashboard_document(metric_names(DCGM))
    known = {one["name"] for one in document["templating"]["list"]} | {"__rate_interval"}
    used = {
        name
        for panel in document["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\$\{?(\w+)", target["expr"])
    }
    assert used <= known and {"host", "instance"} <= used


def test_what_is_not_collected_is_not_asked_for():
    collected = metric_names(read_counters("default", profiling=False))
    document = dashboard_document(collected)
    for panel in document["panels"]:
        for target in panel["targets"]:
            assert set(METRIC.findall(target["expr"])) <= collected
    assert len(document["panels"]) == len(PANELS) - 4


def test_mig_devices_which_have_no_utilization_have_a_panel():
    panels = dashboard_document(metric_names(DCGM))["panels"]
    (engines,) = [one for one in panels if "MIG" in one["title"]]
    (target,) = engines["targets"]
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" in target["expr"]
    assert "{{GPU_I_ID}}" in target["legendFormat"]


def test_every_metric_of_the_rules_is_collected_by_default():
    assert silent(alert_rules(), metric_names(DCGM)) == ()
    assert silent(alert_rules(), metric_names(read_counters("default", profiling=False))) == ()
