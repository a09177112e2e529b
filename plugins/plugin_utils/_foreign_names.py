# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables of other people's roles that an inventory keeps, and what to set here. Data.

They have the prefixes of this collection. Sources, read on 2026-11-27: ``defaults/main.yml`` of
https://github.com/NVIDIA/ansible-role-nvidia-driver (which DeepOps uses as well), and
``roles/kubernetes-apps/container_engine_accelerator/nvidia_gpu/defaults/main.yml`` of
https://github.com/kubernetes-sigs/kubespray.
"""

from __future__ import annotations

from collections.abc import Mapping

_NVIDIA = "NVIDIA's role nvidia_driver (and DeepOps)"
_KUBESPRAY = "kubespray"
_FROM_NVIDIA = "nvidia_driver_source: nvidia takes NVIDIA's repository, distro the distribution's"
_PACKAGES = "the packages follow from nvidia_driver_branch and nvidia_driver_source"
_MIRROR = "nvidia_driver_repository.url and .key_url name a mirror"
_CONTAINER = "the driver is installed on the node; nvidia_driver_enabled: false leaves one alone"

# Name of the variable: whose it is, and what to set here.
FOREIGN: Mapping[str, tuple[str, str]] = {
    "nvidia_driver_skip_reboot": (
        _NVIDIA,
        "nvidia_driver_reboot has the opposite meaning: leave it out where nodes must not reboot",
    ),
    "nvidia_driver_package_state": (_NVIDIA, "nvidia_driver_state: present or absent"),
    "nvidia_driver_package_version": (_NVIDIA, "nvidia_driver_version, as in 580.126.09"),
    "nvidia_driver_persistence_mode_on": (_NVIDIA, "nvidia_driver_persistence, true by default"),
    "nvidia_driver_module_file": (_NVIDIA, "nvidia_driver_module_options; the file is its own"),
    "nvidia_driver_module_params": (
        _NVIDIA,
        "nvidia_driver_module_options, a mapping such as {NVreg_RestrictProfilingToAdminUsers: 0}",
    ),
    "nvidia_driver_add_repos": (_NVIDIA, "nvidia_driver_repository.manage, true by default"),
    **dict.fromkeys(
        (
            "nvidia_driver_debian_install_from_cuda_repo",
            "nvidia_driver_ubuntu_install_from_cuda_repo",
            "nvidia_driver_debian_install_tesla_driver",
        ),
        (_NVIDIA, _FROM_NVIDIA),
    ),
    **dict.fromkeys(
        (
            "nvidia_driver_rhel_branch",
            "nvidia_driver_debian_branch",
            "nvidia_driver_ubuntu_branch",
        ),
        (_NVIDIA, "nvidia_driver_branch, in group_vars of these hosts"),
    ),
    **dict.fromkeys(
        (
            "nvidia_driver_debian_packages",
            "nvidia_driver_debian_tesla_package",
            "nvidia_driver_debian_cuda_package",
            "nvidia_driver_debian_cuda_keyring_package",
            "nvidia_driver_ubuntu_packages",
            "nvidia_driver_ubuntu_packages_suffix",
            "nvidia_driver_ubuntu_cuda_package",
            "nvidia_driver_ubuntu_cuda_keyring_package",
        ),
        (_NVIDIA, _PACKAGES),
    ),
    **dict.fromkeys(
        (
            "nvidia_driver_rhel_cuda_repo_baseurl",
            "nvidia_driver_rhel_cuda_repo_gpgkey",
            "nvidia_driver_debian_cuda_repo_baseurl",
            "nvidia_driver_debian_cuda_keyring_url",
            "nvidia_driver_ubuntu_cuda_repo_baseurl",
            "nvidia_driver_ubuntu_cuda_keyring_url",
        ),
        (_NVIDIA, _MIRROR),
    ),
    **dict.fromkeys(
        (
            "nvidia_driver_install_container",
            "nvidia_driver_install_centos_container",
            "nvidia_driver_install_ubuntu_container",
            "nvidia_driver_install_supported",
        ),
        (_KUBESPRAY, _CONTAINER),
    ),
}


def foreign(name: str) -> str:
    """Return whose variable this is and what to set here; empty if it is not of a known role."""
    if name not in FOREIGN:
        return ""
    whose, here = FOREIGN[name]
    return f"It is a variable of {whose}. Here: {here}."
