# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of packages with NVIDIA's driver, CUDA and container toolkit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

TOOLKIT_PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)


# Replaced by the toolkit. Installed next to it, they conflict over daemon.json and the runtime.
OBSOLETE_TOOLKIT_PACKAGES = ("nvidia-docker2", "nvidia-container-runtime")


_DRIVER_PREFIXES = (
    "nvidia-",
    "libnvidia-",
    "linux-modules-nvidia-",
    "linux-objects-nvidia-",
    "linux-signatures-nvidia-",
    "xserver-xorg-video-nvidia",
    "xorg-x11-drv-nvidia",
    "kmod-nvidia",
    "akmod-nvidia",
    "dkms-nvidia",
    "cuda-drivers",
    "libnvsdm-",
)


_DRIVER_NAMES = ("libcuda1", "libnvsdm", "nvlsm")


_NO_DRIVER_PREFIXES = (
    "nvidia-container",
    "libnvidia-container",
    "nvidia-docker",
    "nvidia-cuda-",
    "nvidia-cudnn",
    "nvidia-visual-profiler",
    "nvidia-nsight",
    "nvidia-profiler",
    "nvidia-detect",
    "nvidia-installer-cleanup",
)


_CUDA_PREFIXES = (
    "cuda-toolkit",
    "cudnn",
    "libcudnn",
    "libnccl",
    "nvidia-cuda-toolkit",
    "nvidia-cudnn",
)


class _Package(Protocol):
    """A package of any kind that has a name and a maintainer."""

    @property
    def name(self) -> str: ...

    @property
    def maintainer(self) -> str: ...


def is_driver(name: str) -> bool:
    """Return whether the package belongs to the NVIDIA driver, and not to software on top of it."""
    if name.startswith(_NO_DRIVER_PREFIXES):
        return False
    plain = name.partition(":")[0]
    return name.startswith(_DRIVER_PREFIXES) or plain in _DRIVER_NAMES


def is_cuda(name: str) -> bool:
    """Return whether the package belongs to a CUDA toolkit or its libraries."""
    # Files that all versions share are in the newest version.
    return name.startswith(_CUDA_PREFIXES) and not name.endswith("config-common")


def driver_source(packages: Sequence[_Package]) -> str | None:
    """Return ``nvidia`` or ``distro`` by the makers of the driver's packages; None without any."""
    core = [package for package in packages if _is_core(package.name)]
    if not core:
        return None
    makers = [package.maintainer.lower() for package in core]
    # The distributions name their own teams ("Debian NVIDIA Maintainers", "Ubuntu Core
    # Developers"); NVIDIA's repository says nvidia.com, or NVIDIA alone.
    by_nvidia = any("nvidia.com" in maker or maker.startswith("nvidia") for maker in makers)
    return "nvidia" if by_nvidia else "distro"


def kernel_module_type(packages: Mapping[str, str]) -> str | None:
    """Return ``open`` or ``proprietary`` by the packages of the kernel modules, else None."""
    kernel = [name for name in packages if _is_kernel(name)]
    if not kernel:
        return None
    return "open" if any("open" in name for name in kernel) else "proprietary"


def _is_kernel(name: str) -> bool:
    return (
        name.startswith(("linux-modules-nvidia-", "linux-objects-nvidia-", "kmod-nvidia", "akmod-"))
        or "dkms" in name
        or name.startswith(("nvidia-kernel-open", "nvidia-open-kernel", "nvidia-open"))
        or name.startswith("nvidia-kernel-source")
    )


def _is_core(name: str) -> bool:
    if "-signed-" in name:
        # SUSE signs kernel modules for NVIDIA's own packages.
        return False
    return _is_kernel(name) or name.startswith(
        (
            *("nvidia-driver", "nvidia-headless", "nvidia-utils", "libnvidia-compute"),
            *("cuda-drivers", "nvidia-compute"),
        )
    )
