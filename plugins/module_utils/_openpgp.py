# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fingerprints of the primary keys in an OpenPGP file, without gpg.

Key packets of version 4 (RFC 4880) and 6 (RFC 9580) are read. Older versions are refused: their
fingerprints are MD5 and prove nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from ._errors import InputError

_PUBLIC_KEY = 6
_SECRET_KEY = 5
_VERSION_4 = 4
_VERSION_6 = 6
# Two octets of length are all that a fingerprint of version 4 covers.
_MAX_BODY_4 = 0xFFFF

_ARMOR = re.compile(
    rb"^-----BEGIN PGP (?P<kind>[A-Z ,/0-9]+)-----[ \t]*\r?\n"
    rb"(?P<body>.*?)"
    rb"^-----END PGP (?P=kind)-----[ \t]*\r?$",
    re.MULTILINE | re.DOTALL,
)
_NEXT_STEP = "Get the key file again from its publisher: it has to be a public OpenPGP key."


def fingerprints(data: bytes) -> tuple[str, ...]:
    """Return the fingerprint of every primary key in ``data``, in upper-case hex, in file order.

    ``data`` is a key file, ASCII-armored (one block or several) or binary.

    :raises InputError: where it holds no key, or is damaged.
    """
    if not data.strip():
        raise _refused("The key file is empty.")
    if data[:1] >= b"\x80":
        return _of_packets(data)
    if data[8:12] == b"KBXf":
        raise InputError(
            "The key file is a GnuPG keybox, not an OpenPGP key.",
            next_step="Export the key from it: gpg --export --armor KEY.",
        )
    found: list[str] = []
    for match in _ARMOR.finditer(data):
        kind = match["kind"]
        if kind != b"PUBLIC KEY BLOCK":
            raise _refused("The key file holds no public key.", f"PGP {kind.decode()}")
        found.extend(_of_packets(_unarmored(match["body"])))
    if b"-----BEGIN PGP" in _ARMOR.sub(b"", data):
        raise _refused("The key file is cut off: an armored block has no end.")
    if not found:
        beginning = data[:60].decode("ascii", "replace").splitlines()[0]
        raise _refused("The key file is not an OpenPGP key.", f"it begins with {beginning!r}")
    return tuple(dict.fromkeys(found))


def _unarmored(block: bytes) -> bytes:
    lines = [line.strip() for line in block.splitlines()]
    try:
        # Armor headers ("Version: ...") end at the first empty line.
        start = lines.index(b"") + 1
    except ValueError:
        start = 0
    checksum = None
    encoded = []
    for line in lines[start:]:
        if line.startswith(b"=") and len(line) == len("=abcd"):
            checksum = line[1:]
        elif line and checksum is not None:
            raise _refused("The key file is damaged: there is text after its checksum.")
        else:
            encoded.append(line)
    try:
        packets = base64.b64decode(b"".join(encoded), validate=True)
        wanted = None if checksum is None else base64.b64decode(checksum, validate=True)
    except binascii.Error as error:
        raise _refused("The key file is damaged: its armor is no base64.", str(error)) from error
    if wanted is not None and wanted != _crc24(packets).to_bytes(3, "big"):
        raise _refused("The key file is damaged: its checksum does not fit.")
    return packets


def _crc24(data: bytes) -> int:
    crc = 0xB704CE
    for octet in data:
        crc ^= octet << 16
        for _bit in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    return crc


def _of_packets(data: bytes) -> tuple[str, ...]:
    found = []
    position = 0
    while position < len(data):
        tag, start, end = _packet(data, position)
        if tag == _SECRET_KEY:
            raise _refused("The key file holds a secret key.")
        if position == 0 and tag != _PUBLIC_KEY:
            raise _refused("The key file does not begin with a public key.", f"packet tag {tag}")
        if tag == _PUBLIC_KEY:
            found.append(_fingerprint(data[start:end]))
        position = end
    return tuple(dict.fromkeys(found))


def _packet(data: bytes, position: int) -> tuple[int, int, int]:
    """Return tag, start and end of the body of the packet at ``position``."""
    first = data[position]
    if not first & 0x80:
        raise _refused("The key file is damaged: no packet begins here.", f"offset {position}")
    position += 1
    if first & 0x40:
        tag = first & 0x3F
        octet = _number(data, position, 1)
        if octet < 192:
            size, position = octet, position + 1
        elif octet < 224:
            size = _number(data, position, 2) - (192 << 8) + 192
            position += 2
        elif octet == 255:
            size, position = _number(data, position + 1, 4), position + 5
        else:
            raise _refused("The key file is damaged: a packet of partial length.", f"tag {tag}")
    else:
        tag = (first >> 2) & 0x0F
        octets = {0: 1, 1: 2, 2: 4}.get(first & 0x03)
        if octets is None:
            raise _refused("The key file is damaged: a packet without a length.", f"tag {tag}")
        size, position = _number(data, position, octets), position + octets
    if position + size > len(data):
        raise _refused("The key file is cut off.", f"packet with tag {tag}")
    return tag, position, position + size


def _number(data: bytes, position: int, octets: int) -> int:
    if position + octets > len(data):
        raise _refused("The key file is cut off.", f"offset {position}")
    return int.from_bytes(data[position : position + octets], "big")


def _fingerprint(body: bytes) -> str:
    version = body[0] if body else 0
    if version == _VERSION_4 and len(body) <= _MAX_BODY_4:
        hashed = b"\x99" + len(body).to_bytes(2, "big") + body
        # Not for security: this is the name that the format gives to the key. Nodes in FIPS mode
        # refuse SHA-1 otherwise.
        return hashlib.new("sha1", hashed, usedforsecurity=False).hexdigest().upper()
    if version == _VERSION_6:
        hashed = b"\x9b" + len(body).to_bytes(4, "big") + body
        return hashlib.sha256(hashed).hexdigest().upper()
    raise _refused(
        "The key file holds a key of a version without a usable fingerprint.", f"version {version}"
    )


def _refused(cause: str, evidence: str = "") -> InputError:
    return InputError(cause, evidence=evidence, next_step=_NEXT_STEP)
