# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AMD's driver of a node, and the numbers of its releases."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.amd_data import (
    build_number,
    version_pattern,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.amd_facts import (
    read_amd_driver,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import fits
from tests.unit.fixtures.make_tree import write

KERNEL = "6.8.0-85-generic"
INSTALLED = {
    "amdgpu-dkms": "1:6.16.13.30300000-2278356.24.04",
    "amdgpu-dkms-firmware": "30.30.0.0.30300000-2278356.24.04",
}


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("30.10.1", "1:6.14.14.30100100-2212064.24.04"),
        ("30.20", "1:6.16.6.30200000-2238411.24.04"),
        ("30.20", "30.20.0.0.30200000-2238411.24.04"),
        ("30.30.1", "1:6.16.13.30300100-2303411.24.04"),
        ("6.4", "1:6.12.12.60400-2158079.24.04"),
        ("6.3.4", "1:6.10.5.60304-2125197.22.04"),
    ],
)
def test_the_number_of_a_release_in_versions_of_public_reports(release, version):
    assert fits(version_pattern(release), version)
    assert not fits(version_pattern("30.30.2"), version)
    assert build_number(version) == build_number(version_pattern(release)) > 0


def test_facts(tmp_path, monkeypatch):
    reader = NodeReader(str(tmp_path))
    ours = [Package(name, version, held=True) for name, version in INSTALLED.items()]
    others = [Package("amd-container-toolkit", "1.3.0")]
    assert read_amd_driver(reader, others, None) == {
        "packages": {},
        "held": None,
        "dkms": [],
        "pending_reboot": False,
        "managed": False,
    }
    base = "/var/lib/dkms/amdgpu"
    place = f"6.16.13-2278356.24.04/{KERNEL}/x86_64"
    write(tmp_path, f"{base}/{place}/module/amdgpu.ko", "")
    (tmp_path / f"{base[1:]}/kernel-{KERNEL}-x86_64").symlink_to(place)
    write(tmp_path, "/sys/module/amdgpu/srcversion", "AAAA\n")
    asked, answers = [], []

    def run(argv, **_options):
        asked.append(argv)
        return Result(0, f"{answers.pop()}\n", "")

    monkeypatch.setattr(reader, "run", run)
    record = {"values": {"package_set:amd-driver": {}}}
    for on_disk, pending in (("AAAA", False), ("BBBB", True), ("", False)):
        answers.append(on_disk)
        found = read_amd_driver(reader, [*ours, *others], record)
        assert (found["packages"], found["held"], found["managed"]) == (INSTALLED, True, True)
        assert found["dkms"] == [
            {"kernel": KERNEL, "version": "6.16.13-2278356.24.04", "state": "installed"}
        ]
        assert found["pending_reboot"] is pending
    assert asked[0][:2] == ["modinfo", "--field"]
