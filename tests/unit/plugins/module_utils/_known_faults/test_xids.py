# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One table says which Xid is what."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules import (
    xids_data as data,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.xids import (
    XIDS,
    Xid,
    in_line,
    look_up,
    numbers_of,
    sxid_severity,
    sxid_stops_board,
    xid_table,
)


def test_the_catalogue_has_each_number_once():
    numbers = [number for row in data.XIDS for number in row[0]] + list(data.UNUSED)
    assert sorted(numbers) == list(range(1, 173))
    assert list(XIDS) == sorted(numbers)


def test_each_action_has_a_next_step_and_is_used():
    # The line of an NVLink error decides for LATER.
    assert {xid.action for xid in XIDS.values()} | {data.LATER} == set(data.ACTIONS)
    assert all(step.endswith(".") for _word, _severity, step in data.ACTIONS.values())


@pytest.mark.parametrize(
    ("number", "action", "severity"),
    [
        (13, data.PROGRAM, "info"),
        (31, data.PROGRAM, "info"),
        (45, data.FOLLOW, "info"),
        (48, data.MEMORY, "error"),
        (54, data.POWER, "error"),
        (62, data.RESET, "error"),
        # Others call these fatal; the catalogue does not.
        (63, data.IGNORE, "info"),
        (69, data.PROGRAM, "info"),
        (92, data.IGNORE, "info"),
        (94, data.PROGRAM, "info"),
        (74, data.NVLINK, "error"),
        (79, data.REBOOT, "error"),
        (119, data.RESET, "error"),
        (145, data.NVLINK5, "warning"),
        (61, data.SUPPORT, "warning"),
        # Unused, and yet the catalogue says to ignore them.
        (14, data.IGNORE, "info"),
        (108, data.IGNORE, "info"),
        (999, data.SUPPORT, "warning"),
    ],
)
def test_the_catalogues_words_decide(number, action, severity):
    xid = look_up(number)
    assert (xid.action, xid.severity) == (action, severity)
    assert xid.meaning and xid.next_step == data.ACTIONS[action][2]


def test_the_errors():
    assert numbers_of("error") == (
        *(46, 48, 54, 62, 64, 74, 78, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155),
        *(156, 158, 167, 168, 169),
    )
    everything = sorted(n for s in ("error", "warning", "info") for n in numbers_of(s))
    assert everything == list(XIDS)


def test_a_user_changes_the_table():
    table = xid_table(
        {63: "error", "94": {"severity": "warning"}, 31: {"action": "reset"}, 200: "info"}
    )
    assert table[63] == Xid(63, XIDS[63].meaning, data.IGNORE, "error")
    assert (table[94].severity, table[94].action) == ("warning", data.PROGRAM)
    # Another action has its own severity.
    assert (table[31].severity, table[31].action) == ("error", data.RESET)
    assert table[200].severity == "info" and list(table)[-1] == 200
    assert {63, 31} <= set(numbers_of("error", table))
    assert 63 not in numbers_of("error"), "the built-in table is left unchanged"
    assert xid_table(None) is XIDS and xid_table({}) is XIDS


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([63], "gpu_xids: [63] is not a mapping"),
        ({"rows": "error"}, "gpu_xids: 'rows' is not the number of an Xid"),
        ({True: "error"}, "gpu_xids: True is not the number"),
        ({0: "error"}, "gpu_xids: 0 is not the number"),
        ({63: "fatal"}, "gpu_xids: 63: unknown severity 'fatal'"),
        ({63: {"action": "pray"}}, "gpu_xids: 63: unknown action 'pray'"),
        ({63: {"bucket": "reset"}}, "gpu_xids: 63 is {'bucket': 'reset'}, neither"),
        ({63: 1}, "gpu_xids: 63 is 1, neither"),
        ({63: {}}, "gpu_xids: 63 is {}, neither"),
        ({63: {"severity": ["error"]}}, "gpu_xids: 63: unknown severity ['error']"),
        ({63: {"action": ["reset"]}}, "gpu_xids: 63: unknown action ['reset']"),
    ],
)
def test_a_wrong_entry_is_refused(rows, words):
    with pytest.raises(InputError) as error:
        xid_table(rows, "gpu_xids")
    assert words in error.value.cause and error.value.next_step


@pytest.mark.parametrize(
    ("number", "line", "action", "severity"),
    [
        (149, "149, NETIR_LINK_EVT Fatal   XC0 i0 Link 08", data.RESET, "error"),
        (149, "149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03", data.IGNORE, "info"),
        (149, "149, NETIR_LINK_EVT Non-fatal XC0 i0 Link 08", data.IGNORE, "info"),
        (149, "149, cut off", data.NVLINK5, "warning"),
        (154, "from 0x0 (None) to 0x2 (Node Reboot Required)", data.RECOVERY, "warning"),
        (154, "from 0x4 (Drain and Reset) to 0x0 (None)", data.IGNORE, "info"),
        # The word has no meaning in the line of another Xid.
        (13, "Fatal", data.PROGRAM, "info"),
    ],
)
def test_the_line_in_the_log_decides_where_it_says_more(number, line, action, severity):
    xid = in_line(number, line)
    assert (xid.action, xid.severity) == (action, severity)


def test_the_line_does_not_overrule_the_user():
    table = xid_table({149: "error"})
    assert in_line(149, "NETIR_LINK_EVT Non-fatal", table).severity == "error"


@pytest.mark.parametrize(
    ("number", "text", "severity"),
    [
        (12028, "12028, Non-fatal, Link 32 egress non-posted PRIV error (First)", "error"),
        (20034, "20034, Fatal, Link 30 LTSSM Fault Up", "error"),
        (20034, "20034, Non-fatal, Link 30 LTSSM Fault Up", "info"),
        (22003, "22003, Non-fatal, Minion Halt", "error"),
        (24007, "", "error"),
        (11012, "", "info"),
        (10004, "10004, Non-fatal", "warning"),
        (99999, "", "warning"),
        (99999, "Fatal", "error"),
    ],
)
def test_an_nvswitchs_error(number, text, severity):
    assert sxid_severity(number, text) == severity


def test_what_stops_the_whole_board():
    assert sxid_stops_board(23007) and not sxid_stops_board(20034)
    groups = (
        *(data.SXIDS_ALWAYS_FATAL, data.SXIDS_FATAL, data.SXIDS_NOTABLE, data.SXIDS_NOT_FATAL),
    )
    numbers = [number for group in groups for number in group]
    assert len(numbers) == len(set(numbers))
