# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AMD's driver as AMD publishes it for Ubuntu. Data, not code.

Sources: install scripts in public repositories that agree on the folders (amdgpu/<release>/ubuntu),
and lists of installed packages in public reports, for the numbers of the releases in versions:
30.10.1 is 1:6.14.14.30100100-2212064.24.04, 30.20 is 1:6.16.6.30200000-2238411.24.04, 30.30.1 is
1:6.16.13.30300100-2303411.24.04, 6.4 is 1:6.12.12.60400-2158079.24.04. AMD's own pages were not
readable (read 2026-11-23).
"""

from __future__ import annotations

import re

#: The module's source for DKMS, and its firmware, in one version.
PACKAGES = ("amdgpu-dkms", "amdgpu-dkms-firmware")
#: The name of the package set in the node's record.
PACKAGE_SET = "amd-driver"
MODULE = "amdgpu"
#: The release that is installed where none is requested and none is there.
PINNED_RELEASE = "30.30"
#: For messages.
SUPPORTED = "Ubuntu 22.04 and 24.04"

RELEASE = re.compile(r"\d{1,2}\.\d{1,2}(?:\.\d{1,2})?\Z")
# The driver has releases of its own since 30.10; before, it had those of ROCm.
_OWN_RELEASES = 30
_BUILD = re.compile(r"\.(\d{5,8})-")


def address(release: str) -> str:
    """Return AMD's repository of a release."""
    return f"https://repo.radeon.com/amdgpu/{release}/ubuntu"


def version_pattern(release: str) -> str:
    """Return the versions of all packages of a release."""
    first, second, third = (*map(int, release.split(".")), 0)[:3]
    more = "00" if first >= _OWN_RELEASES else ""
    return f"*.{first}{second:02d}{third:02d}{more}-*"


def build_number(version: str) -> int:
    """Return the number of the release in a package's version or pattern; 0 without one."""
    match = _BUILD.search(version)
    return int(match.group(1)) if match else 0
