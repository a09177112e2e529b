# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one file of distributions: what each row says, and that one more row is enough."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.options import (
    read_options as read_cuda,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.plan import plan_cuda
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.data import (
    DISTRIBUTIONS,
    FAMILIES,
    Distribution,
    best_effort,
    family_of,
    folder_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.kernel_packages import (
    KERNEL_FLAVOURS,
    initramfs_tools,
    kernel_headers,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.os_release import os_family
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.support import MANAGERS
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.driver_branches import (
    REPOSITORIES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import (
    registry as _package_managers,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.plan import plan_toolkit
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.types import (
    Request as ToolkitRequest,
)
from tests.unit.fixtures.driver_cases import gpu
from tests.unit.fixtures.node_facts import node

KERNEL = "5.14.0-570.el9.x86_64"


@pytest.mark.parametrize(
    ("identity", "version", "folder"),
    [
        ("ubuntu", "24.04", "ubuntu2404"),
        ("debian", "13", "debian13"),
        ("rhel", "8.10", "rhel8"),
        ("rocky", "9.6", "rhel9"),
        ("almalinux", "10.1", "rhel10"),
        ("ol", "9.6", "rhel9"),
        ("centos", "9", "rhel9"),
        ("fedora", "44", "fedora44"),
        ("amzn", "2023", "amzn2023"),
        ("azurelinux", "3.0", "azl3"),
        ("kylin", "V10", "kylin10"),
        ("kylin", "V11", "kylin11"),
        ("sles", "15.7", "sles15"),
        ("sles_sap", "15.6", "sles15"),
        ("sles", "16.0", "suse16"),
        ("opensuse-leap", "15.6", "opensuse15"),
        ("opensuse-leap", "16.0", "suse16"),
        ("openeuler", "20.03", "rhel8"),
        ("openeuler", "22.03", "rhel9"),
        ("openeuler", "24.03", "rhel9"),
        ("anolis", "8.10", "rhel8"),
        ("anolis", "23.2", "rhel9"),
        ("alinux", "3", "rhel8"),
        ("tencentos", "3.2", "rhel8"),
        ("tencentos", "4.4", "rhel9"),
        ("openeuler", "30.03", None),
        ("opensuse-tumbleweed", "20261101", None),
        ("rocky", "", None),
        ("arch", "", None),
    ],
)
def test_folders(identity, version, folder):
    assert folder_of(identity, version) == folder
    if folder:
        assert folder in REPOSITORIES


def test_every_row_is_of_a_family_and_every_folder_has_a_repository():
    for identity, row in DISTRIBUTIONS.items():
        assert row.family in FAMILIES, identity
        assert set(row.folders.values()) <= set(REPOSITORIES), identity
        stem = row.folder.partition("{")[0]
        if stem:
            assert any(re.match(rf"{stem}\d", name) for name in REPOSITORIES), identity
        assert os_family(identity, "") == row.family
        said = best_effort({"id": identity, "version": "1"})
        assert bool(said) == row.best_effort, identity


def test_every_manager_of_a_family_is_known_but_yum():
    names = {name for family in FAMILIES.values() for name, _path in family.managers}
    assert names - {"yum"} == set(MANAGERS) == set(_package_managers.MANAGERS)
    assert all(flavours[-1][0] == "" for flavours in KERNEL_FLAVOURS.values())


def test_family_by_what_a_system_is_like():
    assert family_of(("circle", "rhel", "centos")) == "rhel"
    assert family_of(("sl-micro", "suse")) == "suse"
    assert family_of(("void",)) is None


def test_headers_and_initramfs():
    rhel = {"id": "rocky", "family": "rhel", "arch": "x86_64"}
    assert kernel_headers(rhel, "").packages == {}
    assert kernel_headers({"family": "other"}, KERNEL).packages == {}
    assert f"kernel-devel-{KERNEL}" in kernel_headers(rhel, KERNEL).packages
    assert initramfs_tools("rhel")[0][0] == initramfs_tools("suse")[0][0] == "dracut"
    assert initramfs_tools("debian")[0][0] == "update-initramfs"
    assert len(initramfs_tools(None)) == len(set(initramfs_tools(None))) >= 4


@pytest.mark.parametrize(
    ("system", "kernel", "names", "foreign"),
    [
        (("debian", "debian"), "6.1.0-40-amd64", ["linux-headers-6.1.0-40-amd64"], ""),
        (
            ("debian", "debian"), "6.14.11-2-pve", ["proxmox-headers-6.14.11-2-pve"], "Proxmox",
        ),
        (
            ("debian", "debian"), "6.2.16-20-pve",
            ["proxmox-headers-6.2.16-20-pve", "pve-headers-6.2.16-20-pve"], "Proxmox",
        ),
        (("debian", "debian"), "5.15.158-2-pve", ["pve-headers-5.15.158-2-pve"], "Proxmox"),
        (("debian", "debian"), "6.18.44-fc", ["linux-headers-6.18.44-fc"], "another source"),
        (("debian", "ubuntu"), "6.8.0-117-generic", ["linux-headers-6.8.0-117-generic"], ""),
        (
            ("debian", "ubuntu"), "6.9.0-060900-generic",
            ["linux-headers-6.9.0-060900-generic"], "another source",
        ),
        (("debian", "linuxmint"), "6.8.0-51-generic", ["linux-headers-6.8.0-51-generic"], ""),
        (
            ("debian", "pop"), "6.9.3-76060903-generic",
            ["linux-headers-6.9.3-76060903-generic"], "",
        ),
        (
            ("rhel", "amzn"), "6.12.40-63.114.amzn2023.x86_64",
            [
                "kernel6.12-devel-6.12.40-63.114.amzn2023.x86_64", "kernel6.12-devel-matched",
            ], "",
        ),
        (
            ("rhel", "ol"), "5.15.0-300.163.18.el9uek.x86_64",
            [
                "kernel-uek-devel-5.15.0-300.163.18.el9uek.x86_64", "kernel-uek-devel-matched",
            ], "",
        ),
        (
            ("rhel", "rocky"), "6.9.1-1.el9.elrepo.x86_64",
            ["kernel-devel-6.9.1-1.el9.elrepo.x86_64", "kernel-devel-matched"], "ELRepo",
        ),
        (("suse", "sles"), "6.4.0-150600.23.47-default", ["kernel-default-devel"], ""),
    ],
)  # fmt: skip
def test_headers_of_a_kernel_by_its_system(system, kernel, names, foreign):
    family, identity = system
    found = kernel_headers({"family": family, "id": identity, "arch": "x86_64"}, kernel)

    assert (list(found.packages), found.foreign) == (names, foreign)


def system(identity, version):
    return {
        **{"os__id": identity, "os__version": version, "os__family": "rhel"},
        **{"os__package_manager": "dnf", "os__kernel": KERNEL, "os__archive": None},
        "gpus": [gpu("T4")],
    }


def plans(facts):
    driver = plan_driver(facts, *read_options({"today": "2026-11-21"}))
    cuda = plan_cuda(facts, *read_cuda({"versions": ["13.0"], "driver_version": "580"}))
    toolkit = plan_toolkit(facts, ToolkitRequest())
    return driver, cuda, toolkit


def test_one_more_row_is_one_more_distribution(monkeypatch):
    facts = node(**system("madeup", "7.2"))
    driver, cuda, toolkit = plans(facts)
    # The toolkit's repository is one for all, so that it needs no row.
    assert (driver.action, cuda.action, toolkit.action) == ("refuse", "refuse", "install")
    row = Distribution("rhel", folders={"7": "rhel9"}, best_effort=True)
    monkeypatch.setitem(DISTRIBUTIONS, "madeup", row)
    assert os_family("madeup", "") == "rhel"
    driver, cuda, toolkit = plans(facts)
    assert (driver.action, cuda.action, toolkit.action) == ("install", "install", "install")
    url = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64"
    assert driver.repository and driver.repository["url"] == url
    assert cuda.repository and cuda.repository["url"] == url
    assert driver.streams == {"nvidia-driver": "580-open"}
    for plan in (driver, cuda, toolkit):
        assert any("madeup 7.2 is best effort" in text for text in plan.warnings)
    # A release that the row does not have is no guess.
    facts = node(**system("madeup", "12"))
    assert [plan.action for plan in plans(facts)] == ["refuse", "refuse", "install"]
    monkeypatch.setitem(DISTRIBUTIONS, "madeup", Distribution("rhel", "rhel{major}"))
    driver, cuda, toolkit = plans(node(**system("madeup", "9")))
    assert not any("best effort" in text for text in (*driver.warnings, *toolkit.warnings))
