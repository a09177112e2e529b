# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI ids of GPUs: which generation and product they are. Data, not code.

Sources, read 2026-11-23: the PCI ID repository (pci.ids 2026.08.22); the READMEs of NVIDIA's open
kernel modules (525.53 to 595.45.04); NVIDIA's supported-gpus.json. AMD's ids: pci.ids, libdrm's
amdgpu.ids, and the node rule of AMD's GPU operator (gpu-nfd-default-rule.yaml); Intel's: pci.ids.
Ids marked (u) come from one public list only. docs/data.md says how to compare.
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
    ("2bb3", "10de", "227a"): "RTX PRO 5000 72GB Blackwell",
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
    "230e": "H20 NVL16",
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
    "233b": "H200 NVL",
    "2342": "GH200 120GB",
    "2348": "GH200 144G HBM3e",
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
    "2b85": "GeForce RTX 5090",
    "2bb1": "RTX PRO 6000 Blackwell Workstation Edition",
    "2bb3": "RTX PRO 5000 Blackwell",
    "2bb4": "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "2bb5": "RTX PRO 6000 Blackwell Server Edition",
    "2bb9": "RTX 6000D",
    "2c3a": "RTX PRO 4500 Blackwell Server Edition",
    "2e12": "GB10",
    "3182": "B300",
    "31c2": "GB300",
    "31c3": "GB300",
}

# First id, last id, generation. Kepler and older came before the scheme by high byte.
NVIDIA_RANGES = (
    (0x0FA0, 0x0FFF, "kepler"),
    (0x1001, 0x103F, "kepler"),
    (0x1180, 0x11FF, "kepler"),
    (0x1280, 0x12BA, "kepler"),
    (0x130B, 0x130B, "kepler"),
    (0x1340, 0x14FF, "maxwell"),
    (0x15C0, 0x15FF, "pascal"),
    (0x1600, 0x171F, "maxwell"),
    # GP100 of engineering boards.
    (0x1720, 0x172F, "pascal"),
    (0x1730, 0x17FF, "maxwell"),
    (0x1B00, 0x1CFF, "pascal"),
    (0x1D00, 0x1D5F, "pascal"),
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
    # GB20B: N1X and GB10. The ids between are not assigned yet.
    (0x2E03, 0x2E03, "blackwell"),
    (0x2E06, 0x2E06, "blackwell"),
    (0x2E12, 0x2E13, "blackwell"),
    (0x2E2A, 0x2E2A, "blackwell"),
    (0x2F00, 0x2FFF, "blackwell"),
    (0x3000, 0x30FF, "rubin"),
    (0x3100, 0x31FF, "blackwell"),
    # GB112 and GB120.
    (0x3200, 0x3200, "blackwell"),
    (0x3224, 0x3224, "blackwell"),
    (0x323E, 0x323E, "blackwell"),
    (0x3340, 0x3340, "blackwell"),
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
    "73a2": ("Radeon Pro W6900X", "RDNA 2"),
    "73a3": ("Radeon Pro W6800", "RDNA 2"),
    "73ab": ("Radeon Pro W6800X", "RDNA 2"),
    "73ae": ("Radeon Pro V620 MxGPU", "RDNA 2"),
    "73af": ("Radeon RX 6900 XT", "RDNA 2"),
    "73bf": ("Radeon RX 6800/6900 XT", "RDNA 2"),
    "7388": ("Instinct MI100", "CDNA"),
    "738c": ("Instinct MI100", "CDNA"),
    "738e": ("Instinct MI100", "CDNA"),
    "7408": ("Instinct MI250X", "CDNA 2"),
    "740c": ("Instinct MI250X/MI250", "CDNA 2"),
    "740f": ("Instinct MI210", "CDNA 2"),
    "7410": ("Instinct MI210 VF", "CDNA 2"),
    "7448": ("Radeon Pro W7900", "RDNA 3"),
    "7449": ("Radeon Pro W7800 48GB", "RDNA 3"),
    "744a": ("Radeon Pro W7900 Dual Slot", "RDNA 3"),
    "744b": ("Radeon Pro W7900D", "RDNA 3"),
    "744c": ("Radeon RX 7900", "RDNA 3"),
    "745e": ("Radeon Pro W7800", "RDNA 3"),
    "7460": ("Radeon Pro V710", "RDNA 3"),
    "7461": ("Radeon Pro V710 MxGPU", "RDNA 3"),
    "7470": ("Radeon Pro W7700", "RDNA 3"),
    "74a0": ("Instinct MI300A", "CDNA 3"),
    "74a1": ("Instinct MI300X", "CDNA 3"),
    "74a2": ("Instinct MI308X", "CDNA 3"),
    "74a5": ("Instinct MI325X", "CDNA 3"),
    "74a8": ("Instinct MI308X HF", "CDNA 3"),
    "74a9": ("Instinct MI300X HF", "CDNA 3"),
    "74b5": ("Instinct MI300X VF", "CDNA 3"),
    "74b6": ("Instinct MI308X VF", "CDNA 3"),
    "74b9": ("Instinct MI325X VF", "CDNA 3"),
    "74bc": ("Instinct MI308X HF VF", "CDNA 3"),  # (u)
    "74bd": ("Instinct MI300X HF VF", "CDNA 3"),
    "7550": ("Radeon RX 9070", "RDNA 4"),
    "7551": ("Radeon AI PRO R9700", "RDNA 4"),
    "7590": ("Radeon RX 9060", "RDNA 4"),
    "75a0": ("Instinct MI350X", "CDNA 4"),
    "75a3": ("Instinct MI355X", "CDNA 4"),
    "75a8": ("Instinct MI350P", "CDNA 4"),
    "75b0": ("Instinct MI350X VF", "CDNA 4"),
    "75b3": ("Instinct MI355X VF", "CDNA 4"),
    "75b8": ("Instinct MI350P VF", "CDNA 4"),  # (u)
}

INTEL_PRODUCTS = {
    "0b69": ("Data Center GPU Max 1450", "Xe-HPC"),
    "0b6e": ("Data Center GPU Max 1100C", "Xe-HPC"),
    "0bd0": ("Data Center GPU Max", "Xe-HPC"),
    "0bd4": ("Data Center GPU Max 1550VG", "Xe-HPC"),
    "0bd5": ("Data Center GPU Max 1550", "Xe-HPC"),
    "0bd6": ("Data Center GPU Max 1550", "Xe-HPC"),
    "0bd7": ("Data Center GPU Max 1350", "Xe-HPC"),
    "0bd8": ("Data Center GPU Max 1350", "Xe-HPC"),
    "0bd9": ("Data Center GPU Max 1100", "Xe-HPC"),
    "0bda": ("Data Center GPU Max 1100", "Xe-HPC"),
    "0bdb": ("Data Center GPU Max 1100", "Xe-HPC"),
    "56a0": ("Arc A770", "Xe-HPG"),
    "56a1": ("Arc A750", "Xe-HPG"),
    "56b1": ("Arc Pro A40/A50", "Xe-HPG"),
    "56b2": ("Arc Pro A60M", "Xe-HPG"),
    "56b3": ("Arc Pro A60", "Xe-HPG"),
    "56c0": ("Data Center GPU Flex 170", "Xe-HPG"),
    "56c1": ("Data Center GPU Flex 140", "Xe-HPG"),
    "56c2": ("Data Center GPU Flex 170V", "Xe-HPG"),
    "e20b": ("Arc B580", "Xe2-HPG"),
    "e211": ("Arc Pro B60", "Xe2-HPG"),
    "e212": ("Arc Pro B50", "Xe2-HPG"),
}
