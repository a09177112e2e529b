# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.rpm_keyring import (
    parse_ring,
    plan_ring,
    read_ring,
)

RECORDED = Path(__file__).parents[3] / "fixtures" / "packages" / "rpm-4.18.0-keyring.txt"
KEY, OTHER = "3D12BEC5BB288DCC4388F3A50741079CECC96916", "A" * 40


def test_the_real_rpm_lists_its_keys():
    text = RECORDED.read_text(encoding="utf-8")
    assert parse_ring(text) == {KEY: "gpg-pubkey-ecc96916-6b01c432"}
    assert parse_ring("gpg-pubkey-1-1\n(none)\n" + text) == parse_ring(text)


def test_a_keyring_that_cannot_be_read_is_no_empty_one():
    text = RECORDED.read_text(encoding="utf-8")
    assert read_ring(lambda argv, timeout: Result(0, text, "")) == parse_ring(text)
    # Taken for an empty one, an administrator's key would be imported again, as ours.
    with pytest.raises(KubegpuError, match="cannot open Packages"):
        read_ring(lambda argv, timeout: Result(1, "", "error: cannot open Packages database"))


def test_imported_once_kept_for_another_erased_with_the_last():
    first = plan_ring("a", [KEY], {}, {})
    assert first.add == (KEY,) and first.changed and first.after == (KEY,) and first.before == ()
    ring = {KEY: "gpg-pubkey-x"}
    again = plan_ring("a", [KEY], ring, first.record)
    assert not again.changed and again.record == first.record
    second = plan_ring("b", [KEY], ring, first.record)
    assert not second.changed and second.record[KEY] == {"ours": True, "for": ["a", "b"]}
    kept = plan_ring("a", [], ring, second.record)
    assert not kept.changed and kept.record[KEY]["for"] == ["b"]
    gone = plan_ring("b", [], ring, kept.record)
    assert gone.erase == ("gpg-pubkey-x",) and gone.record == {}
    assert (gone.before, gone.after) == ((KEY,), ())


def test_a_key_that_was_there_stays():
    ring = {KEY: "gpg-pubkey-x"}
    first = plan_ring("a", [KEY], ring, {})
    assert not first.changed and first.record[KEY] == {"ours": False, "for": ["a"]}
    assert not plan_ring("a", [], ring, first.record).changed


def test_another_key_takes_its_place():
    ring = {KEY: "gpg-pubkey-x"}
    plan = plan_ring("a", [OTHER], ring, {KEY: {"ours": True, "for": ["a"]}})
    assert (plan.add, plan.erase) == ((OTHER,), ("gpg-pubkey-x",))
    assert plan.record == {OTHER: {"ours": True, "for": ["a"]}}


def test_one_that_somebody_erased_is_not_erased_again():
    record = {KEY: {"ours": True, "for": ["a"]}}
    assert not plan_ring("a", [], {}, record).changed
