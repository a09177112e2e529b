# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.record import (
    Record,
    cached_files,
    current_driver,
    finish_change,
    needs_uninstaller,
    record_after_rollback,
    runfile_to_run,
    start_change,
    update_pending,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.types import Plan
from tests.unit.fixtures.driver_cases import facts
from tests.unit.fixtures.driver_nodes import node


def changed(memory, before, after, action="upgrade", runfile=None):
    plan = Plan(action=action)
    begun = start_change(memory, plan, before, {}, {"u": "disabled"}, False, runfile)
    # What a killed run leaves is read by the next.
    begun = Record.from_json(json.loads(json.dumps(begun.to_json())))
    return finish_change(begun, after)


def test_a_first_install_has_no_previous_and_is_ours():
    memory = changed(Record(), node(), node("580.1", packages=("a",)), "install")
    assert memory.managed
    assert memory.installed
    assert memory.previous is None
    assert memory.current["packages"] == {"a": "580.1-1"}
    assert memory.services == {"u": "disabled"}


def test_a_driver_that_is_only_held_is_managed_but_not_installed_by_us():
    memory = changed(Record(), node("580.1"), node("580.1"), "none")
    assert memory.managed
    assert not memory.installed
    assert memory.previous is None
    # Once it was changed, what the admin had is the original.
    memory = changed(memory, node("580.1"), node("595.1"))
    assert memory.installed
    assert memory.original["version"] == "580.1"


def test_previous_goes_both_ways_and_survives_a_run_that_changes_no_version():
    memory = changed(Record(), node("575.1"), node("580.1"))
    assert memory.previous["version"] == "575.1"
    memory = changed(memory, node("580.1"), node("580.1"), "none")
    assert memory.previous["version"] == "575.1"
    memory = changed(memory, node("580.1"), node("575.1"), "downgrade")
    assert memory.previous["version"] == "580.1"


def test_a_second_attempt_keeps_what_stood_there_before_the_first():
    first = start_change(Record(), Plan(action="upgrade"), node("575.1"), {"/f": None}, {}, True)
    second = start_change(
        first,
        Plan(action="none"),
        node("580.1"),
        {"/f": {"content": "", "mode": 1}, "/g": None},
        {},
        False,
    )
    assert second.pending["before"]["version"] == "575.1"
    assert second.pending["files"] == {"/f": None, "/g": None}
    assert second.pending["initramfs"]
    assert second.pending["action"] == "upgrade"
    assert finish_change(second, node("580.1")).previous["version"] == "575.1"


def test_a_rollback_leaves_a_record_only_where_there_was_one():
    begun = start_change(Record(), Plan(action="install"), node(), {}, {}, False)
    assert record_after_rollback(begun) is None
    ours = changed(Record(), node(), node("580.1"), "install")
    again = start_change(ours, Plan(action="upgrade"), node("580.1"), {}, {}, False)
    assert record_after_rollback(again) == ours


def test_the_runfile_of_a_driver_is_remembered_with_it():
    file = {"file": "/c/a.run", "arguments": [], "cached": True}
    ours = changed(Record(), node(), node("580.1", "runfile"), "install", file)
    assert ours.current["runfile"] == file
    assert current_driver(node("580.1", "runfile"), ours)["runfile"] == file
    later = changed(ours, node("580.1", "runfile"), node("595.1", packages=("a",)))
    assert later.previous["runfile"] == file
    assert cached_files(later) == ("/c/a.run",)


def test_a_runfile_that_an_earlier_run_died_in_is_run_again():
    plan = Plan(action="install", source="runfile", runfile={"url": "u"})
    assert runfile_to_run(plan, Record()) == {"url": "u"}
    there = replace(plan, action="none")
    assert runfile_to_run(there, Record()) is None
    died = start_change(Record(), plan, node(), {}, {}, False, {"file": "/f"})
    assert runfile_to_run(there, died) == {"file": "/f"}
    assert runfile_to_run(there, update_pending(died, runfile_done=True)) is None


def test_whose_runfile_absent_uninstalls():
    there, gone = node("580.1", "runfile"), node()
    ours = changed(Record(), gone, there, runfile={"file": "/f"})
    plan = Plan(action="remove", uninstall="runfile")
    assert needs_uninstaller(plan, ours, there)
    # By a run that died after it, or by hand.
    assert not needs_uninstaller(plan, ours, gone)
    held = changed(Record(), there, there)
    assert not needs_uninstaller(Plan(action="remove"), held, there)
    # Somebody else's goes where it was asked for.
    assert needs_uninstaller(plan, Record(), there)
    assert not needs_uninstaller(Plan(action="none"), Record(), there)
    # An installer that came to its end, and a run that did not.
    plan = Plan(action="install", source="runfile")
    died = start_change(Record(), plan, gone, {}, {}, False, {"file": "/f"})
    assert needs_uninstaller(Plan(action="remove"), died, there)
    died = start_change(Record(), plan, there, {}, {}, False, {"file": "/f"})
    assert not needs_uninstaller(Plan(action="remove"), died, there)


def test_a_change_that_died_knows_its_runfile_and_what_was_loaded():
    plan = Plan(action="install", source="runfile")
    first = start_change(Record(), plan, node("570.1"), {}, {}, False, {"file": "/f"})
    unloaded = node("570.1")
    unloaded["driver"]["loaded"] = None
    again = start_change(first, Plan(action="none"), unloaded, {}, {}, False)
    assert again.pending["runfile"] == {"file": "/f"}
    assert again.pending["runfile_done"]
    assert again.pending["loaded"] == "570.1"


def test_the_files_that_are_kept():
    def driver(name, cached=True):
        return {"runfile": {"file": name, "cached": cached}}

    memory = Record(
        current=driver("/c/new"),
        previous=driver("/c/old"),
        original=driver("/home/me/first", cached=False),
        pending={**driver("/c/next"), "before": driver("/c/new")},
    )
    assert cached_files(memory) == ("/c/new", "/c/old", "/c/next")
    assert cached_files(None) == ()


def test_the_stream_that_stood_there_is_remembered():
    node = facts("T4", "rocky9", "nvidia 580.95.05 open")
    assert "streams" not in current_driver(node)
    node["driver"]["streams"] = {"nvidia-driver": "open-dkms", "perl": "5.32"}
    assert current_driver(node)["streams"] == {"nvidia-driver": "open-dkms"}
