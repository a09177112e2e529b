# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role nvidia_device_plugin makes of the cluster's answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[3] / "roles" / "nvidia_device_plugin"
LOADER = DataLoader()


def load(*parts):
    return LOADER.load_from_file(str(ROLE.joinpath(*parts)), trusted_as_template=True)


def template(text, **variables):
    known = {**load("defaults", "main.yml"), **load("vars", "main.yml"), **variables}
    return Templar(LOADER, variables=known).template(text)


def value(name, **variables):
    return template(trust_as_template("{{ " + name + " }}"), **variables)


PLUGIN, DISCOVERY = "kubegpu-nvidia-device-plugin", "kubegpu-gpu-feature-discovery"


@pytest.mark.parametrize(
    ("changed", "applied"), [([], 0), ([DISCOVERY], 0), ([PLUGIN, DISCOVERY], 1)]
)
def test_which_daemonset_is_the_plugins_own(changed, applied):
    sets = [{"kind": "DaemonSet", "metadata": {"name": name}} for name in changed]
    known = {"__nvidia_device_plugin_sets": sets}
    assert len(value("__nvidia_device_plugin_applied", **known)) == applied


def failure(part):
    name = "Fail the nodes that do not offer their GPUs"
    (task,) = [one for one in load("tasks", "wait.yml") if one["name"] == name]
    pods = [{"node": "n1", "log": [f"the words of {part}"]}]
    other = [{"node": "n1", "log": ["other words"]}, {"node": "n2", "log": ["of n2"]}]
    waited = {
        "missing": [
            {"key": "web", "part": part},
            {
                "key": "gpu1", "node": "n1", "part": part, "allocatable": {"nvidia.com/gpu": 1},
                "expected": {"nvidia.com/gpu": 2}, "cause": "The cause.",
                "evidence": "The evidence", "next_step": "The step.",
            },
        ],
        "plugin_pods": pods if part == "device_plugin" else other,
        "discovery_pods": pods if part == "feature_discovery" else other,
    }  # fmt: skip
    known = {"__nvidia_device_plugin_waited": waited, "inventory_hostname": "gpu1"}
    assert value("__nvidia_device_plugin_missing", **known)["node"] == "n1"
    (found,) = template(task["kubegpu.nodes.fleet_fail"]["findings"], **known)
    return found


@pytest.mark.parametrize("part", ["device_plugin", "feature_discovery"])
def test_a_node_fails_with_the_words_of_the_pod_that_does(part):
    found = failure(part)
    assert found["cause"].endswith("The cause.") and found["next_step"] == "The step."
    assert found["evidence"] == f"The evidence\nThe pod's last lines:\nthe words of {part}"
    # Of feature discovery the number of GPUs says nothing: the node offers them.
    assert ("expected is" in found["cause"]) == (part == "device_plugin")
