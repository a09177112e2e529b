# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Codes of the causes why a driver does not work."""

from __future__ import annotations

VGPU_GUEST = "vgpu_guest_without_grid_driver"
VGPU_BRANCH = "vgpu_driver_incompatible"
WHOLE_GPU = "grid_driver_on_whole_gpu"
GPU_UNSUPPORTED = "gpu_unsupported"
WRONG_MODULES = "wrong_kernel_modules"
SECURE_BOOT = "secure_boot"
NOUVEAU = "nouveau_loaded"
OTHER_DRIVER = "gpu_bound_to_other_driver"
DISK_FULL = "disk_full"
NO_HEADERS = "kernel_headers_missing"
BUILD_FAILED = "dkms_build_failed"
MISMATCH = "driver_library_mismatch"
IN_USE = "driver_in_use"
OTHER_KERNEL = "module_for_other_kernel"
NOT_LOADABLE = "modules_cannot_be_loaded_here"
MISSING = "module_missing"
UNKNOWN = "unknown"
#: A node of a cluster, or a host without Kubernetes, that another run holds in maintenance.
HELD_BY_OTHER = frozenset({"held_by_other", "host_held_by_other"})
