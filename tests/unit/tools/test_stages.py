# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stages run side by side in lanes, and one after another in a lane."""

from __future__ import annotations

import sys

from tests.tools.stages import run_lanes

SCRIPTS = {
    "one": "print('1 passed in 0.1s')",
    "two": "import pathlib, sys; sys.exit(not pathlib.Path(sys.argv[1], 'one.log').exists())",
    "bad": "print('what went wrong'); raise SystemExit(3)",
    "last": "print('noise'); print('2 passed in 0.2s'); print('made inputs: KUBEGPU_SEED=7')",
}


def test_lanes(tmp_path, capsys):
    def command(name):
        return [sys.executable, "-c", SCRIPTS[name], str(tmp_path)]

    results = run_lanes([["one", "two"], ["bad", "last"], []], command, tmp_path)

    codes = {result.name: result.code for result in results}
    assert codes == {"one": 0, "two": 0, "bad": 3, "last": 0}
    names = [result.name for result in results]
    assert names.index("one") < names.index("two")
    assert names.index("bad") < names.index("last")
    screen = capsys.readouterr().out
    assert "what went wrong" in screen, "a failed stage shows all that it printed"
    assert "2 passed" in screen and "noise" not in screen
    assert "KUBEGPU_SEED=7" in screen, "what repeats a run has to be in CI's log"
    assert "=== bad FAILED in" in screen and "=== last passed in" in screen


def test_a_stage_that_fails_does_not_stop_its_lane(tmp_path):
    def command(name):
        return [sys.executable, "-c", SCRIPTS[name]]

    results = run_lanes([["bad", "one"]], command, tmp_path)
    assert [result.line.split(" in ")[0] for result in results] == ["bad FAILED", "one passed"]
