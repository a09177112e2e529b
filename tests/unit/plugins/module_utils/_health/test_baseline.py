# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.health import check_health
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Ended, Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.health_node import (
    A100,
    OTHER,
    StandinStream,
    journal,
    make_node,
    smi_document,
    smi_gpu,
    xid,
)
from tests.unit.fixtures.machines import nvidia
from tests.unit.fixtures.make_tree import write

OPTIONS = {"timeout": 60, "boots": 3, "thresholds": {}, "xids": {}, "baseline": {}}


@pytest.fixture
def node(tmp_path):
    return make_node(tmp_path)


def health(root, *lines, gpus=None, answers=None, baseline=None):
    """Return the result on a node with these lines of the present boot."""
    given = {
        "nvidia-smi": smi_document(*(gpus or [smi_gpu()])),
        "journalctl 0": journal((1, "usb 1-1: new device"), *lines),
        **(answers or {}),
    }
    request = read_options({**OPTIONS, "baseline": baseline or {}})
    return check_health(NodeReader(str(root)), StandinStream(given), request)


def reboot(root):
    write(root, "/proc/sys/kernel/random/boot_id", "another-boot\n")


def codes(rows):
    return [(row["code"], row["address"]) for row in rows]


PENDING = smi_gpu(remapped_row_pending="Yes")


def uncorrected(number):
    return smi_gpu(A100, None, **{"volatile/dram_uncorrectable": str(number)})


def test_without_a_baseline_nothing_is_compared(node):
    result = health(node, (5, xid(79)))
    assert result["new"] is None and result["resolved"] is None and not result["ok"]


def test_the_same_again_is_not_new(node):
    before = health(node, (5, xid(79)), (6, xid(31)), gpus=[PENDING])
    after = health(node, (5, xid(79)), (6, xid(31)), gpus=[PENDING], baseline=before)
    assert len(after["findings"]) == 3 and after["new"] == [] and after["resolved"] == []


def test_what_is_new(node):
    before = health(node, (5, xid(31)))
    after = health(node, (5, xid(31)), (99, xid(79)), gpus=[PENDING], baseline=before)
    assert codes(after["new"]) == [("xid", A100), ("row_remap_pending", A100)]


def test_an_xid_that_occurs_again_is_new(node):
    before = health(node, (5, xid(119)), (6, xid(119)))
    again = health(node, (5, xid(119)), (6, xid(119)), (90, xid(119)), baseline=before)
    assert codes(again["new"]) == [("gsp_timeout", A100)]
    # The kernel's buffer lost the first lines, so that the number is the same.
    wrapped = health(node, (6, xid(119)), (90, xid(119)), baseline=before)
    assert codes(wrapped["new"]) == [("gsp_timeout", A100)]
    # The clock was corrected in between.
    shifted = health(node, (7, xid(119)), (8, xid(119)), baseline=before)
    assert shifted["new"] == []


def test_another_xid_of_the_same_code_is_new(node):
    before = health(node, (5, xid(62)))
    after = health(node, (5, xid(62)), (900, xid(109)), baseline=before)
    assert [row["xids"] for row in after["new"]] == [[109]]


def test_after_a_reboot_what_is_counted_since_boot_is_new_and_a_state_is_not(node):
    before = health(node, (5, xid(31)), gpus=[PENDING])
    reboot(node)
    same_state = health(node, gpus=[PENDING], baseline=before)
    assert same_state["new"] == [] and codes(same_state["resolved"]) == [("xid", A100)]
    again = health(node, (5, xid(31)), gpus=[PENDING], baseline=before)
    assert codes(again["new"]) == [("xid", A100)]


def test_memory_errors_begin_at_nothing_with_each_boot(node):
    before = health(node, gpus=[uncorrected(2)])
    assert health(node, gpus=[uncorrected(2)], baseline=before)["new"] == []
    more = health(node, gpus=[uncorrected(3)], baseline=before)
    assert codes(more["new"]) == [("gpu_memory_error", A100)]
    reboot(node)
    after = health(node, gpus=[uncorrected(1)], baseline=before)
    assert codes(after["new"]) == [("gpu_memory_error", A100)]


def test_what_became_an_error_is_new(node):
    before = health(node, (5, xid(63)))
    assert [row["severity"] for row in before["findings"]] == ["info"]
    failed = smi_gpu(remapped_row_failure="Yes")
    assert codes(health(node, (5, xid(63)), gpus=[failed], baseline=before)["new"]) == [
        ("row_remap_failed", A100)
    ]


def test_what_is_resolved(node):
    before = health(node, gpus=[PENDING])
    after = health(node, baseline=before)
    assert after["ok"] and after["new"] == []
    assert after["resolved"] == [
        {"code": "row_remap_pending", "severity": "warning", "address": A100}
    ]


@pytest.mark.parametrize(
    "answers",
    [
        {"nvidia-smi": Ended(127)},
        {"nvidia-smi": ("", Ended(None, hang=Hang("nvidia-smi", 7, 60.0, "D", None, True)))},
        {"journalctl 0": Ended(1)},
        {"journalctl 0": (journal((1, "usb")), Ended(None, too_long=True))},
    ],
    ids=["no nvidia-smi", "hangs", "no log", "a part of the log"],
)
def test_what_was_not_read_is_not_resolved(node, answers):
    before = health(node, (5, xid(31)), gpus=[PENDING])
    assert health(node, answers=answers, baseline=before)["resolved"] is None


def test_a_card_that_is_gone(tmp_path):
    two = make_node(
        tmp_path / "two",
        *(nvidia(address, "20b5", driver="nvidia") for address in (A100, OTHER)),
    )
    before = health(two, gpus=[smi_gpu(), smi_gpu(OTHER)])
    one = make_node(tmp_path / "one")
    after = health(one, baseline=before)
    assert not after["ok"] and codes(after["new"]) == [("gpu_missing", OTHER)]
    # A later result has no such card, and it is not there again for that.
    later = health(one, baseline=after)
    assert later["new"] == [] and later["resolved"] == []
    assert codes(health(two, gpus=[smi_gpu(), smi_gpu(OTHER)], baseline=after)["resolved"]) == [
        ("gpu_missing", OTHER)
    ]
    # The same card in another slot is not missing.
    moved = {**before, "gpus": [{**before["gpus"][1], "uuid": f"GPU-{A100}"}]}
    assert health(one, baseline=moved)["new"] == []


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        ({"ok": True}, "baseline has no list findings"),
        ({"findings": []}, "baseline has no list gpus"),
        ({"findings": ["x"], "gpus": []}, "baseline.findings[0] is not a mapping"),
        ({"findings": [{"code": "x"}], "gpus": []}, "with code, severity, address"),
        ({"findings": [], "gpus": [{"address": None}]}, "baseline.gpus[0]"),
        (
            {"findings": [{"code": "x", "severity": "", "address": "", "xids": 7}], "gpus": []},
            "baseline.findings[0].xids is not a list of numbers",
        ),
        (
            {"findings": [{"code": "x", "severity": "", "address": "", "xids": [[7]]}], "gpus": []},
            "baseline.findings[0].xids is not a list of numbers",
        ),
    ],
)
def test_what_is_no_result_is_refused(baseline, words):
    with pytest.raises(InputError) as error:
        read_options({**OPTIONS, "baseline": baseline})
    assert words in error.value.cause and error.value.next_step


def test_a_result_may_have_more_than_is_needed(node):
    before = {**health(node), "failed": False, "warnings": [], "something": None}
    before["findings"] = [{"code": "old", "severity": "unknown", "address": "", "last": 7}]
    assert codes(health(node, baseline=before)["resolved"]) == [("old", "")]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timeout": 0}, "timeout is 0"),
        ({"boots": 0}, "boots is 0"),
        ({"boots": 21}, "boots has to be at most 20"),
        ({"thresholds": {"rows": 1}}, "unknown threshold 'rows'"),
        ({"thresholds": {"remapped_rows": "many"}}, "thresholds.remapped_rows has to be"),
        ({"thresholds": {"remapped_rows": True}}, "thresholds.remapped_rows has to be"),
        ({"thresholds": {"remapped_rows": -1}}, "thresholds.remapped_rows has to be"),
        ({"thresholds": {"remapped_rows": "nan"}}, "thresholds.remapped_rows has to be"),
        ({"thresholds": {"remapped_rows": [1]}}, "thresholds.remapped_rows has to be"),
        ({"xids": {"x": "error"}}, "xids: 'x' is not the number"),
        ({"xids": {31: "bad"}}, "xids: 31: unknown severity"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(InputError) as error:
        read_options({**OPTIONS, **given})
    assert words in str(error.value)


def test_options():
    given = {"remapped_rows": "7", "ecc_dram_corrected": None, "pcie_correctable": 1.5}
    request = read_options({**OPTIONS, "thresholds": given, "xids": {31: "error"}})
    assert request.thresholds == {
        "remapped_rows": 7.0,
        "ecc_dram_corrected": None,
        "pcie_correctable": 1.5,
    }
    assert request.xids[31].severity == "error"
    assert read_options(OPTIONS) == Request()
