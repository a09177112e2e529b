# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""File systems of the node."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.space import (
    FileSystem,
    file_system_of,
    parse_mounts,
    read_file_systems,
)

MOUNTS = """\
/dev/sda2 / ext4 rw,relatime 0 0
/dev/sda1 /boot ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
/dev/sda3 /usr ext4 rw 0 0
/dev/sda3 /usr ext4 ro,relatime 0 0
nas:/home /var nfs4 rw 0 0
nas:/opt /opt/site fuse.sshfs rw 0 0
/dev/sdb1 /var/lib/my\\040data xfs rw 0 0
/dev/sdb2 /var/lib/dpkg xfs ro 0 0
short
"""


def test_mounts_where_packages_are_written():
    assert parse_mounts(MOUNTS) == {"/": False, "/usr": True, "/boot": False, "/var/lib/dpkg": True}


def test_the_longest_mount_above_a_path_counts():
    systems = [FileSystem("/"), FileSystem("/boot"), FileSystem("/boot/efi")]
    points = {
        path: found.point if (found := file_system_of(path, systems)) else None
        for path in ("/boot/initrd.img", "/boot/efi/a", "/bootx", "/boot")
    }
    assert points == {
        "/boot/initrd.img": "/boot", "/boot/efi/a": "/boot/efi", "/bootx": "/", "/boot": "/boot",
    }  # fmt: skip
    assert file_system_of("/x", ()) is None


def test_full_is_without_space_or_without_inodes():
    gib = 1 << 30
    assert FileSystem("/", free=1, size=gib).full
    assert FileSystem("/", free=gib, size=gib, files=100, free_files=0).full
    # btrfs has no limit of inodes, and some file systems tell no size.
    assert not FileSystem("/", free=gib, size=gib).full
    assert not FileSystem("/").full


def test_this_machine():
    root = file_system_of("/", read_file_systems(NodeReader()))
    assert root is not None and root.size > 0
