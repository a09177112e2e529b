# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration files of a driver: their paths. Nothing is read or written."""

from __future__ import annotations

import hashlib

NOUVEAU = "/etc/modprobe.d/kubegpu-nouveau.conf"
OPTIONS = "/etc/modprobe.d/kubegpu-nvidia.conf"
MODULES = "/etc/modules-load.d/kubegpu-nvidia.conf"
UDEV = "/etc/udev/rules.d/72-kubegpu-nvidia.rules"
UNATTENDED = "/etc/apt/apt.conf.d/60kubegpu-nvidia-driver"
PERSISTENCED = "/etc/systemd/system/nvidia-persistenced.service"
GRIDD = "/etc/nvidia/gridd.conf"
TOKEN = "/etc/nvidia/ClientConfigToken/kubegpu.tok"
IMEX_NODES = "/etc/nvidia-imex/nodes_config.cfg"

# Where the root file system of a driver container is, which has the driver instead of the host.
CONTAINER = "/run/nvidia/driver"
# What it keeps for its next start, while its modules stay loaded.
CONTAINER_STATE = "/run/nvidia/nvidia-driver.state"

# The value of the node's record, and the beginning of the keys of its files.
RECORD = "nvidia_driver"
FILES = "nvidia_driver::"
# The files that a plan writes; the facts have the SHA-256 of each that exists.
PATHS = (NOUVEAU, OPTIONS, MODULES, UDEV, UNATTENDED, PERSISTENCED, GRIDD, TOKEN, IMEX_NODES)
# What each is for, as a plan gives it.
PURPOSES = {
    NOUVEAU: "block nouveau",
    OPTIONS: "options of the kernel modules",
    MODULES: "load the modules at boot",
    UDEV: "create the device files",
    UNATTENDED: "no unattended upgrade of the driver",
    PERSISTENCED: "the persistence daemon",
    GRIDD: "licence of the guest",
    IMEX_NODES: "nodes of the NVLink domain",
}
# Files that are copied into the initial RAM disk.
IN_INITRAMFS = (NOUVEAU, OPTIONS)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
