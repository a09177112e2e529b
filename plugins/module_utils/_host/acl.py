# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""POSIX ACLs as Linux stores them: the extended attribute ``system.posix_acl_access``. Pure.

A version, then a tag, permissions and an id for each entry, all little-endian (Linux,
``include/uapi/linux/posix_acl_xattr.h``). A file with a mask shows the mask as the group's bits of
its mode, and ``chmod`` sets the mask (acl(5), "Correspondence between ACL entries and file
permission bits"): the bits alone do not tell the permissions of the owning group.
"""

from __future__ import annotations

import struct

ATTRIBUTE = "system.posix_acl_access"
_VERSION = 2
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_OWNER, _GROUP, _MASK, _OTHER = 0x01, 0x04, 0x10, 0x20


def check(acl: bytes) -> None:
    """Check that the bytes are an ACL.

    :raises ValueError: they are not.
    """
    _read(acl)


def with_mode(acl: bytes, mode: int) -> bytes:
    """Return the ACL as ``chmod`` with this mode would leave it.

    :raises ValueError: the bytes are not an ACL.
    """
    entries = _read(acl)
    shown = _MASK if any(tag == _MASK for tag, _bits, _id in entries) else _GROUP
    bits = {_OWNER: mode >> 6 & 7, shown: mode >> 3 & 7, _OTHER: mode & 7}
    return _HEADER.pack(_VERSION) + b"".join(
        _ENTRY.pack(tag, bits.get(tag, known), identity) for tag, known, identity in entries
    )


def without_acl(acl: bytes, mode: int) -> int:
    """Return the mode that grants the owning group the permissions of its ACL entry.

    :raises ValueError: the bytes are not an ACL.
    """
    group = next((known for tag, known, _id in _read(acl) if tag == _GROUP), 0)
    return mode & ~0o070 | (group << 3 & mode & 0o070)


def _read(acl: bytes) -> list[tuple[int, int, int]]:
    rest = len(acl) - _HEADER.size
    if rest < 0 or rest % _ENTRY.size or _HEADER.unpack_from(acl) != (_VERSION,):
        raise ValueError("not a POSIX ACL")
    return list(_ENTRY.iter_unpack(acl[_HEADER.size :]))
