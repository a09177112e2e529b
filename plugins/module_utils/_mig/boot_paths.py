# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the layout of MIG for the boot is: the script, the unit that runs it, and its link."""

from __future__ import annotations

UNIT = "kubegpu-mig.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
SCRIPT_PATH = "/etc/kubegpu/mig-layout"
WANTS = "/etc/systemd/system/multi-user.target.wants"
BOOT_PATHS = (SCRIPT_PATH, UNIT_PATH)
