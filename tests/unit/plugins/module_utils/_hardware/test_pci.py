# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware import pci_data as _pci_data
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci import (
    PciFunction,
    Vgpu,
    count_nvswitches,
    find_gpus,
    generation,
    hex_id,
    is_legacy,
    product,
    read_vgpu,
)

# One or more of each row of the range table. Those after the first few: the chip in pci.ids of
# 2026-08-22, as GP100 for 1725, GK110 for 130b, GB20B for 2e03, GR100 for 3000, GB120 for 3340.
GENERATIONS = {
    "maxwell": "1340 13f2 17fd 1431 171f 1730",
    "pascal": "15f0 15f8 15f9 1b38 1bb3 1c03 1d01 1d52"
    " 1d56 15c2 15fa 15fb 15fc 15ff 1725 172e 172f",
    "volta": "1d81 1db1 1db4 1db5 1db6 1df6",
    "turing": "1eb8 1fb2 2182 1e04 1fb0",
    "ampere": "20b0 20b2 20b5 20b7 20f5 2235 2236 2237 25b6 2484",
    "hopper": "2330 2331 2335 2329 2342 2348 230e",
    "ada": "2684 26b5 26b9 27b8 28b0",
    "blackwell": "2901 2909 2941 2bb5 2c3a 2d04 2e12 2f04 3182 31c2 31c3"
    " 2bb1 2bb3 2bb4 2bb9 2e03 2e06 2e13 2e2a 3200 3224 323e 3340",
    "rubin": "3000 3021 3040 30c0",
    "kepler": "102d 1023 11bf 0ff2 0fa0 0fa5 0fa7 130b",
    # Before Kepler, between the ranges, and after them.
    "unknown": "06d1 1d60 2e11 3201 3341 ffff",
}


@pytest.mark.parametrize(
    ("device_id", "expected"),
    [(device, name) for name, devices in GENERATIONS.items() for device in devices.split()],
)
def test_generation_of_nvidia(device_id: str, expected: str) -> None:
    assert generation("nvidia", device_id) == expected


@pytest.mark.parametrize(
    ("vendor", "device_id", "expected"),
    [
        ("amd", "74a1", "CDNA 3"),
        ("amd", "740f", "CDNA 2"),
        ("amd", "7fff", "unknown"),
        ("intel", "0bd5", "Xe-HPC"),
        ("intel", "56c0", "Xe-HPG"),
        ("intel", "ffff", "unknown"),
    ],
)
def test_generation_of_others(vendor: str, device_id: str, expected: str) -> None:
    assert generation(vendor, device_id) == expected


# Virtual functions and later cards: gpu-nfd-default-rule.yaml of AMD's GPU operator; pci.ids of
# 2026-08-22, as are Intel's.
OTHERS = {
    "CDNA 2": "7410",
    "CDNA 3": "74a2 74a8 74a9 74b5 74b6 74b9 74bc 74bd",
    "CDNA 4": "75a0 75a3 75a8 75b0 75b3 75b8",
    "RDNA 2": "73a2 73a3 73ab 73ae 73af 73bf",
    "RDNA 3": "7448 7449 744a 744b 744c 745e 7460 7461 7470",
    "RDNA 4": "7550 7551 7590",
    "Xe-HPC": "0b69 0b6e 0bd4",
    "Xe-HPG": "56b1 56b2 56b3",
}


@pytest.mark.parametrize(
    ("device_id", "expected"),
    [(device, name) for name, devices in OTHERS.items() for device in devices.split()],
)
def test_products_of_others_are_known(device_id: str, expected: str) -> None:
    vendor = "intel" if expected.startswith("Xe") else "amd"
    assert generation(vendor, device_id) == expected
    assert product(vendor, (device_id, None, None))


def test_every_known_product_has_a_generation() -> None:
    ids = {*_pci_data.NVIDIA_PRODUCTS, *(key[0] for key in _pci_data.NVIDIA_SUBSYSTEM_PRODUCTS)}
    assert [device for device in ids if generation("nvidia", device) == "unknown"] == []


def test_ranges_are_in_order_and_do_not_overlap() -> None:
    edges = [edge for first, last, _name in _pci_data.NVIDIA_RANGES for edge in (first, last)]
    assert edges == sorted(edges)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (("25b6", "10de", "14a9"), "A16"),
        (("25b6", "10de", "157e"), "A2"),
        (("25b6", "1028", "0001"), None),
        (("1fb0", "10de", "12db"), "T1000"),
        (("1fb0", "10de", "1485"), "DGX Display"),
        (("27b8", "10de", "1733"), "L4-3Q"),
        (("27b8", "10de", "16ca"), "L4"),
        (("3341", "10de", "0000"), None),
        # README.md of the open kernel modules, 595.45.04.
        (("230e", "10de", "20df"), "H20 NVL16"),
        (("2bb1", "10de", "204b"), "RTX PRO 6000 Blackwell Workstation Edition"),
        (("2bb3", "10de", "204d"), "RTX PRO 5000 Blackwell"),
        (("2bb3", "10de", "227a"), "RTX PRO 5000 72GB Blackwell"),
        (("2bb4", "10de", "204c"), "RTX PRO 6000 Blackwell Max-Q Workstation Edition"),
        (("2bb9", "10de", "2091"), "RTX 6000D"),
    ],
)
def test_product_by_id_and_subsystem(key: tuple[str, str, str], expected: str | None) -> None:
    assert product("nvidia", key) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0x10DE\n", "10de"),
        ("0x030200", "0302"),
        ("0x12", "0012"),
        ("nonsense", None),
        ("0x+20b5", None),
        ("0x1_0", None),
        ("0x\u0662\u0663", None),
        ("0x", None),
        ("", None),
        (None, None),
    ],
)
def test_hex_id(text: str | None, expected: str | None) -> None:
    assert hex_id(text) == expected


@pytest.mark.parametrize(
    ("vendor", "device_id", "expected"),
    [("nvidia", "102d", True), ("nvidia", "1340", False), ("amd", "66a1", False)],
)
def test_is_legacy(vendor: str, device_id: str, expected: bool) -> None:
    assert is_legacy(vendor, device_id) is expected


@pytest.mark.parametrize(
    ("vendor_id", "device_id", "pci_class", "address", "counted"),
    [
        pytest.param("10de", "2330", "0302", "0000:0f:00.0", True, id="3D controller"),
        pytest.param("10de", "1eb8", "0300", "0000:00:05.0", True, id="VGA controller"),
        pytest.param("10de", "2941", "0380", "0008:01:00.0", True, id="display controller"),
        pytest.param("10de", "22ba", "0403", "0000:01:00.1", False, id="audio"),
        pytest.param("10de", "1ad8", "0c03", "0000:01:00.2", False, id="USB"),
        pytest.param("10de", "1af1", "0680", "0000:c4:00.0", False, id="NVSwitch"),
        pytest.param("1002", "74a1", "1200", "0000:05:00.0", True, id="MI300X"),
        pytest.param("1002", "7fff", "0380", "0000:05:00.0", True, id="new AMD card"),
        pytest.param("1002", "164e", "0300", "0000:0a:00.0", False, id="inside the processor"),
        pytest.param("1002", "515e", "0300", "0000:10:0d.0", False, id="management chip"),
        pytest.param("8086", "0bd5", "0380", "0000:29:00.0", True, id="Max 1550"),
        pytest.param("8086", "56c0", "0380", "0000:00:06.0", True, id="Flex given to a guest"),
        pytest.param("8086", "ffff", "0300", "0000:03:00.0", True, id="new Intel card"),
        pytest.param("8086", "4680", "0300", "0000:00:02.0", False, id="Intel, processor"),
        pytest.param("10de", "1340", "1200", "0000:03:00.0", False, id="accelerator class"),
        pytest.param("1a03", "2000", "0300", "0000:05:00.0", False, id="ASPEED"),
    ],
)
def test_what_counts_as_a_gpu(
    vendor_id: str, device_id: str, pci_class: str, address: str, counted: bool
) -> None:
    function = PciFunction(address, vendor_id, device_id, pci_class)
    assert bool(find_gpus([function])) is counted


def test_nvswitches_but_no_old_chip_sets() -> None:
    functions = [
        PciFunction("0000:c4:00.0", "10de", "1af1", "0680"),
        PciFunction("0000:c5:00.0", "10de", "22a3", "0680"),
        PciFunction("0000:00:01.0", "10de", "0272", "0680"),
        PciFunction("0000:0f:00.0", "10de", "2330", "0302"),
    ]
    assert count_nvswitches(functions) == 2


def test_display_card_alone_is_a_gpu_beside_another_it_is_none() -> None:
    display = PciFunction("0000:c1:00.0", "10de", "1fb0", "0300", "10de", "1485")
    assert [gpu["product"] for gpu in find_gpus([display])] == ["DGX Display"]
    compute = PciFunction("0000:81:00.0", "10de", "20b2", "0302", "10de", "1463")
    assert [gpu["product"] for gpu in find_gpus([display, compute])] == ["A100-SXM4-80GB"]


def test_description_has_every_key() -> None:
    (gpu,) = find_gpus(
        [PciFunction("0000:3b:00.0", "10de", "1bb3", "0302", "10de", "11d8", "nvidia")]
    )
    assert gpu == {
        "address": "0000:3b:00.0",
        "vendor": "nvidia",
        "vendor_id": "10de",
        "device_id": "1bb3",
        "subsystem_vendor_id": "10de",
        "subsystem_device_id": "11d8",
        "class": "0302",
        "generation": "pascal",
        "product": "Tesla P4",
        "kernel_driver": "nvidia",
        "virtual_function": False,
        "vgpu": {
            "guest": None,
            "host_driver_version": None,
            "host_driver_branch": None,
            "licence": None,
        },
    }


# Virtual GPUs.


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
