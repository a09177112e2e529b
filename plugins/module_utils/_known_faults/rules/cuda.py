# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of CUDA programs and of NVIDIA's fabric manager. Data."""

from __future__ import annotations

from ..._core.finding import ERROR, POSSIBLE, WARNING
from ..types import Rule

CUDA_CONDITION = "unmet_requirement"
CUDA_RUNTIME = "cuda_driver_insufficient"
#: In a guest whose virtual GPU has no licence, that is the cause.
CUDA_BUSY = Rule(
    "gpu_busy",
    r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy",
    "a CUDA program",
    "Another program holds the GPU alone, its compute mode is exclusive or prohibited, or its "
    "MIG mode is on without an instance.",
    "Check nvidia-smi -q -d COMPUTE and the processes that nvidia-smi lists.",
    "Failed to allocate device vector A (error code CUDA-capable device(s) is/are busy or "
    "unavailable)!",
    "github.com/NVIDIA/nvidia-container-toolkit/issues/614",
)


def _fabric_nothing_to_do(
    cause: str, next_step: str, when: tuple[str, ...], severity: str = ERROR, fix: str = ""
) -> Rule:
    return Rule(
        "fabric_nothing_to_do",
        r"NV_WARN_NOTHING_TO_DO",
        "the log of NVIDIA's fabric manager",
        cause,
        next_step,
        "request to query NVSwitch device information from NVSwitch driver failed with "
        "error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
        "github.com/data-infra/cube-studio/issues/29",
        severity=severity,
        when=when,
        family="fabric_nothing_to_do",
        fix=fix,
        covers=("fabric_not_ready",),
    )


CUDA = (
    Rule(
        CUDA_CONDITION,
        r"unsatisfied condition:\s*(?P<condition>[^\s,\\:()]+(?:\s*[<>=!]+\s*[^\s,\\:()]+)?)",
        "nvidia-container-cli or the nvidia runtime, when a container starts",
        "The image demands {condition}, which this node does not meet.",
        "Use an image whose demands the node meets: they are in the image's NVIDIA_REQUIRE_CUDA.",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.3, please update "
        "your driver to a newer version, or use an earlier cuda container",
    ),
    Rule(
        CUDA_RUNTIME,
        r"CUDA driver version is insufficient for CUDA runtime version",
        "a CUDA program (cudaErrorInsufficientDriver)",
        "The program was built with a newer CUDA than the node's driver runs.",
        "Use an image with an older CUDA, or install a newer driver.",
        "CUDA driver version is insufficient for CUDA runtime version",
        "github.com/NVIDIA/nvidia-docker/issues/317",
    ),
    Rule(
        "gpu_mapping_failed",
        r"mapping of buffer object failed|cudaErrorMapBufferObjectFailed|CUDA_ERROR_MAP_FAILED"
        r"|Cuda failure 205\b",
        "a CUDA program (error 205), NCCL",
        "A GPU could not map the memory of another one (peer-to-peer): its window in the address "
        "space (BAR1) is too small or not there, the IOMMU is in the way, or the driver was "
        "changed to "
        "allow peer-to-peer on cards for which NVIDIA does not offer it.",
        "Enable Resizable BAR and Above 4G Decoding in the BIOS, and compare the BAR1 Memory Usage "
        "of all GPUs "
        "(nvidia-smi -q -d MEMORY): its total has to be as large as the memory of the card. Boot "
        "with iommu=pt or without IOMMU where no guest needs it. Otherwise run without "
        "peer-to-peer: NCCL_P2P_DISABLE=1.",
        "Cuda failure p2pBandwidthLatencyTest.cu:189: 'mapping of buffer object failed'",
        "github.com/tinygrad/open-gpu-kernel-modules/issues/16, 44; "
        "github.com/aikitoria/open-gpu-kernel-modules/issues/38",
        "2026-11-28",
        confidence=POSSIBLE,
        covers=("nccl_test_failed", "nccl_warned"),
    ),
    Rule(
        "ptx_toolchain",
        r"provided PTX was compiled with an unsupported toolchain",
        "a CUDA program",
        "The driver runs this CUDA by minor-version compatibility only, and the program brings "
        "code (PTX) that the driver would have to compile: for that it is too old.",
        "Install the driver that this CUDA came with, or use an image with the driver's own CUDA.",
        "the provided PTX was compiled with an unsupported toolchain",
        "NVIDIA's CUDA compatibility guide",
    ),
    Rule(
        "no_kernel_image",
        r"(?<!HIP error: )no kernel image is available for execution on the device",
        "a CUDA program",
        "The program has no code for this generation of GPU: its CUDA is too old for the GPU, or "
        "has dropped it.",
        "Use an image that was built for this GPU's generation; the filter "
        "kubegpu.nodes.driver_required_by names the generations that a CUDA dropped.",
        "no kernel image is available for execution on the device",
        "NVIDIA's CUDA runtime errors (209)",
    ),
    Rule(
        "fabric_config_invalid",
        r"fabric manager config file item:? {0,4}(?P<item>[A-Z_]{3,60}) has an invalid value",
        "the log of NVIDIA's fabric manager",
        "The fabric manager does not start: its configuration has a value of {item} that this "
        "release does not take.",
        "Compare /usr/share/nvidia/nvswitch/fabricmanager.cfg with the file that the package of "
        "the same version brings (a copy of an older release keeps items that are gone, and a "
        "path in it has to exist), then: systemctl restart nvidia-fabricmanager.",
        "fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value",
        "github.com/siderolabs/extensions/issues/511",
        "2026-11-28",
    ),
    Rule(
        "fabric_manager_version",
        r"interface version (?P<own>[\d.]+\d) do(?:es)?n['\u2019]t match with (?:the )?"
        r"driver version (?P<loaded>[\d.]+\d)",
        "the log of NVIDIA's fabric manager",
        "The fabric manager is {own}, and the driver that is loaded is {loaded}: the "
        "versions must match exactly; otherwise CUDA reports error 802.",
        "Run kubegpu.nodes.site for this node with the requested driver (nvidia_driver_branch): "
        "role nvidia_driver keeps both at one version. By hand: install nvidia-fabricmanager in "
        "version {loaded}, or reboot where the driver's packages are {own}.",
        "fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver "
        "version 550.120. Please update with matching NVIDIA driver package.",
        "github.com/akash-network/website/pull/632",
        covers=("fabric_not_ready",),
    ),
    _fabric_nothing_to_do(
        "The fabric manager found no NVSwitch: it is a board with NVLink 5 (B200, B300), and what "
        "reaches its switches is missing.",
        "Install nvlsm and infiniband-diags, and modprobe ib_umad (linux-modules-extra-<kernel> on "
        "Ubuntu has it); role nvidia_driver does it.",
        ("has_nvswitch",),
    ),
    _fabric_nothing_to_do(
        "The fabric manager found no NVSwitch: this machine has none and needs no fabric manager.",
        "Turn it off: systemctl disable --now nvidia-fabricmanager (nvidia_driver_fabric: false).",
        ("not has_nvswitch",),
        severity=WARNING,
        fix="nvidia_driver_fabric: false; systemctl disable --now nvidia-fabricmanager",
    ),
    Rule(
        "fabric_not_ready",
        r"system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY",
        "a CUDA program (error 802)",
        "GPUs behind NVSwitch cannot be used before the fabric manager has set up the switches, "
        "and it does not run or is of another version than the driver.",
        "Install nvidia-fabricmanager in the driver's very version, then: systemctl enable --now "
        "nvidia-fabricmanager.",
        "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not "
        "yet initialized",
        "github.com/dstackai/dstack/issues/2348",
    ),
    Rule(
        "forward_compatibility",
        r"forward compatibility was attempted on non supported HW",
        "a CUDA program (error 804)",
        "The image brings its own newer CUDA driver library (cuda-compat), which works on "
        "data-centre GPUs only.",
        "Install a newer driver on the node, or remove cuda-compat from the image.",
        "Error 804: forward compatibility was attempted on non supported HW",
        "github.com/gpustack/gpustack/issues/1254",
    ),
    CUDA_BUSY,
    Rule(
        "no_cuda_device",
        r"no CUDA-capable device is detected",
        "a CUDA program",
        "The container has the driver's libraries, but no GPU was given to it.",
        "Ask for a GPU: limits: {{nvidia.com/gpu: 1}} in Kubernetes, --gpus or "
        "NVIDIA_VISIBLE_DEVICES elsewhere.",
        "Failed to allocate device vector A (error code no CUDA-capable device is detected)!",
        "NVIDIA's CUDA runtime errors (100)",
    ),
)
