# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Error messages of the kernel and nvidia-smi about NVIDIA's GPUs and driver. Data, not code.

Xid lines are in ``xids.py``.
"""

from __future__ import annotations

from ..._core.finding import ERROR, POSSIBLE, WARNING
from ..codes import (
    GPU_UNSUPPORTED,
    IN_USE,
    MISMATCH,
    NOUVEAU,
    SECURE_BOOT,
    VGPU_BRANCH,
    WRONG_MODULES,
)
from ..common import GUEST_DRIVER_STEP
from ..types import Rule
from .xids_data import READ, RESET_STEP

_MODULES = "github.com/NVIDIA/open-gpu-kernel-modules 595.45.04: "
_OGKM = "github.com/NVIDIA/open-gpu-kernel-modules/issues/"
_CASES_READ = "2026-11-28"
_KERNEL = "the kernel's log"
# Between two words of a message that may be in two lines, each with NVRM.
_GAP = r"\s(?:[^\n]{0,100}?NVRM:)?\s{0,60}"
_NO_START = ("no_devices", "gpu_init_failed", "gpu_probe_failed")

_REBOOT = (
    "Reboot the node, or stop what uses the GPUs and reload the module (modprobe -r nvidia_uvm "
    "nvidia_drm nvidia_modeset nvidia, then modprobe nvidia). Module, libraries and firmware must "
    "have the same version: where the packages differ, install them in one version first. Hold "
    "them, so that it does not happen again: nvidia_driver_hold: true."
)
_MISMATCH = (
    r"driver/library version mismatch(?:.{0,80}?NVML library version: [\d.]{3,20})?"
    r"|NVRM: API mismatch(?:: the client(?: '(?P<client>[^'\n]{0,64})' \(pid \d{1,10}\))?"
    rf"{_GAP}has the version (?P<library>\d[\w.]{{0,38}}\w), but{_GAP}this kernel module has{_GAP}"
    r"the version (?P<module>\d[\w.]{0,38}\w))?"
)
_NO_NVML = ("could_not_reach_nvml", "no_plugin_devices", "plugin_gave_up")
_PROGRAMS = "nvidia-smi, nvidia-container-cli, the kernel"


def _mismatch(
    cause: str,
    next_step: str,
    when: tuple[str, ...],
    source: str,
    *,
    example: str = "Failed to initialize NVML: Driver/library version mismatch",
    severity: str = ERROR,
    fix: str = "",
) -> Rule:
    return Rule(
        MISMATCH,
        _MISMATCH,
        _PROGRAMS,
        cause,
        next_step,
        example,
        source,
        _CASES_READ,
        severity=severity,
        when=when,
        family=MISMATCH,
        fix=fix,
        covers=(*_NO_NVML, "gpu_init_failed", "gpu_probe_failed"),
    )


#: Module and libraries of different versions; the facts decide between the causes.
MISMATCHES = (
    _mismatch(
        "The module that is loaded and the driver's libraries are of different versions: the "
        "packages were upgraded under a loaded module.",
        _REBOOT,
        ("not driver_agrees", "not module_of_disk_loaded"),
        "the project's own collection of failure texts",
    ),
    _mismatch(
        "The module on the disk is of the version that is loaded, and the driver's libraries are "
        "of "
        "another one: no module of their version was built or installed for this kernel, and the "
        "next boot loads the same one again.",
        "Check dkms status and modinfo nvidia. Build and install the module of the libraries' "
        "version (dkms install), or install modules and libraries of one version.",
        ("not driver_agrees", "module_of_disk_loaded"),
        "github.com/Frogging-Family/nvidia-all/issues/394",
        fix="dkms status; dkms autoinstall; modinfo -F version nvidia",
    ),
    _mismatch(
        "A program {client} loaded a library {library} of another version than the driver's module "
        "{module}, while the node's own libraries fit it: a container has libraries of the driver "
        "in its image, or the program was started before an upgrade.",
        "Take the driver's libraries (libcuda.so.*, libnvidia-*) out of the container's image: the "
        "NVIDIA container toolkit adds those of the node. Start programs again that are older than "
        "an upgrade.",
        ("driver_agrees",),
        "github.com/NVIDIA/libnvidia-container/issues/266",
        example="NVRM: API mismatch: the client has the version 570.148.08, but\n"
        "NVRM: this kernel module has the version 570.148.06.  Please",
        severity=WARNING,
        fix="an image without libcuda.so.* and libnvidia-*",
    ),
)

KERNEL = (
    Rule(
        GPU_UNSUPPORTED,
        # "installed in this system has / fallen off the bus" (osapi.c) is another failure.
        # A vGPU and a host of vGPUs have words of their own there (lines 3733, 3699 of 595.45.04).
        rf"The NVIDIA v?GPU [^\n]{{4,80}}?{_GAP}installed in this (?:vGPU host )?system{_GAP}is "
        rf"not "
        r"supported",
        _KERNEL,
        "The driver does not support a GPU of this node: a virtual GPU with the driver of whole "
        "ones, or a GPU that is too old or too new for the branch.",
        "Run kubegpu.nodes.plan for this node: it names the driver that the GPU needs.",
        "NVRM: The NVIDIA GPU 0000:00:07.0 (PCI ID: 10de:2236)\n"
        "NVRM: installed in this system is not supported by the\n"
        "NVRM: NVIDIA 535.129.03 driver release.",
        covers=_NO_START,
        driver=True,
    ),
    Rule(
        GPU_UNSUPPORTED,
        r"The NVIDIA (?:NVIDIA )?(?P<product>[^\n]{2,80}?) GPU installed in this system is"
        rf"{_GAP}supported through the NVIDIA (?P<branch>\d{{2,3}})\.xx Legacy drivers"
        r"(?:.{0,300}?\bThe (?P<version>\d{3}\.[\d.]{1,12}) NVIDIA driver)?",
        _KERNEL,
        "The driver {version} does not support the {product}: {branch} is the last branch for it.",
        "Install a driver of branch {branch} (nvidia_driver_branch: {branch}, "
        "nvidia_driver_kernel_module: proprietary), or take the card out.",
        "NVRM: The NVIDIA NVIDIA GeForce GTX 1050 GPU installed in this system is\n"
        "NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please\n"
        "NVRM:  visit http://www.nvidia.com/object/unix.html for more\n"
        "NVRM:  information.  The 595.71.05 NVIDIA driver will ignore\n"
        "NVRM:  this GPU.  Continuing probe...",
        "github.com/NixOS/nixos-hardware/issues/1880",
        _CASES_READ,
        covers=_NO_START,
    ),
    Rule(
        WRONG_MODULES,
        r"\b(?P<module>\w{2,40}): module using GPL-only symbols uses symbols from proprietary "
        r"module "
        r"nvidia\b",
        _KERNEL,
        "The kernel refuses the module {module}: it uses symbols of the kernel that are for free "
        "modules only, together with those of the proprietary module nvidia.",
        "Install the driver with its open kernel modules (nvidia_driver_kernel_module: open), "
        "which "
        "{module} needs.",
        "nvidia_fs: module using GPL-only symbols uses symbols from proprietary module nvidia.",
        "github.com/NVIDIA/gds-nvidia-fs/issues/41",
        _CASES_READ,
    ),
    Rule(
        SECURE_BOOT,
        r"could not insert '?nvidia\w{0,20}'?: Operation not permitted",
        "modprobe",
        "The kernel does not permit that NVIDIA's module is loaded: it accepts signed modules only "
        "(Secure Boot, or kernel lockdown in the mode integrity), or the command was not run as "
        "root, "
        "or runs in a container without the right to load modules.",
        "Check cat /sys/kernel/security/lockdown and mokutil --sb-state. Where modules must be "
        "signed: sign it with a key that the kernel trusts, or use the distribution's signed "
        "modules.",
        "modprobe: ERROR: could not insert 'nvidia': Operation not permitted",
        "github.com/bottlerocket-os/bottlerocket/issues/4218",
        _CASES_READ,
        confidence=POSSIBLE,
    ),
    Rule(
        IN_USE,
        r"Module (?P<module>nvidia\w{0,20}) is in use\b",
        "rmmod, modprobe",
        "The driver's module {module} is in use and cannot be unloaded: a program has its devices "
        "open, such as a display manager or a monitoring agent.",
        "Find the programs: lsof /dev/nvidia* /dev/dri/*. Drain the node and stop them, or reboot "
        "the node after the installation.",
        "rmmod: ERROR: Module nvidia_drm is in use",
        "github.com/NVIDIA/aerial-cuda-accelerated-ran/issues/31",
        _CASES_READ,
    ),
    Rule(
        IN_USE,
        r"could not be reset:\s{1,12}GPU (?P<address>[0-9A-F:.]{4,20}\d): In use by another client",
        "nvidia-smi --gpu-reset, mig-parted",
        "The GPU {address} cannot be reset: a program or a module uses it.",
        "Stop what uses it: nvidia-persistenced, DCGM, the fabric manager, the device plugin, a "
        "display manager (lsof /dev/nvidia*), and unload nvidia_drm (modprobe -r nvidia_drm). "
        "Otherwise reboot the drained node.",
        "The following GPUs could not be reset:\n  GPU 00000000:01:00.0: In use by another client",
        "github.com/NVIDIA/mig-parted/issues/181",
        _CASES_READ,
    ),
    Rule(
        "driver_oops",
        r"\bRIP: (?:\d{4}:)?(?P<function>\w{1,80})\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} "
        r"\[(?P<module>nvidia\w{0,20})\]",
        _KERNEL,
        "The kernel stopped a program in NVIDIA's module {module} ({function}): a fault of the "
        "driver's code. What uses the driver after it may hang.",
        "Drain the node and reboot it. If it comes again, install a newer version of the driver's "
        "branch.",
        "RIP: nvidia_vma_access+0x2f/0x2f0 [nvidia]",
        "github.com/CachyOS/linux-cachyos/issues/790",
        _CASES_READ,
    ),
    Rule(
        NOUVEAU,
        r"\bnouveau (?P<address>[0-9a-f:.]{7,16}): (?:gsp ctor failed: -?\d{1,4}|probe with driver "
        r"nouveau failed|[^\n]{0,80}?firmware unavailable)",
        _KERNEL,
        "The kernel gives the GPU {address} to the driver nouveau, which finds no firmware for it "
        "and does not start it. Containers need NVIDIA's driver.",
        "Block nouveau (blacklist nouveau in /etc/modprobe.d), rebuild the initramfs and reboot, "
        "with NVIDIA's driver installed; the role nvidia_driver does it.",
        "nouveau 0000:01:00.0: gsp ctor failed: -2",
        "github.com/Dasharo/dasharo-issues/issues/1597",
        _CASES_READ,
        severity=WARNING,
    ),
    Rule(
        "gpu_needs_reset",
        r"unexpected WPR2 already up(?:.{0,1000}?GPU (?P<address>[0-9a-f:.]{7,16}): RmInitAdapter "
        r"failed)?",
        _KERNEL,
        "The GPU {address} does not start, because its GSP is still in the state of an earlier "
        "run: "
        "it has to be reset.",
        f"{RESET_STEP} If that does not help, power the node off and on.",
        "NVRM: GPU6 _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP",
        f"{_OGKM}1230",
        _CASES_READ,
        covers=("gsp_firmware_failed", *_NO_START),
    ),
    Rule(
        "gpu_needs_reset",
        r"Reset required \[NV_ERR_RESET_REQUIRED\]",
        _KERNEL,
        "NVIDIA's driver refuses work on a GPU that has to be reset before "
        "(NV_ERR_RESET_REQUIRED); "
        "programs report a busy or unavailable device.",
        f"nvidia-smi -q names the GPU (GPU Recovery Action). {RESET_STEP}",
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] "
        "(0x00000062) returned from status @ kernel_channel.c:2827",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/982",
        _CASES_READ,
    ),
    Rule(
        "gpu_init_failed",
        r"(?:GPU (?P<address>[0-9a-f:.]{7,16}): RmInitAdapter failed!.{0,2000}?)?failed to wait "
        r"for "
        r"GFW[_ ]boot",
        _KERNEL,
        "The card's own boot firmware (GFW, of its VBIOS) did not end, so that the driver cannot "
        "start the GPU {address}: power, seat or slot of the card, its VBIOS, or the card. In a "
        "guest: the card was not reset by its host.",
        "Drain the node and power it off and on. If it comes again: power and seat of the card, "
        "another slot, an update of the VBIOS, then the card itself.",
        "NVRM: kgspWaitForGfwBootOk_TU102: failed to wait for GFW boot complete: 0x65 VBIOS "
        "version "
        "94.02.59.00.05",
        f"{_OGKM}789",
        _CASES_READ,
        confidence=POSSIBLE,
        covers=("gsp_firmware_failed", "no_devices", "gpu_probe_failed"),
    ),
    Rule(
        "gsp_firmware_failed",
        r"(?:nvidia (?P<address>[0-9a-f:.]{7,16}): )?Direct firmware load for "
        r"(?P<file>nvidia/[\w./-]{3,80}) failed with error (?P<error>-\d{1,3})",
        _KERNEL,
        "The driver could not load its GSP firmware /lib/firmware/{file} for the GPU {address} "
        "(error {error}): -2 is a file that is missing in the root or in the initramfs, -4 a load "
        "that was interrupted because the program that started the GPU was ended.",
        "Check ls -l /lib/firmware/{file}. If it is missing, install the package of the driver's "
        "very version that has it (nvidia-firmware-*, nvidia-gsp-firmware or the driver's own), "
        "rebuild the initramfs where it has the module, and load the module again. If it is there, "
        "start the program again, with nvidia-persistenced running.",
        "nvidia 0000:01:00.0: Direct firmware load for nvidia/570.133.20/gsp_ga10x.bin failed with "
        "error -2",
        f"{_OGKM}943",
        _CASES_READ,
        covers=_NO_START,
    ),
    Rule(
        "gsp_firmware_failed",
        r"RmFetchGspRmImages: No firmware image found",
        _KERNEL,
        "The driver finds no file of its GSP firmware.",
        "Check ls /lib/firmware/nvidia: it needs gsp_*.bin of the driver's very version "
        "(nvidia-firmware-*, nvidia-gsp-firmware or the driver's own package), in the initramfs "
        "too "
        "where that has the module.",
        "NVRM: RmFetchGspRmImages: No firmware image found",
        f"{_OGKM}943",
        _CASES_READ,
        covers=_NO_START,
    ),
    Rule(
        "bar_not_assigned",
        r"This PCI I/O region assigned to your NVIDIA device is invalid"
        r"(?::.{0,120}?\(PCI:(?P<address>[0-9a-f:.]{4,16})\))?",
        _KERNEL,
        "The firmware (BIOS) gave the GPU {address} no room in the address space.",
        "Turn on 'Above 4G Decoding' and 'Resizable BAR' in the firmware, or boot with "
        "pci=realloc; in a virtual machine give it a larger 64-bit MMIO window.",
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:41:00.0)",
        f"{_MODULES}kernel-open/nvidia/nv-pci.c",
        READ,
        covers=("no_devices", "gpu_init_failed", "gpu_probe_failed"),
    ),
    Rule(
        "gsp_firmware_failed",
        r"GSP-FMC reported an error while attempting to boot GSP: (?P<error>0x[0-9a-f]{1,8})"
        r"|Booter failed with non-zero error code: (?P<booter>0x[0-9a-f]{1,8})",
        _KERNEL,
        "The driver has loaded its GSP firmware, and the boot code on the GPU returned an error "
        "{error}{booter}: the GPU is in a bad state, or does not work with this release of the "
        "driver.",
        "Drain the node and power it off and on. If it comes again: install another version of "
        "the driver's branch; without a change report the card to its vendor.",
        "NVRM: kgspBootstrap_GH100: GSP-FMC reported an error while attempting to boot GSP: 0xb",
        f"{_OGKM}935 and 673",
        "2026-11-28",
        covers=_NO_START,
    ),
    Rule(
        "gsp_firmware_failed",
        r"Cannot initialize GSP firmware RM",
        _KERNEL,
        "The GSP firmware of a GPU did not start: its file is missing or of another version than "
        "the driver, or the GPU does not work.",
        "See that /lib/firmware/nvidia/VERSION/ has gsp_*.bin for the version that is loaded (a "
        "package nvidia-firmware-* or the driver's own); then drain the node and power it off and "
        "on.",
        "NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM",
        f"{_MODULES}src/nvidia/arch/nvalloc/unix/src/osinit.c",
        READ,
        covers=("no_devices", "gpu_init_failed", "gpu_probe_failed"),
    ),
    Rule(
        VGPU_BRANCH,
        r"(?:\bXid \((?:PCI:)?(?P<address>[0-9a-f:.]{4,16})[^)\n]{0,40}\): 78\b[^\n]{0,80}?)?"
        r"Guest driver is incompatible with host driver",
        _KERNEL,
        "The driver of this guest does not fit the driver of the vGPU host: the virtual GPU "
        "{address} does not start.",
        GUEST_DRIVER_STEP,
        "NVRM: Xid (PCI:0002:00:00): 78, pid='<unknown>', name=<unknown>, Guest driver is "
        "incompatible with host driver",
        "github.com/skypilot-org/skypilot/issues/10468",
        "2026-11-27",
        covers=("no_devices", "gpu_init_failed", "gpu_probe_failed"),
    ),
    Rule(
        "gpu_init_failed",
        r"(?:\bGPU (?P<address>[0-9a-f:.]{4,16}): )?(?:RmInitAdapter failed! "
        r"\(0x[0-9a-f]{1,8}:0x[0-9a-f]{1,8}:\d{1,6}\)|rm_init_adapter failed)",
        _KERNEL,
        "The driver could not start the GPU {address}.",
        "The lines of the kernel's log before it say why (dmesg | grep NVRM). Power the machine "
        "off and on; see that the GPU is seated and powered; with the open modules take a newer "
        "version of the branch.",
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0xffff:1482)",
        f"{_MODULES}src/nvidia/arch/nvalloc/unix/src/osinit.c, kernel-open/nvidia/nv.c",
        READ,
        covers=("no_devices", "gpu_probe_failed"),
    ),
    Rule(
        "driver_message",
        r"(?:\bGPU (?P<address>[0-9a-f:.]{4,16}): )?RmInitAdapter failed!(?! \(0x)",
        _KERNEL,
        "NVIDIA's driver could not start the GPU {address}, and names no code of the error.",
        "Check: dmesg | grep -i -e NVRM -e Xid.",
        "NVRM: GPU 0000:00:05.0: RmInitAdapter failed!",
        f"{_MODULES}src/nvidia/arch/nvalloc/unix/src/osinit.c",
        READ,
        last_resort=True,
    ),
    Rule(
        "gpu_probe_failed",
        r"NVIDIA probe routine (?:was not called|failed) for -?\d{1,6} device"
        r"|None of the NVIDIA devices were initialized"
        r"|\bnvidia(?:: probe of|(?= )) (?P<address>[0-9a-f:.]{7,16})(?:: probe with driver "
        r"nvidia)? "
        r"failed with error -\d{1,4}",
        _KERNEL,
        "NVIDIA's module did not get hold of a GPU {address}: another driver has it, or it did not "
        "start.",
        "See lspci -k -d 10de: for the driver that has it, and the lines of NVRM before it in the "
        "kernel's log.",
        "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
        f"{_MODULES}kernel-open/nvidia/nv.c",
        READ,
        last_resort=True,
    ),
    Rule(
        "inforom_corrupt",
        r"infoROM is corrupted at gpu (?P<address>[0-9a-f:.]{4,20})",
        "nvidia-smi (exit status 14)",
        "The infoROM of GPU {address}, where the card keeps its data, is corrupted.",
        "Drain the node and power it off and on; if it persists, the card has to be replaced.",
        "WARNING: infoROM is corrupted at gpu 0000:3B:00.0",
        "nvidia-smi's own words; github.com/utkuozdemir/nvidia_gpu_exporter",
        READ,
    ),
    Rule(
        "gpu_access_blocked",
        r"GPU access blocked by the operating system",
        "nvidia-smi (exit status 17)",
        "The operating system does not let this process reach the GPU: its control group has no "
        "rule for the device, or it is WSL without a working driver of Windows.",
        "Start the container through the nvidia runtime or CDI; under WSL: wsl --shutdown on "
        "Windows, then again.",
        "Failed to initialize NVML: GPU access blocked by the operating system",
        "nvidia-smi's own words",
        READ,
    ),
    Rule(
        "driver_hangs",
        r"driver rpc error: timed out",
        "nvidia-container-cli, when a container starts",
        "The driver did not answer in time: a GPU hangs, or starting all of them takes too long "
        "without the persistence daemon.",
        "See whether nvidia-smi answers on the node, and dmesg | grep -i xid; systemctl enable "
        "--now nvidia-persistenced. CDI starts containers without asking the driver.",
        "nvidia-container-cli: initialization error: driver rpc error: timed out",
        "github.com/NVIDIA/nvidia-container-toolkit, libnvidia-container's own words",
        READ,
    ),
    Rule(
        "cuda_driver_mismatch",
        r"unsupported display driver / cuda driver combination",
        "a CUDA program (error 803)",
        "The CUDA driver library that the program loads is not the one of the driver on the node: "
        "usually the image's own (cuda-compat) is found before it.",
        "Take cuda-compat (/usr/local/cuda/compat) out of the image or of LD_LIBRARY_PATH; where "
        "the driver was upgraded on the node, reboot it.",
        "Error 803: system has unsupported display driver / cuda driver combination",
        "NVIDIA's CUDA runtime errors (803)",
        READ,
    ),
    Rule(
        "mps_not_reachable",
        r"MPS client failed to connect to the MPS control daemon",
        "a CUDA program (error 805)",
        "The program is to share the GPU by MPS, and reaches no MPS daemon.",
        "In a pod: see that the MPS control daemon's pod runs on the node. Elsewhere unset "
        "CUDA_MPS_PIPE_DIRECTORY, or start nvidia-cuda-mps-control -d.",
        "Error 805: MPS client failed to connect to the MPS control daemon or the MPS server",
        "NVIDIA's CUDA runtime errors (805)",
        READ,
    ),
)
