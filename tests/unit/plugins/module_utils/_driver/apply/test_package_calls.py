# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.package_calls import (
    SET,
    install_calls,
    restore_calls,
    rollback_calls,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.record import (
    current_driver,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.types import Plan
from tests.unit.fixtures.driver_nodes import node


def test_package_tasks_pin_first_and_lock_the_set():
    plan = Plan(
        action="upgrade",
        packages={"cuda-drivers": "595*"},
        optional_packages={"linux-headers-x": None},
        pinning={"nvidia-driver-pinning-595": None},
        obsolete=("nvidia-driver-pinning-590", "cuda-drivers-580"),
        lock={"patterns": ["nvidia-*"], "version": "595."},
        hold=True,
    )
    pinning, packages = install_calls(plan)
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
    (task,) = install_calls(Plan(action="install", obsolete=("nvidia-driver",)))
    assert (task["packages"], task["obsolete"]) == ({}, ["nvidia-driver"])
    assert install_calls(Plan(action="install")) == []
    assert install_calls(Plan(action="refuse", packages={"a": None})) == []


def test_rollback_tasks_put_the_very_versions_back():
    before = current_driver(
        node("580.1", packages=("a", "nvidia-driver-pinning-580", "lib:i386"), held=True)
    )
    # The pins last: nothing but a replacement helps a half configured driver.
    packages, pinning = rollback_calls(before, ["a", "new", "nvidia-driver-pinning-595"])
    assert pinning["packages"] == {"nvidia-driver-pinning-580": "580.1-1"}
    assert pinning["obsolete"] == ["nvidia-driver-pinning-595"]
    assert (packages["packages"], packages["obsolete"]) == ({"a": "580.1-1"}, ["new"])
    assert packages["hold"]


def test_rollback_to_nothing_gives_back_what_stood_there():
    assert [task["state"] for task in rollback_calls(None, ["new"])] == ["absent"] * 2
    # The driver before came from a runfile.
    before = current_driver(node("580.1", "runfile"))
    assert rollback_calls(before, ["new"]) == restore_calls()


def test_a_rollback_to_our_own_runfile_keeps_what_its_modules_are_built_with():
    before = current_driver(node("580.1", "runfile"))
    assert rollback_calls(before, [], managed=True) == []
    (task,) = rollback_calls(before, ["libnvidia-ml1", "libnvidia-ml1:i386"], managed=True)
    assert (task["name"], task["packages"]) == (SET, {})
    assert task["obsolete"] == ["libnvidia-ml1"]
    # Before an admin's own we had brought nothing.
    assert rollback_calls(before, []) == restore_calls()


def test_streams_go_with_the_set_that_is_put_back():
    before = {"packages": {"nvidia-open": "3:580.95.05-1"}, "held": True, "source": "nvidia"}
    streams = {"nvidia-driver": "580-open"}
    (task,) = rollback_calls(before, ["nvidia-open"], streams=streams)
    assert task["module_streams"] == streams
    (task,) = rollback_calls(before, ["nvidia-open"], streams={})
    assert "module_streams" not in task
    assert all("module_streams" not in task for task in rollback_calls(None, []))
