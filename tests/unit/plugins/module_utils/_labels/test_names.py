# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of labels, and YAML values as their text."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.names import (
    is_discovered,
    label_text,
)


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("nvidia.com/gpu.product", True),
        ("nvidia.com/gpu.count", True),
        ("nvidia.com/cuda.driver.major", True),
        ("nvidia.com/cuda.driver-version.full", True),
        ("nvidia.com/cuda.runtime-version.major", True),
        # NVLink beyond the node: k8s-device-plugin, docs/gpu-feature-discovery.
        ("nvidia.com/gpu.clique", True),
        ("nvidia.com/mig.capable", True),
        ("nvidia.com/mig-1g.5gb.count", True),
        ("nvidia.com/gfd.timestamp", True),
        ("feature.node.kubernetes.io/pci-10de.present", True),
        # What users say to other programs.
        ("nvidia.com/device-plugin.config", False),
        ("nvidia.com/mig.config", False),
        ("nvidia.com/gpu.present", False),
        ("kubegpu.nodes/gpu", False),
        ("accelerator", False),
    ],
)
def test_which_names_are_those_of_feature_discovery(name, theirs):
    assert is_discovered(name) is theirs


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (80, "80"), (12.9, "12.9"), ("a", "a")]
)
def test_a_value_of_yaml_is_text_in_a_label(value, text):
    assert label_text(value) == text
