# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration files of the cuda part that the facts look at."""

from __future__ import annotations

# Every file that this collection may write there; the facts give the checksums of those that are.
PATHS: tuple[str, ...] = ()
