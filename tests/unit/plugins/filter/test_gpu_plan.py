# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_plan import gpu_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import CLUSTER_PARTS
from tests.unit.fixtures.kernel_gpus import amd_node
from tests.unit.fixtures.node_facts import installed, node

NVIDIA = list(PARTS)[:4]


def test_the_filter_plans_the_parts_of_a_node():
    assert list(gpu_plan(installed())) == ["nvidia_driver", "nvidia_container_toolkit"]
    assert list(gpu_plan(installed(), {"nvidia_mig_config": "all-balanced"})) == NVIDIA
    assert list(gpu_plan(amd_node(), {"amd_driver_enabled": True})) == ["amd_driver"]
    assert gpu_plan(node(gpus=[])) == {}
    assert list(gpu_plan(installed(), parts=["nvidia_container_toolkit"])) == NVIDIA[3:]


def test_a_part_that_a_cluster_has_once_is_planned_for_this_node():
    """With the variables of its role, and nothing of the cluster but what is given."""
    plugin = "nvidia_device_plugin"
    shared = {f"{plugin}_configs": {"one": {"flags": {"migStrategy": "none"}}}}
    made = gpu_plan(installed(), {**shared, f"{plugin}_config": "one"}, [plugin])[plugin]
    assert made["action"] == "apply" and made["objects"] and list(made["expected"]) == ["node"]
    cluster = {"foreign": [{"vendor": "nvidia", "text": "a GPU operator"}]}
    assert gpu_plan(installed(), {}, [plugin], cluster)[plugin]["action"] == "leave"
    both = gpu_plan(installed(), parts=["nvidia_container_toolkit", plugin])
    assert list(both) == ["nvidia_container_toolkit", plugin]


@pytest.mark.parametrize("part", CLUSTER_PARTS)
def test_without_a_node_such_a_plan_has_the_objects(part):
    cluster = {"kubernetes": "v1.34.2", "dra": {"served": ["v1"]}}
    given = {"nvidia_dra_driver_compute_domains": False}
    made = gpu_plan({}, given, [part], cluster)[part]
    assert made["action"] == "apply" and made["objects"] and not made.get("expected")


def test_a_wrong_value_of_such_a_part_is_named():
    made = gpu_plan({}, {"gpu_monitoring_temperature": "hot"}, ["gpu_monitoring"])
    assert "gpu_monitoring_temperature has to be a whole number" in made["gpu_monitoring"]["text"]
    with pytest.raises(AnsibleFilterError, match="gpu_monitoring_beside_others has to be true or"):
        gpu_plan({}, {"gpu_monitoring_beside_others": "x"}, ["gpu_monitoring"])
    with pytest.raises(AnsibleFilterError, match="needs the fact gpu_node"):
        gpu_plan({}, {}, ["gpu_monitoring", "nvidia_driver"])
