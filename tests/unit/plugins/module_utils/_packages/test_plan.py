# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is planned for a package set."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.plan import (
    best,
    check,
    exact,
    in_the_way,
    plan_absent,
    plan_present,
    shown,
    uncovered,
    verify,
    without,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.record import (
    begin_change,
    finish_change,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import (
    ABSENT,
    BROKEN,
    CONFIGURATION,
    INSTALLED,
    Lock,
    Package,
    Plan,
    Record,
    Request,
)

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


REQUESTS = st.builds(
    Request,
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
    for name in (*plan.purge, *plan.purge_last):
        result[name] = Package()
    for name in plan.automatic:
        result[name] = Package(INSTALLED, result[name].version, result[name].held, True)
    return result


def there(packages):
    return {name: package for name, package in packages.items() if package.installed}


@given(PACKAGES, REQUESTS, REQUESTS)
def test_present_is_reached_in_one_step_and_absent_gives_all_back(packages, request, other):
    first = plan_present(request, packages)
    record = begin_change(None, first, packages, request) if first.changed else None
    now = carried_out(first, packages)
    assert verify(first, now) == ()
    assert not plan_present(request, now).changed
    if record:
        record = finish_change(record, now)
    second = plan_present(other, now)
    if second.changed:
        record = begin_change(record, second, now, other)
        now = carried_out(second, now)
        record = finish_change(record, now)
    # The record goes through JSON.
    record = Record.from_json(json.loads(json.dumps(record.to_json()))) if record else None
    available = dict.fromkeys(("a", "b", "c", "old"), ("1", "2", "3"))
    back = plan_absent(record, now, available)
    end = carried_out(back, now)
    assert there(end) == there(packages)
    assert not plan_absent(record, end, available).changed
    assert shown(there(end)) == shown(there(packages))


def test_what_differs_from_the_promise_is_named():
    plan = plan_present(
        Request({"a": "2", "b": "2", "c": "2"}, True, ("old",)),
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


def test_the_newest_that_fits_is_taken():
    versions = ("595.71.05-1", "595.58.03-2", "595.58.03-1")
    assert best("595.58.03*", versions) == "595.58.03-2"
    assert best(None, versions) == "595.71.05-1"
    assert best("580.*", versions) is None
    install = {"a": "595.58.03*", "b": "9*", "c": "1-1", "d": None}
    assert exact(install, {"a": versions}) == {"a": "595.58.03-2", "b": None, "c": "1-1", "d": None}


LOCK = Lock(("nvidia-*", "libnvidia-*", "!libnvidia-container*"), "595.58.03")


DRIVER = Request({"nvidia-open": "595.58.03*", "linux-headers": None}, True, (), {}, LOCK)


def test_a_lock_holds_its_members_and_nothing_else():
    packages = {
        "nvidia-open": Package(INSTALLED, "595.58.03-1", held=True),
        "linux-headers": Package(INSTALLED, "6.1"),
        "libnvidia-compute": Package(INSTALLED, "595.58.03-1"),
        "libnvidia-container1": Package(INSTALLED, "1.20.0-1"),
        # In a version of its own, which no list has otherwise.
        "nvidia-settings": Package(INSTALLED, "570.1-1"),
    }
    plan = plan_present(DRIVER, packages, {})
    assert plan.reasons == ("libnvidia-compute is not held.", "nvidia-settings is not held.")
    assert plan.to_hold() == ("libnvidia-compute", "nvidia-settings")
    assert plan.install == {}
    # Where a list has it in the version of the lock, it is brought there.
    plan = plan_present(DRIVER, packages, {"nvidia-settings": ("595.71-1", "595.58.03-1")})
    assert plan.install == {"nvidia-settings": "595.58.03*"}
    assert plan.unrequested == ("nvidia-settings",)
    assert "nvidia-settings 595.58.03* held\n" in shown(plan.after)


def test_what_a_failed_change_left_goes_or_comes_back_as_asked_for():
    broken = Package(BROKEN, "595.71.05-1", detail="half-configured")
    packages = {
        "nvidia-open": Package(INSTALLED, "595.58.03-1", held=True),
        "linux-headers": Package(INSTALLED, "6.1"),
        "nvidia-dkms-open": broken,
    }
    # No list has it in the version that is asked for: it is of no use.
    plan = plan_present(DRIVER, packages, {"nvidia-dkms-open": ("595.71.05-1",)})
    assert (plan.remove, plan.install) == (("nvidia-dkms-open",), {})
    # One has: whether it comes back, the dependencies say, and no diff promises it.
    plan = plan_present(DRIVER, packages, {"nvidia-dkms-open": ("595.58.03-1",)})
    assert plan.install == {"nvidia-dkms-open": "595.58.03*"}
    assert "nvidia-dkms-open" not in shown(plan.after)
    assert uncovered(plan, ["nvidia-dkms-open", "other"]) == ("other",)


def test_optional_packages_are_installed_where_there_are_any():
    request = Request({}, False, (), {"headers-1": None, "headers-2": "2*"})
    assert not plan_present(request, {}, {}).changed
    available = {"headers-1": ("1",), "headers-2": ("3-1",)}
    assert plan_present(request, {}, available).install == {"headers-1": None}
    # One that is there in another version is let be where there is no better.
    packages = {"headers-2": Package(INSTALLED, "1-1")}
    assert not plan_present(request, packages, {}).changed


def test_members_that_would_have_to_go_may_and_others_may_not():
    names = {"nvidia-dkms", "nvidia-open", "linux-headers", "someone-else"}
    assert in_the_way(DRIVER, names) == ("nvidia-dkms",)
    assert in_the_way(Request({}), names) == ()
    plan = without(Plan({}, {}), ("nvidia-dkms",), {"nvidia-dkms": Package(INSTALLED, "1")})
    assert plan.remove == ("nvidia-dkms",)
    assert plan.before["nvidia-dkms"].installed


@pytest.mark.parametrize(
    "lock",
    [Lock(("*",)), Lock(("-x-y",)), Lock(("!",)), Lock(("a b c",)), Lock(("nvidia-*",), "x y")],
)
def test_locks_that_could_mean_anything_are_refused(lock):
    with pytest.raises(InputError):
        check(Request({}, True, (), {}, lock))


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("1.0-1", True),
        ("595.*", True),
        ("2.28.3*+cuda12.9", True),
        ("*+cuda12.9", True),
        ("*", False),
        ("-o*", False),
        ("1*2*3", False),
        ("1 2", False),
        ("", False),
    ],
)
def test_versions_that_could_mean_anything_are_refused(version, good):
    if good:
        check(Request({"libnccl2": version}))
        return
    with pytest.raises(InputError, match="libnccl2"):
        check(Request({"libnccl2": version}))


def test_absent_takes_the_configuration_of_what_became_obsolete():
    """A package that pins versions, and that another one replaced: its file would go on pinning."""
    record = Record({"pinning": Package(), "another": Package(CONFIGURATION)})
    now = {"pinning": Package(CONFIGURATION), "another": Package(CONFIGURATION)}
    assert plan_absent(record, now, {}).purge == ("pinning",)
    assert plan_absent(record, now, {}, edited={"pinning"}).purge == ()


def test_absent_takes_the_configuration_of_what_came_along_and_became_obsolete():
    record = Record({"nvidia-open": Package()}, {"common-595": True, "common-580": True})
    now = {
        "nvidia-open": Package(INSTALLED, "1"),
        "common-595": Package(CONFIGURATION),
        "common-580": Package(INSTALLED, "1", automatic=True),
    }
    plan = plan_absent(record, now, {}, removable=("common-580",))
    assert (plan.purge, plan.purge_last) == (("nvidia-open", "common-595"), ("common-580",))
    assert not plan_absent(record, carried_out(plan, now), {}).changed
    plan = plan_absent(record, now, {}, edited={"common-595"}, removable=("common-580",))
    assert plan.purge == ("nvidia-open",)


def test_a_hold_is_set_anew_with_the_version_that_it_holds():
    """It was released for the change, and a lock of dnf names a version."""
    packages = {name: Package(INSTALLED, "1", held=True) for name in ("a", "b")}
    plan = plan_present(Request({"a": "2", "b": "1"}), packages)
    assert dict(plan.install) == {"a": "2"}
    assert plan.to_hold() == ("a",)
