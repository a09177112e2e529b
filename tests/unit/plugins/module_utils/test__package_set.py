# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._package_set import (
    ABSENT,
    CONFIGURATION,
    INSTALLED,
    Package,
    Record,
    Wish,
    begun,
    explain,
    finished,
    left,
    plan_absent,
    plan_present,
    removable,
    shown,
    verify,
)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        # Words of apt 2.6 (Debian 12) and 3.0 (Debian 13), and of Ansible's module.
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1", "its lock"),
        ("dpkg: error: dpkg frontend lock was locked by another process with pid 12", "its lock"),
        ("dpkg: error: cannot write: No space left on device", "disk of this node is full"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "disk of this node"),
        ("W: GPG error: http://m InRelease: ... NO_PUBKEY DDCAE044F796ECB0", "signature"),
        ("E: The repository 'http://m  InRelease' is not signed.", "signature"),
        ("E: Packages need to be removed but remove is disabled.", "removing other packages"),
        (
            "E: Failed to fetch http://m/a.deb  404  Not Found [IP: ::1 80]",
            "cannot be reached",
        ),
        ("E: Failed to fetch http://m/a.deb  Hash Sum mismatch", "not the one"),
        ("Failed to update apt cache after 1 retries: ", "cannot be reached"),
        ("E: Version '9' for 'a' was not found", "no repository"),
        ("no available installation candidate for a=9", "no repository"),
        (" a : Depends: b (= 2) but it is not going to be installed\nE: Unmet dependencies", "met"),
        ("E: Sub-process /usr/bin/dpkg returned an error code (1)", "script failed"),
        ("something new", "package manager failed"),
    ],
)
def test_failures_are_explained(words, cause):
    error = explain(words, "The set")
    assert cause in error.cause
    assert error.evidence.splitlines()[-1].strip() in words
    assert error.next_step


NAMES = st.sampled_from(["a", "b", "c", "old"])
PACKAGES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "old", "other"]),
    st.builds(
        Package,
        status=st.sampled_from([INSTALLED, ABSENT, CONFIGURATION]),
        version=st.sampled_from(["1", "2", "3"]),
        held=st.booleans(),
        automatic=st.booleans(),
    ),
)
WISHES = st.builds(
    Wish,
    packages=st.dictionaries(
        st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2"]), min_size=1
    ),
    hold=st.booleans(),
    obsolete=st.sampled_from([(), ("old",)]),
)


def carried_out(plan, packages):
    """What a package manager makes of a plan."""
    result = dict(packages)
    for name in plan.install:
        result[name] = plan.after[name]
    for name in (*plan.to_hold(), *plan.to_release()):
        result[name] = plan.after[name]
    for name in plan.remove:
        result[name] = Package(CONFIGURATION)
    for name in (*plan.purge, *plan.along):
        result[name] = Package()
    for name in plan.automatic:
        result[name] = Package(INSTALLED, result[name].version, result[name].held, True)
    return result


def there(packages):
    return {name: package for name, package in packages.items() if package.installed}


@given(PACKAGES, WISHES, WISHES)
def test_present_is_reached_in_one_step_and_absent_gives_all_back(packages, wish, other):
    first = plan_present(wish, packages)
    record = begun(None, first, packages, wish) if first.changed else None
    now = carried_out(first, packages)
    assert verify(first, now) == ()
    assert not plan_present(wish, now).changed
    if record:
        record = finished(record, now)
    second = plan_present(other, now)
    if second.changed:
        record = begun(record, second, now, other)
        now = carried_out(second, now)
        record = finished(record, now)
    # The record goes through JSON.
    record = Record.from_json(json.loads(json.dumps(record.to_json()))) if record else None
    available = dict.fromkeys(("a", "b", "c", "old"), ("1", "2", "3"))
    back = plan_absent(record, now, available)
    end = carried_out(back, now)
    assert there(end) == there(packages)
    assert not plan_absent(record, end, available).changed
    assert shown(there(end)) == shown(there(packages))


def test_what_came_along_goes_only_as_far_as_nothing_needs_it():
    packages = {
        name: Package(INSTALLED, "1", automatic=name != "mine")
        for name in ("ours", "one", "two", "three", "mine")
    }
    record = Record({"ours": Package()}, {"one": True, "two": True, "three": True})
    needs = {"ours": ("one", "two"), "two": ("three",), "mine": ("two",)}
    assert removable(record, packages, needs) == ("one",)
    assert removable(None, packages, needs) == ()


def test_what_differs_from_the_promise_is_named():
    plan = plan_present(
        Wish({"a": "2", "b": "2", "c": "2"}, True, ("old",)),
        {
            "old": Package(INSTALLED, "1"),
        },
    )
    packages = {
        "a": Package(INSTALLED, "1", True),
        "b": Package(INSTALLED, "2", False),
        "old": Package(INSTALLED, "1"),
    }
    assert verify(plan, packages) == (
        "a is 1, not 2",
        "b is not held",
        "c is absent",
        "old 1 is still there",
    )


def test_what_could_not_be_put_back_stays_recorded():
    was = Package(INSTALLED, "2.6.0-1", False)
    record = Record({"nvidia-docker2": was, "new": Package()}, {"libx": True})
    plan = plan_absent(record, {}, {})
    assert plan.lost == ("nvidia-docker2",) and not plan.changed
    assert left(record, {}) == Record({"nvidia-docker2": was})
    assert left(record, {"nvidia-docker2": was}) is None
