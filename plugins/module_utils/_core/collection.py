# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection's version. An installed collection has no galaxy.yml; a test compares both."""

from __future__ import annotations

COLLECTION = "0.1.0"
