# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two tiers of tests: the default one (``make test``) and the full one (``make test-full``).

A test belongs to the default tier unless it has the mark ``full`` (tests/conftest.py). Tests that
choose how much they do, such as a number of examples, ask :func:`is_full`.
"""

from __future__ import annotations

import os

VARIABLE = "KUBEGPU_TIER"
DEFAULT = "default"
FULL = "full"


def is_full() -> bool:
    """Return whether this run is of the full tier."""
    return os.environ.get(VARIABLE) == FULL
