# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``kubegpu.nodes.plan`` on machines with RPM packages: driver, CUDA and toolkit of each.

The machines are trees of files, with GPUs as in h100x8; what NVIDIA's folders have is our data. All
distributions are in the unit tests' table of decisions; here is one of each kind.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.integration.plans import machines, playbook
from tests.unit.fixtures.machines import BIOS, MACHINES, kernels

# Name: ID and ID_LIKE, VERSION_ID, manager, kernel; folder, branch; streams, best effort.
SYSTEMS = {
    "rocky9": ("rocky rhel", "9.6", "dnf", "5.14.0-570.el9_6.x86_64", "rhel9", "580", "streams"),
    "oracle9": ("ol fedora", "9.6", "dnf", "5.15.0-313.el9uek.x86_64", "rhel9", "580", "streams"),
    "alma10": ("almalinux rhel", "10.1", "dnf", "6.12.0-124.el10.x86_64", "rhel10", "580", ""),
    "fedora44": ("fedora", "44", "dnf5", "6.19.0-100.fc44.x86_64", "fedora44", "595", ""),
    "amazon": ("amzn", "2023", "dnf", "6.1.150-174.amzn2023.x86_64", "amzn2023", "580", "streams"),
    "sles16": ("sles suse", "16.0", "zypper", "6.12.0-160000.5-default", "suse16", "595", ""),
    "leap15": ("opensuse-leap", "15.6", "zypper", "6.4.0-1.23-default", "opensuse15", "580", ""),
    "openeuler24": (
        *("openeuler", "24.03", "dnf", "6.6.0-72.oe2403.x86_64"),
        *("rhel9", "580", "streams, best effort"),
    ),
    "tencentos4": (
        *("tencentos rhel", "4.4", "dnf", "6.6.70-44.tl4.x86_64"),
        *("rhel9", "580", "streams, best effort"),
    ),
}
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"


def machine(like, version, manager, kernel):
    identity, *others = like.split()
    text = f'ID="{identity}"\nID_LIKE="{" ".join(others)}"\nVERSION_ID="{version}"\n'
    files = {"/etc/os-release": text, f"/usr/bin/{manager}": "", **kernels(kernel), **BIOS}
    return replace(MACHINES["h100x8"], files=files)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    trees = {name: machine(*row[:4]) for name, row in SYSTEMS.items()}
    inventory = machines.write(tmp_path_factory.mktemp("distributions"), trees)
    # The one whole fingerprint that a person has to give.
    keys = {"rhel10": {"key_fingerprints": ["A" * 40]}}
    done = playbook.run(inventory, cuda_toolkit_versions=["13.0"], nvidia_driver_repositories=keys)
    assert done.status == 0, done.screen
    return done.rows


@pytest.mark.parametrize("name", SYSTEMS)
def test_driver_cuda_and_toolkit_of_a_distribution(rows, name):
    *_system, folder, branch, more = SYSTEMS[name]
    row = rows[name]
    assert row["action"] == "change", row
    driver = row["driver"]
    assert (driver["action"], driver["branch"], driver["kernel_module"], driver["source"]) == (
        *("install", branch, "open"),
        "nvidia",
    )
    assert driver["repository"]["url"] == f"{CUDA}/{folder}/x86_64"
    assert bool(driver["streams"]) == ("streams" in more)
    assert driver["packages"]["nvidia-open"] == f"{branch}.*"
    parts = [step["part"] for step in row["steps"]]
    assert [part for part in ("driver", "cuda", "toolkit") if part not in parts] == []
    assert any("cuda-toolkit-13-0" in step["detail"] for step in row["steps"])
    # One repository for driver and CUDA.
    assert sum(f"{CUDA}/{folder}" in step["detail"] for step in row["steps"]) == 1
    assert any("best effort" in text for text in row["warnings"]) == ("best" in more)
