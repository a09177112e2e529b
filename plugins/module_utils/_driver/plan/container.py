# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver that a container brings, such as the driver pod of NVIDIA's GPU operator. Pure."""

from __future__ import annotations

from ..._core.errors import Refusal
from .config_files import CONTAINER, CONTAINER_STATE
from .decision import DecisionInput


def check_container(inputs: DecisionInput) -> None:
    """Check that no container brings the driver to a host that has none.

    :raises Refusal: one does, or may do.
    """
    driver = inputs.node["driver"]
    sign, loaded = driver.get("container"), driver["loaded"]
    if not sign or inputs.installed is not None:
        return
    if not loaded and sign in (CONTAINER, CONTAINER_STATE):
        # Left behind. The operator makes the folder for a driver of the host, too.
        return
    off = (
        "remove the container's driver first (of the GPU operator: driver.enabled=false, or the "
        "label nvidia.com/gpu.deploy.driver=false of the node) until its module is unloaded"
    )
    state = f"driver {loaded} is loaded" if loaded else "no driver is loaded yet"
    if sign != CONTAINER:
        raise Refusal(
            "The driver is managed by the GPU operator's container, or another driver container: "
            f"{state}, and the host itself has no driver installed. A second driver on the host "
            "would conflict with it.",
            f"leave it to the container (nvidia_driver_enabled: false); or {off}, then run again.",
            sign,
        )
    raise Refusal(
        f"Driver {loaded} is loaded, and the host itself has no driver installed: either a driver "
        "container has ended (of the GPU operator, whose folder is there), or the driver's "
        "packages were removed.",
        "where the GPU operator manages the driver: nvidia_driver_enabled: false. Where its "
        "packages were removed: reboot, so that the module is gone, then run again.",
        f"{sign} is there, without a driver",
    )
