# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What gpu_cluster_info returns."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_unreachable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError


def test_a_cluster_that_cannot_be_asked_is_told_once():
    expected = read_expected({"gpu1": {}, "gpu2": {}})
    error = KubegpuError("It is down.", evidence="refused", next_step="Start it.")
    first, second = build_unreachable(expected, "pod", error)
    assert (first["node"], first["ok"], first["cause"]) == ("gpu1", False, "It is down.")
    assert (first["evidence"], first["next_step"]) == ("refused", "Start it.")
    assert (second["node"], second["ok"], second["code"]) == ("gpu2", None, "waits")
    assert first["layer"] == second["layer"] == "pod"
