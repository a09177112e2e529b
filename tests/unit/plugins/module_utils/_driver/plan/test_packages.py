# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The locked set: everything of the driver, and nothing of what builds on it."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.installed import is_locked
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.packages import (
    LOCK_PATTERNS,
    RPM_LOCK_PATTERNS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.package_names import is_driver

# Names of Debian 12 and 13, Ubuntu and NVIDIA's repository.
_DRIVER = """
nvidia-alternative nvidia-compute-utils-580-server nvidia-dkms-580-server-open
nvidia-dkms-open nvidia-driver nvidia-driver-580-open nvidia-driver-bin
nvidia-driver-cuda nvidia-driver-libs nvidia-driver-pinning-595
nvidia-driver-pinning-595.58.03 nvidia-egl-icd nvidia-fabricmanager-580
nvidia-firmware-580-server-580.126.09 nvidia-headless-580-server nvidia-imex
nvidia-headless-no-dkms-580-server-open nvidia-kernel-common nvidia-kernel-dkms
nvidia-kernel-open-dkms nvidia-kernel-source-580-server nvidia-kernel-support
nvidia-legacy-check nvidia-modprobe nvidia-open nvidia-open-580
nvidia-open-kernel-dkms nvidia-open-kernel-support nvidia-opencl-icd
nvidia-persistenced nvidia-prime nvidia-settings nvidia-smi nvidia-suspend-common
nvidia-support nvidia-tesla-535-kernel-dkms nvidia-tesla-535-smi
nvidia-utils-580-server nvidia-vaapi-driver nvidia-vdpau-driver nvidia-vulkan-icd
nvidia-vulkan-common nvidia-xconfig libnvidia-cfg1 libnvidia-cfg1-580-server
libnvidia-common-580 libnvidia-compute libnvidia-compute-580-server
libnvidia-decode-580 libnvidia-encode1 libnvidia-gl-580 libnvidia-ml1
libnvidia-nscq libnvidia-nscq-580 libnvidia-ptxjitcompiler1
libnvidia-pkcs11-openssl3 libnvsdm nvlsm libnvidia-extra-580 libnvidia-fbc1-580
libcuda1 cuda-drivers cuda-drivers-580
linux-modules-nvidia-580-server-open-generic
linux-objects-nvidia-580-server-6.8.0-100-generic
linux-signatures-nvidia-6.8.0-100-generic xserver-xorg-video-nvidia-580
"""
MORE = ["firmware-nvidia-gsp", "libnvcuvid1", "libcudadebugger1", "libnvoptix1"]
_OTHERS = """
nvidia-container-toolkit nvidia-container-toolkit-base nvidia-container-runtime
nvidia-docker2 libnvidia-container-tools libnvidia-container1
libnvidia-container-dev nvidia-cuda-toolkit nvidia-cuda-dev nvidia-cudnn
nvidia-detect nvidia-installer-cleanup nvidia-profiler nvidia-visual-profiler
nvidia-nsight cuda-toolkit-12-8 cuda-keyring libcudart12 libcudnn9-cuda-12
libnccl2 linux-headers-amd64 linux-image-amd64 dkms gcc docker.io containerd
libnvtoolsext1
"""


DRIVER = tuple(_DRIVER.split())
OTHERS = tuple(_OTHERS.split())


def locked(name, patterns=LOCK_PATTERNS):
    return is_locked(name, patterns)


@pytest.mark.parametrize("name", (*DRIVER, *MORE))
def test_the_driver_is_locked(name):
    assert locked(name)
    assert locked(name, RPM_LOCK_PATTERNS)


@pytest.mark.parametrize("name", OTHERS)
def test_what_builds_on_it_is_not(name):
    assert not locked(name)
    assert not locked(name, RPM_LOCK_PATTERNS)


def test_what_the_facts_count_as_driver_is_locked():
    """Else it could never be held, and every run would say so."""
    assert [name for name in DRIVER if not is_driver(name)] == []
    assert [
        name for name in (*DRIVER, *MORE, *OTHERS) if is_driver(name) and not locked(name)
    ] == []
