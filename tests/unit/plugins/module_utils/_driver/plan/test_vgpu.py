# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest's driver follows its host's."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.vgpu import fits
from tests.unit.fixtures.driver_cases import facts, request


@pytest.mark.parametrize(
    ("host", "guest", "right"),
    [
        ("535", "535", True),
        ("550", "535", True),
        ("570", "550", True),
        ("580", "570", True),
        # Long-term after long-term.
        ("580", "535", True),
        ("535", "470", True),
        ("570", "535", False),
        ("580", "470", False),
        ("595", "535", False),
        # A guest is never newer than its host.
        ("535", "580", False),
        ("550", "565", False),
        ("470", "510", False),
        # Not in the release notes.
        ("610", "595", None),
        ("580", "565", None),
        ("590", "590", True),
    ],
)
def test_which_guest_fits_which_host(host, guest, right):
    assert fits(host, guest) is right


def guest(host, present, *, sees=None, **changed):
    """Return the plan of a guest of a host with this driver; ``sees``: GPUs that NVML lists."""
    given = facts("A10v", "u24", present)
    given["gpus"][0]["vgpu"].update(host_driver_version=host, host_driver_branch=f"r{host[:3]}_00")
    if sees is not None:
        version = given["driver"]["loaded"]
        devices = [{"address": given["gpus"][0]["address"]}] * sees
        given["nvml"] = {"driver_version": version, "cuda_version": None, "devices": devices}
    options = {**request("-"), **changed}
    return plan_driver(given, *read_options(options))


@pytest.mark.parametrize("sees", [None, 0])
@pytest.mark.parametrize(
    ("host", "present"),
    [
        ("570.237.01", "runfile 535.161.08 proprietary"),
        ("535.129.03", "runfile 580.126.09 open"),
        ("570.237.01", "runfile 535.161.08 proprietary ours dkms"),
    ],
)
def test_a_driver_that_does_not_fit_is_refused(host, present, sees):
    plan = guest(host, present, sees=sees)
    version = present.split()[1]
    assert plan.action == "refuse"
    assert f"Driver {version} does not fit the driver {host} of the vGPU host" in plan.reasons[0]
    assert f"GRID guest driver of the host's branch {host[:3]}" in plan.reasons[-1]


def test_a_driver_that_works_is_kept_with_a_warning():
    plan = guest("570.237.01", "runfile 535.161.08 proprietary", sees=1)
    assert plan.action == "none"
    assert any("does not fit the driver 570.237.01" in one for one in plan.warnings)


@pytest.mark.parametrize("host", ["550.90.05", "535.161.05", "580.65.05"])
def test_a_driver_that_fits_is_kept(host):
    plan = guest(host, "runfile 535.161.08 proprietary")
    assert plan.action == "none" and not any("fit" in one for one in plan.warnings)


def test_what_the_notes_do_not_tell_is_a_warning():
    plan = guest("580.65.05", "runfile 565.57.01 proprietary")
    assert plan.action == "none"
    assert any("look in NVIDIA's vGPU release notes" in one for one in plan.warnings)


@pytest.mark.parametrize(
    ("host", "version"), [("535.129.03", "550.90.07"), ("570.237.01", "535.161.08")]
)
@pytest.mark.parametrize("present", ["-", "runfile {} proprietary"])
def test_a_runfile_that_does_not_fit_is_refused_as_an_installed_one_is(host, version, present):
    given = request(f"run={version}-grid")
    plan = guest(host, present.format(version), **given)
    assert plan.action == "refuse" and not plan.steps
    assert f"Driver {version} does not fit the driver {host} of the vGPU host" in plan.reasons[0]
    assert f"GRID guest driver of the host's branch {host[:3]}" in plan.reasons[-1]
    works = guest(host, f"runfile {version} proprietary", sees=1, **given)
    assert works.action == "none" and any("does not fit" in one for one in works.warnings)


def test_a_runfile_of_which_the_notes_tell_nothing_is_installed_with_a_warning():
    plan = guest("580.65.05", "-", **request("run=565.57.01-grid"))
    assert plan.action == "install"
    assert any("look in NVIDIA's vGPU release notes" in one for one in plan.warnings)


@pytest.mark.parametrize("version", [None, "535.129.03"])
def test_a_package_is_no_runfile(version):
    path = "files/nvidia-linux-grid-535_535.129.03_amd64.deb"
    runfile = {"path": path, "checksum": "sha256:" + 64 * "0", "version": version}
    plan = guest("535.129.03", "-", source="runfile", runfile=runfile)
    assert plan.action == "refuse" and "is not a runfile (.run)" in plan.reasons[0]
    assert "-grid in its name" in plan.reasons[-1]


def test_a_driver_that_was_installed_from_a_package_manually_is_kept():
    """As the guide says: the role installs no such package, and keeps a loaded driver that fits."""
    given = facts("A10v", "u24", "nvidia 535.161.08 proprietary")
    given["gpus"][0]["vgpu"].update(host_driver_version="535.129.03", host_driver_branch="r535_00")
    given["driver"].update(source=None, packages={})
    plan = plan_driver(given, *read_options(request("-")))
    assert (plan.action, plan.version) == ("none", "535.161.08")


@pytest.mark.parametrize("today", ["2026-11-21", "2026-05-01"])
def test_a_guest_is_not_told_to_leave_its_hosts_branch(today):
    plan = guest("535.129.03", "runfile 535.161.08 proprietary", today=today)
    (warning,) = (one for one in plan.warnings if "support of driver branch 535" in one)
    assert "plan the change to a newer one" not in warning
    assert "its host (535.129.03) decides" in warning
    given = facts("A10", "u24", "runfile 535.161.08 proprietary")
    whole = plan_driver(given, *read_options({**request("-"), "today": today}))
    assert any("plan the change to a newer one." in one for one in whole.warnings)
    given["gpus"][0]["vgpu"]["guest"] = None
    unknown = plan_driver(given, *read_options({**request("-"), "today": today}))
    assert any("unless this node is a vGPU guest" in one for one in unknown.warnings)


def test_a_licence_for_an_image_that_has_its_driver():
    """The driver is kept, and the licence is written nevertheless."""
    licence = {"feature_type": 1, "token_path": "/srv/a.tok"}
    plan = guest("535.129.03", "runfile 535.161.08 proprietary", licence=licence)
    assert (plan.action, plan.version, plan.change) == ("none", "535.161.08", True)
    assert config_files.GRIDD in plan.files and plan.licence_token == {"path": "/srv/a.tok"}
    for asks_nothing in ({}, {"timeout": 5}):
        plan = guest("535.129.03", "runfile 535.161.08 proprietary", licence=asks_nothing)
        assert not plan.change


@pytest.mark.parametrize(
    ("licence", "says"),
    [
        ({"server": "lic", "token_path": "/srv/a.tok"}, "both token_path and server"),
        ({"feature_type": 1}, "neither token_path nor server"),
        ({"feature_type": 1, "token_path": "/srv/a.tok"}, ""),
        ({"timeout": 5}, ""),
    ],
)
def test_settings_of_a_licence_that_may_not_work_are_warned_of(licence, says):
    plan = guest("535.129.03", "runfile 535.161.08 proprietary", licence=licence)
    found = [one for one in plan.warnings if one.startswith("nvidia_driver_licence")]
    assert plan.action != "refuse" and [says in one for one in found] == ([True] if says else [])
    assert all("Next step: " in one for one in found)


def test_a_legacy_licence_server_is_warned_of_from_branch_525_on():
    plan = guest("535.129.03", "runfile 535.161.08 proprietary", licence={"server": "lic"})
    (warning,) = (one for one in plan.warnings if "legacy licence server" in one)
    assert plan.action != "refuse" and "branch 525 (vGPU 15)" in warning
    assert "token_path" in warning
    older = guest("470.82.01", "runfile 470.82.01 proprietary", licence={"server": "lic"})
    assert not any("legacy licence server" in one for one in older.warnings)
    whole = plan_driver(
        facts("A10", "u24", "runfile 535.161.08 proprietary"),
        *read_options({"licence": {"server": "lic"}}),
    )
    assert not any("legacy licence server" in one for one in whole.warnings)


@pytest.mark.parametrize("value", [3, "0", True, "one"])
def test_a_wrong_feature_type_is_told_with_what_the_types_mean(value):
    with pytest.raises(InputError, match="one of 1, 2, 4") as caught:
        read_options({"licence": {"feature_type": value}})
    assert "1 for a vGPU guest" in caught.value.next_step


@pytest.mark.parametrize(("value", "name"), [(2, "RTX Virtual"), (4, "Virtual Compute"), (1, "")])
def test_the_licence_of_a_whole_gpu_is_warned_of_in_a_guest(value, name):
    licence = {"feature_type": value, "token_path": "/srv/a.tok"}
    plan = guest("535.129.03", "runfile 535.161.08 proprietary", licence=licence)
    found = [one for one in plan.warnings if "feature_type" in one]
    assert len(found) == bool(name) and all(name in one for one in found)
    whole = plan_driver(
        facts("A10", "u24", "runfile 535.161.08 proprietary"), *read_options({"licence": licence})
    )
    assert not any("feature_type" in one for one in whole.warnings)
