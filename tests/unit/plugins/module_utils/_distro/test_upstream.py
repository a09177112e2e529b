# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derived systems: whose packages they take, by their own os-release, and never by a guess."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.kernel_packages import (
    following_headers,
    kernel_headers,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.upstream import (
    DEBIAN_RELEASES,
    UBUNTU,
    find_upstream,
    own_driver,
    package_base,
    pinned_before,
    unknown_base,
)
from tests.unit.fixtures.os_release import fields


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (fields("mint"), "ubuntu 22.04 jammy"),
        (fields("lmde"), "debian 12 bookworm"),
        (fields("pop"), "ubuntu 22.04 jammy"),
        (fields("zorin"), "ubuntu 22.04 jammy"),
        (fields("nobara"), "fedora 40 "),
        (fields("rhcos"), "rhel 9 "),
        ({"ID": "raspbian", "ID_LIKE": "debian", "VERSION_CODENAME": "trixie"}, "debian 13 trixie"),
        ({"ID": "x", "ID_LIKE": "ubuntu", "VERSION_CODENAME": "noble"}, "ubuntu 24.04 noble"),
        # A clone of RHEL that no row names.
        (
            {"ID": "eurolinux", "ID_LIKE": "rhel centos fedora", "PLATFORM_ID": "platform:el9"},
            "rhel 9 ",
        ),
        # Named by nobody, or by a word that is no release.
        (fields("kali"), None),
        ({"ID": "devuan", "ID_LIKE": "debian", "VERSION_CODENAME": "daedalus"}, None),
        ({"ID": "x", "ID_LIKE": "ubuntu debian", "UBUNTU_CODENAME": "unheard"}, None),
        ({"ID": "x", "ID_LIKE": "debian", "PLATFORM_ID": "platform:el9"}, None),
        # Their own.
        ({"ID": "ubuntu", "UBUNTU_CODENAME": "noble"}, None),
        ({"ID": "debian", "VERSION_CODENAME": "bookworm"}, None),
        ({"ID": "rocky", "ID_LIKE": "rhel", "PLATFORM_ID": "platform:el9"}, None),
        ({"ID": "openeuler", "VERSION_ID": "24.03"}, None),
        ({}, None),
    ],
)
def test_whose_packages(release, expected):
    found = find_upstream(release)
    assert (" ".join(found.values()) if found else None) == expected


def test_the_base_of_the_packages():
    system = {"id": "linuxmint", "version": "21", "codename": "vanessa", "arch": "x86_64"}
    assert package_base(system) is system
    mint = {**system, "upstream": find_upstream(fields("mint"))}
    assert package_base(mint) == {
        **mint, "id": "ubuntu", "version": "22.04", "codename": "jammy",
    }  # fmt: skip
    nobara = {**system, "upstream": find_upstream(fields("nobara"))}
    assert package_base(nobara)["codename"] is None
    assert set(UBUNTU) & set(DEBIAN_RELEASES) == set()


def test_an_unknown_base_is_refused_by_name():
    kali = {"id": "kali", "version": "2024.3", "family": "debian", "codename": "kali-rolling"}
    said = unknown_base(kali, "a runfile")
    assert said is not None and said.cause.startswith("kali 2024.3 is derived from")
    assert "nvidia_driver_repositories: {kali2024: {folder: debian12}}" in said.next_step
    assert said.next_step.endswith("or give a runfile.")
    assert said.evidence == "VERSION_CODENAME=kali-rolling"
    assert "no UBUNTU_CODENAME" in str(unknown_base({**kali, "codename": None}, "x"))
    devuan = {**kali, "id": "devuan", "version": "5"}
    assert "devuan5" in str(unknown_base(devuan, "x"))
    for known in (
        {**kali, "id": "debian"},
        {**kali, "upstream": {"id": "debian", "version": "12", "codename": "bookworm"}},
        {**kali, "family": "rhel"},
        {**kali, "id": None},
    ):
        assert unknown_base(known, "x") is None


def test_a_system_with_its_own_driver():
    pop = {"id": "pop", "version": "22.04"}
    said = own_driver(pop, "NVIDIA's repository")
    assert said is not None and "system76-driver-nvidia" in said.next_step
    assert "1001" in said.cause and "nvidia.github.io" in pinned_before(pop)
    mint = {"id": "linuxmint", "version": "21"}
    assert own_driver(mint, "x") is None and pinned_before(mint) == ""


@pytest.mark.parametrize(
    ("kernel", "package"),
    [
        ("6.14.11-2-pve", "proxmox-default-headers"),
        ("5.15.158-2-pve", "pve-headers"),
        ("6.1.0-40-amd64", None),
        ("", None),
    ],
)
def test_headers_that_follow_proxmox_kernels(kernel, package):
    assert following_headers(kernel) == package


def test_headers_of_a_derived_system():
    lmde = {
        "id": "linuxmint", "version": "6", "family": "debian",
        "upstream": find_upstream(fields("lmde")),
    }  # fmt: skip
    # Of Debian's archive: by its own id it would be taken for an Ubuntu.
    assert kernel_headers(lmde, "6.1.0-40-amd64").foreign == ""
    # Without any fact the name of the kernel says which family it is of.
    assert (
        "kernel-devel-5.14.0-570.el9.x86_64" in kernel_headers({}, "5.14.0-570.el9.x86_64").packages
    )
    assert "kernel-default-devel" in kernel_headers({}, "6.4.0-150600.23.47-default").packages
    assert "proxmox-headers-6.8.12-4-pve" in kernel_headers({}, "6.8.12-4-pve").packages
