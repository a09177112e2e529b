# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drivers for NVIDIA GPUs that come with the kernel: nouveau and nova. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The kernel's own drivers for NVIDIA GPUs, each before what it is built on. nova came with 6.15;
# its DRM driver was called nova at first. Ubuntu's packages of driver 615 keep nova away as well.
KERNEL_DRIVERS = ("nouveau", "nova_drm", "nova", "nova_core")


def kernel_drivers(node: Mapping[str, Any]) -> str:
    """Return the loaded kernel drivers as text, such as ``nova and nova_core``; default nouveau.

    :param node: the fact ``gpu_node``; that of an earlier release has no names.
    """
    return " and ".join(node["nouveau"].get("modules") or ("nouveau",))
