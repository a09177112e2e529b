# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver import record as flow
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.config_files import (
    NOUVEAU,
    PERSISTENCED,
    TOKEN,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.types import DriverPlan
from tests.unit.fixtures.driver_cases import facts

NO_REBOOT = {"required": False, "reason": ""}


def node(version=None, source="nvidia", packages=(), kernels=(("6.1", True, None),), held=False):
    return {
        "os": {"kernel": "6.1"},
        "driver": {
            "installed": version,
            "source": source if version else None,
            "kernel_module": "open" if version else None,
            "packages": dict.fromkeys(packages, f"{version}-1"),
            "held": held,
            "loaded": version,
        },
        "kernels": [
            {"version": name, "running": running, "driver": driver}
            for name, running, driver in kernels
        ],
    }


def changed(memory, before, after, action="upgrade", runfile=None):
    plan = DriverPlan(action=action)
    begun = flow.begun(memory, plan, before, {}, {"u": "disabled"}, False, runfile)
    # What a killed run leaves is read by the next.
    begun = flow.Memory.from_json(json.loads(json.dumps(begun.to_json())))
    return flow.finished(begun, after)


def test_a_first_install_has_no_previous_and_is_ours():
    memory = changed(flow.Memory(), node(), node("580.1", packages=("a",)), "install")
    assert memory.managed
    assert memory.installed
    assert memory.previous is None
    assert memory.current["packages"] == {"a": "580.1-1"}
    assert memory.services == {"u": "disabled"}


def test_a_driver_that_is_only_held_is_managed_but_not_installed_by_us():
    memory = changed(flow.Memory(), node("580.1"), node("580.1"), "none")
    assert memory.managed
    assert not memory.installed
    assert memory.previous is None
    # Once it was changed, what the admin had is the original.
    memory = changed(memory, node("580.1"), node("595.1"))
    assert memory.installed
    assert memory.original["version"] == "580.1"


def test_previous_goes_both_ways_and_survives_a_run_that_changes_no_version():
    memory = changed(flow.Memory(), node("575.1"), node("580.1"))
    assert memory.previous["version"] == "575.1"
    memory = changed(memory, node("580.1"), node("580.1"), "none")
    assert memory.previous["version"] == "575.1"
    memory = changed(memory, node("580.1"), node("575.1"), "downgrade")
    assert memory.previous["version"] == "580.1"


def test_a_second_attempt_keeps_what_stood_there_before_the_first():
    first = flow.begun(
        flow.Memory(), DriverPlan(action="upgrade"), node("575.1"), {"/f": None}, {}, True
    )
    second = flow.begun(
        first,
        DriverPlan(action="none"),
        node("580.1"),
        {"/f": {"content": "", "mode": 1}, "/g": None},
        {},
        False,
    )
    assert second.pending["before"]["version"] == "575.1"
    assert second.pending["files"] == {"/f": None, "/g": None}
    assert second.pending["initramfs"]
    assert second.pending["action"] == "upgrade"
    assert flow.finished(second, node("580.1")).previous["version"] == "575.1"


def test_a_rollback_leaves_a_record_only_where_there_was_one():
    begun = flow.begun(flow.Memory(), DriverPlan(action="install"), node(), {}, {}, False)
    assert flow.given_back(begun) is None
    ours = changed(flow.Memory(), node(), node("580.1"), "install")
    again = flow.begun(ours, DriverPlan(action="upgrade"), node("580.1"), {}, {}, False)
    assert flow.given_back(again) == ours


def test_the_runfile_of_a_driver_is_remembered_with_it():
    file = {"file": "/c/a.run", "arguments": [], "cached": True}
    ours = changed(flow.Memory(), node(), node("580.1", "runfile"), "install", file)
    assert ours.current["runfile"] == file
    assert flow.standing(node("580.1", "runfile"), ours)["runfile"] == file
    later = changed(ours, node("580.1", "runfile"), node("595.1", packages=("a",)))
    assert later.previous["runfile"] == file
    assert flow.cached_files(later) == ("/c/a.run",)


@pytest.mark.parametrize(
    ("wanted", "look", "now", "words"),
    [
        (True, flow.Look(), True, ""),
        (False, flow.Look(users=("x (pid 1)",), loaded="1"), False, ""),
        (True, flow.Look(loaded="1"), True, ""),
        (True, flow.Look(loaded="1", users=("python3 (pid 7)",)), False, "python3 (pid 7)"),
        (True, flow.Look(loaded="1", holders=("nvidia_fs",)), False, "module nvidia_fs"),
        (True, flow.Look(nouveau=0), True, ""),
        (True, flow.Look(nouveau=3), False, "nouveau"),
        (True, flow.Look(nouveau=1, kernel_driver="nova_drm"), False, "nova_drm is loaded"),
    ],
)
def test_loading(wanted, look, now, words):
    loading = flow.decide_loading(wanted, look, NO_REBOOT)
    assert loading.now == now
    assert words in loading.reboot
    assert bool(loading.reboot) == bool(words)


def test_an_environment_without_modules_warns_and_asks_for_no_reboot():
    loading = flow.decide_loading(True, flow.Look(cannot="this is a container"), NO_REBOOT)
    assert (loading.now, loading.reboot) == (False, "")
    assert "this is a container" in loading.warning


def test_the_plans_word_on_a_reboot_is_taken_where_nothing_is_to_be_loaded():
    reboot = {"required": True, "reason": "another kernel"}
    assert flow.decide_loading(False, flow.Look(), reboot).reboot == "another kernel"


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ((("6.1", True, "580"),), False),
        ((("6.1", True, None),), False),
        ((("6.1", True, None), ("6.2", False, "580")), True),
        ((("6.1", True, "unknown"), ("6.2", False, "580")), False),
        ((("6.2", False, "580"),), True),
    ],
)
def test_a_module_for_another_kernel(kernels, said):
    assert bool(flow.kernel_without_module(node(kernels=kernels))) == said


def test_package_tasks_pin_first_and_lock_the_set():
    plan = DriverPlan(
        action="upgrade",
        packages={"cuda-drivers": "595*"},
        optional_packages={"linux-headers-x": None},
        pinning={"nvidia-driver-pinning-595": None},
        obsolete=("nvidia-driver-pinning-590", "cuda-drivers-580"),
        lock={"patterns": ["nvidia-*"], "version": "595."},
        hold=True,
    )
    pinning, packages = flow.package_tasks(plan)
    assert pinning["packages"] == {"nvidia-driver-pinning-595": None}
    assert pinning["obsolete"] == ["nvidia-driver-pinning-590"]
    assert packages == {
        "name": "nvidia-driver",
        "packages": {"cuda-drivers": "595*"},
        "obsolete": ["cuda-drivers-580"],
        "hold": True,
        "repository_expected": False,
        "background": True,
        "optional": {"linux-headers-x": None},
        "lock": {"patterns": ["nvidia-*", "!nvidia-driver-pinning-*"], "version": "595."},
    }


def test_package_tasks_of_a_runfile_take_the_packages_away():
    (task,) = flow.package_tasks(DriverPlan(action="install", obsolete=("nvidia-driver",)))
    assert (task["packages"], task["obsolete"]) == ({}, ["nvidia-driver"])
    assert flow.package_tasks(DriverPlan(action="install")) == []
    assert flow.package_tasks(DriverPlan(action="refuse", packages={"a": None})) == []


def test_rollback_tasks_put_the_very_versions_back():
    before = flow.standing(
        node("580.1", packages=("a", "nvidia-driver-pinning-580", "lib:i386"), held=True)
    )
    pinning, packages = flow.rollback_tasks(before, ["a", "new", "nvidia-driver-pinning-595"])
    assert pinning["packages"] == {"nvidia-driver-pinning-580": "580.1-1"}
    assert pinning["obsolete"] == ["nvidia-driver-pinning-595"]
    assert (packages["packages"], packages["obsolete"]) == ({"a": "580.1-1"}, ["new"])
    assert packages["hold"]


def test_rollback_to_nothing_gives_back_what_stood_there():
    assert [task["state"] for task in flow.rollback_tasks(None, ["new"])] == ["absent"] * 2
    # The driver before came from a runfile.
    before = flow.standing(node("580.1", "runfile"))
    assert flow.rollback_tasks(before, ["new"]) == flow.absent_tasks()


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        ("E: Could not get lock /var/lib/dpkg/lock-frontend", True),
        ("Another run of the package manager holds its lock.", True),
        ("The disk of this node is full.", True),
        ("cannot copy: No space left on device", True),
        ("A package repository cannot be reached.", True),
        ("subprocess returned an error code (10)", False),
        ("The packages' dependencies cannot be met.", False),
        ("cannot be changed without removing x; nothing was changed", False),
    ],
)
def test_failures_that_pass(words, passes):
    assert flow.passing(words) == passes


def test_edited_files_lose_our_lines_alone():
    assert flow.without_lines("a\nmine\nb\n", "a\nb\n") == "mine\n"
    assert flow.without_lines("a\n\n", "a\n") is None


def test_a_token_is_shown_by_its_checksum():
    assert "secret" not in flow.shown_text(TOKEN, b"secret")
    assert flow.shown_text(TOKEN, b"a") != flow.shown_text(TOKEN, b"b")
    assert flow.shown_text(NOUVEAU, b"text\n") == "text\n"
    assert flow.shown_text(NOUVEAU, None) == ""


def test_which_files_need_the_initial_ram_disk():
    assert flow.needs_initramfs([NOUVEAU])
    assert not flow.needs_initramfs([PERSISTENCED, TOKEN])


def test_a_runfile_that_an_earlier_run_died_in_is_run_again():
    plan = DriverPlan(action="install", source="runfile", runfile={"url": "u"})
    assert flow.runfile_to_do(plan, flow.Memory()) == {"url": "u"}
    there = replace(plan, action="none")
    assert flow.runfile_to_do(there, flow.Memory()) is None
    died = flow.begun(flow.Memory(), plan, node(), {}, {}, False, {"file": "/f"})
    assert flow.runfile_to_do(there, died) == {"file": "/f"}
    assert flow.runfile_to_do(there, flow.with_pending(died, runfile_done=True)) is None


def test_whose_runfile_absent_uninstalls():
    there, gone = node("580.1", "runfile"), node()
    ours = changed(flow.Memory(), gone, there, runfile={"file": "/f"})
    plan = DriverPlan(action="remove", uninstall="runfile")
    assert flow.uninstalls(plan, ours, there)
    # By a run that died after it, or by hand.
    assert not flow.uninstalls(plan, ours, gone)
    held = changed(flow.Memory(), there, there)
    assert not flow.uninstalls(DriverPlan(action="remove"), held, there)
    # Somebody else's goes where it was asked for.
    assert flow.uninstalls(plan, flow.Memory(), there)
    assert not flow.uninstalls(DriverPlan(action="none"), flow.Memory(), there)
    # An installer that came to its end, and a run that did not.
    plan = DriverPlan(action="install", source="runfile")
    died = flow.begun(flow.Memory(), plan, gone, {}, {}, False, {"file": "/f"})
    assert flow.uninstalls(DriverPlan(action="remove"), died, there)
    died = flow.begun(flow.Memory(), plan, there, {}, {}, False, {"file": "/f"})
    assert not flow.uninstalls(DriverPlan(action="remove"), died, there)


def test_a_change_that_died_knows_its_runfile_and_what_was_loaded():
    plan = DriverPlan(action="install", source="runfile")
    first = flow.begun(flow.Memory(), plan, node("570.1"), {}, {}, False, {"file": "/f"})
    unloaded = node("570.1")
    unloaded["driver"]["loaded"] = None
    again = flow.begun(first, DriverPlan(action="none"), unloaded, {}, {}, False)
    assert again.pending["runfile"] == {"file": "/f"}
    assert again.pending["runfile_done"]
    assert again.pending["loaded"] == "570.1"


def test_the_files_that_are_kept():
    def driver(name, cached=True):
        return {"runfile": {"file": name, "cached": cached}}

    memory = flow.Memory(
        current=driver("/c/new"),
        previous=driver("/c/old"),
        original=driver("/home/me/first", cached=False),
        pending={**driver("/c/next"), "before": driver("/c/new")},
    )
    assert flow.cached_files(memory) == ("/c/new", "/c/old", "/c/next")
    assert flow.cached_files(None) == ()


def test_a_rollback_to_our_own_runfile_keeps_what_its_modules_are_built_with():
    before = flow.standing(node("580.1", "runfile"))
    assert flow.rollback_tasks(before, [], managed=True) == []
    (task,) = flow.rollback_tasks(before, ["libnvidia-ml1", "libnvidia-ml1:i386"], managed=True)
    assert (task["name"], task["packages"]) == (flow.SET, {})
    assert task["obsolete"] == ["libnvidia-ml1"]
    # Before an admin's own we had brought nothing.
    assert flow.rollback_tasks(before, []) == flow.absent_tasks()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("No package list of this node has dkms.\nSeen: available are: dkms: no version", True),
        ("No package list of this node has dkms, nvidia-open 580.*.", True),
        ("nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9.noarch", True),
        ("No package list of this node has kmod-nvidia-latest-dkms 580.*.", False),
        ("No package list of this node has dkms-nvidia 580.*.", False),
        ("dkms: build of nvidia failed", False),
    ],
)
def test_dkms_that_no_repository_has(words, expected):
    assert flow.lacks_dkms(words) == expected


def test_the_stream_that_stood_there_is_remembered():
    node = facts("T4", "rocky9", "nvidia 580.95.05 open")
    assert "streams" not in flow.standing(node)
    node["driver"]["streams"] = {"nvidia-driver": "open-dkms", "perl": "5.32"}
    assert flow.standing(node)["streams"] == {"nvidia-driver": "open-dkms"}


def test_streams_go_with_the_set_that_is_put_back():
    before = {"packages": {"nvidia-open": "3:580.95.05-1"}, "held": True, "source": "nvidia"}
    streams = {"nvidia-driver": "580-open"}
    (task,) = flow.rollback_tasks(before, ["nvidia-open"], streams=streams)
    assert task["module_streams"] == streams
    (task,) = flow.rollback_tasks(before, ["nvidia-open"], streams={})
    assert "module_streams" not in task
    assert all("module_streams" not in task for task in flow.rollback_tasks(None, []))
