# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What AMD's repositories have in common. Data, not code.

The fingerprint is that which several repositories on GitHub give; AMD's own page was not readable
(read 2026-11-23). It can be overridden by variables of the roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._distro.upstream import package_base

KEY_FINGERPRINTS = ("CA8BB4727A47B4D09B4EE8969386B48A1A693C5C",)
ARCHITECTURES = ("x86_64",)
_UBUNTU = {"22.04": "jammy", "24.04": "noble"}


def ubuntu_suite(system: Mapping[str, Any]) -> str:
    """Return the suite of AMD's repositories for an Ubuntu; empty if they have none.

    :param system: the fact ``os``.
    """
    base = package_base(system)
    return _UBUNTU.get(str(base["version"] or ""), "") if base["id"] == "ubuntu" else ""
