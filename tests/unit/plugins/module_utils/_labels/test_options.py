# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option ``nodes`` of node_gpu_label."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.types import TAINTS_ANNOTATION

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("text", "has to be a mapping"),
        ({"label": {}}, "nodes.gpu7.label is unknown"),
        ({"labels": ["a"]}, "nodes.gpu7.labels has to be a mapping"),
        ({"labels": {"a": ["b"]}}, "not text"),
        ({"labels": {"a/b/c": "1"}}, "'a/b/c'"),
        ({"labels": {"Example.com/a": "1"}}, "'Example.com/a'"),
        ({"labels": {"-a": "1"}}, "'-a'"),
        ({"labels": {"x" * 64: "1"}}, "xxx"),
        ({"labels": {"a": "b c"}}, "'b c'"),
        ({"labels": {"a": "b\n"}}, "a is"),
        ({"annotations": {"a b": "1"}}, "'a b'"),
        ({"annotations": {TAINTS_ANNOTATION: "[]"}}, "kept by this module"),
        ({"taints": [{"key": "a"}]}, "nodes.gpu7.taints[0].effect has to be one of NoSchedule"),
        ({"taints": [{**GPU, "effect": "x"}]}, "taints[0].effect has to be one of NoSchedule"),
        ({"taints": [{**GPU, "efect": "x"}]}, "nodes.gpu7.taints[0].efect is unknown"),
        ({"taints": [GPU, {**GPU, "value": "x"}]}, "twice"),
    ],
)
def test_wishes_that_no_server_would_take(given, said):
    with pytest.raises(InputError) as caught:
        read_requests({"gpu7": given})
    assert said in str(caught.value) and "nodes.gpu7" in str(caught.value)


def test_wishes_as_yaml_has_them():
    [one] = read_requests(
        {"n1": {"labels": {"a": 1, "b": True, "c": None, "d": ""}, "taints": [GPU], "name": ""}}
    )
    assert one.labels == {"a": "1", "b": "true", "d": ""}
    assert (one.name, one.machine_id) == ("n1", None)
    [empty] = read_requests({"n1": None})
    assert empty.empty and not one.empty
