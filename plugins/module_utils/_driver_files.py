# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration files of a driver: their paths and texts. Nothing is read or written."""

from __future__ import annotations

NOUVEAU = "/etc/modprobe.d/kubegpu-nouveau.conf"
OPTIONS = "/etc/modprobe.d/kubegpu-nvidia.conf"
MODULES = "/etc/modules-load.d/kubegpu-nvidia.conf"
UDEV = "/etc/udev/rules.d/72-kubegpu-nvidia.rules"
UNATTENDED = "/etc/apt/apt.conf.d/60kubegpu-nvidia-driver"
PERSISTENCED = "/etc/systemd/system/nvidia-persistenced.service"
GRIDD = "/etc/nvidia/gridd.conf"
TOKEN = "/etc/nvidia/ClientConfigToken/kubegpu.tok"

# The files that the driver's plan writes; the facts have the sha256 of each that is there.
PATHS = (NOUVEAU, OPTIONS, MODULES, UDEV, UNATTENDED, PERSISTENCED, GRIDD, TOKEN)
