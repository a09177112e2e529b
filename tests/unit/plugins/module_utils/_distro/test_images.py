# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Systems that are images: which kind, what shows it, and that each row has a way and a source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.image_data import IMAGE_SYSTEMS
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.images import (
    BOOTC,
    CUDA,
    DRIVER,
    MONITORING,
    OSTREE,
    PACKAGES,
    TOOLKIT,
    TRANSACTIONAL,
    Signs,
    amd_image,
    find_image,
    immutable,
    keeps_etc,
    system_title,
    usr_is_read_only,
)
from tests.unit.fixtures.os_release import fields

RHEL = {"ID": "rhel", "VERSION_ID": "9.6", "PLATFORM_ID": "platform:el9"}
DEBIAN = {"ID": "debian", "VERSION_ID": "12"}
IMAGE = Signs(read_only=True)
BUILD = Signs((BOOTC,), read_only=False, manager="dnf")


@pytest.mark.parametrize(
    ("release", "signs", "key", "seen"),
    [
        (fields("flatcar"), IMAGE, "flatcar", "ID=flatcar in os-release"),
        # A tree of files has no mounts: os-release decides.
        (fields("flatcar"), Signs(), "flatcar", "ID=flatcar in os-release"),
        (fields("cos"), IMAGE, "cos", "ID=cos in os-release"),
        (fields("bottlerocket"), IMAGE, "bottlerocket", "ID=bottlerocket in os-release"),
        (fields("talos"), IMAGE, "talos", "NAME=Talos in os-release"),
        ({"ID": "talos"}, Signs(), "talos", "ID=talos in os-release"),
        (fields("microos"), IMAGE, "transactional-update", "ID=opensuse-microos in os-release"),
        (fields("sl-micro"), Signs(), "transactional-update", "ID=sl-micro in os-release"),
        (fields("silverblue"), Signs((OSTREE,)), "rpm-ostree", OSTREE),
        (
            fields("silverblue"), Signs(), "rpm-ostree",
            "ID=fedora and VARIANT_ID=silverblue in os-release",
        ),
        (fields("ucore"), Signs((OSTREE, BOOTC)), "ublue", OSTREE),
        ({"ID": "bazzite"}, Signs((OSTREE, BOOTC)), "ublue", OSTREE),
        (fields("rhcos"), Signs((OSTREE, BOOTC)), "rhcos", "ID=rhcos in os-release"),
        (
            {**RHEL, "VARIANT_ID": "coreos"}, Signs((OSTREE,)), "rhcos",
            "ID=rhel and VARIANT_ID=coreos in os-release",
        ),
        (RHEL, Signs((OSTREE, BOOTC), read_only=True, manager="dnf"), "bootc", OSTREE),
        # bootc without ostree.
        (
            RHEL, Signs((BOOTC,), read_only=True, manager="dnf"), "bootc",
            f"{BOOTC} and a read-only /usr",
        ),
        # bootc usr-overlay: what is written there is gone after a boot.
        (RHEL, Signs((OSTREE, BOOTC), read_only=False, manager="dnf"), "bootc", OSTREE),
        (RHEL, Signs((OSTREE,)), "rpm-ostree", OSTREE),
        ({"ID": "endless", "ID_LIKE": "debian"}, Signs((OSTREE,)), "read-only", OSTREE),
        (
            {"ID": "opensuse-leap", "VERSION_ID": "15.6"},
            Signs((TRANSACTIONAL,), read_only=True, manager="zypper"), "transactional-update",
            f"{TRANSACTIONAL} and a read-only /usr",
        ),
        (fields("ubuntu-core"), IMAGE, "ubuntu-core", "ID=ubuntu-core in os-release"),
        ({"ID": "nixos"}, Signs(), "nixos", "ID=nixos in os-release"),
        ({"ID": "brandnew"}, IMAGE, "read-only", "a read-only /usr"),
    ],
)  # fmt: skip
def test_an_image(release, signs, key, seen):
    found = find_image(release, signs)
    assert found is not None
    assert (found[0].key, found[1]) == (key, seen)


@pytest.mark.parametrize(
    ("release", "signs"),
    [
        (RHEL, Signs(manager="dnf", read_only=False)),
        # The tools of an image can be installed anywhere.
        (RHEL, BUILD),
        ({"ID": "opensuse-leap"}, Signs((TRANSACTIONAL,), read_only=False, manager="zypper")),
        # A build of the image in a container, where packages are installed as usual.
        (fields("silverblue"), BUILD),
        (fields("sl-micro"), Signs((TRANSACTIONAL,), read_only=False, manager="zypper")),
        ({"ID": "bazzite"}, BUILD),
        # apt can be set up to make /usr writable while it works.
        (DEBIAN, Signs(read_only=True, manager="apt")),
        (fields("mint"), Signs(manager="apt")),
        ({}, Signs()),
    ],
)
def test_no_image(release, signs):
    assert find_image(release, signs) is None


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("/dev/sda1 / ext4 rw,relatime 0 0\n", False),
        ("/dev/sda1 / btrfs ro,relatime 0 0\n", True),
        ("/dev/sda1 / xfs rw 0 0\n/dev/sda1 /usr xfs ro,seclabel 0 0\n", True),
        ("/dev/sda1 / ext4 ro 0 0\noverlay /usr overlay rw 0 0\n", False),
        ("/dev/sda1 / ext4 rw,errors=remount-ro 0 0\n", False),
        ("", None),
        ("short line\n", None),
    ],
)
def test_a_read_only_usr(mounts, expected):
    assert usr_is_read_only(mounts) is expected


@pytest.mark.parametrize("row", IMAGE_SYSTEMS, ids=lambda row: row.key)
def test_each_row_has_its_ways_and_a_source(row):
    assert row.driver and row.software and row.source
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.date)
    system = {"id": "x", "version": "1", "image": "seen", "image_system": row.key}
    for what, way in ((DRIVER, row.driver), (TOOLKIT, row.toolkit or row.software)):
        said = immutable(system, what)
        assert said is not None
        assert said.cause.startswith(f"x 1 ({row.name})" if row.name else "x 1 is")
        assert what in said.cause and said.evidence == "seen" and way in said.next_step
    for what in (CUDA, MONITORING, PACKAGES):
        assert row.software in str(immutable(system, what))
    assert row.software in str(amd_image(system))
    assert keeps_etc(system) is row.keeps_etc


def test_the_keys_are_different():
    keys = [row.key for row in IMAGE_SYSTEMS]
    assert len(keys) == len(set(keys))
    systems = [name for row in IMAGE_SYSTEMS for name in row.systems]
    assert len(systems) == len(set(systems))


def test_the_page_of_supported_systems_has_each_row():
    page = (Path(__file__).parents[5] / "docs/support.md").read_text(encoding="utf-8")
    for row in IMAGE_SYSTEMS:
        assert f"| `{row.key}` " in page, row.key


def test_other_systems():
    system = {"id": "debian", "version": "12", "image": None}
    assert immutable(system) is amd_image(system) is None
    assert keeps_etc(system) and system_title(system) == "debian 12"
    # Facts of an earlier release have no kind.
    old = {"id": "rocky", "version": "9.6", "image": "/run/ostree-booted"}
    assert "rocky 9.6 is an image" in str(immutable(old))
    assert system_title({"id": None, "version": None, "image": None}) == "The system"
    talos = {"id": None, "version": "v1.13.7", "image": "x", "image_system": "talos"}
    assert system_title(talos) == "Talos v1.13.7"
