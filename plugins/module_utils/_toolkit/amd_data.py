# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AMD's container toolkit as AMD publishes it. Data, not code.

Source: github.com/ROCm/container-toolkit, commit 192fe8e (v1.3.0): docs/container-runtime
(quick-start-guide, requirements, cdi-guide), Makefile, build/debian, build/rpmbuild.spec,
build/cleanup.sh. Read 2026-11-23. Each value can be overridden by a variable of the role
``amd_container_toolkit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._distro.upstream import package_base
from .._repository.amd_data import ubuntu_suite

PACKAGE = "amd-container-toolkit"
#: The name of the package set in the node's record.
PACKAGE_SET = PACKAGE
# The version that this release installs where none is requested and none is there.
PINNED_VERSION = "1.3.0"
CDI_KIND = "amd.com/gpu"
CDI_PATH = "/etc/cdi/amd.json"
#: The first Docker with CDI.
CDI_SINCE = (25,)
#: For messages.
SUPPORTED = "Ubuntu 22.04 and 24.04, and RHEL 9 and its derivatives"

_APT = "https://repo.radeon.com/amd-container-toolkit/apt"
_RPM = "https://repo.radeon.com/amd-container-toolkit/el9/main"


@dataclass(frozen=True)
class Archive:
    """A repository of AMD's, in the words of ``package_repository``."""

    url: str
    suite: str
    components: tuple[str, ...] = ()
    # The .repo file of AMD's page has gpgcheck=1, and says nothing of the metadata.
    check_metadata: bool = True


def archive(system: Mapping[str, Any]) -> Archive | None:
    """Return the repository for a distribution; None if AMD has none.

    :param system: the fact ``os``.
    """
    version = str(package_base(system)["version"] or "")
    suite = ubuntu_suite(system)
    if suite:
        return Archive(_APT, suite, ("main",))
    if system["family"] == "rhel" and version.partition(".")[0] == "9":
        return Archive(_RPM, "/", check_metadata=False)
    return None


def programs(package_manager: str) -> dict[str, str]:
    """Return where the packages of a family install the programs."""
    folder = "/usr/local/bin" if package_manager == "apt" else "/usr/bin"
    return {"ctk": f"{folder}/amd-ctk", "runtime": f"{folder}/amd-container-runtime"}
