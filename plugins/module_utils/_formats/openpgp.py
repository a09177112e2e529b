# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads fingerprints of the primary keys in an OpenPGP file and rewrites the file, without gpg.

A key file is written from what this reader parsed, never copied: apt, sqv and rpm accept lines and
armored blocks that other readers ignore. A copied file could hold one key for the reader that
compares fingerprints and a second one for the program that trusts it.

Key packets of version 4 (RFC 4880) and 6 (RFC 9580) are supported. Older versions are refused:
their fingerprints are MD5 and can be forged.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .._core.errors import InputError, KubegpuError

# In bytes. The key of a publisher with all its signatures has some ten thousand.
MAX_SIZE = 1_000_000

_SIGNATURE = 2
_SECRET_KEY = 5
_PUBLIC_KEY = 6
_USER_ID = 13
_PUBLIC_SUBKEY = 14
_USER_ATTRIBUTE = 17
# The packets of a certificate; others (markers, trust, padding) are not written.
_WRITTEN = (_SIGNATURE, _PUBLIC_KEY, _USER_ID, _PUBLIC_SUBKEY, _USER_ATTRIBUTE)
_VERSION_4 = 4
_VERSION_6 = 6
# A version 4 fingerprint covers a length of two octets.
_MAX_BODY_4 = 0xFFFF

_BEGIN = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
_END = b"-----END PGP PUBLIC KEY BLOCK-----"
_OTHER_BLOCK = re.compile(rb"-----BEGIN PGP ([A-Z ,/0-9]{1,40})-----\Z")
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:")
_BASE64 = re.compile(rb"[A-Za-z0-9+/]+={0,2}\Z")
_CHECKSUM = re.compile(rb"=[A-Za-z0-9+/]{4}\Z")
_WHITE = b" \t\r"
# Line length of written armored blocks, in characters.
_WIDTH = 64
_NEXT_STEP = "Get the key file again from its publisher: it has to be a public OpenPGP key."


@dataclass(frozen=True)
class Keys:
    """The content of a key file.

    ``fingerprints``: one per primary key, in upper-case hex and file order. ``armored``: the keys
    alone, as ASCII armor with one block per block of the file.
    """

    fingerprints: tuple[str, ...] = ()
    armored: str = ""


def fingerprints(data: bytes) -> tuple[str, ...]:
    """Return the fingerprint of every primary key in ``data``; see :func:`read_keys`."""
    return read_keys(data).fingerprints


def read_keys(data: bytes) -> Keys:
    """Return the keys in ``data``, a key file that is ASCII-armored or binary.

    :raises InputError: it holds no key, is damaged, or holds anything else than keys.
    """
    found, written = _read(data)
    armored = "".join(map(_armored, written))
    again, _packets = _read(armored.encode())
    if again != found:
        raise KubegpuError(
            "The key file cannot be written as it was read; nothing was changed.",
            evidence=f"read: {', '.join(found)}; written: {', '.join(again)}",
            next_step="Report this with the address of the key.",
        )
    return Keys(found, armored)


def _read(data: bytes) -> tuple[tuple[str, ...], list[bytes]]:
    """Return the fingerprints, and the packets to write for each block."""
    if len(data) > MAX_SIZE:
        raise _refused(
            "The key file is too large for a key.", f"{len(data)} bytes of at most {MAX_SIZE}"
        )
    if not data.strip():
        raise _refused("The key file is empty.")
    if data[8:12] == b"KBXf":
        raise InputError(
            "The key file is a GnuPG keybox, not an OpenPGP key.",
            next_step="Export the key from it: gpg --export --armor KEY.",
        )
    blocks = [data] if data[:1] >= b"\x80" else list(_blocks(data))
    found: list[str] = []
    written = []
    for block in blocks:
        of_block, packets = _of_packets(block)
        found.extend(of_block)
        written.append(packets)
    return tuple(dict.fromkeys(found)), written


def _blocks(data: bytes) -> Iterator[bytes]:
    """Yield the data of each armored block; only white space is allowed between blocks."""
    lines = iter(data.split(b"\n"))
    for number, line in enumerate(lines):
        text = line.rstrip(_WHITE)
        if not text:
            continue
        if text == _BEGIN:
            yield _unarmored(lines)
            continue
        other = _OTHER_BLOCK.match(text)
        if other:
            raise _refused("The key file holds no public key.", f"PGP {other[1].decode()}")
        excerpt = text[:60].decode("ascii", "replace")
        if number == 0 or b"-----BEGIN PGP" not in data:
            raise _refused("The key file is not an OpenPGP key.", f"it begins with {excerpt!r}")
        raise _refused("The key file holds text outside of its keys.", repr(excerpt))


def _unarmored(lines: Iterator[bytes]) -> bytes:
    """Return the data of a block, whose remaining lines are read up to its end."""
    body = []
    for line in lines:
        text = line.rstrip(_WHITE)
        if text == _END:
            break
        body.append(text)
    else:
        raise _refused("The key file is cut off: an armored block has no end.")
    start = 0
    while start < len(body) and _HEADER.match(body[start]):
        if not body[start].decode("utf-8", "replace").isprintable():
            raise _refused("The key file is damaged: a header holds control characters.")
        start += 1
    encoded = body[start:]
    # An empty line ends the headers ("Version: ...").
    while encoded and not encoded[0]:
        del encoded[0]
    while encoded and not encoded[-1]:
        del encoded[-1]
    checksum = encoded.pop()[1:] if encoded and _CHECKSUM.match(encoded[-1]) else None
    for text in encoded:
        if _CHECKSUM.match(text):
            raise _refused("The key file is damaged: there is text after its checksum.")
        if not _BASE64.match(text):
            raise _refused("The key file is damaged: its armor is not base64.", repr(text[:60]))
    try:
        packets = base64.b64decode(b"".join(encoded), validate=True)
        wanted = None if checksum is None else base64.b64decode(checksum, validate=True)
    except binascii.Error as error:
        raise _refused("The key file is damaged: its armor is not base64.", str(error)) from error
    if wanted is not None and wanted != _crc24(packets).to_bytes(3, "big"):
        raise _refused("The key file is damaged: its checksum does not fit.")
    return packets


def _armored(packets: bytes) -> str:
    text = base64.b64encode(packets).decode()
    checksum = base64.b64encode(_crc24(packets).to_bytes(3, "big")).decode()
    lines = [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]
    return "\n".join([_BEGIN.decode(), "", *lines, f"={checksum}", _END.decode(), ""])


@functools.cache
def _crc24_table() -> tuple[int, ...]:
    table = []
    for octet in range(256):
        crc = octet << 16
        for _bit in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
        table.append(crc)
    return tuple(table)


def _crc24(data: bytes) -> int:
    table = _crc24_table()
    crc = 0xB704CE
    for octet in data:
        crc = ((crc << 8) & 0xFFFFFF) ^ table[(crc >> 16) ^ octet]
    return crc


def _of_packets(data: bytes) -> tuple[tuple[str, ...], bytes]:
    """Return the fingerprints of the primary keys, and the packets to write."""
    found = []
    written = bytearray()
    position = 0
    while position < len(data):
        tag, start, end = _packet(data, position)
        if tag == _SECRET_KEY:
            raise _refused("The key file holds a secret key.")
        if position == 0 and tag != _PUBLIC_KEY:
            raise _refused("The key file does not begin with a public key.", f"packet tag {tag}")
        if tag == _PUBLIC_KEY:
            found.append(_fingerprint(data[start:end]))
        if tag in _WRITTEN:
            written += data[position:end]
        position = end
    if not found:
        raise _refused("The key file is not an OpenPGP key.", "an armored block is empty")
    return tuple(dict.fromkeys(found)), bytes(written)


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
        # Not used for security: this is the key's name in this format. Nodes in FIPS mode refuse
        # SHA-1 without the flag.
        return hashlib.new("sha1", hashed, usedforsecurity=False).hexdigest().upper()
    if version == _VERSION_6:
        hashed = b"\x9b" + len(body).to_bytes(4, "big") + body
        return hashlib.sha256(hashed).hexdigest().upper()
    raise _refused(
        "The key file holds a key of a version without a usable fingerprint.", f"version {version}"
    )


def _refused(cause: str, evidence: str = "") -> InputError:
    return InputError(cause, evidence=evidence, next_step=_NEXT_STEP)
