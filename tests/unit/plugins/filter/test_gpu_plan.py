# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_plan import gpu_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from tests.unit.fixtures.kernel_gpus import amd_node
from tests.unit.fixtures.node_facts import installed, node

NVIDIA = list(PARTS)[:4]


def test_the_filter_plans_the_parts_of_a_node():
    assert list(gpu_plan(installed())) == ["nvidia_driver", "nvidia_container_toolkit"]
    assert list(gpu_plan(installed(), {"nvidia_mig_config": "all-balanced"})) == NVIDIA
    assert list(gpu_plan(amd_node(), {"amd_driver_enabled": True})) == ["amd_driver"]
    assert gpu_plan(node(gpus=[])) == {}
    assert list(gpu_plan(installed(), parts=["nvidia_container_toolkit"])) == NVIDIA[3:]
