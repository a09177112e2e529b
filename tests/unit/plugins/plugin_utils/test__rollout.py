# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes of batches, failures that are kept, and the share of them that stops a run."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import (
    failure,
    failure_message,
    percentage_error,
    serial,
    serial_error,
    stop_message,
)


@pytest.mark.parametrize(
    ("values", "count", "chosen"),
    [
        ([], 12, "100%"),
        ([4], 12, 4),
        (["2"], 12, "2"),
        ([4, "25%", 2, 4], 12, 2),
        # A canary first, and then half of them: the other way is the more careful one.
        ([[1, "50%"], 4], 12, 4),
        ([[1, "50%"], 4], 6, [1, "50%"]),
    ],
)
def test_the_smallest_batches_hold_where_hosts_say_different_ones(values, count, chosen):
    assert serial(values, count) == chosen


@pytest.mark.parametrize("value", [1, "12", "25%", [1, "50%"], 100])
def test_what_serial_can_be(value):
    assert serial_error(value) == ""


@pytest.mark.parametrize(
    "value", [0, -1, "0", "0%", "101%", "12.5%", "abc", "", [], True, [1, "x"], "1.5", "²"]
)
def test_what_serial_cannot_be(value):
    assert "a number of nodes from 1 on" in serial_error(value)


@pytest.mark.parametrize(
    ("value", "good"),
    [
        (0, True),
        ("12.5", True),
        (100, True),
        (-1, False),
        (101, False),
        ("x", False),
        (True, False),
    ],
)
def test_a_percentage_of_failures(value, good):
    assert (percentage_error(value) == "") is good


RESULT = {"failed": True, "msg": "No package list has it.\nSeen: x\nNext step: y"}


def test_a_failure_is_kept_with_its_task_and_words():
    kept = failure({"name": "Install", "action": "kubegpu.nodes.nvidia_driver"}, RESULT)
    known = {"task": "Install", "message": RESULT["msg"], "changed": False, "refused": False,
             "cause": "No package list has it.", "evidence": "Seen: x\nNext step: y"}  # fmt: skip
    assert kept == known
    assert failure_message(kept) == (
        "the run stopped at this node, in the task 'Install': No package list has it."
    )


@pytest.mark.parametrize("action", ["ansible.builtin.fail", "fail", "validate_argument_spec"])
def test_a_refusal_is_told_from_a_failure(action):
    kept = failure({"name": "Stop", "action": action}, RESULT)
    assert kept["refused"]
    assert failure_message(kept) == (
        "the run stopped at this node, which is refused: No package list has it."
    )


def test_a_refusal_after_a_change_is_a_failure():
    task = {"name": "Stop", "action": "ansible.builtin.fail"}
    kept = failure(task, RESULT, changed=True)
    assert kept["changed"] and not kept["refused"]


def test_a_task_that_changed_something_and_failed_is_a_change():
    task = {"name": "Install", "action": "kubegpu.nodes.nvidia_driver"}
    assert failure(task, {**RESULT, "changed": True})["changed"]


@pytest.mark.parametrize("msg", ["", None, " \n"])
def test_a_failure_without_words_is_one(msg):
    kept = failure({"action": "ansible.builtin.reboot"}, {"failed": True, "msg": msg})
    assert (kept["task"], kept["message"]) == ("reboot", "The task returned no message.")


def batch(failed=0, refused=0, good=0):
    one = {"task": "t", "message": "w", "refused": False}
    kept = [one] * failed + [{**one, "refused": True}] * refused + [None] * good
    return {f"gpu{number}": value for number, value in enumerate(kept, 1)}


@pytest.mark.parametrize(
    ("hosts", "limit", "stops"),
    [
        (batch(good=4), 0, False),
        (batch(failed=1, good=3), 0, True),
        (batch(failed=1, good=3), 25, False),
        (batch(failed=1, good=3), 24.9, True),
        (batch(failed=2, good=2), 25, True),
        (batch(refused=4), 0, False),
        (batch(failed=1, refused=3), 0, True),
        (batch(failed=4), 100, False),
    ],
)
def test_when_no_other_batch_is_begun(hosts, limit, stops):
    assert bool(stop_message(hosts, limit)) is stops


def test_what_is_said_of_the_batches_that_wait():
    assert stop_message(batch(failed=1, good=3), 0) == (
        "not started: 1 of 4 nodes of a batch failed (gpu1), and kubegpu_max_fail_percentage "
        "allows none. Next step: fix what failed and run again; what is done already is left "
        "as it is"
    )
    words = stop_message(batch(failed=7, good=1), 12.5)
    assert "(gpu1, gpu2, gpu3, gpu4, gpu5 and 2 more)" in words and "allows 12.5 %" in words


def test_a_failure_keeps_the_parts_of_its_error():
    task = {"name": "Install", "action": "kubegpu.nodes.package_set"}
    parts = {
        "cause": "Next step: is the name of a package.",
        "evidence": "Seen: x",
        "next_step": "Rename it.",
        "names": {"variable": "nvidia_driver_source"},
    }
    kept = failure(task, {"failed": True, "msg": "All of it.", "code": "", **parts})
    assert {name: kept[name] for name in parts} == parts and "code" not in kept
    assert failure_message(kept).endswith(": Next step: is the name of a package.")
    # What a task of Ansible's own says has no parts: nothing of it is a next step.
    other = failure(task, {"failed": True, "msg": "Seen: x\nNext step: y"})
    assert (other["cause"], other["evidence"]) == ("Seen: x", "Next step: y")
    assert "next_step" not in other
