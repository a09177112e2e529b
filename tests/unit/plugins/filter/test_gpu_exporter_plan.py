# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_exporter_plan import gpu_exporter_plan
from tests.unit.fixtures.node_facts import node


def plan(**options):
    found = node()
    found["exporter"]["textfile_directories"] = ["/var/lib/node_exporter"]
    return gpu_exporter_plan(found, **options)


def test_counters_are_the_text_of_their_file():
    made = plan(method="container")
    assert (made["action"], made["method"]) == ("change", "container")
    assert "DCGM_FI_DEV_GPU_TEMP, gauge, " in made["counters"]
    assert "DCGM_FI_PROF_" in made["counters"]
    assert "DCGM_FI_PROF_" not in plan(method="container", profiling=False)["counters"]
    own = plan(method="container", counters=["DCGM_FI_DEV_GPU_TEMP, gauge, Heat."])
    assert own["counters"] == "DCGM_FI_DEV_GPU_TEMP, gauge, Heat."
    assert own["changes"][0].startswith("set up nvcr.io/nvidia/k8s/dcgm-exporter:")


@pytest.mark.parametrize(
    "options",
    [{"counters": ["nothing"]}, {"method": "dcgm"}, {"listen": "x"}, {"profiling": "perhaps"}],
)
def test_wrong_values_are_refusals_by_the_variables_name(options):
    made = plan(**options)
    assert made["action"] == "refuse"
    assert f"gpu_monitoring_{next(iter(options))}" in made["reasons"][0]


def test_wrong_calls_are_errors():
    with pytest.raises(AnsibleFilterError, match="colour"):
        plan(colour="blue")
    with pytest.raises(AnsibleFilterError, match="gpu_node"):
        gpu_exporter_plan({})
