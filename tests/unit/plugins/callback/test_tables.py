# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the callback prints of a failed result."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.callback.tables import (
    CallbackModule,
    failure_lines,
)

PARTS = {"cause": "No driver.", "evidence": "nvidia-smi: 9", "next_step": "Run site."}


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ({**PARTS, "msg": "x"}, ["No driver.", "Seen: nvidia-smi: 9", "Next step: Run site."]),
        ({"msg": "one\ntwo"}, ["one", "two"]),
        ({"msg": "MODULE FAILURE", "module_stderr": "Killed\n"}, ["Killed"]),
        ({"msg": "", "stdout": "E: broken"}, ["E: broken"]),
        (
            {"msg": "non-zero", "rc": 3, "stderr": "no space", "stdout": "x"},
            ["non-zero", "no space"],
        ),
        ({"msg": "non-zero", "rc": 3, "stderr": "", "stdout": ""}, ["non-zero"]),
        ({"censored": "the output has been hidden", "msg": "x"}, ["the output has been hidden"]),
        ({}, ["The task returned no message."]),
    ],
)
def test_a_failure_has_cause_evidence_and_next_step_or_the_text_that_there_is(result, lines):
    assert failure_lines(result) == lines


def test_a_run_without_a_host_says_what_to_try(capsys):
    CallbackModule().v2_playbook_on_stats(SimpleNamespace(processed={}, custom={}))
    first, step = capsys.readouterr().out.splitlines()
    assert first.startswith("No host: ")
    assert (
        step == "Next step: Run it in the folder of the inventory, or name the inventory with -i."
    )
