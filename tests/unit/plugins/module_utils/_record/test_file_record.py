# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._record.file_record import (
    FileRecord,
    Undo,
    attributes_from_json,
    attributes_to_json,
)


def record(**fields):
    known = {
        "path": "/f",
        "before_sha256": "before",
        "before_mode": 0o600,
        "before_uid": 1,
        "before_gid": 2,
        "before_selinux": None,
        "backup": "/b",
        "after_sha256": "after",
        "from_sha256": "earlier",
        "after_mode": 0o600,
        "after_uid": 1,
        "after_gid": 2,
    }
    return FileRecord(**{**known, **fields})


@pytest.mark.parametrize(
    ("current", "edited", "way"),
    [
        ("before", False, Undo.NOTHING),
        ("before", True, Undo.NOTHING),
        ("after", False, Undo.RESTORE),
        ("earlier", False, Undo.RESTORE),  # killed before its rename
        ("after", True, Undo.REMOVE_LINES),
        ("earlier", True, Undo.REMOVE_LINES),
        ("somebody's", False, Undo.REMOVE_LINES),
        (None, False, Undo.REMOVE_LINES),
    ],
)
def test_undo(current, edited, way):
    assert record(edited=edited).undo(current) is way


@pytest.mark.parametrize(
    ("current", "ours"),
    [("before", True), ("after", True), ("earlier", True), ("x", False), (None, False)],
)
def test_continues(current, ours):
    assert record().continues(current) is ours


def test_record_without_the_newer_fields_compares_with_nothing():
    data = record().to_json()
    for name in ("from_sha256", "after_mode", "after_uid", "after_gid", "details"):
        del data[name]
    old = FileRecord.from_json(data)
    assert not old.continues(None)
    assert old.restored_mode(0o644) == 0o600
    assert old.restored_owner(7, 8) == (1, 2)
    assert old.details == {}


def test_mode_and_owner_of_before_come_back_unless_somebody_set_them_since():
    assert record().restored_mode(0o600) == 0o600
    assert record(before_mode=0o640).restored_mode(0o600) == 0o640
    assert record().restored_mode(0o444) == 0o444
    assert record(before_uid=0).restored_owner(1, 2) == (0, 2)
    assert record().restored_owner(5, 2) == (5, 2)


def test_json_round_trip():
    one = record(made_directories=("/a", "/a/b"), details={"k": [1, None]})
    assert FileRecord.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_field_of_a_later_release_is_kept():
    data = {**record().to_json(), "later": 1}
    read = FileRecord.from_json(data)
    assert replace(read, more={}) == record()
    assert replace(read, edited=True).to_json() == {**data, "edited": True}


def test_attributes_that_somebody_set_since_stay():
    ours, before = {"system.posix_acl_access": "AA=="}, {"user.x": ""}
    made = record(before_attributes=before, after_attributes=ours)
    assert made.restored_attributes(ours) == before
    assert made.restored_attributes({}) == {}
    # A record of an earlier release does not know them.
    assert record().restored_attributes(ours) == ours
    assert FileRecord.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_attributes_survive_the_record():
    for attributes in (None, (), (("system.posix_acl_access", b"\2\0"), ("user.x", b""))):
        data = json.loads(json.dumps(attributes_to_json(attributes)))
        assert attributes_from_json(data) == attributes
