# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distribution, release and names of a host, from its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.os_release import (
    find_codename,
    find_fqdn,
    os_family,
    read_os,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.make_tree import write


@pytest.fixture
def reader(tmp_path: Path) -> NodeReader:
    return NodeReader(str(tmp_path))


@pytest.mark.parametrize(
    ("identity", "like", "expected"),
    [
        ("debian", "", "debian"),
        ("ubuntu", "debian", "debian"),
        ("pop", "ubuntu debian", "debian"),
        ("rocky", "rhel centos fedora", "rhel"),
        ("amzn", "fedora", "rhel"),
        ("kylin", "", "rhel"),
        ("sles", "suse", "suse"),
        ("opensuse-leap", "suse opensuse", "suse"),
        ("arch", "", None),
        (None, "", None),
    ],
)
def test_os_family(identity: str | None, like: str, expected: str | None) -> None:
    assert os_family(identity, like) == expected


def test_os(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/etc/os-release", 'NAME=\'Rocky Linux\'\n# x\nID="rocky"\nVERSION_ID="9.6"\n')
    write(tmp_path, "/etc/hostname", "gpu1\n")
    write(tmp_path, "/etc/hosts", "127.0.0.1 localhost\n10.0.0.1 gpu1.example.com gpu1\n")
    write(tmp_path, "/etc/machine-id", "2d9ad6e6ed1c4bd1b4f1f1bb2e4bbd2d\n")
    write(tmp_path, "/proc/sys/kernel/osrelease", "5.14.0-503.el9.x86_64\n")
    write(tmp_path, "/proc/sys/kernel/arch", "x86_64\n")
    # Debian's tool beside it is not the one to use.
    write(tmp_path, "/usr/bin/apt-get")
    write(tmp_path, "/usr/bin/dnf")
    assert read_os(reader) == {
        "family": "rhel",
        "id": "rocky",
        "version": "9.6",
        "codename": None,
        "arch": "x86_64",
        "kernel": "5.14.0-503.el9.x86_64",
        "package_manager": "dnf",
        "hostname": "gpu1",
        "fqdn": "gpu1.example.com",
        "machine_id": "2d9ad6e6ed1c4bd1b4f1f1bb2e4bbd2d",
        "boot_id": None,
        "image": None,
        "image_system": None,
        "upstream": None,
        "product": None,
    }


def test_a_system_that_is_an_image(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/run/ostree-booted")
    assert read_os(reader)["image"] == "/run/ostree-booted"
    (tmp_path / "run/ostree-booted").unlink()
    write(tmp_path, "/etc/os-release", "ID=sl-micro\nVERSION_ID=6.1\n")
    assert read_os(reader)["image"] == "ID=sl-micro in os-release"


def test_os_of_an_empty_tree(reader: NodeReader) -> None:
    assert set(read_os(reader).values()) == {None}


@pytest.mark.parametrize(
    ("hostname", "hosts", "expected"),
    [
        ("gpu1.example.com", "", "gpu1.example.com"),
        ("gpu1", "10.0.0.1 gpu1.example.com gpu1 # here", "gpu1.example.com"),
        ("gpu1", "127.0.1.1 gpu1", None),
        ("gpu1", "10.0.0.1 gpu10.example.com gpu10", None),
        (None, "10.0.0.1 a.b a", None),
    ],
)
def test_fqdn(hostname: str | None, hosts: str, expected: str | None) -> None:
    assert find_fqdn(hostname, hosts) == expected


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ({"VERSION_CODENAME": "noble", "UBUNTU_CODENAME": "noble"}, "noble"),
        ({"VERSION": "12 (bookworm)"}, "bookworm"),
        ({"VERSION": "9.6 (Blue Onyx)"}, None),
        ({}, None),
    ],
)
def test_codename(release: dict[str, str], expected: str | None) -> None:
    assert find_codename(release) == expected
