# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What gpu_burn prints at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.gpu_burn import read_burn

RECORDED = Path(__file__).parents[3] / "fixtures" / "acceptance"
PROGRESS = "Burning for 60 seconds.\n\r10.0%  proc'd: 1 (1 Gflop/s)   errors: 0   temps: 60 C "


def progress(*counts, errors=None, percent="100.0"):
    """Return a line of progress, in the form of gpu_burn-drv.cpp."""
    calculated = "- ".join(f"{count} (46929 Gflop/s) " for count in counts)
    wrong = "- ".join(errors or ["0 " for _count in counts])
    heat = "- ".join("60 C " for _count in counts)
    return f"\r{percent}%  proc'd: {calculated}  errors: {wrong}  temps: {heat}"


def end(*states, told=None):
    """Return the output of a run; ``told`` is its progress, by default that of a good one."""
    told = progress(*(81 for _state in states)) if told is None else told
    rows = "".join(f"\tGPU {number}: {state}\n" for number, state in enumerate(states))
    before = "Burning for 60 seconds.\n" + progress(*(0 for _state in states), percent="0.1")
    return f"{before}{told}\nKilling processes\n\nTested {len(states)} GPUs:\n{rows}"


def codes(outcome):
    return [one.code for one in outcome.judged]


def test_all_ok_is_no_finding():
    assert read_burn(end("OK", "OK"), 0, "", 2).judged == ()


def test_a_faulty_gpu_fails_although_the_status_is_zero():
    (found,) = read_burn(end("OK", "FAULTY"), 0, "", 2).judged
    assert found.code == "gpu_burn_faulty" and found.subject.part == "GPU 1"
    assert found.severity == "error" and "RMA" in found.next_step


def test_the_progress_is_not_the_result():
    assert codes(read_burn(f"{PROGRESS}GPU 0: OK", 0, "", 1)) == ["gpu_burn_not_run"]


@pytest.mark.parametrize(
    ("text", "rc", "code", "words"),
    [
        (end("OK"), 0, "gpu_burn_incomplete", "tested 1 of 2"),
        (f"{PROGRESS}  (DIED!)\nNo clients are alive!", 123, "gpu_burn_not_run", "status 123"),
        ("", None, "gpu_burn_not_run", "was ended"),
        ("Couldn't init a GPU\x1b[2J", 1, "gpu_burn_not_run", "status 1"),
    ],
)
def test_without_the_end_of_all_gpus_the_node_fails(text, rc, code, words):
    found = read_burn(text, rc, "", 2)
    assert codes(found) == [code] and words in found.judged[0].cause
    assert "\x1b" not in found.judged[0].evidence


def recorded(name, gpus):
    """Return the result of an output of a public report; SOURCES.md has their addresses."""
    return read_burn((RECORDED / name).read_text(), 0, "", gpus).judged


def test_a_gpu_that_computed_nothing_is_no_pass():
    (found,) = recorded("burn-14-init.txt", 2)
    assert (found.code, found.severity, found.subject.part) == (
        "gpu_burn_no_work", "error", "GPU 0",
    )  # fmt: skip
    assert "CUBLAS_STATUS_NOT_INITIALIZED" in found.evidence


def test_without_progress_nothing_was_tested():
    (found,) = recorded("burn-124-nothing.txt", 1)
    assert (found.code, found.severity) == ("gpu_burn_not_run", "error")
    assert "no progress of any GPU" in found.cause


DIED = ["-1  (DIED!)", "0 "]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The count of a process that ended is -1; its errors can have any value.
        (end("OK", "OK", told=progress(-1, 81)), [("gpu_burn_died", "GPU 0")]),
        (end("FAULTY", "OK", told=progress(-1, 81, errors=DIED)), [("gpu_burn_died", "GPU 0")]),
        (end("OK", "OK", told=progress(81, 81, errors=["7  (DIED!)", "0 "])),
         [("gpu_burn_died", "GPU 0")]),
        (end("OK", "OK", told=progress(81, 0)), [("gpu_burn_no_work", "GPU 1")]),
        (end("OK", "OK", told=progress(0, 0)),
         [("gpu_burn_no_work", "GPU 0"), ("gpu_burn_no_work", "GPU 1")]),
        (end("OK", "OK", told=progress(81, 81, errors=["0 ", "12  (WARNING!)"])),
         [("gpu_burn_faulty", "GPU 1")]),
        # Fewer columns than GPUs, and no columns.
        (end("OK", "OK", told=progress(81)), [("gpu_burn_incomplete", "")]),
        (end("OK", "OK", told="\r10% proc'd: errors: temps:"), [("gpu_burn_not_run", "")]),
        # The list of GPUs is cut, or one is missing in it.
        (end("OK", "OK").replace("\tGPU 1: OK\n", ""), [("gpu_burn_incomplete", "")]),
        (end("OK", "OK").replace("GPU 0: OK", "GPU 1: OK"), [("gpu_burn_incomplete", "")]),
        (end("OK", "OK").partition("\tGPU 0")[0], [("gpu_burn_not_run", "")]),
        # Two lines of one GPU.
        (end("OK", "OK") + "\tGPU 1: FAULTY\n\tGPU 1: OK\n", [("gpu_burn_faulty", "GPU 1")]),
        # What an earlier run in the same output says does not count.
        (end("OK", "OK") + "Tested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: OK\n",
         [("gpu_burn_not_run", "")]),
        (end("FAULTY", "OK", told=progress(-1, 81)) + end("OK", "OK"), []),
        # A count beyond the limit of an int was once a positive one.
        (end("OK", "OK", told=progress(-2147483000, 81)), []),
        # A number that is none says nothing of what was computed.
        (end("OK", "OK", told=progress(81, 81).replace("46929", "-nan")), []),
        ("nvbandwidth Version: v0.8\nRunning host_to_device_memcpy_ce.\n",
         [("gpu_burn_not_run", "")]),
    ],
)  # fmt: skip
def test_the_progress_of_each_gpu_counts(text, expected):
    found = read_burn(text, 0, "", 2).judged
    assert [(one.code, one.subject.part) for one in found] == expected
    assert {one.severity for one in found} <= {"error"}


def test_a_status_without_a_reason_is_no_pass():
    assert codes(read_burn(end("OK", "OK"), -11, "Segmentation fault", 2)) == [
        "gpu_burn_ended_badly"
    ]


def test_long_lines_are_read_in_no_time():
    text = "proc'd:" * 9000 + "errors:" * 9000 + "-1 (" * 9000
    assert codes(read_burn(f"{text}\nTested 1 GPUs:\n GPU 0: OK", 0, "", 1)) == ["gpu_burn_not_run"]
