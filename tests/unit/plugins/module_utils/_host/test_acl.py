# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""POSIX ACLs as bytes. The layout is that of include/uapi/linux/posix_acl_xattr.h of Linux."""

from __future__ import annotations

import struct

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.acl import with_mode, without_acl

NOBODY = 0xFFFFFFFF


def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# user::rw-, user:65534:r--, group::---, mask::r--, other::---
NAMED = acl((1, 6, NOBODY), (2, 4, 65534), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))


def test_the_group_has_what_its_own_entry_says():
    """The mode of this file reads 0640, and its group may not read it."""
    assert without_acl(NAMED, 0o640) == 0o600
    wide = acl((1, 6, NOBODY), (2, 7, 1), (4, 4, NOBODY), (16, 7, NOBODY), (32, 4, NOBODY))
    assert without_acl(wide, 0o674) == 0o644
    # A mode with less than the entry: the mask would take it away.
    assert without_acl(wide, 0o604) == 0o604
    assert without_acl(NAMED, 0o4640) == 0o4600


def test_a_mode_changes_the_mask():
    assert with_mode(NAMED, 0o640) == NAMED
    assert with_mode(NAMED, 0o600) == acl(
        (1, 6, NOBODY), (2, 4, 65534), (4, 0, NOBODY), (16, 0, NOBODY), (32, 0, NOBODY)
    )
    plain = acl((1, 6, NOBODY), (4, 4, NOBODY), (32, 4, NOBODY))
    assert with_mode(plain, 0o751) == acl((1, 7, NOBODY), (4, 5, NOBODY), (32, 1, NOBODY))


@pytest.mark.parametrize("data", [b"", b"\1\0\0\0", NAMED[:-1], b"\2\0\0"])
def test_other_bytes_are_no_acl(data):
    with pytest.raises(ValueError, match="not a POSIX ACL"):
        with_mode(data, 0o600)
