# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a user's ansible.cfg that would change what a play does: each play says its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
PLAYS = [
    (f"{path.relative_to(PLAYBOOKS)}: {play['name']}", play)
    for path in sorted(
        [
            *PLAYBOOKS.glob("*.yml"),
            *PLAYBOOKS.glob("parts/*.yml"),
            *PLAYBOOKS.glob("examples/*.yml"),
        ]
    )
    for play in yaml.safe_load(path.read_text(encoding="utf-8"))
    if "hosts" in play
]
# One host that is down would end the run for all others; free calls tasks of all hosts for each of
# them; a limit of seconds for each task ends drivers that are being built. Facts are read by a
# module of this collection.
OWN = {
    "any_errors_fatal": False,
    "strategy": "ansible.builtin.linear",
    "timeout": 0,
    "gather_facts": False,
}


@pytest.mark.parametrize(("name", "play"), PLAYS, ids=[name for name, _play in PLAYS])
def test_a_play_does_not_depend_on_the_settings_of_its_user(name, play):
    assert {key: play.get(key) for key in OWN} == OWN, name


@pytest.mark.parametrize(("name", "play"), PLAYS, ids=[name for name, _play in PLAYS])
def test_a_failure_on_some_hosts_never_ends_the_play(name, play):
    assert "max_fail_percentage" not in play, name
