# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lines of the kernel's log have to do with each other. Data, not code."""

from __future__ import annotations

from .._known_faults.rules.xids_data import RECOVERY_XID

#: Processes of one name that have an Xid of programs on one GPU, from which on the GPU is tested. A
#: choice of this collection.
MOST_JOBS = 4

#: Seconds after an Xid in which others of the same GPU belong to it. A choice of this collection.
FOLLOWS_WITHIN = 60
#: Xids that belong to another Xid of the same GPU shortly before them, beside those whose action
#: is to look for it.
FOLLOWERS = (63, 64, RECOVERY_XID)
