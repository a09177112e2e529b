# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.openpgp import (
    MAX_SIZE,
    fingerprints,
    read_keys,
)
from tests.unit.fixtures.keys import ED25519, ED25519_FINGERPRINT

# Two keys made by gpg 2.2.40 for this test; the fingerprints are those that it printed.
RSA2048 = b"""-----BEGIN PGP PUBLIC KEY BLOCK-----

mQENBGsBIWYBCADf0DkZvd4aFgUfDSq6SHecvWbl91FnBNJmImFrOw+QcckNI3sP
x97Fzew9F6/U6nbQuoNkqqm3mrUW37cJVkOrxhvvqru6VRv8xvbX0BpnMjmlPEDt
xE77Ww8HJOvY61lkTP1gRT1NN3/kP8Iv7hn3Tf3/jN5GX44AqvQ4bfNIL3s7wUyN
gw3jtOkmjQ6L9F22DudMEuncuDNaxRbOQwyC0Lz2P5WTyaW38TJNlmPIVWTYFHgu
sM95EpCPY9gyTbh4EG4UBFKPCYTI6jqxrEK7WhvEcBh++AKYo7s7zDQIabkT2WKC
zGTWlkJfNH014LxRE3zT8NvztUw2kwgWTawnABEBAAG0I1VuaXQgdGVzdCB0d28g
PHR3b0BleGFtcGxlLmludmFsaWQ+iQFOBBMBCgA4FiEEU8BparsIlqF2uuMVwXD9
DYQGHBUFAmsBIWYCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQwXD9DYQG
HBXqgAf9E8etFHh6Uche6i1Wmky3E7tZWUdDwUYyHTHaSaRry7f42di3is+fw5dw
WZ2s0xOpqXfuF4euMYLJ0ZpqjruDjRHYPYVlGnU/OM9kEzaGNPm7NuI01yp6cdU3
SM5dr30m6I1AGT44PV/cJl09HL+DQux3iwlXUEhEmSGIDHxi9wbyFJGFpqL2/eht
eFKI89Ykqs9dfHO0iE8EDeCACipM/cEZlIi36FwuW+flqihkSvMYhYHtITixX3zh
ofdJq+suVDBiBBx5F/TJyT1aEwn71o8zsX1grFSX7c/iiL6tfxA2iwq60nvHptXa
Yl6Z3Vrh7URudsR6Tm2rYmuMRiBVFg==
=CAii
-----END PGP PUBLIC KEY BLOCK-----
"""
RSA2048_FINGERPRINT = "53C0696ABB0896A176BAE315C170FD0D84061C15"
# The sample certificate of version 6 in RFC 9580, A.3; its signature names the fingerprint.
VERSION_6 = b"""-----BEGIN PGP PUBLIC KEY BLOCK-----

xioGY4d/4xsAAAAg+U2nu0jWCmHlZ3BqZYfQMxmZu52JGggkLq2EVD34laPCsQYf
GwoAAABCBYJjh3/jAwsJBwUVCg4IDAIWAAKbAwIeCSIhBssYbE8GCaaX5NUt+mxy
KwwfHifBilZwj2Ul7Ce62azJBScJAgcCAAAAAK0oIBA+LX0ifsDm185Ecds2v8lw
gyU2kCcUmKfvBXbAf6rhRYWzuQOwEn7E/aLwIwRaLsdry0+VcallHhSu4RN6HWaE
QsiPlR4zxP/TP7mhfVEe7XWPxtnMUMtf15OyA51YBM4qBmOHf+MZAAAAIIaTJINn
+eUBXbki+PSAld2nhJh/LVmFsS+60WyvXkQ1wpsGGBsKAAAALAWCY4d/4wKbDCIh
BssYbE8GCaaX5NUt+mxyKwwfHifBilZwj2Ul7Ce62azJAAAAAAQBIKbpGG2dWTX8
j+VjFM21J0hqWlEg+bdiojWnKfA5AQpWUWtnNwDEM0g12vYxoWM8Y81W+bHBw805
I8kWVkXU6vFOi+HWvv/ira7ofJu16NnoUkhclkUrk0mXubZvyl4GBg==
-----END PGP PUBLIC KEY BLOCK-----
"""
VERSION_6_FINGERPRINT = "CB186C4F0609A697E4D52DFA6C722B0C1F1E27C18A56708F6525EC27BAD9ACC9"


def binary(armored: bytes) -> bytes:
    lines = armored.split(b"\n\n", 1)[1].splitlines()
    return base64.b64decode(b"".join(line for line in lines if line[:1] not in (b"-", b"=")))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(ED25519, (ED25519_FINGERPRINT,), id="ed25519"),
        pytest.param(RSA2048, (RSA2048_FINGERPRINT,), id="rsa"),
        pytest.param(VERSION_6, (VERSION_6_FINGERPRINT,), id="version 6, no checksum"),
        pytest.param(binary(ED25519), (ED25519_FINGERPRINT,), id="binary"),
        pytest.param(
            binary(RSA2048) + binary(ED25519),
            (RSA2048_FINGERPRINT, ED25519_FINGERPRINT),
            id="binary keyring",
        ),
        pytest.param(
            ED25519 + b"\n \t\n" + RSA2048,
            (ED25519_FINGERPRINT, RSA2048_FINGERPRINT),
            id="two blocks",
        ),
        pytest.param(ED25519 + ED25519, (ED25519_FINGERPRINT,), id="twice the same"),
        pytest.param(b"\n\n" + ED25519, (ED25519_FINGERPRINT,), id="white space before the block"),
        pytest.param(
            ED25519.replace(b"-----\n\n", b"-----\n", 1), (ED25519_FINGERPRINT,), id="no empty line"
        ),
        pytest.param(ED25519.replace(b"\n", b"\r\n"), (ED25519_FINGERPRINT,), id="crlf"),
        pytest.param(
            ED25519.replace(b"-----\n\n", b"-----\nVersion: GnuPG v1\nComment: x\n\n", 1),
            (ED25519_FINGERPRINT,),
            id="armor headers",
        ),
    ],
)
def test_fingerprints(data: bytes, expected: tuple[str, ...]) -> None:
    assert fingerprints(data) == expected


def test_agrees_with_a_new_format_header_of_two_octets() -> None:
    packets = binary(RSA2048)
    size = int.from_bytes(packets[1:3], "big")
    header = bytes([0xC6, ((size - 192) >> 8) + 192, (size - 192) & 0xFF])
    assert fingerprints(header + packets[3:]) == (RSA2048_FINGERPRINT,)


def test_agrees_with_a_new_format_header_of_five_octets() -> None:
    packets = binary(ED25519)
    header = b"\xc6\xff" + packets[1:2].rjust(4, b"\0")
    assert fingerprints(header + packets[2:]) == (ED25519_FINGERPRINT,)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b" \n", "empty", id="white space"),
        pytest.param(b"<!DOCTYPE html>\n<html>404</html>", "DOCTYPE", id="an error page"),
        pytest.param(ED25519.replace(b"WiKj", b"WiKk"), "checksum", id="wrong checksum"),
        pytest.param(ED25519.replace(b"mDME", b"mDMF"), "checksum", id="flipped bit"),
        pytest.param(ED25519.replace(b"mDME", b"m!ME"), "base64", id="no base64"),
        pytest.param(ED25519[:-50], "cut off", id="no end line"),
        pytest.param(ED25519 + RSA2048[:300], "cut off", id="second block cut off"),
        pytest.param(binary(ED25519)[:-3], "cut off", id="binary cut off"),
        pytest.param(b"\x99", "cut off", id="header cut off"),
        pytest.param(b"\xc6\xe1" + b"x" * 40, "partial", id="partial length"),
        pytest.param(b"\x9b" + b"x" * 40, "without a length", id="indeterminate length"),
        pytest.param(binary(ED25519) + b"\n", "no packet", id="trailing bytes"),
        pytest.param(binary(ED25519)[53:], "begin with a public key", id="no key first"),
        pytest.param(b"\x99\x00\x05\x03abcd", "version 3", id="version 3"),
        pytest.param(b"\x95\x00\x05\x04abcd", "secret", id="secret key packet"),
        pytest.param(
            ED25519.replace(b"PUBLIC", b"PRIVATE"), "PRIVATE KEY BLOCK", id="private block"
        ),
        pytest.param(ED25519 + b"some words\n" + RSA2048, "text outside", id="text between"),
        pytest.param(b"pub\n\n" + ED25519, "not an OpenPGP key", id="text before"),
        pytest.param(
            ED25519 + b"-----BEGIN FOO-----\n", "text outside", id="another kind of block"
        ),
        pytest.param(b" " + ED25519, "not an OpenPGP key", id="indented mark"),
        pytest.param(
            ED25519.replace(b"-----\n\n", b"-----\nComment: x\x0cy\n\n", 1),
            "control characters",
            id="form feed in a header",
        ),
        pytest.param(
            ED25519.replace(b"=WiKj", b"=WiKj\nmDME"),
            "after its checksum",
            id="text after the checksum",
        ),
        pytest.param(
            ED25519.splitlines()[0] + b"\n\n" + ED25519.splitlines()[-1], "empty", id="bare"
        ),
        pytest.param(b"-----BEGIN PGP A-----\n" * 9000, "PGP A", id="marks without an end"),
        pytest.param(ED25519 + b"\n" * MAX_SIZE, "too large", id="too large"),
        pytest.param(b"\0\0\0\x20\x01\x01\0\0KBXf" + b"\0" * 20, "keybox", id="keybox"),
    ],
)
def test_refused(data: bytes, words: str) -> None:
    with pytest.raises(InputError) as caught:
        fingerprints(data)
    assert words in str(caught.value)
    assert caught.value.next_step


def test_what_is_written_is_what_was_read() -> None:
    assert read_keys(ED25519).armored.encode() == ED25519
    two = read_keys(binary(ED25519) + binary(RSA2048))
    assert two.armored.count("BEGIN") == 1
    assert fingerprints(two.armored.encode()) == (ED25519_FINGERPRINT, RSA2048_FINGERPRINT)
    assert read_keys(ED25519 + RSA2048).armored.encode() == ED25519 + RSA2048
    with_headers = ED25519.replace(b"-----\n\n", b"-----\r\nVersion: GnuPG v1\r\n\r\n", 1)
    assert read_keys(with_headers).armored.encode() == ED25519


def test_packets_that_are_no_part_of_a_certificate_are_left_out() -> None:
    trust = b"\xcc\x02\x00\x00"
    marker = b"\xca\x03PGP"
    private = b"\xfc\x01x"
    keys = read_keys(binary(ED25519) + trust + marker + private)
    assert keys.armored.encode() == ED25519
