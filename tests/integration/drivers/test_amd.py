# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of AMD's driver on a stand-in of Ubuntu 24.04, from a bare node to the teardown.

apt, its repositories and their signatures, systemd and the reboot are real; AMD's packages, DKMS
and the kernel's functions are stand-ins. The steps run in this order on one node.
"""

from __future__ import annotations

import pytest

from tests.integration.drivers.steps import dpkg_is_consistent, etc, facts, held, shell, words
from tests.integration.fleet.playbooks import play, run_module
from tests.testbed import calls

OLD, NEW = "30.20", "30.30"
VERSIONS = {OLD: "6.16.6", NEW: "6.16.13"}
NODE = "drv-amd"
BOOT = "cat /proc/sys/kernel/random/boot_id"
PACKAGES = (
    "dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n' 'amdgpu*' 'linux-*' dkms "
    "2>/dev/null | grep ^.i || true"
)

pytestmark = [
    pytest.mark.full(why="another vendor's driver"),
    pytest.mark.xdist_group(NODE),
]


@pytest.fixture(scope="module")
def node(fleet):
    return fleet[NODE]


@pytest.fixture(scope="module")
def before(node):
    return etc(node), shell(node, PACKAGES)


def request(release, **more):
    repository = {
        "url": f"{{{{ testbed_amd_repository.url }}}}/{release or NEW}/ubuntu",
        "key_url": "{{ testbed_amd_repository.key_url }}",
        "key_fingerprints": "{{ testbed_amd_repository.key_fingerprints }}",
    }
    return {
        "amd_driver_enabled": True,
        "amd_driver_release": release,
        "amd_driver_repository": {**repository, **more.pop("repository", {})},
        **more,
    }


def site(release, *options, **more):
    arguments = ("--tags", "driver", "--limit", NODE, *options)
    return play("site", *arguments, variables=request(release, **more), timeout=1800)


def assert_converged(node, release, **more):
    """Nothing is left to do, and the facts tell that alone."""
    calls.reset([node])
    again = site(release, **more)
    assert again.status == 0, words(again)
    assert again.stats[NODE]["changed"] == 0, again.changed()
    assert calls.count([node])[NODE] == 1
    return again


def loaded(node):
    return (facts(node)["kernel_drivers"].get("amdgpu") or {}).get("version")


def layers(node):
    options = {"layers": ["pci", "module", "devices"], "container": False}
    answer = run_module(NODE, "kubegpu.nodes.gpu_node_verify", options)[NODE]
    return {one["layer"]: one["ok"] for one in answer["layers"]}


def test_key_of_somebody_else_is_refused_before_anything_is_written(node, before):
    assert layers(node) == {"pci": False, "module": False, "devices": None}
    somebody = "0" * 40
    run = site(OLD, repository={"key_fingerprints": [somebody]})
    assert run.status != 0
    assert somebody in run.messages(), words(run)
    assert (etc(node), shell(node, PACKAGES)) == before


def test_install_loads_the_module_of_the_release(node, before):
    check = site(OLD, "--check", "--diff")
    assert check.status == 0, words(check)
    assert (etc(node), shell(node, PACKAGES)) == before
    run = site(OLD, "--diff")
    assert run.status == 0, words(run)
    assert run.changed() == check.changed() != {}
    assert loaded(node) == VERSIONS[OLD]
    assert layers(node) == {"pci": True, "module": True, "devices": True}
    assert {"amdgpu-dkms", "amdgpu-dkms-firmware"} == held(node)
    found = shell(node, PACKAGES)
    for name in ("linux-headers-generic", "linux-modules-extra-6.8.0-90-generic", "dkms"):
        assert f" {name} " in found
    assert_converged(node, OLD)
    # What is there is kept where no release is asked for.
    assert_converged(node, "")


def test_module_that_is_loaded_stays_until_a_reboot_that_is_allowed(node, before):
    boot = shell(node, BOOT)
    check = site(NEW, "--check", "--diff")
    run = site(NEW, "--diff")
    assert (check.status, run.status) == (0, 0), words(run)
    assert run.changed() == check.changed() != {}
    assert "reboot: the loaded amdgpu is not the one that is installed" in run.output
    driver = facts(node)["amd_driver"]
    assert driver["pending_reboot"] and driver["held"]
    assert (loaded(node), shell(node, BOOT)) == (VERSIONS[OLD], boot)
    waits = assert_converged(node, NEW)
    assert "reboot: the loaded amdgpu is not the one that is installed" in waits.output

    check = site(NEW, "--check", amd_driver_reboot=True)
    assert check.changed() != {} and shell(node, BOOT) == boot
    run = site(NEW, amd_driver_reboot=True)
    assert run.status == 0, words(run)
    assert run.changed() == check.changed()
    assert shell(node, BOOT) != boot
    assert loaded(node) == VERSIONS[NEW]
    assert layers(node) == {"pci": True, "module": True, "devices": True}
    boot = shell(node, BOOT)
    assert_converged(node, NEW, amd_driver_reboot=True)
    assert shell(node, BOOT) == boot


def test_downgrade_and_a_build_that_fails(node, before):
    shell(node, "echo 'error: implicit declaration' > /opt/standin/dkms-fails")
    failed = site(OLD)
    assert failed.status != 0
    assert "amdgpu-dkms" in failed.messages(), words(failed)
    shell(node, "rm /opt/standin/dkms-fails")
    run = site(OLD, amd_driver_reboot=True)
    assert run.status == 0, words(run)
    assert loaded(node) == VERSIONS[OLD]
    assert_converged(node, OLD)


def test_teardown_gives_the_node_back(node, before):
    arguments = ("--limit", NODE, "--diff")
    variables = request(OLD, amd_driver_reboot=True)
    check = play("teardown", "--check", *arguments, variables=variables)
    run = play("teardown", *arguments, variables=variables)
    assert (check.status, run.status) == (0, 0), words(run)
    assert run.changed() == check.changed() != {}
    assert (etc(node), shell(node, PACKAGES)) == before
    assert dpkg_is_consistent(node)
    assert not held(node)
    assert facts(node)["kernel_drivers"] == {}
    assert not shell(node, "ls -A /var/lib/kubegpu 2>/dev/null || true").strip()
    assert play("teardown", *arguments, variables=variables).changed() == {}
