# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What AMD's driver needs on a node, and why."""

from __future__ import annotations

import pytest

from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.plans import amd_container_toolkit_plan, amd_driver_plan

KEY = "CA8BB4727A47B4D09B4EE8969386B48A1A693C5C"
KERNEL = "6.8.0-85-generic"
DKMS = "1:6.16.13.30300000-2278356.24.04"
INSTALLED = {
    "amdgpu-dkms": DKMS,
    "amdgpu-dkms-firmware": "30.30.0.0.30300000-2278356.24.04",
}


def noble(loaded=None, **changes):
    """Return a bare node; ``loaded`` is the version of the loaded module, empty the kernel's."""
    facts = amd_node()
    facts["os"].update(id="ubuntu", version="24.04", codename="noble", kernel=KERNEL)
    facts["kernels"][0].update(version=KERNEL, headers=True)
    if loaded is None:
        facts["kernel_drivers"] = {}
        for gpu in facts["gpus"]:
            gpu["kernel_driver"] = None
    else:
        facts["kernel_drivers"] = {"amdgpu": {"version": loaded or None}}
    facts.update(changes)
    return facts


def done():
    """Return a node on which all is as requested."""
    facts = noble("6.16.13")
    facts["amd_driver"].update(
        packages=dict(INSTALLED),
        held=True,
        dkms=[{"kernel": KERNEL, "version": "6.16.13-2278356.24.04", "state": "installed"}],
        managed=True,
    )
    return facts


def steps(plan):
    return [(one["step"], one["action"]) for one in plan["steps"]]


@pytest.mark.parametrize(
    ("place", "setting"),
    [
        ("/etc/modprobe.d/blacklist-amdgpu.conf", "blacklist amdgpu"),
        ("/etc/modprobe.d/local.conf", "install amdgpu /bin/false"),
        ("kernel command line", "modprobe.blacklist=amdgpu"),
        ("kernel command line", "module_blacklist=amdgpu"),
        ("kernel command line", "nomodeset"),
    ],
)
def test_a_module_that_is_blocked_is_refused_by_file_or_word(place, setting):
    blocked = {"amdgpu": [{"place": place, "setting": setting}]}
    plan = amd_driver_plan(noble(blocked_modules=blocked))
    text = "\n".join(plan["reasons"])
    assert plan["action"] == "refuse" and f"{place}: {setting}" in text
    assert ("reboot" in text) == (place == "kernel command line")
    assert "amd_driver_enabled: false" in text
    # It is loaded by hand, as AMD's guide for the MI300X has it.
    loaded = amd_driver_plan({**done(), "blocked_modules": blocked})
    warned = f"{place}: {setting}" in "\n".join(loaded["warnings"])
    assert loaded["action"] == "none" and warned == (setting != "nomodeset")


def test_a_loaded_module_shows_that_nomodeset_does_not_stop_it():
    blocked = {"amdgpu": [{"place": "kernel command line", "setting": "nomodeset"}]}
    assert amd_driver_plan({**done(), "blocked_modules": blocked})["warnings"] == []
    assert amd_driver_plan(noble(blocked_modules=blocked))["action"] == "refuse"


def test_what_blocks_in_the_initial_ram_disk_only_is_no_refusal():
    blocked = {"amdgpu": [{"place": "kernel command line",
                           "setting": "rd.driver.blacklist=amdgpu"}]}  # fmt: skip
    assert amd_driver_plan(noble(blocked_modules=blocked))["action"] == "install"


def test_a_node_that_has_nothing_gets_packages_and_the_loaded_module():
    plan = amd_driver_plan(noble())
    assert steps(plan) == [("repository", "add"), ("packages", "install"), ("module", "load")]
    assert (plan["action"], plan["work"], plan["version"]) == ("install", True, "30.30")
    assert plan["packages"] == {
        "linux-headers-generic": None,
        "amdgpu-dkms": "*.30300000-*",
        "amdgpu-dkms-firmware": "*.30300000-*",
    }
    assert plan["optional"] == {
        f"linux-headers-{KERNEL}": None,
        f"linux-modules-extra-{KERNEL}": None,
    }
    assert plan["repository"] == {
        "name": "kubegpu-amd-driver",
        "url": "https://repo.radeon.com/amdgpu/30.30/ubuntu",
        "suite": "noble",
        "components": ["main"],
        "key_fingerprints": [KEY],
        "replaces": [],
        "check_metadata": True,
    }
    assert plan["reboot"]["required"] is False


def test_a_node_that_has_it_all_is_left_alone():
    plan = amd_driver_plan(done())
    assert (plan["action"], plan["work"], plan["steps"]) == ("none", False, [])
    assert plan["warnings"] == []
    # What is there is kept, and needs no repository.
    assert plan["packages"]["amdgpu-dkms"] == DKMS


def test_a_module_of_the_kernel_that_is_loaded_stays_until_the_reboot():
    asked = amd_driver_plan(noble(""))
    assert steps(asked) == [("repository", "add"), ("packages", "install")]
    assert (asked["load"], asked["reboot"]["required"]) == (False, True)
    allowed = amd_driver_plan(noble(""), reboot=True)
    assert steps(allowed)[-1] == ("module", "reboot")
    # After the packages: work only where it is allowed.
    waiting = done()
    waiting["amd_driver"]["pending_reboot"] = True
    assert amd_driver_plan(waiting)["work"] is False
    assert amd_driver_plan(waiting)["reboot"]["required"] is True
    assert amd_driver_plan(waiting, reboot=True)["work"] is True


def test_releases_that_are_asked_for():
    same = amd_driver_plan(done(), release="30.30")
    # The repository of the release is wanted, and is not there.
    assert steps(same) == [("repository", "add")]
    for release, action in (("30.30.1", "upgrade"), ("31.50", "upgrade"), ("6.4.3", "downgrade")):
        plan = amd_driver_plan(done(), release=release)
        assert (plan["action"], plan["reboot"]["required"]) == (action, True)
        assert plan["repository"]["url"] == f"https://repo.radeon.com/amdgpu/{release}/ubuntu"
    wrong = amd_driver_plan(done(), release="latest")
    assert wrong["action"] == "refuse"
    assert "amd_driver_release is 'latest'" in wrong["reasons"][0]


def test_hold():
    facts = done()
    facts["amd_driver"]["held"] = False
    assert steps(amd_driver_plan(facts)) == [("packages", "hold")]
    assert steps(amd_driver_plan(facts, hold=False)) == []
    assert steps(amd_driver_plan(done(), hold=False)) == [("packages", "unhold")]


def test_a_kernel_without_the_module_is_named():
    facts = done()
    newer = {"version": "6.8.0-90-generic", "running": False, "on_disk": True, "headers": False}
    facts["kernels"].append(newer)
    plan = amd_driver_plan(facts)
    assert plan["work"] is False
    (warning,) = plan["warnings"]
    assert "kernel 6.8.0-90-generic, whose headers are not installed" in warning
    assert "dkms autoinstall -k 6.8.0-90-generic" in warning


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"id": "debian", "version": "12"}, {}, "Ubuntu 22.04 and 24.04"),
        ({"id": "rhel", "package_manager": "dnf"}, {}, "apt alone"),
        ({"arch": "aarch64"}, {}, "x86_64"),
        ({}, {"repository_name": "amd"}, "amd_driver_repository.name"),
    ],
)
def test_refusals(change, options, words):
    facts = noble()
    facts["os"].update(change)
    plan = amd_driver_plan(facts, **options)
    assert (plan["action"], plan["work"], plan["change_packages"]) == ("refuse", True, False)
    assert words in plan["reasons"][0]
    assert "ext step" in plan["reasons"][0]


def test_a_mirror_serves_another_distribution_of_apt():
    facts = noble()
    facts["os"].update(id="debian", version="12")
    mirror = {"repository_url": "https://mirror.example.com/amdgpu/", "repository_suite": "noble"}
    plan = amd_driver_plan(facts, **mirror)
    assert plan["repository"]["url"] == "https://mirror.example.com/amdgpu"
    assert not any(name.startswith("linux-modules-extra") for name in plan["optional"])


def test_secure_boot_needs_a_key():
    plan = amd_driver_plan(noble(secure_boot=True))
    assert plan["action"] == "refuse"
    assert "mokutil --import" in plan["reasons"][0]
    assert amd_driver_plan(noble(secure_boot=True), key_enrolled=True)["action"] == "install"
    # One that was built here is loaded, so that its key is enrolled.
    built = done()
    built["secure_boot"] = True
    assert amd_driver_plan(built)["action"] == "none"


def test_a_container_has_no_kernel_to_build_for():
    facts = noble()
    facts["kernels"][0]["on_disk"] = False
    plan = amd_driver_plan(facts)
    assert plan["action"] == "refuse"
    assert "on the host" in plan["reasons"][0]


def test_other_gpus():
    for facts in (intel_node("i915"), noble(gpus=[])):
        assert amd_driver_plan(facts)["action"] == "none"


def test_the_container_toolkit_follows_a_driver_of_the_same_run():
    assert amd_container_toolkit_plan(noble())["action"] == "refuse"
    assert (
        amd_container_toolkit_plan(noble(), earlier={"amd_driver": {"load": True}})["action"]
        == "install"
    )
