# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.failures import (
    codes_of,
    is_build_failure,
    is_transient,
    lacks_dkms,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.failures import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.plan import (
    Plan,
    not_available,
)


def plan_of(**install):
    return Plan(before={}, after={}, install=install)


def of_packages(output):
    """The failed result of package_set."""
    return failure(explain(output, "The package set nvidia-driver"))


@pytest.mark.parametrize(
    ("failed", "passes"),
    [
        (of_packages("E: Could not get lock /var/lib/dpkg/lock-frontend"), True),
        (of_packages("E: You don't have enough free space in /var/cache/apt/archives/."), True),
        ({"msg": "dpkg: error: cannot copy: No space left on device"}, True),
        (of_packages("E: Failed to fetch http://mirror.example/x.deb Could not connect"), True),
        (of_packages("error: failed: /usr/lib/x: Read-only file system"), True),
        (of_packages("Error: Status code: 403 for http://mirror.example/repomd.xml"), True),
        (of_packages("E: Sub-process /usr/bin/dpkg returned an error code (1)"), False),
        (of_packages("E: Unable to correct problems, you have held broken packages."), False),
        # Our own words decide nothing: a reworded sentence changes no behaviour.
        ({"msg": "cannot be changed without removing x; nothing was changed"}, False),
        ({"msg": "The file system /boot has no space", "code": "package_disk_full"}, True),
        ({"msg": "something", "code": "package_not_root"}, False),
        ({}, False),
    ],
)
def test_failures_that_pass(failed, passes):
    assert is_transient(codes_of(failed)) == passes


@pytest.mark.parametrize(
    ("refresh", "passes"),
    [("", False), ("E: Failed to fetch http://mirror.example/x Could not connect", True)],
)
def test_packages_that_are_missing_pass_where_the_repository_was_not_reached(refresh, passes):
    error = not_available(["x"], plan_of(x="580.*"), {}, refresh)
    assert is_transient(codes_of(failure(error))) == passes
    assert error.code == ("repository_unreachable" if passes else "package_missing")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["dkms"], True),
        (["dkms", "nvidia-open"], True),
        (["kmod-nvidia-latest-dkms"], False),
        (["dkms-nvidia"], False),
    ],
)
def test_dkms_that_no_package_list_has(names, expected):
    error = not_available(names, plan_of(**dict.fromkeys(names)), {}, "")
    assert lacks_dkms(failure(error)) == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (" - nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9", True),
        (" - nothing provides dkms >= 3.1.8 needed by kmod-nvidia-open-dkms-3:575.57.08-1", True),
        ("Problem: nothing provides kmod-nvidia-latest-dkms needed by nvidia-driver", False),
        ("dkms: build of nvidia failed", False),
    ],
)
def test_dkms_that_no_repository_has(output, expected):
    assert lacks_dkms(of_packages(output)) == expected


def test_a_build_that_failed():
    script = "dpkg: error processing package nvidia-dkms (--configure): subprocess returned an " \
        "error code (10)"  # fmt: skip
    assert is_build_failure(codes_of(of_packages(script)))
    assert is_build_failure(codes_of({"msg": "Error! Bad return status for module build on kernel: "
                                      "6.1.0-40-amd64"}))  # fmt: skip
    assert not is_build_failure(codes_of(of_packages("E: Unable to locate package nvidia-dkms")))
