# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of amdgpu in the kernel's log, and of what it depends on. Data, not code.

The texts are those of Linux, drivers/gpu/drm/amd/amdgpu and amd/pm. Before 6.10 many
had ``*ERROR*`` in front; patterns do not ask for it. Which of them AMD takes for errors:
github.com/amd/node-scraper, dmesg_analyzer.py.
"""

from __future__ import annotations

from ..._core.finding import POSSIBLE, WARNING
from ..types import Rule
from .drm_kernel import FIRMWARE_FAILED, PROBE_FAILED, RESET_FAILED, STARTED

READ = "2026-11-28"
_KERNEL = "the kernel's log"
_LINUX = "Linux, drivers/gpu/drm/amd/amdgpu/"
_CARD = r"(?:\bamdgpu (?P<address>[0-9a-f:.]{7,16}): (?:amdgpu: )?(?:\{\d{1,6}\})?)?"
_AGAIN = (
    "If it comes again, also with other programs: update the kernel, linux-firmware and ROCm to "
    "releases that fit each other."
)

#: Codes of what happens to a GPU that has started.
RESET, RING_TIMEOUT = "drm_gpu_reset", "drm_ring_timeout"
PAGE_FAULT, RAS, SMU, MES = (
    "drm_page_fault", "amd_ras_uncorrected", "amd_smu_not_answering", "amd_mes_not_answering",
)  # fmt: skip
LOST, RESUME_FAILED = "gpu_lost", "drm_resume_failed"
# What ROCm says in the program, where the kernel's log says why.
HANG, RING_RESET = "drm_gpu_hang", "drm_engine_reset"
_FOLLOW_LOST = (SMU, MES, RING_TIMEOUT, RESET_FAILED, RESET, RING_RESET, HANG)

_START = (
    Rule(
        RESUME_FAILED,
        r"\b(?P<driver>amdgpu|i915|xe|nvidia) (?P<address>[0-9a-f:.]{7,16}): (?:amdgpu: )?"
        r"(?:amdgpu_device_ip_resume failed|PM: failed to (?:resume|restore|thaw)(?: async)?: "
        r"error)",
        _KERNEL,
        "The machine, or the GPU {address} alone (runtime power management), was suspended, and "
        "the driver {driver} could not start the GPU again: no program can use it until it does.",
        "Reboot the drained node. A node of a cluster is not to be suspended: systemctl mask "
        "sleep.target suspend.target hibernate.target hybrid-sleep.target. amdgpu.runpm=0 keeps "
        "amdgpu from suspending the card alone. On a workstation update the BIOS, the kernel and "
        "linux-firmware.",
        "amdgpu 0000:05:00.0: amdgpu: amdgpu_device_ip_resume failed (-22).",
        f"{_LINUX}amdgpu_device.c; github.com/QubesOS/qubes-issues/issues/8142; "
        "github.com/ROCm/amdgpu/issues/183",
        READ,
        over=r"amdgpu ADDRESS: (?:amdgpu: )?GPU reset(?:\(\d{1,6}\))? succeeded",
        covers=(PROBE_FAILED, FIRMWARE_FAILED),
        quotes_covered=True,
    ),
    Rule(
        "bar_not_assigned",
        # Since Linux 6.11 the address comes first.
        r"\bamdgpu(?:: probe of|(?= )) (?P<address>[0-9a-f:.]{7,16})(?:: probe with driver "
        r"amdgpu)? "
        r"failed with error -12\b",
        _KERNEL,
        "The driver amdgpu has no memory addresses for the GPU {address} (-12, ENOMEM): the BIOS "
        "or "
        "the kernel did not assign its BARs.",
        "In the machine's BIOS enable Above 4G Decoding and Resizable BAR, and disable SR-IOV if "
        "no "
        "virtual function of a GPU is used: their BARs take the addresses. Otherwise boot with "
        "pci=realloc=off. Check: dmesg | grep 'BAR .* assign'.",
        "amdgpu: probe of 0000:c3:00.0 failed with error -12",
        "github.com/ROCm/legacy-rocm-build/issues/6281",
        READ,
        covers=(PROBE_FAILED,),
    ),
    Rule(
        PROBE_FAILED,
        _CARD + r"(?:\[drm:[^\]\n]{1,60}\] )?(?:\*ERROR\* )?"
        r"(?:get invalid ip discovery binary signature|amdgpu_discovery_init failed)",
        _KERNEL,
        "The driver amdgpu finds no valid table of parts (IP discovery) in the memory of the GPU "
        "{address}. The card's own firmware writes it there: the card, its VBIOS or IFWI, or "
        "another card of the same board is the likely cause, not the packages of the node.",
        "Power the machine off and on. Read the log of its BMC, which can name the faulty card. "
        "Ask "
        "the vendor for the VBIOS and IFWI of these cards; have the named card replaced if it does "
        "not help.",
        "amdgpu 0000:cd:00.0: amdgpu: get invalid ip discovery binary signature",
        f"{_LINUX}amdgpu_discovery.c; github.com/ROCm/legacy-rocm-build/issues/4454",
        READ,
        confidence=POSSIBLE,
    ),
    Rule(
        PROBE_FAILED,
        _CARD + r"(?:gpu post error|(?:\[drm:[^\]\n]{1,60}\] )?\*ERROR\* atombios stuck "
        r"(?:in loop|executing))",
        _KERNEL,
        "The VBIOS of the GPU {address} did not finish in time (atombios): the card was not reset "
        "after its earlier use (a guest, a reboot, a suspend), or another card on the same xGMI "
        "links holds it up, or the card is defective. The message does not say which.",
        "Power the machine off and on. In a guest have the card reset by its host, and amdgpu "
        "blocked there. If it fails again with several cards, take them out by turns to find the "
        "one with which all fail.",
        "[drm:atom_op_jump [amdgpu]] *ERROR* atombios stuck in loop for more than 20secs aborting",
        f"{_LINUX}atom.c; github.com/ROCm/legacy-rocm-build/issues/4533",
        READ,
        over=STARTED,
        confidence=POSSIBLE,
    ),
    Rule(
        PROBE_FAILED,
        _CARD + r"(?:\[drm:[^\]\n]{1,60}\] )?(?:\*ERROR\* )?(?:PSP create ring failed"
        r"(?:[^\n]{0,200}\n){1,6}?[^\n]{0,120}hw_init of IP block <psp> failed -?\d{1,4}"
        r"|hw_init of IP block <psp> failed -?\d{1,4}|PSP create ring failed"
        r"|PSP firmware loading failed)",
        _KERNEL,
        "The security processor (PSP) of the GPU {address} takes no commands, so that amdgpu "
        "cannot "
        "start the card: it was left in use by the driver of a host or of an earlier boot, or the "
        "card or its Infinity Fabric (xGMI) bridge is defective.",
        "Power the machine off and on. In a guest: block amdgpu on the host (blacklist), so that "
        "the card is not in use there. On a machine: if it fails again, have the card and its "
        "bridge checked, one card after the other.",
        "[drm:amdgpu_device_fw_loading [amdgpu]] *ERROR* hw_init of IP block <psp> failed -22",
        f"{_LINUX}amdgpu_psp.c; github.com/ROCm/legacy-rocm-build/issues/2747",
        READ,
        over=STARTED,
        confidence=POSSIBLE,
    ),
    Rule(
        FIRMWARE_FAILED,
        _CARD + r"(?:failed to load ucode (?P<what>[\w() ]{1,40})|psp gfx command "
        r"LOAD_IP_FW\(0x[0-9a-f]+\) failed)",
        _KERNEL,
        "The security processor (PSP) of the GPU {address} refuses firmware that amdgpu gives it "
        "{what}: the firmware does not fit the driver or the card's own firmware, or the card was "
        "not reset. Some cards do it without harm.",
        "If the GPU does not serve (no /dev/dri/renderD*): take the firmware of the kernel's own "
        "release (linux-firmware; on an image-based system its extension for amdgpu), and power "
        "the machine off and on.",
        "amdgpu 0000:85:00.0: amdgpu: failed to load ucode SMC(0x32)",
        f"{_LINUX}amdgpu_psp.c; github.com/siderolabs/talos/issues/12544",
        READ,
        over=STARTED,
        confidence=POSSIBLE,
        covers=(PROBE_FAILED,),
    ),
    Rule(
        "amd_vf_mailbox",
        _CARD + r"trn=\d{1,6} ACK should not assert",
        _KERNEL,
        "The driver amdgpu takes the GPU {address} for a virtual function and waits for a host "
        "that "
        "does not answer. On a machine with the whole card its BARs are too small; in a guest the "
        "host's driver does not answer.",
        "On a machine: enable Above 4G Decoding and Resizable BAR in the BIOS, and disable CSM. In "
        "a guest: check the driver of the host (GIM).",
        "amdgpu 0000:08:00.0: amdgpu: trn=2 ACK should not assert! wait again !",
        f"{_LINUX}mxgpu_ai.c; github.com/ROCm/amdgpu/issues/211",
        READ,
        confidence=POSSIBLE,
        covers=(PROBE_FAILED, "driver_not_loaded"),
    ),
)

_RUNS = (
    Rule(
        LOST,
        _CARD + r"(?:device lost from bus|SMU: bus error for message)",
        _KERNEL,
        "The GPU {address} does not answer on the bus any more.",
        "Drain the node and power it off and on. If it comes again: seat, power and cooling of the "
        "card, then the card itself.",
        "amdgpu 0000:04:00.0: device lost from bus!",
        f"{_LINUX}amdgpu_device.c; github.com/ROCm/TheRock/issues/8232",
        READ,
        covers=_FOLLOW_LOST,
        quotes_covered=True,
    ),
    Rule(
        LOST,
        r"\b(?P<driver>amdgpu|i915|xe|nvidia) (?P<address>[0-9a-f:.]{7,16}): Unable to change "
        r"power "
        r"state from D3(?:cold|hot) to D0, device inaccessible",
        _KERNEL,
        "The GPU {address} does not answer on the bus any more: it was put to sleep (D3), and does "
        "not wake up.",
        "Drain the node and power it off and on. If it comes again: keep the card awake (boot with "
        "pcie_aspm=off, or write on into /sys/bus/pci/devices/{address}/power/control), update the "
        "BIOS; then seat and power of the card.",
        "nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible",
        "Linux, drivers/pci/pci.c; github.com/bryansteiner/gpu-passthrough-tutorial/issues/39",
        READ,
        covers=(*_FOLLOW_LOST, "gpu_init_failed"),
        quotes_covered=True,
    ),
    Rule(
        RAS,
        _CARD
        + r"(?:uncorrectable hardware error\(|(?:\{\d{1,6}\})?\[Hardware Error\]: Accelerator "
        r"Check Architecture events logged)|\b[1-9]\d{0,8} (?:new )?uncorrectable hardware errors? "
        r"|\bRAS poison is consumed",
        _KERNEL,
        "The GPU {address} reports an uncorrectable hardware error (RAS): what it computes may be "
        "wrong. A program can bring it too, by an access that no memory answers.",
        "Drain the node and reboot it. If it returns after that, also with other programs, have "
        "the "
        "card and its xGMI bridge checked (amd-smi metric --ecc, rvs).",
        "amdgpu 0000:e3:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) "
        "detected!",
        "github.com/amd/node-scraper, dmesg_analyzer.py (RAS); "
        "github.com/ROCm/legacy-rocm-build/issues/1886, 4021",
        READ,
        confidence=POSSIBLE,
        covers=_FOLLOW_LOST,
        quotes_covered=True,
    ),
    Rule(
        RESET_FAILED,
        _CARD + r"(?:GPU reset(?:\(\d{1,6}\))? failed|GPU Recovery Failed|GPU reset end "
        r"with ret = -\d{1,4}|ASIC reset failed)",
        _KERNEL,
        "The GPU {address} hung, and the kernel could not reset it: it does no work any more.",
        "Drain the node and reboot it; power it off and on if the reboot hangs. " + _AGAIN,
        "amdgpu 0000:03:00.0: amdgpu: GPU reset end with ret = -110",
        f"{_LINUX}amdgpu_device.c",
        READ,
        covers=(RESET, RING_TIMEOUT, MES, SMU, "drm_ring_reset_failed", RING_RESET, HANG),
        quotes_covered=True,
    ),
    Rule(
        RESET,
        _CARD + r"GPU reset(?:\(\d{1,6}\))? succeeded",
        _KERNEL,
        "The GPU {address} hung, and the kernel reset it: all programs lost their work on it, "
        "and it "
        "serves again. A program, its libraries, the kernel or the firmware is the likely cause, "
        "not the card.",
        _AGAIN,
        "amdgpu 0000:0c:00.0: amdgpu: GPU reset succeeded, trying to resume",
        f"{_LINUX}amdgpu_device.c; github.com/yshui/picom/issues/1390",
        READ,
        severity=WARNING,
        covers=(RING_TIMEOUT, MES, "drm_ring_reset_failed", RING_RESET, HANG),
        quotes_covered=True,
    ),
    Rule(
        SMU,
        _CARD + r"(?:SMU: I'm not done with your (?:previous )?command|SMU is in hanged state"
        r"|Failed to send message 0x[0-9a-f]{1,8}, response 0x0\b|SMU: No response)",
        _KERNEL,
        "The power management (SMU) of the GPU {address} takes no commands any more, and the card "
        "hangs with it.",
        "Drain the node and reboot it. If it returns: power the machine off and on, and update the "
        "card's firmware, the BIOS and the kernel.",
        "amdgpu 0000:0d:00.0: amdgpu: SMU: I'm not done with your previous command: "
        "SMN_C2PMSG_66:0x00000012 SMN_C2PMSG_82:0x00000005",
        "Linux, drivers/gpu/drm/amd/pm/swsmu/smu_cmn.c; "
        "github.com/ROCm/legacy-rocm-build/issues/2196",
        READ,
        covers=(RING_TIMEOUT, MES, HANG),
        quotes_covered=True,
    ),
    Rule(
        "drm_ring_reset_failed",
        _CARD + r"(?:Ring (?P<ring>[\w.]{1,40}) reset failed|MES might be in unrecoverable state)",
        _KERNEL,
        "A job on the GPU {address} hung, and its ring {ring} or queue could not be reset. The "
        "kernel resets the whole card next; nothing in the text shows that it succeeded.",
        "See whether 'GPU reset succeeded' follows (dmesg | grep 'GPU reset'). If not, drain the "
        "node and reboot it. " + _AGAIN,
        "amdgpu 0000:08:00.0: amdgpu: Ring gfx_0.0.0 reset failed",
        f"{_LINUX}amdgpu_ring.c; github.com/ublue-os/bazzite/issues/4464",
        READ,
        covers=(RING_TIMEOUT, MES, HANG),
        quotes_covered=True,
    ),
    Rule(
        RING_RESET,
        _CARD + r"(?:\[drm\] )?Ring (?P<ring>[\w.]{1,40}) reset succeeded",
        _KERNEL,
        "A job on the ring {ring} of the GPU {address} hung, and the kernel reset this ring: the "
        "program lost its work, others went on, and the card serves again. The program, its "
        "libraries, the "
        "kernel or the firmware is the likely cause, not the card.",
        "Start the program again; the node needs nothing. " + _AGAIN,
        "amdgpu 0000:04:00.0: amdgpu: Ring gfx_0.0.0 reset succeeded",
        f"{_LINUX}amdgpu_job.c; github.com/ROCm/legacy-rocm-build/issues/5999",
        READ,
        severity=WARNING,
        covers=(RING_TIMEOUT, MES, HANG),
        quotes_covered=True,
    ),
    Rule(
        RING_TIMEOUT,
        _CARD + r"(?:\[drm:[^\]\n]{1,60}\] )?(?:\*ERROR\* )?ring (?P<ring>[\w.]{1,40}) timeout"
        r"(?:[^\n]{0,120}\n[^\n]{0,120}?\bprocess (?P<program>[^\s:]{1,64}) pid)?",
        _KERNEL,
        "A job on the ring {ring} of the GPU {address} did not end in time (program {program}). A "
        "program, its libraries, the kernel or the firmware is the likely cause, not the card.",
        "See whether the kernel reset the card (dmesg | grep reset); without that, reboot the "
        "drained node. " + _AGAIN,
        "amdgpu 0000:08:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=13441142, emitted "
        "seq=13441144",
        f"{_LINUX}amdgpu_job.c",
        READ,
        severity=WARNING,
        covers=(MES, HANG),
        quotes_covered=True,
    ),
    Rule(
        MES,
        _CARD + r"MES(?:\(\d{1,3}\))? failed to respond to msg=(?P<message>\w{1,40})",
        _KERNEL,
        "The scheduler's firmware (MES) of the GPU {address} does not answer ({message}).",
        "See whether the kernel reset the card (dmesg | grep reset); without that, reboot the "
        "drained node. " + _AGAIN,
        "amdgpu 0000:c1:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE",
        f"{_LINUX}mes_v11_0.c; github.com/ROCm/legacy-rocm-build/issues/5724",
        READ,
        severity=WARNING,
    ),
    Rule(
        PAGE_FAULT,
        _CARD + r"\[(?:gfxhub|mmhub)[^\]\n]{0,20}\] (?:no-)?(?:retry )?page fault"
        r"(?:[^\n]{0,160}\n[^\n]{0,120}?\bprocess (?P<program>[^\s:]{1,64}) pid)?",
        _KERNEL,
        "A program {program} used memory of the GPU {address} that it does not have. The program, "
        "its libraries or the firmware of the card is the cause, not the hardware.",
        "Try another release of the program and of ROCm; if it began with an update of "
        "linux-firmware, go back to the one before or take a newer one.",
        "amdgpu 0000:c4:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:153 vmid:8 pasid:32786)",
        f"{_LINUX}gmc_v11_0.c; github.com/ROCm/legacy-rocm-build/issues/5616",
        READ,
        severity=WARNING,
        confidence=POSSIBLE,
    ),
)

# ROCm's runtime numbers GPUs by the kernel's topology: node-1 is
# /sys/class/kfd/kfd/topology/nodes/1.
_PROGRAMS = (
    Rule(
        PAGE_FAULT,
        r"\bMemory access fault by GPU node-(?P<node>\d{1,3}) [^\n]{0,120}?"
        r"(?:Page not present|Write access to a read-only page|Reason: Unknown)",
        "a HIP program (ROCm)",
        "The program used memory that the GPU does not have (node {node} of ROCm), and was ended. "
        "The program, one of its libraries, or the variable HSA_OVERRIDE_GFX_VERSION is the cause, "
        "not the hardware.",
        "Start it again with AMD_LOG_LEVEL=3 to see the kernel that ran last. Take another release "
        "of the "
        "program and of ROCm that fit the GPU's architecture (rocminfo | grep gfx), and unset "
        "HSA_OVERRIDE_GFX_VERSION. If other programs fail as well on this GPU only: dmesg | grep "
        "amdgpu.",
        "Memory access fault by GPU node-1 (Agent handle: 0x1f829860) on address 0x7a8a4be00000. "
        "Reason: Page not present or supervisor privilege.",
        "ROCm, rocr-runtime (runtime.cpp); github.com/ROCm/legacy-rocm-build/issues/4554",
        READ,
        severity=WARNING,
        confidence=POSSIBLE,
    ),
    Rule(
        HANG,
        r"\bHW Exception by GPU node-(?P<node>\d{1,3}) [^\n]{0,80}?reason ?: ?GPU Hang",
        "a HIP program (ROCm)",
        "A job on a GPU hung (node {node} of ROCm), and ROCm ended the program when the kernel "
        "reset "
        "it. The program, its libraries, the kernel or the firmware is the likely cause; the "
        "kernel's log has more.",
        "Read dmesg | grep amdgpu at that time: it says whether the reset succeeded, and names "
        "hardware errors (RAS) if there are any. " + _AGAIN,
        "HW Exception by GPU node-4 (Agent handle: 0x1ebc04e0) reason :GPU Hang",
        "ROCm, rocr-runtime (runtime.cpp); github.com/ROCm/legacy-rocm-build/issues/5259",
        READ,
        severity=WARNING,
        confidence=POSSIBLE,
    ),
)

_AROUND = (
    Rule(
        "vfio_reset_failed",
        r"\bvfio-pci (?P<address>[0-9a-f:.]{7,16}): Unable to change power state from "
        r"D3(?:cold|hot) "
        r"to D0, device inaccessible|vfio(?:-pci)?: Unable to power on device, stuck in D3",
        "the kernel's log of a host of guests, QEMU",
        "The host put the GPU {address} to sleep (D3) while no guest used it, and cannot wake it "
        "up: "
        "the next guest does not start with it.",
        "Reboot the host; power it off and on if the GPU is still missing in lspci. To prevent it "
        "keep such devices awake: options vfio-pci disable_idle_d3=1 in /etc/modprobe.d, then "
        "rebuild the initial RAM disk.",
        "vfio-pci 0000:01:00.0: Unable to change power state from D3cold to D0, device "
        "inaccessible",
        "Linux, drivers/vfio/pci/vfio_pci_core.c; "
        "github.com/kata-containers/kata-containers/issues/11708; "
        "github.com/mroboff/vm-curator/pull/63",
        READ,
    ),
    Rule(
        "iommu_page_fault",
        r"\b(?P<driver>amdgpu|nvidia|i915|xe)(?: (?P<address>[0-9a-f:.]{7,16}))?: "
        r"(?:AMD-Vi: )?Event logged \[IO_PAGE_FAULT",
        _KERNEL,
        "The IOMMU blocks accesses of the GPU {address}, mostly those to the memory of another "
        "card: programs on several GPUs hang or fail.",
        "Boot with iommu=pt on the kernel command line (AMD's installation guide for several "
        "GPUs), "
        "or turn the IOMMU off in the BIOS where no guest needs it.",
        "amdgpu 0000:0c:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0014 "
        "address=0xf081000000 flags=0x0020]",
        "Linux, drivers/iommu/amd/iommu.c; github.com/ollama/ollama/issues/5450",
        READ,
    ),
    Rule(
        "vfio_reset_failed",
        r"\bvfio-pci (?P<address>[0-9a-f:.]{7,16}): (?:\w{1,40}: failed to reset device"
        r"|not ready \d{1,9}ms after (?:FLR|bus reset); giving up)"
        r"|pci_irq_handler: Assertion \W{0,2}0 <= irq_num",
        "the kernel's log of a host of guests, QEMU",
        "The host cannot reset the GPU {address} between two guests, so that the next guest's "
        "driver does not start.",
        "Reboot the host. If the card often needs it, take the module vendor-reset for its kind, "
        "and have guests shut down in order.",
        "vfio-pci 0000:0d:00.0: AMD_VEGA10: failed to reset device",
        "github.com/gnif/vendor-reset",
        READ,
    ),
    Rule(
        "driver_not_loaded",
        r"(?:driver not initialized|not found|initialized) \(amdgpu not found in modules\)",
        "amd-smi, rocm-smi",
        "amd-smi finds no module amdgpu: it is not loaded, or it is built into the kernel, where "
        "amd-smi does not find it although the GPUs work.",
        "Check ls /dev/dri /dev/kfd: if they are there, the driver is built into the kernel "
        "(CONFIG_DRM_AMDGPU=y) and serves. Otherwise: modprobe amdgpu, then dmesg | grep amdgpu.",
        "ERROR:root:Driver not initialized (amdgpu not found in modules)",
        "github.com/ROCm/amdsmi/issues/172",
        READ,
        confidence=POSSIBLE,
    ),
)

AMD = (*_START, *_RUNS, *_PROGRAMS, *_AROUND)
