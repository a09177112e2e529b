# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What gpu_burn prints at its end."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.gpu_burn import read_burn

PROGRESS = "Burning for 60 seconds.\n\r10.0%  proc'd: 1 (1 Gflop/s)   errors: 0   temps: 60 C "


def end(*states):
    told = "".join(f"\tGPU {number}: {state}\n" for number, state in enumerate(states))
    return f"{PROGRESS}\nKilling processes\n\nTested {len(states)} GPUs:\n{told}"


def codes(outcome):
    return [one.finding.code for one in outcome.judged]


def test_all_ok_is_no_finding():
    assert read_burn(end("OK", "OK"), 0, "", 2).judged == ()


def test_a_faulty_gpu_fails_although_the_status_is_zero():
    (found,) = read_burn(end("OK", "FAULTY"), 0, "", 2).judged
    assert found.finding.code == "gpu_burn_faulty" and found.subject == "GPU 1"
    assert found.severity == "error" and "RMA" in found.finding.next_step


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
    assert codes(found) == [code] and words in found.judged[0].finding.cause
    assert "\x1b" not in found.judged[0].finding.evidence
