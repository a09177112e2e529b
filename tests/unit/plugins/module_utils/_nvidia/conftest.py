# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of NVIDIA's tables read the tables themselves."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fixed_branches() -> None:
    """Leave ``BRANCHES`` as it is."""
