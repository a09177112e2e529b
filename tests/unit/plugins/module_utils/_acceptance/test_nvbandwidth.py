# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvbandwidth prints (made after the source of 0.8), and GPUs beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.data import minima
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.nvbandwidth import (
    compare_twins,
    read_bandwidth,
)

H2D, D2H, P2P = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
)  # fmt: skip


def document(error=None, **cases):
    """Return an output; copies between GPUs that are not given are waived; None is not there."""
    cases = {"h2d": [["55"]], "d2h": [["50"]], "p2p": "Waived", **cases}
    names = {"h2d": H2D, "d2h": D2H, "p2p": P2P}
    made = [
        {"name": names[name], "status": "Passed", "bandwidth_matrix": matrix}
        if isinstance(matrix, list)
        else {"name": names[name], "status": matrix}
        for name, matrix in cases.items()
        if matrix is not None
    ]
    told = {"error": error} if error else {}
    return "library: warning\n" + json.dumps(
        {"nvbandwidth": {"git_version": "v0.8", "testcases": made, **told}}
    )


RECORDED = Path(__file__).parents[3] / "fixtures" / "acceptance"


def read(text, rc=0, errors="", gpus=0, **limits):
    return read_bandwidth(text, rc, errors, limits, gpus)


ALL = {"h2d": [["55.6", "54.9"]], "d2h": [["50.0", "51.0"]],
       "p2p": [["N/A", "240.1"], ["239.9", "N/A"]]}  # fmt: skip


def codes(outcome):
    return [one.code for one in outcome.judged]


def test_the_least_of_each_gpu_is_kept():
    found = read(document(**ALL))
    assert found.judged == () and found.version == "v0.8"
    assert found.values == {
        "h2d": {"0": 55.6, "1": 54.9},
        "d2h": {"0": 50.0, "1": 51.0},
        "p2p": {"0": 240.1, "1": 240.1},
    }


def test_a_gpu_below_its_limit_fails_the_node():
    (found,) = read(document(**ALL), h2d=55, p2p=200).judged
    assert (found.severity, found.subject.part) == ("error", "GPU 1")
    assert "54.9 GB/s" in found.cause and "at least 55" in found.cause
    assert "gpu_acceptance_thresholds.h2d" in found.next_step


def subjects(outcome):
    return [one.subject.part for one in outcome.judged]


def test_a_slow_gpu_is_named_and_not_those_that_copy_to_it():
    slow = [["N/A", "400", "90"], ["400", "N/A", "91"], ["92", "93", "N/A"]]
    found = read(document(p2p=slow), p2p=335)
    assert subjects(found) == ["GPU 2"] and found.values["p2p"] == {"0": 400, "1": 400, "2": 93}


def test_a_slow_link_fails_the_node_and_blames_no_gpu():
    slow = [["N/A", "400", "90"], ["400", "N/A", "400"], ["400", "400", "N/A"]]
    found = read(document(p2p=slow), p2p=335)
    assert subjects(found) == ["Pair of GPU 0 and GPU 2"]
    assert found.judged[0].severity == "error" and "90 GB/s" in found.judged[0].cause
    assert set(found.values["p2p"].values()) == {400}
    assert read(document(p2p=slow)).judged == ()


def test_an_error_fails_the_node_beside_values_that_are_good():
    (found,) = read(document(**ALL, error="cudaMemcpy: no\x1b memory")).judged
    assert (found.code, found.severity) == ("nvbandwidth_error", "error")
    assert "\x1b" not in found.evidence


def test_only_a_waived_test_is_skipped():
    (found,) = read(document(**{**ALL, "p2p": None})).judged
    assert "device_to_device_memcpy_read_ce of nvbandwidth ended as not run" in found.cause


def test_one_gpu_has_no_other_one():
    found = read(document(**{**ALL, "p2p": "Waived"}), p2p=300)
    assert found.judged == () and found.skipped == (P2P,)


@pytest.mark.parametrize(
    ("text", "rc", "code", "words"),
    [
        (document(h2d="Error", d2h=[["1"]]), 1, "bandwidth_not_measured", "ended as error"),
        (document(h2d=[["N/A"]]), 0, "bandwidth_not_measured", "without a value"),
        (document(h2d=[["nan", "inf", None]]), 0, "bandwidth_not_measured", "without a value"),
        (document(h2d="Waived"), 0, "bandwidth_not_measured", "ended as waived"),
        (document(h2d=[["0", "55"]]), 0, "bandwidth_not_measured", "not a bandwidth: 0"),
        (document(d2h=[["nan", "55"]]), 0, "bandwidth_not_measured", "not a bandwidth: nan"),
        (document(p2p=[["N/A", "-1"], ["240", "N/A"]]), 0, "bandwidth_not_measured", ": -1"),
        (document(h2d="Running"), 0, "bandwidth_not_measured", "ended as running"),
        (document(h2d=[["55"]])[:-9], 0, "nvbandwidth_not_run", "status 0"),
        (document(h2d=[["55"]]), -11, "nvbandwidth_ended_badly", "status -11"),
        ("gpu-burn\nTested 1 GPUs:\n\tGPU 0: OK\n", 0, "nvbandwidth_not_run", "status 0"),
        ('{"nvbandwidth": {"error": "no \\u001b device"}}', 1, "nvbandwidth_not_run", "status 1"),
        ("CUDA error", 1, "nvbandwidth_not_run", "status 1"),
        ("", None, "nvbandwidth_not_run", "was ended"),
        ("[" * 9999 + "{", 0, "nvbandwidth_not_run", "status 0"),
        ('{"nvbandwidth": 3}', 0, "nvbandwidth_not_run", "status 0"),
    ],
)
def test_without_a_value_the_node_fails(text, rc, code, words):
    found = read(text, rc)
    assert codes(found) == [code] and words in found.judged[0].cause
    assert found.judged[0].severity == "error" and "\x1b" not in found.judged[0].evidence


@pytest.mark.parametrize(
    ("product", "limits"),
    [
        ("NVIDIA H100 80GB HBM3", {"h2d": 52, "d2h": 52}),
        ("NVIDIA H200", {"h2d": 48, "d2h": 48, "p2p": 335}),
        ("NVIDIA A100-SXM4-80GB", {"h2d": 23, "d2h": 23}),
        ("NVIDIA H100 PCIe", {}), ("NVIDIA H200 NVL", {}), ("NVIDIA GH200 480GB", {}),
        ("Tesla T4", {}), ("", {}),
    ],
)  # fmt: skip
def test_only_what_was_measured_on_such_a_product_is_a_limit(product, limits):
    assert minima(product) == limits


def test_a_gpu_that_is_slower_than_its_twins_is_told():
    measured = {
        "gpu1": ("T4", {"h2d": {"0": 12.0, "1": 12.1}}),
        "gpu2": ("T4", {"h2d": {"0": 12.0, "1": 6.0}}),
        "gpu3": ("L4", {"h2d": {"0": 1.0, "1": 24.0}}),
        "gpu4": ("", {"h2d": {"0": 1.0, "1": 24.0, "2": 24.0}}),
    }
    found = compare_twins(measured)
    assert list(found) == ["gpu2"]
    (one,) = found["gpu2"]
    assert (one.severity, one.subject.part) == ("warning", "GPU 1")
    assert "6 GB/s" in one.cause and "median is 12" in one.cause


def test_nine_tenths_of_the_median_is_enough():
    twins = {"a": ("T4", {"h2d": {"0": 10.0, "1": 10.0, "2": 9.0}})}
    assert compare_twins(twins) == {}
    twins["a"][1]["h2d"]["2"] = 8.99
    assert list(compare_twins(twins)) == ["a"]


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("nvbw-34.txt", "between GPUs, or between the host and a GPU"),
        ("nvbw-34.json", "between GPUs"),
    ],
)
def test_wrong_data_is_called_corruption(name, where):
    """Outputs of a public report; SOURCES.md has their addresses."""
    found = read((RECORDED / name).read_text(), 1, gpus=2).judged[0]
    assert (found.code, found.severity) == ("nvbandwidth_wrong_data", "error")
    assert f"Data is corrupted in copies {where}:" in found.cause
    assert found.next_step.startswith("Keep work off this node.")
    assert all(word in found.next_step for word in ("NVLink", "IOMMU", "ACS", "memory"))


KERNEL = " Invalid value when checking the pattern at 0x7f0000000000\n Current offset : 0 \n"


@pytest.mark.parametrize(
    ("text", "errors", "where"),
    [
        # A release that prints it and goes on.
        (KERNEL + document(**ALL), "", "between GPUs, or between"),
        (document(**ALL), KERNEL, "between GPUs, or between"),
        (f"Running host_to_device_memcpy_ce.\n{KERNEL}", "", "between the host and a GPU"),
        (f"Running device_to_device_memcpy_read_ce.\n{KERNEL}", "", "between GPUs:"),
        (KERNEL + document(**{**ALL, "d2h": "Error"}), "", "between the host and a GPU"),
        (document(**{**ALL, "p2p": "Error"}, error="ASSERT in expression h_errorFlag == 0"), "",
         "between GPUs:"),
    ],
)  # fmt: skip
def test_wrong_data_is_found_wherever_a_release_prints_it(text, errors, where):
    found = read(text, 0, errors, gpus=2).judged[0]
    assert found.code == "nvbandwidth_wrong_data" and where in found.cause
    assert "h_errorFlag" in found.evidence or "Invalid value" in found.evidence


def test_another_assertion_is_no_wrong_data():
    text = (
        "[CUDA_ERROR_INVALID_VALUE] invalid argument in expression cuMemAlloc() in memcpy.cpp:165"
    )
    assert codes(read(text, 1)) == ["nvbandwidth_not_run"]


def test_a_gpu_without_a_value_was_not_measured():
    found = read(document(**ALL), gpus=3)
    assert codes(found) == ["bandwidth_incomplete", "bandwidth_incomplete"]
    assert "measured 2 of 3 GPUs" in found.judged[0].cause


def test_gpus_without_a_pair_are_told():
    found = read(document(**{**ALL, "p2p": "Waived"}), gpus=2)
    assert [(one.code, one.severity) for one in found.judged] == [
        ("bandwidth_pairs_waived", "warning")
    ]
    assert read(document(), gpus=1).judged == ()
