# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu import Vgpu, read_vgpu


def space(*capabilities: tuple[int, bytes], first: int | None = None) -> bytes:
    """Return a configuration space with these capabilities (place, bytes), chained in order."""
    config = bytearray(256)
    config[0:4] = bytes.fromhex("de10b81e")
    config[0x06] = 0x10
    places = [place for place, _data in capabilities]
    config[0x34] = places[0] if first is None and places else first or 0
    for (place, data), following in zip(capabilities, [*places[1:], 0]):
        config[place : place + len(data)] = data
        if following:
            config[place + 1] = following
    return bytes(config)


VERSION = b"460.16\0\0\0\0" + b"r460_00\0\0\0"
# As in the unit test of NVIDIA's device plugin (internal/vgpu).
T4 = bytes([0x09, 0x00, 0x1B]) + b"VF" + bytes([0x00, 0x16]) + VERSION
MSI = bytes([0x05, 0x00, 0x81, 0x00])
PASSTHROUGH = bytes([0x09, 0x00, 0x14, 0x01]) + bytes(16)


def test_t4_of_the_device_plugins_test() -> None:
    assert read_vgpu(space((0xD0, T4), (0x68, MSI))) == Vgpu(True, "460.16", "r460_00")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(None, Vgpu(), id="not readable"),
        pytest.param(space((0xD0, T4))[:64], Vgpu(), id="cut to 64 bytes"),
        pytest.param(b"\xff" * 256, Vgpu(), id="off the bus"),
        pytest.param(space((0x68, MSI)), Vgpu(False), id="no vendor capability"),
        pytest.param(space((0x68, MSI), (0xB4, PASSTHROUGH)), Vgpu(False), id="passed through"),
        pytest.param(
            space((0xB4, PASSTHROUGH), (0xD0, T4)),
            Vgpu(True, "460.16", "r460_00"),
            id="second vendor capability",
        ),
        pytest.param(
            space((0xC0, bytes([9, 0, 0x1F]) + b"VF" + bytes([1, 4, 7, 7, 0, 22]) + VERSION)),
            Vgpu(True, "460.16", "r460_00"),
            id="another record first",
        ),
        pytest.param(
            space((0xC0, bytes([9, 0, 9]) + b"VF" + bytes([1, 0, 7, 7]))),
            Vgpu(True),
            id="record of no length",
        ),
        pytest.param(space((0xC0, bytes([9, 0, 5]) + b"VF")), Vgpu(True), id="no record"),
        pytest.param(
            space((0xC0, bytes([9, 0, 27]) + b"VF" + bytes([0, 22]) + b"535.129.03r535_00\0\0\0")),
            Vgpu(True, "535.129.03", "r535_00"),
            id="field filled to its end",
        ),
    ],
)
def test_read_vgpu(config: bytes | None, expected: Vgpu) -> None:
    assert read_vgpu(config) == expected


def test_no_capability_list() -> None:
    config = bytearray(space((0xD0, T4)))
    config[0x06] = 0
    assert read_vgpu(bytes(config)) == Vgpu(False)


def test_chain_that_loops_ends() -> None:
    config = bytearray(space((0x68, MSI), (0x78, MSI)))
    config[0x79] = 0x68
    assert read_vgpu(bytes(config)) == Vgpu(False)


@given(st.binary(min_size=256, max_size=256))
def test_any_bytes_give_an_answer(config: bytes) -> None:
    assert read_vgpu(config).guest in (True, False, None)
