# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each cause from the words of the kernel, modprobe, DKMS, apt, nvidia-smi and the installer.

What Debian's packages said is recorded (tests/unit/fixtures/driver_evidence); the kernel's and
NVIDIA's words are from public reports, in both layouts that dmesg and journalctl give them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import INFO
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults import codes
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.driver import (
    find_cause,
    mok_steps,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    DeviceUser,
    DkmsBuild,
    Evidence,
    Gpu,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.on_node import diagnose
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules import (
    nvidia_kernel,
    xids,
)

FIXTURES = Path(__file__).parents[4] / "unit" / "fixtures" / "driver_evidence"
MAKE_LOG = (FIXTURES / "debian13-nvidia-open-550.163.01-linux-6.12.117.make.log").read_text(
    encoding="utf-8"
)
APT = (FIXTURES / "debian13-nvidia-open-550.163.01-apt.txt").read_text(encoding="utf-8")
KERNEL = "6.12.117+deb13-amd64"
LOG = "/var/lib/dkms/nvidia-current-open/550.163.01/build/make.log"
FAILED = DkmsBuild("550.163.01", KERNEL, "failed", "nvidia-current-open", LOG, MAKE_LOG)
# Recorded on Debian 12 with nvidia-kernel-dkms 535.309.01, in a container on another kernel.
MODPROBE_MISSING = (
    "modprobe: FATAL: Module nvidia-current not found in directory "
    "/lib/modules/6.18.44-fc-v657\n"
    "modprobe: ERROR: ../libkmod/libkmod-module.c:1047 command_do() Error running install command "
    "'modprobe -i nvidia-current ' for module nvidia: retcode 1\n"
    "modprobe: ERROR: could not insert 'nvidia': Invalid argument"
)
NO_DEVICE = "modprobe: ERROR: could not insert 'nvidia': No such device"
V100 = Gpu("0000:01:00.0", "Tesla V100-PCIE-32GB", "volta", False)
T4 = Gpu("0000:00:05.0", "Tesla T4", "turing", False)
A10_VGPU = Gpu("0000:02:00.0", "A10", "ampere", True, "535.129.03", "r535_00")
B200 = Gpu("0000:02:00.0", "B200", "blackwell", False)
K80 = Gpu("0000:06:00.0", "Tesla K80", "kepler", False)


def unsupported(address, device, version):
    return (
        f"[    5.1] NVRM: The NVIDIA GPU {address} (PCI ID: {device})",
        f"               NVRM: installed in this system is not supported by the NVIDIA {version} "
        "driver release.",
        "               NVRM: Please see 'Appendix A - Supported NVIDIA GPU Products' in this",
        f"[    5.2] nvidia: probe of {address} failed with error -1",
        "[    5.3] NVRM: None of the NVIDIA devices were initialized.",
    )


def older_unsupported(address, device, version):
    return (
        f"[ 2288.712311] NVRM: The NVIDIA GPU {address} (PCI ID: {device})",
        f"[ 2288.712311] NVRM: installed in this system is not supported by the {version}",
        "[ 2288.712311] NVRM: NVIDIA Linux driver release.  Please see 'Appendix",
        "[ 2288.712311] NVRM: A - Supported NVIDIA GPU Products' in this release's",
    )


def no_gsp(address, device):
    return (
        f"[   10.0] NVRM: The NVIDIA GPU {address} (PCI ID: {device})",
        "               NVRM: installed in this system is not supported by open",
        "               NVRM: nvidia.ko because it does not include the required GPU",
        "               NVRM: System Processor (GSP).",
        "               NVRM: Please see the 'Open Linux Kernel Modules' and 'GSP",
    )


NEEDS_OPEN = (
    "[    5.559842] NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2901)",
    "               NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
    "[    5.559858] NVRM: GPU 0000:02:00.0: RmInitAdapter failed! (0x22:0x56:884)",
)
PROBE_NOT_CALLED = (
    "[    3.818839] nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
    "[    3.818844] NVRM: The NVIDIA probe routine was not called for 1 device(s).",
    "[    3.819827] NVRM: This can occur when a driver such as:",
    "               NVRM: nouveau, rivafb, nvidiafb or rivatv",
    "               NVRM: was loaded and obtained ownership of the NVIDIA device(s).",
    "[    3.819828] NVRM: No NVIDIA devices probed.",
)
API_MISMATCH = (
    "[7874777.555649] NVRM: API mismatch: the client has the version 535.247.01, but",
    "                  NVRM: this kernel module has the version 535.230.02.  Please",
    "                  NVRM: make sure that this kernel module and all NVIDIA driver",
)
# osapi.c:1221 and 3699 to 3740 of open-gpu-kernel-modules 595.45.04.
API_MISMATCH_595 = (
    "[   41.555649] NVRM: API mismatch: the client 'nvidia-smi' (pid 4242)",
    "               NVRM: has the version 595.58.03, but this kernel module has",
    "               NVRM: the version 595.45.04.  Please make sure that this",
    "               NVRM: kernel module and all NVIDIA driver components",
    "               NVRM: have the same version.",
)
OPEN_VGPU = (
    "[    3.818844] NVRM: The NVIDIA vGPU 0000:02:00.0 (PCI ID: 10de:2236)",
    "               NVRM: installed in this system is not supported by open",
    "               NVRM: nvidia.ko.",
)
OPEN_VGPU_HOST = (
    "[    3.818844] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1db6)",
    "               NVRM: installed in this vGPU host system is not supported by",
    "               NVRM: open nvidia.ko.",
)
VFIO = (
    "[ 3641.841149] NVRM: GPU 0000:01:00.0 is already bound to vfio-pci.",
    "[ 3641.845221] NVRM: The NVIDIA probe routine was not called for 1 device(s).",
)
LOCKDOWN = (
    "[    8.412091] Lockdown: modprobe: unsigned module loading is restricted; see man "
    "kernel_lockdown.7",
)
NO_HEADERS = (
    "Error! Your kernel headers for kernel 6.8.0-117-generic cannot be found at "
    "/lib/modules/6.8.0-117-generic/build or /lib/modules/6.8.0-117-generic/source.\n"
    "Please install the linux-headers-6.8.0-117-generic package or use the --kernelsourcedir "
    "option to tell DKMS where it's located."
)
JOBS = (
    DeviceUser(812, "nvidia-persiste", ("/dev/nvidiactl",), "nvidia-persistenced.service"),
    DeviceUser(4711, "python3", ("/dev/nvidia0",), "container 0123456789ab"),
)

# name: (evidence, code, what the message has to say)
CASES: dict[str, tuple[Evidence, str, list[str]]] = {
    "vGPU guest with the data-centre driver": (
        Evidence(
            gpus=(A10_VGPU,), loaded="580.95.05", nvml="No devices were found",
            dmesg=unsupported("0000:02:00.0", "10de:2236", "580.95.05"),
        ),
        codes.VGPU_GUEST, ["A10 at 0000:02:00.0", "535.129.03 (r535_00)", "-grid.run"],
    ),
    "vGPU guest, and the driver on the node is known not to be GRID": (
        Evidence(gpus=(A10_VGPU,), grid=False, modprobe=NO_DEVICE),
        codes.VGPU_GUEST, ["only a GRID driver"],
    ),
    "vGPU guest whose driver the host refuses": (
        Evidence(
            gpus=(A10_VGPU,), grid=True, wanted="580.95.05", nvml="No devices were found",
            dmesg=(
                "NVRM: Xid (PCI:0000:02:00): 78, pid='<unknown>', name=<unknown>, Guest driver is "
                "incompatible with host driver",
                "NVRM: GPU 0000:02:00.0: RmInitAdapter failed! (0x22:0x65:797)",
            ),
        ),
        codes.VGPU_BRANCH,
        ["driver 580.95.05 does not fit the driver 535.129.03 of the vGPU host", "GRID guest"],
    ),
    "passed-through GPU with a GRID driver": (
        Evidence(gpus=(T4,), grid=True, wanted="550.90.07", modprobe=NO_DEVICE),
        codes.WHOLE_GPU, ["Tesla T4", "550.90.07 is a GRID driver", "data-centre driver"],
    ),
    "Volta with branch 595": (
        Evidence(gpus=(V100,), wanted="595.58.03", kernel_module="proprietary",
                 dmesg=unsupported("0000:01:00.0", "10de:1db6", "595.58.03"), modprobe=NO_DEVICE),
        codes.GPU_UNSUPPORTED, ["Tesla V100-PCIE-32GB", "595.58.03", "branch: 580"],
    ),
    "Volta with the open modules": (
        Evidence(gpus=(V100,), wanted="580.95.05", dmesg=no_gsp("0000:01:00.0", "10de:1db6")),
        codes.WRONG_MODULES, ["has no GSP", "branch: 580 and kernel_module: proprietary"],
    ),
    "Kepler with the open modules": (
        Evidence(gpus=(K80,), wanted="580.95.05", dmesg=no_gsp("0000:06:00.0", "10de:102d")),
        codes.GPU_UNSUPPORTED, ["Tesla K80", "470 is the last branch", "manually"],
    ),
    "Kepler in the kernel's older layout": (
        Evidence(gpus=(K80,), wanted="550.54.15",
                 dmesg=older_unsupported("0000:06:00.0", "10de:102d", "550.54.15")),
        codes.GPU_UNSUPPORTED, ["Tesla K80", "470 is the last branch", "manually"],
    ),
    "Blackwell with the proprietary modules": (
        Evidence(gpus=(B200,), loaded="580.95.05", kernel_module="proprietary", dmesg=NEEDS_OPEN),
        codes.WRONG_MODULES, ["B200", "kernel_module: open"],
    ),
    "the open modules cannot read a new GPU": (
        Evidence(gpus=(B200,), dmesg=no_gsp("0000:02:00.0", "10de:2901")),
        codes.GPU_UNSUPPORTED, ["does not answer on the bus", "Power the machine off"],
    ),
    "a GPU of which nobody may read whether it is virtual": (
        Evidence(gpus=(replace(T4, vgpu=None),), wanted="580.95.05",
                 dmesg=unsupported("0000:00:05.0", "10de:1eb8", "580.95.05")),
        codes.GPU_UNSUPPORTED, ["become"],
    ),
    "a GPU newer than the driver": (
        Evidence(gpus=(B200,), wanted="550.54.15",
                 dmesg=unsupported("0000:02:00.0", "10de:2901", "550.54.15")),
        codes.GPU_UNSUPPORTED, ["newer branch"],
    ),
    "Secure Boot, Debian, key not enrolled": (
        Evidence(os_id="debian", secure_boot=True, mok_key="/var/lib/dkms/mok.pub",
                 mok_enrolled=False,
                 modprobe="modprobe: ERROR: could not insert 'nvidia': Key was rejected by "
                 "service"),
        codes.SECURE_BOOT, ["mokutil --import /var/lib/dkms/mok.pub", "not enrolled", "Enroll MOK"],
    ),
    "Secure Boot, Ubuntu, before 5.18": (
        Evidence(os_id="ubuntu", secure_boot=True,
                 modprobe="modprobe: ERROR: could not insert 'nvidia': Required key not "
                 "available"),
        codes.SECURE_BOOT, ["/var/lib/shim-signed/mok/MOK.der", "update-secureboot-policy"],
    ),
    "Secure Boot by lockdown alone": (
        Evidence(os_id="ubuntu", secure_boot=True, dmesg=LOCKDOWN,
                 modprobe="modprobe: ERROR: could not insert 'nvidia': Operation not permitted"),
        codes.SECURE_BOOT, ["Lockdown: modprobe", "is on"],
    ),
    "Secure Boot and nothing in the kernel's log": (
        Evidence(os_id="ubuntu", secure_boot=True,
                 modprobe="modprobe: ERROR: could not insert 'nvidia': Operation not permitted"),
        codes.SECURE_BOOT, ["Operation not permitted"],
    ),
    "Secure Boot, enrolled, but the module is unsigned": (
        Evidence(os_id="debian", secure_boot=True, mok_key="/var/lib/dkms/mok.pub",
                 mok_enrolled=True, nouveau_loaded=True,
                 modprobe="modprobe: ERROR: could not insert 'nvidia': Key was rejected by "
                 "service"),
        codes.SECURE_BOOT, ["is enrolled, but the module is not signed"],
    ),
    "nouveau, not blocked": (
        Evidence(nouveau_loaded=True, modprobe=NO_DEVICE, dmesg=PROBE_NOT_CALLED),
        codes.NOUVEAU, ["probe routine was not called", "blacklist nouveau"],
    ),
    "nouveau, blocked for the next boot": (
        Evidence(nouveau_loaded=True, nouveau_blocked=True),
        codes.NOUVEAU, ["Reboot the node"],
    ),
    "nova, blocked for the next boot": (
        Evidence(nouveau_loaded=True, nouveau_blocked=True, kernel_driver="nova_core"),
        codes.NOUVEAU, ["Reboot the node: nova_core"],
    ),
    "nouveau, in the installer's words": (
        Evidence(output="ERROR: The Nouveau kernel driver is currently in use by your system.  "
                 "This driver is incompatible with the NVIDIA driver"),
        codes.NOUVEAU, ["Nouveau kernel driver is currently in use"],
    ),
    "vfio-pci": (
        Evidence(modprobe=NO_DEVICE, dmesg=VFIO),
        codes.OTHER_DRIVER, ["0000:01:00.0 belongs to the driver vfio-pci"],
    ),
    "no headers, in DKMS's words": (
        Evidence(kernel="6.8.0-117-generic", os_id="ubuntu", output=NO_HEADERS, headers=False),
        codes.NO_HEADERS, ["Install linux-headers-6.8.0-117-generic"],
    ),
    "no headers, whose package is there": (
        Evidence(kernel="6.8.0-117-generic", os_id="ubuntu", headers=False,
                 headers_packages=("linux-headers-6.8.0-117", "linux-headers-6.8.0-117-generic"),
                 output=NO_HEADERS),
        codes.NO_HEADERS,
        ["--reinstall linux-headers-6.8.0-117 linux-headers-6.8.0-117-generic", "files are gone"],
    ),
    "no headers, after a new kernel was booted": (
        Evidence(kernel="6.8.0-117-generic", os_id="ubuntu", headers=False,
                 modprobe="modprobe: FATAL: Module nvidia not found in directory "
                 "/lib/modules/6.8.0-117-generic",
                 dkms=(DkmsBuild("580.95.05", "6.8.0-100-generic", "installed"),)),
        codes.NO_HEADERS, ["6.8.0-117-generic", "linux-headers-6.8.0-117-generic"],
    ),
    "no headers, in the runfile's words, on a Red Hat family": (
        Evidence(kernel="5.14.0-427.el9.x86_64", os_id="rocky",
                 output="ERROR: Unable to find the kernel source tree for the currently running "
                 "kernel.  Please make sure you have installed the kernel source files"),
        codes.NO_HEADERS, ["kernel-devel-5.14.0-427.el9.x86_64"],
    ),
    "no headers on Amazon Linux": (
        Evidence(kernel="6.12.40-63.114.amzn2023.x86_64", os_id="amzn", family="rhel",
                 arch="x86_64", output="ERROR: Unable to find the kernel source tree for the "
                 "currently running kernel."),
        codes.NO_HEADERS, ["Install kernel6.12-devel-6.12.40-63.114.amzn2023.x86_64"],
    ),
    "no headers on Oracle's UEK": (
        Evidence(kernel="5.15.0-300.163.18.el9uek.x86_64", os_id="ol", family="rhel",
                 arch="x86_64", output="ERROR: Unable to find the kernel source tree for the "
                 "currently running kernel."),
        codes.NO_HEADERS, ["Install kernel-uek-devel-5.15.0-300.163.18.el9uek.x86_64"],
    ),
    "no headers on SLES": (
        Evidence(kernel="6.4.0-150600.23.47-default", os_id="sles", family="suse",
                 arch="x86_64", output="ERROR: Unable to find the kernel source tree for the "
                 "currently running kernel."),
        codes.NO_HEADERS, ["Install kernel-default-devel (6.4.0-150600.23.47*)"],
    ),
    "no headers on Mint": (
        Evidence(kernel="6.8.0-51-generic", os_id="linuxmint", family="debian",
                 arch="x86_64", output="ERROR: Unable to find the kernel source tree for the "
                 "currently running kernel."),
        codes.NO_HEADERS, ["Install linux-headers-6.8.0-51-generic"],
    ),
    "no headers on Pop!_OS": (
        Evidence(kernel="6.9.3-76060903-generic", os_id="pop", family="debian",
                 arch="x86_64", output="ERROR: Unable to find the kernel source tree for the "
                 "currently running kernel."),
        codes.NO_HEADERS, ["Install linux-headers-6.9.3-76060903-generic"],
    ),
    "no headers on Proxmox": (
        Evidence(kernel="6.14.11-2-pve", os_id="debian", family="debian",
                 arch="x86_64", output="ERROR: Unable to find the kernel source tree for the "
                 "currently running kernel."),
        codes.NO_HEADERS, ["Install proxmox-headers-6.14.11-2-pve (the kernel is from Proxmox"],
    ),
    "DKMS, recorded on Debian 13": (
        Evidence(kernel=KERNEL, os_id="debian", wanted="550.163.01", kernel_module="open",
                 output=APT, dkms=(FAILED,), headers=True),
        codes.BUILD_FAILED,
        ["550.163.01 for kernel 6.12.117+deb13-amd64", "nv-pci.c:237:9: error: too few arguments",
         LOG, "pci_resize_resource()", "kernel_module: proprietary"],
    ),
    "DKMS, recorded, with nouveau loaded as on every fresh machine": (
        Evidence(kernel=KERNEL, os_id="debian", output=APT, dkms=(FAILED,), headers=True,
                 nouveau_loaded=True, secure_boot=True),
        codes.BUILD_FAILED, ["nv-pci.c:237"],
    ),
    "DKMS, recorded, in a container whose host runs another kernel": (
        Evidence(kernel="6.18.44-fc-v657", os_id="debian", output=APT, dkms=(FAILED,),
                 headers=False, container="docker", may_load=False, modprobe=MODPROBE_MISSING),
        codes.BUILD_FAILED, ["6.12.117+deb13-amd64", "nv-pci.c:237"],
    ),
    "DKMS, but its log is gone": (
        Evidence(kernel=KERNEL, output=APT, headers=True),
        codes.BUILD_FAILED, ["driver 550.163.01 for", "Bad return status", LOG],
    ),
    "DKMS, found on the node without anybody's words": (
        Evidence(kernel=KERNEL, installed="550.163.01", dkms=(FAILED,), headers=True,
                 modprobe=NO_DEVICE),
        codes.BUILD_FAILED, ["nv-pci.c:237"],
    ),
    "the runfile's own build": (
        Evidence(kernel="6.8.0-117-generic", wanted="550.54.15", headers=True,
                 output="ERROR: An error occurred while performing the step: \"Building kernel "
                 "modules\". See /var/log/nvidia-installer.log for details."),
        codes.BUILD_FAILED,
        ["installer could not build driver 550.54.15", "Building kernel modules"],
    ),
    "disk full": (
        Evidence(output="dpkg: error processing archive x.deb (--unpack):\n cannot copy extracted "
                 "data for './usr/lib/libcuda.so.580.95.05' to '/usr/lib/libcuda.so.580.95.05."
                 "dpkg-new': failed to write (No space left on device)", nouveau_loaded=True),
        codes.DISK_FULL, ["No space left on device", "df -h"],
    ),
    "module and library differ, in NVML's words": (
        Evidence(loaded="535.230.02", userland="535.247.01", installed="535.247.01",
                 nvml="Failed to initialize NVML: Driver/library version mismatch\nNVML library "
                 "version: 535.247", dmesg=API_MISMATCH),
        codes.MISMATCH, ["535.230.02", "535.247.01", "unattended upgrades"],
    ),
    "module and library differ, in the kernel's words": (
        Evidence(dmesg=API_MISMATCH),
        codes.MISMATCH, ["is 535.230.02", "are 535.247.01"],
    ),
    "module and library differ, in the words of 595": (
        Evidence(dmesg=API_MISMATCH_595),
        codes.MISMATCH, ["is 595.45.04", "are 595.58.03"],
    ),
    "a virtual GPU that the open modules do not drive": (
        Evidence(gpus=(A10_VGPU,), dmesg=OPEN_VGPU),
        codes.VGPU_GUEST, ["535.129.03 (r535_00)", "not supported by open nvidia.ko", "-grid.run"],
    ),
    "a virtual GPU of a node without facts": (
        Evidence(dmesg=OPEN_VGPU),
        codes.VGPU_GUEST, ["a virtual GPU of this guest", "GRID driver of the host's branch"],
    ),
    "a host of virtual GPUs with the open modules": (
        Evidence(gpus=(V100,), dmesg=OPEN_VGPU_HOST),
        codes.WRONG_MODULES, ["in a host of virtual GPUs", "vGPU manager"],
    ),
    "module and library differ, by their versions": (
        Evidence(loaded="580.95.05", userland="595.58.03", users=JOBS),
        codes.MISMATCH, ["loaded 580.95.05, libraries 595.58.03", "python3 (pid 4711, container"],
    ),
    "in use": (
        Evidence(loaded="580.95.05", userland="595.58.03", users=JOBS,
                 modprobe="rmmod: ERROR: Module nvidia is in use by: nvidia_uvm nvidia_modeset"),
        codes.IN_USE,
        ["python3 (pid 4711, container 0123456789ab)",
         "nvidia-persiste (pid 812, nvidia-persistenced.service)"],
    ),
    "in use by a module of somebody else": (
        Evidence(loaded="580.95.05", holders=("gdrdrv",),
                 modprobe="modprobe: FATAL: Module nvidia is in use."),
        codes.IN_USE, ["by the modules gdrdrv"],
    ),
    "in use, known before anything was tried": (
        Evidence(loaded="580.95.05", wanted="595.58.03", users=JOBS[1:]),
        codes.IN_USE, ["1 process has", "pid 4711"],
    ),
    "built for another kernel": (
        Evidence(kernel="6.8.0-117-generic", headers=True,
                 modprobe="modprobe: ERROR: could not insert 'nvidia': Invalid module format"),
        codes.OTHER_KERNEL, ["6.8.0-117-generic"],
    ),
    "container, recorded": (
        Evidence(kernel="6.18.44-fc-v657", container="docker", may_load=True, headers=False,
                 dkms=(DkmsBuild("535.309.01", "6.1.0-56-amd64", "installed"),),
                 modprobe=MODPROBE_MISSING, nouveau_loaded=True),
        codes.NOT_LOADABLE, ["a container (docker)", "nvidia-current not found"],
    ),
    "no capability": (
        Evidence(may_load=False),
        codes.NOT_LOADABLE, ["CAP_SYS_MODULE"],
    ),
    "the module is there for another kernel": (
        Evidence(kernel="6.18.44-fc-v657", headers=True, modprobe=MODPROBE_MISSING,
                 dkms=(DkmsBuild("535.309.01", "6.1.0-56-amd64", "installed"),)),
        codes.MISSING, ["it is there for 6.1.0-56-amd64", "Boot 6.1.0-56-amd64"],
    ),
    "no module at all": (
        Evidence(kernel="6.18.44-fc-v657", headers=True, modprobe=MODPROBE_MISSING),
        codes.MISSING, ["dkms autoinstall -k 6.18.44-fc-v657"],
    ),
    "no module on the disk, and nothing was tried": (
        Evidence(kernel="6.18.44-fc-v657", headers=True, on_disk=False),
        codes.MISSING, ["/lib/modules/6.18.44-fc-v657 has no nvidia.ko", "dkms autoinstall"],
    ),
    "a package that failed says more than the module that it did not bring": (
        Evidence(kernel="6.18.44-fc-v657", headers=True, on_disk=False, output="E: 100"),
        codes.UNKNOWN, ["E: 100"],
    ),
    "unknown": (
        Evidence(modprobe=NO_DEVICE, dmesg=("[ 9.1] NVRM: something that nobody has seen yet",)),
        codes.UNKNOWN, ["No such device", "that nobody has seen", "nvidia-bug-report.sh"],
    ),
    "nothing is known": (Evidence(), codes.UNKNOWN, ["no output"]),
}  # fmt: skip


@pytest.mark.parametrize(("evidence", "code", "said"), CASES.values(), ids=CASES)
def test_cause(evidence, code, said):
    finding = diagnose(evidence)
    assert finding.code == code, finding.message
    assert [text for text in said if text not in finding.message] == []
    assert finding.cause and finding.evidence and finding.next_step
    assert "None" not in finding.message and "  " not in finding.message
    texts = {"code", "cause", "evidence", "next_step"}
    assert texts <= set(finding.as_problem()) <= {*texts, "severity", "names"}


def kernel_messages():
    """The recorded message of each rule about NVIDIA's driver in the kernel's log, by code."""
    for row in (*nvidia_kernel.KERNEL, *xids.XID_RULES):
        if row.severity != INFO and row.code != codes.MISMATCH:
            yield pytest.param(row, id=f"{row.code}-{row.example[:40]}")


@pytest.mark.parametrize("row", kernel_messages())
def test_what_explain_knows_of_the_kernels_log_is_said(row):
    """While the role loads the driver; each of these was unknown."""
    dmesg = tuple(f"[ 9.1] {line}" for line in row.example.splitlines())
    found = diagnose(Evidence(modprobe=NO_DEVICE, dmesg=dmesg))
    own = find_cause(Evidence(modprobe=NO_DEVICE, dmesg=dmesg))
    assert found.code != codes.UNKNOWN
    assert found == own or found in explain(f"{row.example}\n{NO_DEVICE}")
    assert found.next_step and "bug-report" not in found.next_step


def test_facts_decide_what_the_kernels_log_means():
    """Of a GPU in a guest the same message has another cause."""
    dmesg = ("[ 9.1] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x24:0x65:1423)",)
    found = diagnose(Evidence(modprobe=NO_DEVICE, dmesg=dmesg), {"gpus": [], "driver": {}})
    assert found.code == "gpu_init_failed" and found.subject.gpu == "0000:01:00.0"


def test_a_branch_that_serves_a_gpu_and_refuses_it():
    """A whole H100 in a guest with confidential computing (NVIDIA/nvtrust 55)."""
    h100 = Gpu("0000:01:00.0", "H100", "hopper", False)
    dmesg = unsupported("0000:01:00.0", "10de:2330", "550.90.07")
    found = diagnose(Evidence(loaded="550.90.07", gpus=(h100,), dmesg=dmesg))
    assert found.code == codes.GPU_UNSUPPORTED
    assert "refuses H100" in found.cause and "serves this generation (hopper)" in found.cause
    assert "CC mode" in found.next_step and "BAR" in found.next_step
    assert "newer branch" not in found.message

    unknown = replace(h100, vgpu=None)
    found = diagnose(Evidence(loaded="550.90.07", gpus=(unknown,), dmesg=dmesg))
    assert "run with become" in found.next_step and "CC mode" in found.next_step


def test_there_is_a_case_for_every_cause():
    known = {
        value
        for name, value in vars(codes).items()
        if name.isupper() and name[0] != "_" and re.fullmatch(r"[a-z_]+", str(value))
    }
    assert {code for _evidence, code, _said in CASES.values()} == known


@pytest.mark.parametrize(
    "evidence",
    [
        # A GRID driver in a guest that has some other trouble.
        Evidence(gpus=(A10_VGPU,), grid=True, modprobe=NO_DEVICE),
        # Module and libraries agree again; the kernel's line is of last week.
        Evidence(loaded="580.95.05", userland="580.95.05", dmesg=API_MISMATCH),
        # Unsigned, but loaded all the same: without Secure Boot that is only a remark.
        Evidence(
            secure_boot=False,
            dmesg=("[1.0] nvidia: module verification failed: signature and/or required key "
                   "missing - tainting kernel",),
        ),
        # nouveau is the host's, and nothing says that it is in the way.
        Evidence(container="docker", may_load=True, nouveau_loaded=True),
        # apt could not get its lock: that is no driver in use.
        Evidence(output="E: Could not get lock /var/lib/dpkg/lock-frontend. (11: Resource "
                 "temporarily unavailable)"),
        # A build that failed for a kernel that is not running, and that nobody asked for.
        Evidence(kernel="6.1.0-37-amd64", loaded="535.1.1", wanted="535.1.1", userland="535.1.1",
                 dkms=(FAILED,)),
    ],
)  # fmt: skip
def test_what_proves_nothing_is_not_taken_for_a_cause(evidence):
    assert diagnose(evidence).code == codes.UNKNOWN


def test_headers_are_not_missed_where_the_build_ran():
    """In a container the running kernel is the host's, and has never headers."""
    evidence = Evidence(
        kernel="6.18.44", headers=False, container="docker", dkms=(FAILED,), may_load=True
    )
    assert diagnose(evidence).code != codes.NO_HEADERS


def test_compilers_are_told():
    log = (
        "warning: the compiler differs from the one used to build the kernel\n"
        "  The kernel was built by: gcc-13 (Ubuntu 13.3.0)\n"
        "  You are using:           gcc-11 (Ubuntu 11.4.0)\n"
        "gcc-11: error: unrecognized command-line option '-fx'\n"
    )
    build = DkmsBuild("550.54.15", "6.8.0", "failed", log_path="/x/make.log", log=log)
    message = diagnose(Evidence(kernel="6.8.0", dkms=(build,), output="x")).message
    assert "built by: gcc-13" in message and "gcc-11 (Ubuntu 11.4.0)" in message


def test_many_users_are_counted():
    users = tuple(DeviceUser(number, "python3") for number in range(14))
    finding = diagnose(Evidence(users=users, modprobe="rmmod: ERROR: Module nvidia is in use"))
    assert "and 4 more" in finding.message


@pytest.mark.parametrize(
    ("os_id", "key", "enrolled", "said"),
    [
        ("debian", None, False, "mokutil --import /var/lib/dkms/mok.pub"),
        ("ubuntu", None, None, "mokutil --import /var/lib/shim-signed/mok/MOK.der"),
        ("rocky", None, None, "mokutil --import /var/lib/dkms/mok.pub"),
        ("debian", "/etc/keys/mok.der", False, "mokutil --import /etc/keys/mok.der"),
        ("debian", "/etc/keys/mok.der", True, "rebuild it"),
    ],
)
def test_mok_steps(os_id, key, enrolled, said):
    assert said in mok_steps(os_id, key, enrolled)


@pytest.mark.parametrize(
    ("setting", "modprobe", "loaded", "code"),
    [
        ("blacklist nvidia", "", None, "module_blocked"),
        ("install nvidia /bin/false", "", None, "module_blocked"),
        ("install nvidia /bin/false", "modprobe: ERROR: something", None, "module_blocked"),
        ("module_blacklist=nvidia", "could not insert 'nvidia': Operation not permitted", None,
         "module_blocked"),
        # A load by name passes a blacklist.
        ("blacklist nvidia", "could not insert 'nvidia': Invalid module format", None,
         "module_for_other_kernel"),
        ("blacklist nvidia", "", "580.95.05", "unknown"),
    ],
)  # fmt: skip
def test_a_setting_that_blocks_the_module(setting, modprobe, loaded, code):
    place = "/etc/modprobe.d/a.conf"
    blocked = {"nvidia": [{"place": place, "setting": setting}]}
    found = diagnose(Evidence(blocked=blocked, modprobe=modprobe, loaded=loaded))
    assert found.code == code
    assert (f"{place}: {setting}" in found.evidence) == (code == "module_blocked")
