# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container toolkit as NVIDIA publishes it, by package family. Data, not code.

Source: docs.nvidia.com/datacenter/cloud-native/container-toolkit (installation guide), the
repository's own ``gpgkey`` and index; the version is that of NVIDIA's GPU operator v26.7.1. Read
2026-11-23. Each value can be overridden by a variable of the role ``nvidia_container_toolkit``, so
that a new version needs no release of the collection.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._distro.data import FAMILIES as DISTRIBUTION_FAMILIES
from .._distro.data import RPM

# The version that this release installs where none is requested and none is there.
PINNED_VERSION = "1.20.1"

# From this version on the package brings nvidia-cdi-refresh.service and .path.
CDI_REFRESH_SINCE = (1, 18)

PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)

# Packages that the toolkit replaces; they conflict over daemon.json and the runtime binary.
OBSOLETE_PACKAGES = ("nvidia-docker2", "nvidia-container-runtime")

KEY_FINGERPRINTS = ("C95B321B61E88C1809C4F759DDCAE044F796ECB0",)


@dataclass(frozen=True)
class Family:
    """Values that differ between package families."""

    package_manager: str
    repository_url: str
    key_url: str
    # Appended to a version that is given without the packaging revision.
    revision: str
    # Earlier addresses of the same repository, and of those it replaced.
    earlier_urls: tuple[str, ...]
    architectures: tuple[str, ...]
    # Whether the packages themselves are signed; the metadata always is.
    signed_packages: bool = True


_EARLIER = (
    "https://nvidia.github.io/libnvidia-container/stable",
    "https://nvidia.github.io/nvidia-container-runtime",
    "https://nvidia.github.io/nvidia-docker",
)


def _family(package_manager: str, packages: str) -> Family:
    return Family(
        package_manager=package_manager,
        # The managers of RPM add the architecture, as in NVIDIA's nvidia-container-toolkit.repo.
        repository_url=f"https://nvidia.github.io/libnvidia-container/stable/{packages}",
        key_url="https://nvidia.github.io/libnvidia-container/gpgkey",
        revision="1",
        earlier_urls=_EARLIER,
        architectures=("x86_64", "aarch64"),
        # NVIDIA's .repo file has gpgcheck=0 and repo_gpgcheck=1.
        signed_packages=packages != RPM,
    )


# By the name of the package manager; yum of old releases is none that package_set uses.
FAMILIES = {
    name: _family(name, family.packages)
    for family in DISTRIBUTION_FAMILIES.values()
    for name, _path in family.managers
    if name != "yum"
}
