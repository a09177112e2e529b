# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter as a playbook calls it; what it says is tested with _labels/desired.py."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_node_labels import FilterModule
from tests.unit.fixtures.node_facts import node

gpu_node_labels = FilterModule().filters()["gpu_node_labels"]


def test_without_facts_it_names_the_module_to_run():
    with pytest.raises(AnsibleFilterError, match="gpu_node_facts"):
        gpu_node_labels({})


@pytest.mark.parametrize("word", ["false", "no", "0", False])
def test_words_for_false_are_false(word):
    labels = gpu_node_labels(node(), details=word, discovery_names=word)
    assert labels == {
        "accelerator": "nvidia-tesla-p4",
        "kubegpu.nodes/gpu": "nvidia",
        "kubegpu.nodes/gpu-nvidia": "true",
    }


def test_what_is_neither_true_nor_false_is_refused():
    with pytest.raises(AnsibleFilterError, match="perhaps"):
        gpu_node_labels(node(), details="perhaps")


def test_an_option_that_was_left_empty_is_none():
    labels = gpu_node_labels(node(), None, details=False, device_plugin_config=None, extra=None)
    assert labels == {"kubegpu.nodes/gpu": "nvidia", "kubegpu.nodes/gpu-nvidia": "true"}
