# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drivers by device ID, where they differ from those of the GPU's generation. Data, not code.

Sources, read 2026-11-23: the READMEs of NVIDIA's open kernel modules, tags 525.53 to 595.45.04 (the
Vulkan beta releases left out); supported-gpus.json of the drivers 535.261.03 to 615.71.09;
pci.ids 2026.08.22. docs/data.md says how to compare, tests/tools/compare_data.py does.
"""

from __future__ import annotations

from typing import Any

# The lowest drivers, one for each branch, and the device ids that they are the first to list. A
# branch between two of them does not list the id; each branch above the last one does.
# Left out are ids that the lists name later than drivers serve them: T4 (1eb8) and the mining cards
# 1e09, 1f0b and 2189.
_MINIMUM = {
    "525.53 535.104.05": "20f6",
    "525.60.11": "25fb",
    "525.78.01": "2582 2684 26b1 26b5 2704 2782",
    "525.85.05": "2330 25ad 25ed",
    "525.85.12": "25ab 25ac 25ec",
    "525.89.02": "2717 2757 27a0 27e0 2820 2860 28a0 28a1 28e0 28e1",
    "525.105.17 530.41.03": "2322 2324 2339 27b0 27b8",
    "525.116.03 535.54.03": "24c7 25bc 25bd 2730 2786 27ba 27bb 2838 28b8",
    "525.125.06 535.54.03": "2803",
    "525.147.05 535.86.05": "2805 2882",
    "525.147.05 535.104.05": "2770 28f8",
    "535.98": "26b2 27b2",
    "535.104.05": "20bd 2321 233a 26b9 27fb",
    "535.104.12": "27b1",
    "535.129.03 545.29.02": "2342",
    "535.146.02 550.54.14": "26b3",
    "535.154.05 550.54.14": "20fd 2685 26ba 27b6",
    "535.161.07 550.54.14": "2329 2584",
    "535.171.04 550.54.15": "28b9 28bb",
    "535.183.01 550.54.15": "28ba",
    "535.216.03 550.127.08 565.77": "232c",
    "550.54.14": "2702 2705 2783 28b0",
    "550.67": "2709 2788 2808",
    "550.76": "25b0 25b2",
    "550.90.07 555.42.06": "2335",
    "550.90.12 560.28.03": "2822",
    "550.142 570.86.15": "28a3",
    "550.163.01 570.124.04": "28e3",
    "555.42.02": "2689",
    "565.57.01": "233b 2348",
    "570.86.16": "2b85 2b87 2c02",
    "570.124.04": "2941 2c05",
    "570.133.07": "2bb1 2bb4 2c18 2c19 2c58 2c59 2f04 2f18 2f58",
    # 570.86.15 lists it; NVIDIA's GPU operator (platform support) asks for this one.
    "570.133.20": "2901",
    "570.148.08": "2d04",
    "570.153.02 575.57.08": "2bb3 2d18 2d58",
    "570.158.01 575.57.08": "2d05 2d19 2d59",
    "570.158.01 575.64": "2c38 2c39 2d39 2db8 2db9 2f38",
    "570.169 575.64": "2c31 2c34",
    "570.172.08 575.64.03": "2d98 2dd8",
    "570.190 580.76.05": "2c33 2d30",
    "570.207 580.105.08": "2c79 2d79 2df9",
    "575.57.08": "2bb5",
    "575.64.03": "2d83",
    "580.76.05": "2b8c",
    "580.82.07": "230e 29bb 2bb9 3182 31c2",
    "580.105.08": "2c77",
    "580.119.02 590.48.01": "2e12",
    # 580.142 lists 2c3a; NVIDIA's documents name this one. Whether a driver before it serves 2909
    # and 31c3, which no list before it has, is not known.
    "595.58.03": "2909 2c3a 31c3",
}

_GRACE_HOPPER = ("2342", "2348")
# GRID K340, K1 and K2: legacy branch 367 in supported-gpus.json, which never was one of NVIDIA's
# public branches for others of their generation.
_GRID_K = ("0fef", "0ff2", "11bf")

# In pci.ids, and in no driver's list up to 615.71.09: N1X (GB20B), GB112, GB120.
UNLISTED = frozenset({"2e03", "2e06", "2e13", "2e2a", "3200", "3224", "323e", "3340"})


def _products() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for text, devices in _MINIMUM.items():
        versions = text.split()
        for device in devices.split():
            rows[device] = {"minimum": versions if len(versions) > 1 else versions[0]}
    for device in _GRACE_HOPPER:
        rows[device]["modules"] = ["open"]
    for device in _GRID_K:
        rows[device] = {"first": "367", "last": "367"}
    return rows


# By device id. ``minimum`` is an exact version, or one for each branch.
PRODUCTS = _products()
