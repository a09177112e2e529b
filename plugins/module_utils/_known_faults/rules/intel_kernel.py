# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of i915 and xe in the kernel's log. Data, not code.

The texts are those of Linux, drivers/gpu/drm/i915 and drivers/gpu/drm/xe, and of Intel's driver
outside of the kernel (intel-i915-dkms), which has no ``*ERROR*`` in front of some.
"""

from __future__ import annotations

from ..._core.finding import INFO, POSSIBLE, WARNING
from ..codes import OTHER_KERNEL
from ..types import Rule
from .drm_kernel import FIRMWARE_FAILED, PROBE_FAILED, RESET_FAILED, WEDGED

READ = "2026-11-28"
_KERNEL = "the kernel's log"
_LINUX = "Linux, drivers/gpu/drm/"
_CARD = r"\b(?P<driver>i915|xe) (?P<address>[0-9a-f:.]{7,16}): (?:\[drm\] )?(?:\*ERROR\* )?"
# Tiles, GTs and units, such as "Tile0: GT0: GUC: ".
_PLACE = r"(?:(?:Tile\d|GT\d|GUC|IOV|CT|CRITICAL):? |\[ENGINE \w{1,20}\] ){0,5}"
# What concerns displays only, which no container computes with: i915's intel_fifo_underrun.c and
# display/, amdgpu's display/.
_DISPLAY = (
    r"FIFO underrun|\[CRTC:|\[CONNECTOR:|\[ENCODER:|\[PLANE:|flip_done|vblank|EDID|link training|"
    r"\bHDCP|\bDDC\b|\bDPCD?\b|\bPSR\b|dmub|DMCUB|amdgpu_dm|\bdc_|\bpipe [A-D]\b"
)
HANG, ENGINE_RESET, GUC = "drm_gpu_hang", "drm_engine_reset", "drm_guc_not_answering"
_AGAIN = (
    "If it comes again, also with other programs: update the kernel, linux-firmware and the "
    "compute "
    "or media driver."
)

INTEL = (
    Rule(
        FIRMWARE_FAILED,
        r"\b(?P<driver>i915|xe) (?P<address>[0-9a-f:.]{7,16}): (?:\[drm\] )?(?:\*ERROR\* )?"
        r"(?:(?:Tile\d|GT\d|GUC):? ?){0,3}(?:Unsupported GuC v?(?P<has>[\d.]{3,16}\d)! v?"
        r"(?P<needs>[\d.]{3,16}\d) or newer is required|GuC firmware (?P<file>[\w./+-]{1,120}): "
        r"unexpected version: (?P<found>[^\n]{3,60}))",
        _KERNEL,
        "The driver {driver} does not start the GPU {address}: its GuC firmware is of another "
        "release than the kernel needs ({has}{found}).",
        "Install a newer firmware package (linux-firmware; Debian: firmware-intel-graphics; "
        "Ubuntu: linux-firmware) that has GuC {needs} or later, rebuild the initial RAM disk and "
        "reboot. Until then boot the kernel that was there before.",
        "xe 0000:00:02.0: [drm] *ERROR* GT0: Unsupported GuC v70.20.0! v70.29.2 or newer is "
        "required",
        f"{_LINUX}xe/xe_uc_fw.c, i915/gt/uc/intel_uc_fw.c; "
        "github.com/thesofproject/linux/pull/5196",
        READ,
        covers=(PROBE_FAILED, WEDGED, GUC),
        quotes_covered=True,
    ),
    Rule(
        FIRMWARE_FAILED,
        _CARD + _PLACE + r"firmware production part check failure",
        _KERNEL,
        "The GPU {address} refused its GuC firmware, though the file was found: the card's own "
        "check "
        "of it failed. In servers this was seen with a large BAR; the firmware may also be of "
        "another release than the kernel.",
        "Try the card with Resizable BAR turned off in the BIOS, or in another slot. Take the "
        "firmware and the kernel of one release.",
        "i915 0000:0d:00.0: [drm] GT0: GUC: firmware production part check failure",
        f"{_LINUX}i915/gt/uc/intel_guc_fw.c; github.com/intel/ipex-llm/issues/12122",
        READ,
        confidence=POSSIBLE,
        covers=(PROBE_FAILED, WEDGED),
    ),
    Rule(
        FIRMWARE_FAILED,
        _CARD + _PLACE + r"firmware signature verification failed",
        _KERNEL,
        "The GPU {address} does not accept the signature of its GuC firmware: the file is damaged, "
        "is for another card, or was read wrongly over the bus.",
        "Install the firmware package again (linux-firmware) and rebuild the initial RAM disk. If "
        "it fails with a fresh file: another slot, and the card in another machine; on ARM boards "
        "the bus itself is the likely cause.",
        "xe 0000:03:00.0: [drm] *ERROR* GT0: firmware signature verification failed",
        f"{_LINUX}xe/xe_guc.c; github.com/geerlingguy/raspberry-pi-pcie-devices/issues/510",
        READ,
        confidence=POSSIBLE,
        covers=(PROBE_FAILED, WEDGED),
        quotes_covered=True,
    ),
    Rule(
        WEDGED,
        r"\b(?P<driver>i915|xe) (?P<address>[0-9a-f:.]{7,16}): [^\n]{0,120}?"
        r"(?:declared device [0-9a-f:.]{7,16} as wedged|declaring it wedged)",
        _KERNEL,
        "The driver {driver} has given the GPU {address} up (wedged): it executes nothing until "
        "the "
        "driver is bound again or the node is rebooted.",
        "Drain the node and reboot it. The lines of {driver} before it say why; if it comes again, "
        "update the kernel and linux-firmware, then have the card checked.",
        "xe 0000:03:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged.",
        f"{_LINUX}xe/xe_device.c, i915/gt/intel_gt.c; github.com/CachyOS/linux-cachyos/issues/892",
        READ,
        covers=(RESET_FAILED, HANG, ENGINE_RESET, GUC),
        quotes_covered=True,
    ),
    Rule(
        FIRMWARE_FAILED,
        _CARD + _PLACE + r"load failed: status = (?P<status>0x[0-9a-f]{1,8})\b",
        _KERNEL,
        "The GPU {address} did not start with its GuC firmware (status {status}), though the file "
        "was found: it is of another release than the kernel, or the card refuses it.",
        "Install the firmware of the kernel's release (linux-firmware), rebuild the initial RAM "
        "disk and power the machine off and on. In servers try the card with Resizable BAR turned "
        "off, or in another slot.",
        "i915 0000:0d:00.0: [drm] GT0: GUC: load failed: status = 0x40000056, time = 0ms",
        f"{_LINUX}i915/gt/uc/intel_guc_fw.c; "
        "github.com/intel-gpu/intel-gpu-i915-backports/issues/194",
        READ,
        confidence=POSSIBLE,
        covers=(PROBE_FAILED,),
    ),
    Rule(
        RESET_FAILED,
        _CARD + _PLACE + r"(?:\w{1,20} )?(?:GuC )?(?:reset failed \(-\w{1,20}\)"
        r"|Failed to reset GuC, ret = -\d{1,4}|engine reset request failed|reset request timed "
        r"out|failed to reset chip)",
        _KERNEL,
        "The driver {driver} could not reset the GPU {address}, or one of its engines, after it "
        "hung.",
        "Drain the node and reboot it. " + _AGAIN,
        "i915 0000:33:00.0: [drm] *ERROR* GT0 [ENGINE OTHER] rcs0 reset request timed out: "
        "{request: 00000001, RESET_CTL: 00000001}",
        f"{_LINUX}i915/gt/intel_reset.c; github.com/intel-gpu/intel-gpu-i915-backports/issues/172",
        READ,
        covers=(HANG, ENGINE_RESET, GUC),
        quotes_covered=True,
    ),
    Rule(
        GUC,
        _CARD + _PLACE + r"(?:TLB invalidation response timed out|CT(?:B)? (?:is )?dead"
        r"|No response for request|Unresponsive tracker|Failed to process CT message)",
        _KERNEL,
        "The firmware GuC of the GPU {address} does not answer the driver {driver}: the card does "
        "no work until it is reset.",
        "Drain the node and reboot it. If virtual functions are used, try another release of the "
        "guests' driver. " + _AGAIN,
        "i915 0000:00:02.0: [drm] *ERROR* GT0: GUC: TLB invalidation response timed out for seqno "
        "309",
        f"{_LINUX}i915/gt/uc/intel_guc_submission.c; "
        f"github.com/strongtz/i915-sriov-dkms/issues/288",
        READ,
        covers=(HANG, ENGINE_RESET),
        quotes_covered=True,
    ),
    Rule(
        HANG,
        r"\b(?P<driver>i915|xe) (?P<address>[0-9a-f:.]{7,16}): (?:\[drm\] )?GPU HANG: ecode "
        r"[\w:]{1,40}(?:, in (?P<program>[^\n\[]{1,64}) \[)?",
        _KERNEL,
        "A job on the GPU {address} hung (program {program}). A program, its libraries, the "
        "kernel or "
        "the firmware is the likely cause, not the card.",
        "See whether the driver reset the context or the engine (dmesg | grep reset). " + _AGAIN,
        "i915 0000:83:00.0: [drm] GPU HANG: ecode 12:4:2e040a51, in av:h264:df0 [991797]",
        f"{_LINUX}i915/i915_gpu_error.c; github.com/jellyfin/jellyfin/issues/9267",
        READ,
        severity=WARNING,
        covers=(ENGINE_RESET,),
        quotes_covered=True,
    ),
    Rule(
        ENGINE_RESET,
        _CARD + _PLACE + r"(?:Engine reset: engine_class=(?P<engine>\w{1,20})|Timedout job: )",
        _KERNEL,
        "A job on the GPU {address} did not end in time, and the driver {driver} reset its engine "
        "{engine}: the program lost its work, the card serves again.",
        "Update linux-firmware first: a newer GuC ended it for others. " + _AGAIN,
        "xe 0000:0b:00.0: [drm] Tile0: GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, "
        "guc_id=2, state=0x3",
        f"{_LINUX}xe/xe_guc_submit.c; github.com/vllm-project/vllm/issues/55425",
        READ,
        severity=WARNING,
    ),
    Rule(
        "drm_small_bar",
        _CARD + r"(?:Failed to resize BAR\d?|Small BAR device)",
        _KERNEL,
        "The driver {driver} serves the GPU {address} through a small window (BAR) of its memory: "
        "slower, and some compute runtimes refuse such a card.",
        "Enable Resizable BAR and Above 4G Decoding in the BIOS.",
        "xe 0000:03:00.0: [drm] Failed to resize BAR2 to 8192M (-ENOSPC). Consider enabling "
        "'Resizable BAR' support in your BIOS",
        f"{_LINUX}xe/xe_vram.c; github.com/raspberrypi/linux/issues/6621",
        READ,
        severity=WARNING,
    ),
    Rule(
        "drm_vf_state_not_saved",
        _CARD + _PLACE + r"(?:Failed to save VF\d{1,3} state|Sending action 0x550b failed)",
        _KERNEL,
        "The driver {driver} could not save the state of virtual functions (VF) of the GPU "
        "{address}, which only migration and suspend need. The functions work.",
        "Nothing, unless guests are to be migrated.",
        "i915 0000:00:02.0: [drm] GT0: IOV: Failed to save VF1 state (-EPROTO)",
        "github.com/strongtz/i915-sriov-dkms/issues/284",
        READ,
        severity=INFO,
    ),
    Rule(
        OTHER_KERNEL,
        r"\b(?P<module>i915_compat|i915|xe|amdgpu|amdkcl|amdttm): (?:Unknown symbol|disagrees "
        r"about "
        r"version of symbol) (?P<symbol>\w{1,80})",
        _KERNEL,
        "The module {module} was built for another kernel than the running one, or with another "
        "release of a module that it needs: {symbol} is not there.",
        "Install the headers of the running kernel, rebuild the package of the driver (dkms "
        "install --force) and reboot. See that the driver's release supports this kernel and this "
        "card.",
        "i915_compat: Unknown symbol drm_dp_dpcd_read (err -2)",
        "github.com/intel-gpu/intel-gpu-i915-backports/issues/209",
        READ,
    ),
)

#: What is left of these drivers' errors; rules above say more.
OTHERS = (
    Rule(
        "kernel_driver_errors",
        r"\b(?P<driver>amdgpu|i915|xe|habanalabs) (?P<address>[0-9a-f:.]{7,16}): "
        rf"(?![^\n]{{0,160}}?(?:{_DISPLAY}))[^\n]{{0,160}}?(?:\*ERROR\*|coredump|GPU reset)",
        _KERNEL,
        "The driver {driver} reported errors of GPU {address} since boot.",
        "Check dmesg | grep {address}; update the kernel and the firmware of the card, and have "
        "the "
        "card checked if it continues.",
        "habanalabs 0000:19:00.0: *ERROR* something that no rule knows",
        "Linux, drivers/gpu/drm",
        READ,
        severity=WARNING,
        last_resort=True,
    ),
)
