# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules that make the devices of GPUDirect Storage, RDMA and GDRCopy. Data."""

from __future__ import annotations

from collections.abc import Mapping

#: The devices of each module, as the container toolkit looks for them.
GPUDIRECT_MODULES: Mapping[str, str] = {
    "nvidia_fs": "/dev/nvidia-fs*",
    "ib_uverbs": "/dev/infiniband/uverbs*",
    "gdrdrv": "/dev/gdrdrv",
}
