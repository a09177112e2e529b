# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of the kernel's drivers for AMD and Intel GPUs (amdgpu, i915, xe). Data, not code.

The texts are those of Linux: drivers/base/firmware_loader/main.c, drivers/base/dd.c,
drivers/gpu/drm/amd/amdgpu/amdgpu_kms.c, drivers/gpu/drm/i915/i915_pci.c.
"""

from __future__ import annotations

from ..._core.finding import INFO
from ..types import Rule

READ = "2026-11-23"
_KERNEL = "the kernel's log"
_DRIVER = r"\b(?P<driver>amdgpu|i915|xe) (?P<address>[0-9a-f:.]{7,16}): "
#: Codes of a missing or unusable firmware file, and of a driver that did not start.
FIRMWARE_MISSING = "drm_firmware_missing"
FIRMWARE_FAILED = "drm_firmware_failed"
NOT_SUPPORTED = "drm_gpu_not_supported"
PROBE_FAILED = "drm_probe_failed"
#: A part of the firmware without which the driver serves the GPU.
OPTIONAL = "drm_firmware_optional"
# Linux, drivers/gpu/drm/drm_drv.c, drm_dev_register(): with a date before 6.14.
STARTED = r"Initialized (?:amdgpu|i915|xe) [\d. ]{1,40}for (?:ADDRESS) on minor"
# What loads without them computes: they are for video, saving power and protected content.
_OTHER_FILES = r"(?:i915|xe)/\w{1,40}?_(?:dmc|huc|gsc)(?:_[\w.]{1,20})?\.bin"
_SERVES = (
    "The driver {driver} serves the GPU {address} without a part of its functions: {file}{what}."
)
_WHERE_NEEDED = (
    "Containers can use the GPU. Where what is missing is needed (video, saving power, protected "
    "memory), install a newer firmware package."
)
#: Codes of a GPU that serves no more.
RESET_FAILED, WEDGED = "drm_reset_failed", "drm_wedged"

DRM = (
    Rule(
        OPTIONAL,
        _DRIVER + rf"Direct firmware load for (?P<file>{_OTHER_FILES}) failed with error -2\b",
        _KERNEL,
        _SERVES,
        _WHERE_NEEDED,
        "i915 0000:00:02.0: Direct firmware load for i915/kbl_dmc_ver1_04.bin failed with error -2",
        "github.com/clearlinux/distribution/issues/821",
        READ,
        severity=INFO,
    ),
    Rule(
        OPTIONAL,
        _DRIVER + r"(?:\[drm\] )?[^\n]{0,80}?(?P<what>(?:HuC|GSC|DMC) (?:firmware|initialization)"
        r"[^\n]{0,120}?\bfailed\b[^\n]{0,40})",
        _KERNEL,
        _SERVES,
        _WHERE_NEEDED,
        "xe 0000:00:02.0: [drm] *ERROR* GT1: HuC firmware xe/lnl_huc.bin: fetch failed -ENOENT",
        "Linux, drivers/gpu/drm/i915/gt/uc/intel_huc.c",
        READ,
        severity=INFO,
    ),
    Rule(
        FIRMWARE_MISSING,
        _DRIVER + rf"Direct firmware load for (?!{_OTHER_FILES} )(?P<file>[\w./+-]{{1,120}}) "
        r"failed with error -2\b",
        _KERNEL,
        "The driver {driver} does not find the firmware {file} for the GPU {address}.",
        "Install the distribution's firmware package (Debian: firmware-amd-graphics or "
        "firmware-intel-graphics; Ubuntu, RHEL: linux-firmware; SUSE: kernel-firmware-all), or a "
        "newer one, rebuild the initial RAM disk and reboot.",
        "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/gc_12_0_1_pfp.bin failed with error "
        "-2",
        "Linux, drivers/base/firmware_loader/main.c",
        READ,
        over=STARTED,
        covers=(PROBE_FAILED,),
    ),
    Rule(
        FIRMWARE_MISSING,
        _DRIVER + r"(?:\[drm\] )?(?:\*ERROR\* )?(?:(?:Tile\d|GT\d|GUC): ?){0,3}"
        r"GuC firmware (?P<file>[\w./+-]{1,120}): fetch failed "
        r"(?:with error )?-ENOENT",
        _KERNEL,
        "The driver {driver} does not find the firmware {file} for the GPU {address}.",
        "Install a firmware package that has this file (linux-firmware; Debian: "
        "firmware-intel-graphics), or the firmware of Intel's driver package where that is used "
        "(intel-i915-dkms), rebuild the initial RAM disk and reboot.",
        "i915 0000:ca:00.0: GT0: GuC firmware i915/pvc_guc_70.26.4.bin: fetch failed -ENOENT",
        "Linux, drivers/gpu/drm/i915/gt/uc/intel_uc_fw.c; "
        "github.com/intel-gpu/intel-gpu-i915-backports/issues/199",
        READ,
        covers=(PROBE_FAILED, FIRMWARE_FAILED, WEDGED),
    ),
    Rule(
        FIRMWARE_FAILED,
        _DRIVER + r"(?:\[drm\] )?\*ERROR\* [^\n]{0,80}?(?P<what>GuC "
        r"(?:firmware|initialization)[^\n]{0,120})",
        _KERNEL,
        "The driver {driver} could not start the GPU {address} with its firmware: {what}.",
        "Install the firmware that belongs to this kernel (linux-firmware of the same release), "
        "rebuild the initial RAM disk and reboot.",
        "i915 0000:00:02.0: [drm] *ERROR* GT0: GuC initialization failed -ENXIO",
        "Linux, drivers/gpu/drm/i915/gt/uc/intel_uc_fw.c",
        READ,
        covers=(PROBE_FAILED, WEDGED),
        quotes_covered=True,
    ),
    Rule(
        NOT_SUPPORTED,
        _DRIVER + r"Your graphics device (?P<id>[0-9a-f]{4}) is not properly supported by",
        _KERNEL,
        "The driver {driver} of this kernel does not support the GPU {address} ({id}).",
        "Boot a newer kernel, or install Intel's driver (intel-i915-dkms) for this kernel; "
        "{driver}.force_probe={id} on the kernel command line tries it anyway.",
        "i915 0000:03:00.0: Your graphics device 56a0 is not properly supported by i915 in this",
        "Linux, drivers/gpu/drm/i915/i915_pci.c",
        READ,
        over=STARTED,
        covers=(PROBE_FAILED,),
    ),
    Rule(
        PROBE_FAILED,
        r"\b(?P<driver>amdgpu|i915|xe)(?: [0-9a-f:.]{7,16})?: (?:amdgpu: )?"
        r"(?P<what>Fatal error during GPU init|probe (?:of (?P<address>[0-9a-f:.]{7,16})|with "
        r"driver \w{2,6}) failed with error -?\d{1,4})",
        _KERNEL,
        "The driver {driver} could not start a GPU: {what}.",
        "The lines of {driver} before it in the kernel's log say why (dmesg | grep {driver}). A "
        "newer kernel or driver, newer firmware, or powering the machine off and on usually helps.",
        "amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init",
        "Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_kms.c, drivers/base/dd.c",
        READ,
        over=STARTED,
    ),
)
