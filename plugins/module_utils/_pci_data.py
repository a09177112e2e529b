# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI ids of GPUs: which generation and product they are. Data, not code.

Sources, read 2026-11-21: the PCI ID repository (2023.04.11); the list of GPUs in the README of
NVIDIA's open kernel modules (550); the supported-GPU pages of the driver 580 and 595; the ranges
were checked against the last two. AMD's ids: PCI ID repository and libdrm's amdgpu.ids; Intel's:
PCI ID repository. Ids marked (u) come from one public list only.
A new product is one line here. An id that is missing still gets its generation by range.
"""

from __future__ import annotations

from typing import Optional

NVIDIA = "10de"
AMD = "1002"
INTEL = "8086"
# Device id, subsystem vendor, subsystem device.
Key = tuple[str, Optional[str], Optional[str]]

VENDORS = {NVIDIA: "nvidia", AMD: "amd", INTEL: "intel"}

# The first four digits of the class: VGA controller, 3D controller, other display controller, and
# (AMD) processing accelerator.
GPU_CLASSES = {
    "nvidia": ("0300", "0302", "0380"),
    "amd": ("0300", "0302", "0380", "1200"),
    "intel": ("0300", "0302", "0380"),
}
BRIDGE_CLASS = "0680"
# NVIDIA's chip sets of the 2000s have bridges of the same class, below this id.
FIRST_NVSWITCH_ID = 0x1A00

# Known by device id and subsystem: the same id is sold as different products.
NVIDIA_SUBSYSTEM_PRODUCTS: dict[Key, str] = {
    ("1fb0", "10de", "1485"): "DGX Display",
    ("20b0", "10de", "1450"): "A100-PG509-200",
    ("2342", "10de", "1809"): "GH200 480GB",
    ("25b6", "10de", "14a9"): "A16",
    ("25b6", "10de", "157e"): "A2",
}
# A card that only drives the screen of a DGX station, not one to compute on.
DISPLAY_ONLY: frozenset[Key] = frozenset({("1fb0", "10de", "1485")})

# Virtual GPUs that were seen in guests, for users who may not read the PCI capabilities.
VGPU_SUBSYSTEMS: dict[Key, str] = {
    ("1eb8", "10de", "130f"): "GRID T4",
    ("27b8", "10de", "1733"): "L4-3Q",
    ("27b8", "10de", "1735"): "L4-6Q",
    ("27b8", "10de", "1737"): "L4-12Q",
}

NVIDIA_PRODUCTS = {
    "1023": "Tesla K40m",
    "102d": "Tesla K80",
    "13bd": "Tesla M10",
    "13f2": "Tesla M60",
    "17fd": "Tesla M40",
    "15f7": "Tesla P100-PCIE-12GB",
    "15f8": "Tesla P100-PCIE-16GB",
    "15f9": "Tesla P100-SXM2-16GB",
    "1b38": "Tesla P40",
    "1bb3": "Tesla P4",
    "1bb4": "Tesla P6",
    "1db1": "Tesla V100-SXM2-16GB",
    "1db4": "Tesla V100-PCIE-16GB",
    "1db5": "Tesla V100-SXM2-32GB",
    "1db6": "Tesla V100-PCIE-32GB",
    "1db8": "Tesla V100-SXM3-32GB",
    "1df6": "Tesla V100S-PCIE-32GB",
    "1eb8": "Tesla T4",
    "1fb0": "T1000",
    "1fb2": "T400",
    "2182": "GeForce GTX 1660 Ti",
    "20b0": "A100-SXM4-40GB",
    "20b2": "A100-SXM4-80GB",
    "20b3": "A100-SXM-64GB",
    "20b5": "A100 80GB PCIe",
    "20b7": "A30",
    "20bd": "A800-SXM4-40GB",
    "20f1": "A100-PCIE-40GB",
    "20f3": "A800-SXM4-80GB",
    "20f5": "A800 80GB PCIe",
    "20f6": "A800 40GB Active",
    "20fd": "AX800",
    "2204": "GeForce RTX 3090",
    "2230": "RTX A6000",
    "2235": "A40",
    "2236": "A10",
    "2237": "A10G",
    "2238": "A10M",
    "2321": "H100 NVL",
    "2322": "H800 PCIe",
    "2324": "H800",
    "2329": "H20",
    "232c": "H20-3e",
    "2330": "H100 80GB HBM3",
    "2331": "H100 PCIe",
    "2335": "H200",
    "2339": "H100",
    "233a": "H800 NVL",
    "233b": "H200 NVL",  # (u)
    "2342": "GH200 120GB",
    "2348": "GH200 144G HBM3e",  # (u)
    "2684": "GeForce RTX 4090",
    "26b1": "RTX 6000 Ada Generation",
    "26b5": "L40",
    "26b9": "L40S",
    "26ba": "L20",
    "27b6": "L2",
    "27b8": "L4",
    "2901": "B200",
    "2909": "B200",
    "2941": "GB200",
    "2b85": "GeForce RTX 5090",  # (u)
    "2bb5": "RTX PRO 6000 Blackwell Server Edition",
    "2c3a": "RTX PRO 4500 Blackwell Server Edition",
    "2e12": "GB10",
    "3182": "B300",
    "31c2": "GB300",
    "31c3": "GB300",
}

# First id, last id, generation. Kepler and older came before the scheme by high byte.
NVIDIA_RANGES = (
    (0x0FC0, 0x0FFF, "kepler"),
    (0x1001, 0x103F, "kepler"),
    (0x1180, 0x11FF, "kepler"),
    (0x1280, 0x12BA, "kepler"),
    (0x1340, 0x14FF, "maxwell"),
    (0x15F0, 0x15F9, "pascal"),
    (0x1600, 0x17FF, "maxwell"),
    (0x1B00, 0x1CFF, "pascal"),
    (0x1D00, 0x1D52, "pascal"),
    (0x1D81, 0x1DFF, "volta"),
    (0x1E00, 0x1FFF, "turing"),
    (0x2000, 0x20FF, "ampere"),
    (0x2100, 0x21FF, "turing"),
    (0x2200, 0x22FF, "ampere"),
    (0x2300, 0x23FF, "hopper"),
    (0x2400, 0x25FF, "ampere"),
    (0x2600, 0x28FF, "ada"),
    (0x2900, 0x29FF, "blackwell"),
    (0x2B00, 0x2DFF, "blackwell"),
    (0x2E12, 0x2E12, "blackwell"),
    (0x2F00, 0x2FFF, "blackwell"),
    (0x3100, 0x31FF, "blackwell"),
)
# Below this id no driver that is still maintained works.
FIRST_MAXWELL_ID = 0x1340

# AMD gives graphics inside its processors ids below the first, and 9xxx; what lies below the first
# otherwise are chips of before 2012, among them the management chips of old servers (ES1000).
AMD_DISCRETE = (0x6600, 0x97FF)
AMD_PRODUCTS = {
    "6860": ("Instinct MI25", "GCN 5"),
    "66a0": ("Instinct MI50/MI60", "GCN 5"),
    "66a1": ("Instinct MI50/MI60", "GCN 5"),
    "7362": ("Radeon Pro V520/V540", "RDNA"),
    "73a1": ("Radeon Pro V620", "RDNA 2"),
    "73ae": ("Radeon Pro V620 MxGPU", "RDNA 2"),
    "7388": ("Instinct MI100", "CDNA"),
    "738c": ("Instinct MI100", "CDNA"),
    "738e": ("Instinct MI100", "CDNA"),
    "7408": ("Instinct MI250X", "CDNA 2"),
    "740c": ("Instinct MI250X/MI250", "CDNA 2"),
    "740f": ("Instinct MI210", "CDNA 2"),
    "74a0": ("Instinct MI300A", "CDNA 3"),
    "74a1": ("Instinct MI300X", "CDNA 3"),
    "74a2": ("Instinct MI308X", "CDNA 3"),  # (u)
    "74a5": ("Instinct MI325X", "CDNA 3"),
    "74b5": ("Instinct MI300X VF", "CDNA 3"),  # (u)
    "75a0": ("Instinct MI350X", "CDNA 4"),  # (u)
    "75a3": ("Instinct MI355X", "CDNA 4"),  # (u)
}

INTEL_PRODUCTS = {
    "0bd0": ("Data Center GPU Max", "Xe-HPC"),
    "0bd5": ("Data Center GPU Max 1550", "Xe-HPC"),
    "0bd6": ("Data Center GPU Max 1550", "Xe-HPC"),
    "0bd7": ("Data Center GPU Max 1350", "Xe-HPC"),
    "0bd8": ("Data Center GPU Max 1350", "Xe-HPC"),
    "0bd9": ("Data Center GPU Max 1100", "Xe-HPC"),
    "0bda": ("Data Center GPU Max 1100", "Xe-HPC"),
    "0bdb": ("Data Center GPU Max 1100", "Xe-HPC"),
    "56a0": ("Arc A770", "Xe-HPG"),
    "56a1": ("Arc A750", "Xe-HPG"),
    "56c0": ("Data Center GPU Flex 170", "Xe-HPG"),
    "56c1": ("Data Center GPU Flex 140", "Xe-HPG"),
    "56c2": ("Data Center GPU Flex 170V", "Xe-HPG"),  # (u)
    "e20b": ("Arc B580", "Xe2-HPG"),  # (u)
    "e211": ("Arc Pro B60", "Xe2-HPG"),  # (u)
    "e212": ("Arc Pro B50", "Xe2-HPG"),  # (u)
}
