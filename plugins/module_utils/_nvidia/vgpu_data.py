# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The releases of NVIDIA's vGPU software: driver branch, number, long-term support. Data.

Release notes 12.0 to 20.0, "Compatibility Requirements for the NVIDIA vGPU Manager and Guest VM
Driver" (docs.nvidia.com/vgpu, read 2026-11-27): the vGPU manager of the host works with guest
drivers of its own release branch, of the branch before it and, if both are long-term support, of
the long-term branch before it. A guest driver that is newer than the host's never works.

(u): that 13, 16 and 19 are the long-term branches follows from the notes that name that third case
and from the data-centre branches of the same numbers; the page of the life cycle was not read.
Branches without a vGPU release (545, 560, 590, ...) have no row and are not judged.
"""

from __future__ import annotations

READ = "2026-11-27"

#: Driver branch, number of the release, whether it is long-term; the oldest first.
RELEASES: tuple[tuple[str, int, bool], ...] = (
    ("470", 13, True),
    ("510", 14, False),
    ("525", 15, False),
    ("535", 16, True),
    ("550", 17, False),
    ("570", 18, False),
    ("580", 19, True),
    ("595", 20, False),
)
