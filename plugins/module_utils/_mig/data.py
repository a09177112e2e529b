# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG by card: profiles, placements and oldest drivers.

The card's own list (``nvidia-smi mig -lgip`` and ``-lgipp``) decides where it can be read; these
tables are for a plan before the driver is loaded. Sources, read 2026-11: profile names and counts
from NVIDIA's mig-parted 0.15 (config-default.yaml) and the MIG User Guide for R580; placements of
A100 from the guide, and of H100 NVL and RTX PRO 6000 second-hand, from listings (``-lgipp``) of
others: on the RTX PRO 6000 a slice of compute has three of memory. The other cards with 7 slices
are assumed to have the placements of A100 and H100 NVL. The oldest drivers are from "Deployment
considerations" of the guide for R620. Read 2026-11-28: the profiles of RTX PRO 5000 and 4500, from
the same guide; that their halves begin at 0 and 1 is assumed, and so are the profiles of A100 with
64 GB and H20-3e (by memory) (u). H20 NVL16 and the H100 2339 are not in it: no document was found
that has their profiles.
"""

from __future__ import annotations

from .types import Profile

# Memory in GB of the profiles 1g, 1g with double memory, 2g, 3g, 4g and 7g.
_SEVEN_SLICES = {
    "a100-40": (5, 10, 10, 20, 20, 40),
    "64": (8, 16, 16, 32, 32, 64),
    "80": (10, 20, 20, 40, 40, 80),
    "94": (12, 24, 24, 47, 47, 94),
    "96": (12, 24, 24, 48, 48, 96),
    "141": (18, 35, 35, 71, 71, 141),
    "144": (18, 36, 36, 72, 72, 144),
    "b200": (23, 45, 45, 90, 90, 180),
    "gb200": (23, 47, 47, 93, 93, 186),
    "b300": (34, 67, 67, 135, 135, 269),
    "gb300": (35, 70, 70, 139, 139, 278),
}
_A30 = (
    Profile("1g.6gb", (0, 1, 2, 3), 1, 4),
    Profile("1g.6gb+me", (0, 1, 2, 3), 1, 1),
    Profile("2g.12gb", (0, 2), 2, 2),
    Profile("2g.12gb+me", (0, 2), 2, 1),
    Profile("4g.24gb", (0,), 4, 1),
)
_RTX_PRO_6000 = (
    *(
        Profile(f"1g.24gb{attributes}", (0, 3, 6, 9), 3, count)
        for attributes, count in (("", 4), ("+me", 1), ("+gfx", 4), ("+me.all", 1), ("-me", 4))
    ),
    *(
        Profile(f"2g.48gb{attributes}", (0, 6), 6, count)
        for attributes, count in (("", 2), ("+gfx", 2), ("+me.all", 1), ("-me", 2))
    ),
    *(Profile(f"4g.96gb{attributes}", (0,), 12, 1) for attributes in ("", "+gfx")),
)
_RTX_PRO_5000 = (
    *(
        Profile(f"1g.24gb{attributes}", (0, 1), 1, count)
        for attributes, count in (("", 2), ("+me", 1), ("+gfx", 2), ("+me.all", 1), ("-me", 2))
    ),
    *(Profile(f"2g.48gb{attributes}", (0,), 2, 1) for attributes in ("", "+gfx")),
)
_RTX_PRO_4500 = (
    *(
        Profile(f"1g.16gb{attributes}", (0, 1), 1, count)
        for attributes, count in (("", 2), ("+gfx", 2), ("+me.all", 1), ("-me", 2))
    ),
    *(Profile(f"2g.32gb{attributes}", (0,), 2, 1) for attributes in ("", "+gfx")),
)
_OTHERS = {
    "a30": _A30,
    "rtx-pro-6000": _RTX_PRO_6000,
    "rtx-pro-5000": _RTX_PRO_5000,
    "rtx-pro-4500": _RTX_PRO_4500,
}

# PCI device ID -> (row of profiles, oldest driver or empty where no source has it).
_CARDS = {
    **dict.fromkeys(("20b0", "20b1", "20bd", "20f1", "20f6"), ("a100-40", "450.80.02")),
    **dict.fromkeys(("20b2", "20b5", "20f3", "20f5"), ("80", "450.80.02")),
    "20b3": ("64", "450.80.02"),
    **dict.fromkeys(("2330", "2331", "2322", "2324"), ("80", "525.85.12")),
    **dict.fromkeys(("2321", "233a"), ("94", "525.85.12")),
    "2342": ("96", ""),
    "233d": ("96", "525.85.12"),
    "2329": ("96", "535.161.07"),
    "20b6": ("96", ""),
    **dict.fromkeys(("2335", "233b"), ("141", "550.90.07")),
    "232c": ("141", ""),
    "2348": ("144", ""),
    "20b7": ("a30", "460.73.01"),
    **dict.fromkeys(("2901", "2909"), ("b200", "570.133.20")),
    "2941": ("gb200", "570.133.20"),
    "3182": ("b300", "580.82.07"),
    **dict.fromkeys(("31c2", "31c3"), ("gb300", "595.58.03")),
    **dict.fromkeys(("2bb1", "2bb4", "2bb5"), ("rtx-pro-6000", "575.51.03")),
    "2bb3": ("rtx-pro-5000", "575.57.08"),
    "2c3a": ("rtx-pro-4500", "575.64"),
}
# Device and board of cards that are not those of the table: RTX PRO 5000 with 72 GB.
_OTHER_BOARDS = (("2bb3", "227a10de"),)


def table_profiles(device_id: str, board: str = "") -> tuple[Profile, ...] | None:
    """Return the profiles of a card; None if the table does not have it.

    :param board: its subsystem, device and vendor in one number; empty if it is not known.
    """
    row = _CARDS[device_id][0] if in_table(device_id, board) else ""
    if row in _OTHERS:
        return _OTHERS[row]
    memory = _SEVEN_SLICES.get(row)
    if memory is None:
        return None
    one, double, two, three, four, seven = memory
    return (
        Profile(f"1g.{one}gb", (0, 1, 2, 3, 4, 5, 6), 1, 7),
        Profile(f"1g.{one}gb+me", (0, 1, 2, 3, 4, 5, 6), 1, 1),
        Profile(f"1g.{double}gb", (0, 2, 4, 6), 2, 4),
        Profile(f"2g.{two}gb", (0, 2, 4), 2, 3),
        Profile(f"3g.{three}gb", (0, 4), 4, 2),
        Profile(f"4g.{four}gb", (0,), 4, 1),
        Profile(f"7g.{seven}gb", (0,), 8, 1),
    )


def oldest_driver(device_id: str) -> str:
    """Return the oldest driver with MIG on the card; empty if that is unknown."""
    return _CARDS.get(device_id, ("", ""))[1]


def in_table(device_id: str, board: str = "") -> bool:
    """Return whether the table has the card, so that it can do MIG."""
    return device_id in _CARDS and (device_id, board) not in _OTHER_BOARDS
