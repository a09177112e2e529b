# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a package set: what is put back, and what is removed with it."""

from __future__ import annotations

import json

from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.plan import (
    plan_absent,
    plan_present,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.record import (
    begin_change,
    finish_change,
    not_restored,
    unneeded_dependencies,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import (
    CONFIGURATION,
    INSTALLED,
    Package,
    Record,
    Request,
)
from tests.unit.plugins.module_utils._packages.test_plan import LOCK, carried_out


def test_what_came_along_goes_only_as_far_as_nothing_needs_it():
    packages = {
        name: Package(INSTALLED, "1", automatic=name != "mine")
        for name in ("ours", "one", "two", "three", "mine")
    }
    record = Record({"ours": Package()}, {"one": True, "two": True, "three": True})
    needs = {"ours": ("one", "two"), "two": ("three",), "mine": ("two",)}
    assert unneeded_dependencies(record, packages, needs) == ("one",)
    assert unneeded_dependencies(None, packages, needs) == ()


def test_what_could_not_be_put_back_stays_recorded():
    was = Package(INSTALLED, "2.6.0-1", False)
    record = Record({"nvidia-docker2": was, "new": Package()}, {"libx": True})
    plan = plan_absent(record, {}, {})
    assert plan.unavailable == ("nvidia-docker2",) and not plan.changed
    assert not_restored(record, {}) == Record({"nvidia-docker2": was})
    assert not_restored(record, {"nvidia-docker2": was}) is None


def test_members_that_came_along_go_though_we_hold_them():
    record = Record({"nvidia-open": Package()}, {"libnvidia-a": True}, None, LOCK.patterns)
    record = Record.from_json(json.loads(json.dumps(record.to_json())))
    held = {"libnvidia-a": Package(INSTALLED, "1", held=True, automatic=True)}
    assert unneeded_dependencies(record, held, {}) == ("libnvidia-a",)
    # zypper takes the mark from what is locked. Not from others: who lost it was asked for by name.
    unmarked = {"libnvidia-a": Package(INSTALLED, "1", held=True)}
    assert unneeded_dependencies(record, unmarked, {}) == ()
    assert unneeded_dependencies(record, unmarked, {}, marks_of_held=False) == ("libnvidia-a",)
    free = {"libnvidia-a": Package(INSTALLED, "1")}
    assert unneeded_dependencies(record, free, {}, marks_of_held=False) == ()
    # A drift of its hold makes it no package that was there before us.
    request = Request({"nvidia-open": None}, True, (), {}, LOCK)
    again = begin_change(record, plan_present(request, held), held, request)
    assert set(again.before) == {"nvidia-open"}
    # Asked for by name since, it is one of the set.
    request = Request({"libnvidia-a": "1"}, True, (), {}, LOCK)
    again = begin_change(record, plan_present(request, {}), held, request)
    assert again.before["libnvidia-a"] == Package()


def test_what_comes_along_where_files_of_an_earlier_one_are_left_is_ours_without_them():
    request = Request({"nvidia-headless": "1"})
    packages = {"nvidia-kernel-common": Package(CONFIGURATION), "other": Package(INSTALLED, "1")}
    coming = ("nvidia-headless", "nvidia-kernel-common", "nvidia-firmware")
    record = begin_change(None, plan_present(request, packages), packages, request, coming)
    # The run dies, and the next one goes on: what has come meanwhile is taken for no remains.
    now = {**packages, "nvidia-kernel-common": Package(INSTALLED, "1", automatic=True)}
    record = begin_change(record, plan_present(request, now), now, request, coming)
    along = Package(INSTALLED, "1", automatic=True)
    now.update({"nvidia-headless": Package(INSTALLED, "1", True), "nvidia-firmware": along})
    record = finish_change(record, now)
    record = Record.from_json(json.loads(json.dumps(record.to_json())))
    assert set(record.brought) == {"nvidia-kernel-common", "nvidia-firmware"}
    going = unneeded_dependencies(record, now, {"nvidia-headless": ("nvidia-kernel-common",)})
    plan = plan_absent(record, now, {}, removable=going)
    assert plan.remove == ("nvidia-kernel-common",)
    assert (plan.purge, plan.purge_last) == (("nvidia-headless",), ("nvidia-firmware",))
    end = carried_out(plan, now)
    assert end["nvidia-kernel-common"].status == CONFIGURATION
    assert not plan_absent(record, end, {}).changed


def test_files_that_were_left_before_a_change_that_died_are_no_packages_of_ours():
    first, second = Request({"a": "1"}), Request({"a": "1", "b": "1"})
    packages = {"b": Package(CONFIGURATION)}
    record = begin_change(None, plan_present(first, packages), packages, first, ("a",))
    record = begin_change(record, plan_present(second, packages), packages, second, ("a", "b"))
    assert record.before["b"].status == CONFIGURATION
