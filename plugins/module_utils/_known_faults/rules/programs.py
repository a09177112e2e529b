# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of programs that want a GPU: PyTorch, HIP, HSA, Gaudi, the loader of an image. Data.

A container's text says what its program found. What the node has, its facts say.
"""

from __future__ import annotations

from ..types import Rule

_READ = "2026-11-28"
_NO_DRIVER = "Found no NVIDIA driver on your system"
_NO_KFD = r"/dev/kfd\b[^\n]{0,40}?no such file or directory"
_KFD_EXAMPLE = (
    "docker: Error response from daemon: error gathering device information while adding custom "
    'device "/dev/kfd": no such file or directory.'
)


def _no_driver(code: str, cause: str, next_step: str, *when: str) -> Rule:
    return Rule(
        code,
        _NO_DRIVER,
        "PyTorch",
        cause,
        next_step,
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA "
        "GPU and installed a driver",
        "github.com/NVIDIA/k8s-device-plugin/issues/812",
        _READ,
        when=when,
        family="program_without_driver",
    )


PROGRAMS = (
    _no_driver(
        "no_cuda_device",
        "The program finds no library of NVIDIA's driver (libcuda.so.1), as in a container that "
        "was started without a GPU.",
        "Ask for a GPU: limits: {{nvidia.com/gpu: 1}} in Kubernetes, --gpus or "
        "NVIDIA_VISIBLE_DEVICES elsewhere. Outside of a container: ldconfig -p | grep libcuda.",
        "nvidia_loaded",
    ),
    _no_driver(
        "driver_not_loaded",
        "NVIDIA's kernel module is not loaded on the node.",
        "Run kubegpu.nodes.site for this node: role nvidia_driver loads it, or says why it cannot.",
        "has_nvidia",
        "not nvidia_loaded",
    ),
    _no_driver(
        "image_for_other_vendor",
        "The program was built for CUDA, which needs an NVIDIA GPU, and the node has GPUs of "
        "another vendor only.",
        "Use an image for the node's GPUs: one for ROCm with AMD GPUs, one for oneAPI (XPU) with "
        "Intel GPUs; in Kubernetes ask for amd.com/gpu or the resource of Intel's plugin. Or run "
        "it on a node with an NVIDIA GPU.",
        "other_vendor_only",
    ),
    Rule(
        "no_kernel_image",
        r"HIP error: (?:invalid device function|no kernel image is available)"
        r"|hipErrorInvalidDeviceFunction|hipErrorNoBinaryForGpu"
        r"|rocBLAS error: Cannot read [^\n]{1,200}? for GPU arch ?: ?gfx\w{1,8}",
        "a HIP program (ROCm)",
        "The program or one of its libraries was not built for the gfx architecture of this GPU.",
        "Compare the GPU's architecture (rocminfo | grep gfx) with those of the program (PyTorch: "
        "torch.cuda.get_arch_list()), and use an image or a build that has it. For a GPU close to "
        "a supported one, HSA_OVERRIDE_GFX_VERSION with the version of that one may do. The driver "
        "has no part in it.",
        "RuntimeError: HIP error: invalid device function",
        "github.com/pytorch/pytorch/issues/132570; hipErrorNoBinaryForGpu: "
        "github.com/ROCm/legacy-rocm-build/issues/1530; TensileLibrary: "
        "github.com/brknsoul/ROCmLibs/issues/4",
        _READ,
    ),
    Rule(
        "hsa_invalid_isa",
        r"HSA_STATUS_ERROR_INVALID_ISA",
        "a HIP program (ROCm)",
        "The program's code is for another instruction set than the GPU's: the variable "
        "HSA_OVERRIDE_GFX_VERSION names an architecture that this GPU cannot stand in for, or a "
        "library was built for another one.",
        "Unset HSA_OVERRIDE_GFX_VERSION, and use libraries that were built for the GPU's own "
        "architecture (rocminfo | grep gfx).",
        "aborting with error : HSA_STATUS_ERROR_INVALID_ISA: The instruction set architecture is "
        "invalid. code: 0x100f",
        "github.com/likelovewant/ROCmLibs-for-gfx1103-AMD780M-APU/issues/37",
        _READ,
    ),
    Rule(
        "gpu_busy",
        r"\[Device already acquired\]",
        "a program for Intel Gaudi (synStatus 20)",
        "A Gaudi accelerator serves one process at a time, and another process holds this one.",
        "See with hl-smi which process holds which accelerator, and end it. Give each container "
        "its own: habana.ai/gaudi in limits in Kubernetes, HABANA_VISIBLE_DEVICES with indices "
        "instead of all elsewhere.",
        "synStatus=20 [Device already acquired] Device acquire failed.",
        "github.com/huggingface/tgi-gaudi/issues/54",
        _READ,
    ),
    Rule(
        "image_glibc_too_old",
        r"version \W?(?P<version>GLIBC_[\d.]{1,8})\W? not found \(required by "
        r"(?P<file>/[^\s)]{0,200}?(?:nvidia|tegra|libcuda|libnv)[^\s)]{0,80})\)",
        "the loader, in a container that has the driver's files of the node",
        "The driver's file {file} needs {version}, and the glibc of the image is older.",
        "Use an image with a newer distribution. The files come from the node, so that nothing in "
        "the image replaces them.",
        "nvidia-smi: /lib/aarch64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by "
        "/usr/lib/aarch64-linux-gnu/tegra/libnvrm_gpu.so)",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/543",
        _READ,
        covers=("nvidia_smi_missing",),
    ),
    Rule(
        "device_node_rights",
        # A second X server is refused the master of a card, and works without it.
        r"(?P<node>/dev/(?:kfd|dri/(?:renderD|card)\d{1,3}))\b(?!: failed to set DRM interface)"
        r"[^\n]{0,80}?permission denied",
        "a program that opens a GPU, often in a container",
        "The program's user may not open {node}: it is not in the group that owns the file on the "
        "node, usually render.",
        "Give it the number of that group (on the node: stat -c %g {node}): --group-add NUMBER for "
        "Docker and Podman, supplementalGroups in Kubernetes, usermod --append --groups for a user "
        "of the node. The name render or video may have another number in the image. An engine "
        "without root needs the number in /etc/subgid, or podman run --group-add keep-groups. If "
        "the group is right, check SELinux (getenforce, ausearch -m avc): where it denies the "
        "device, start the container with --security-opt label=disable.",
        "Unable to open /dev/kfd read-write: Permission denied",
        "github.com/ROCm/legacy-rocm-build/issues/1549; keep-groups: "
        "github.com/redhat-et/GKM/pull/174",
        _READ,
    ),
    Rule(
        "device_node_rights",
        r"Unable to open (?P<node>/dev/kfd) read-write: Operation not permitted"
        r"|(?P<other>/dev/kfd)\b[^\n]{0,40}?operation not permitted",
        "rocminfo, in a container",
        "The container has the file /dev/kfd, and its control group does not allow the device.",
        "Give the device to the container, not its file only: --device /dev/kfd --device /dev/dri "
        "for Docker and Podman; for LXC and Proxmox dev0: /dev/kfd,gid=NUMBER in the container's "
        "configuration, or lxc.cgroup2.devices.allow: c MAJOR:* rwm with the number that ls -l "
        "/dev/kfd shows on the node after each boot; in Kubernetes ask for amd.com/gpu.",
        "Unable to open /dev/kfd read-write: Operation not permitted",
        "github.com/ROCm/rocminfo/issues/37; Linux, Documentation/admin-guide/cgroup-v2.rst "
        "(device controller)",
        _READ,
    ),
    Rule(
        "kfd_not_opened",
        r"Unable to open /dev/kfd read-write: (?P<error>Invalid argument|Cannot allocate memory"
        r"|Bad address|No such device(?: or address)?|Inappropriate ioctl for device)",
        "rocminfo",
        "The kernel's driver for computing (KFD) refuses to open /dev/kfd ({error}), although the "
        "file and its rights are there: it serves none of the GPUs, it failed for this process, or "
        "the file in a container has the number of another device.",
        "Run rocminfo on the node itself. If it fails there too: dmesg | grep kfd says which GPU "
        "it "
        "skipped and why (no PCIe atomics, a card that ROCm does not serve, a failed start). If it "
        "works there: compare ls -l /dev/kfd inside and outside, whose numbers must be equal (the "
        "number "
        "changes with boots), and run rocminfo on a release of ROCm that fits the kernel's driver.",
        "Unable to open /dev/kfd read-write: Invalid argument",
        "github.com/ROCm/legacy-rocm-build/issues/5379, 4043, 2232; Linux, "
        "drivers/gpu/drm/amd/amdkfd/kfd_chardev.c",
        _READ,
        confidence="possible",
    ),
    Rule(
        "device_node_missing",
        _NO_KFD,
        "docker, podman, rocminfo",
        "The kernel of the node has no /dev/kfd: its module amdgpu is not loaded, or does not "
        "serve this GPU.",
        "Check lspci -nnk -d 1002: and dmesg | grep amdgpu on the node, and load the module: "
        "modprobe amdgpu.",
        _KFD_EXAMPLE,
        "github.com/ROCm/container-toolkit/issues/86",
        _READ,
        when=("not desktop_kernel",),
        family="kfd_missing",
    ),
    Rule(
        "device_node_missing",
        _NO_KFD,
        "docker, podman, rocminfo",
        "The engine runs in WSL 2 or in the virtual machine of Docker Desktop, whose kernel has no "
        "amdgpu and so no /dev/kfd.",
        "Use an engine on a Linux of its own. Beside Docker Desktop on Linux: docker context use "
        "default. In WSL 2 ROCm serves few GPUs, by /dev/dxg instead of /dev/kfd.",
        _KFD_EXAMPLE,
        "github.com/robertrosenbusch/gfx803_rocm61_pt24/issues/1",
        _READ,
        when=("desktop_kernel",),
        family="kfd_missing",
    ),
)
