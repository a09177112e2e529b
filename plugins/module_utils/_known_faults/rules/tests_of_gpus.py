# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of programs that test GPUs, and of Slurm about GPUs. Data.

What their documents say (JSON, tables, progress) is read in :mod:`..documents`.
"""

from __future__ import annotations

from ..._core.finding import POSSIBLE, WARNING
from ..types import Rule

_READ = "2026-11-28"

TESTS = (
    Rule(
        "dcgm_test_unsupported",
        r"\[\[(?P<test>\w{1,40})\]\] Incompatible CUDA compute capability major version: "
        r"(?P<capability>\d{1,3})",
        "nvvs.log of DCGM",
        "This release of DCGM has no {test} for GPUs of compute capability {capability}, so that "
        "the test did not run on them.",
        "Update DCGM to a release that has the test for these GPUs, or leave it out: dcgmi diag "
        "--run with the names of the other tests. It says nothing of the GPU.",
        "[[pulse_test]] Incompatible CUDA compute capability major version: 12 "
        "[PulseTestPlugin::PopulateArgV]",
        "github.com/NVIDIA/DCGM/issues/238",
        _READ,
        WARNING,
    ),
    Rule(
        "persistence_off",
        r"Persistence mode for GPU \d{1,4} is (?:currently )?disabled",
        "dcgmi diag",
        "Persistence mode is off, which DCGM warns of: without a user the driver gives up the "
        "state of the GPU, and each start of a program takes longer.",
        "Enable the persistence daemon, which keeps it over reboots: systemctl enable --now "
        "nvidia-persistenced.",
        "Persistence Mode: Persistence mode for GPU 0 is disabled. Enable persistence mode by "
        'running "nvidia-smi -i <gpuId> -pm 1 " as root.',
        "github.com/NVIDIA/NVSentinel/pull/772",
        _READ,
        WARNING,
    ),
    Rule(
        "gpu_memory_full",
        r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUDA(?: error)?: out of memory"
        r"|CUDA out of memory|gpu_burn-drv\.cpp:\d{1,5}\): out of memory|Low mem for result",
        "a CUDA program (error 2), gpu_burn",
        "The memory of a GPU does not suffice: other programs have it, or the program asks for "
        "more than is free.",
        "See which programs have memory (nvidia-smi), end them or wait; or let the program take "
        "less (gpu_burn -m 50%). It is no fault of the GPU.",
        "Couldn't init a GPU test: Low mem for result. aborting.",
        "github.com/wilicc/gpu-burn/issues/77",
        _READ,
        covers=("gpu_burn_not_run", "nvbandwidth_error", "nccl_test_failed"),
    ),
    Rule(
        "shm_too_small",
        r"failed to extend /dev/shm/nccl-\w{1,40} |NCCL WARN Call to posix_fallocate failed ?: "
        r"No space left|Error while creating shared memory segment [\w/-]{0,20}nccl-",
        "NCCL",
        "Shared memory (/dev/shm) is too small or full, so that NCCL cannot create its segments. "
        "A container has 64 MB by default.",
        "Docker: --shm-size=1g or more, or --ipc=host. Kubernetes: mount an emptyDir with medium "
        "Memory at /dev/shm. If it is the host's: df /dev/shm, and remove the files nccl-* that no "
        "program has open.",
        "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
        "github.com/NVIDIA/nccl/issues/525",
        _READ,
        covers=("nccl_test_failed", "nccl_warned"),
    ),
    Rule(
        "nccl_nvls_failed",
        r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory",
        "NCCL",
        "NCCL cannot bind memory for NVLink SHARP (NVLS): the NVLink fabric of the node, or the "
        "fabric manager, is in a bad state. Tests of single GPUs do not see it.",
        "Check Fabric in nvidia-smi -q of each GPU and the log of nvidia-fabricmanager, then drain "
        "the node and reboot it. all_reduce_perf -g with the number of GPUs shows whether it is "
        "over; NCCL_NVLS_ENABLE=0 runs a program without NVLS until then.",
        "transport/nvls.cc:379 (nvlsAllocateMem) NCCL WARN Failed to bind NVLink SHARP (NVLS) "
        "Multicast memory of size 2097152 : CUDA error 401",
        "github.com/NVIDIA/DCGM/issues/304",
        _READ,
        covers=("nccl_test_failed", "nccl_warned"),
    ),
    Rule(
        "rvs_gpu_unknown",
        r"RVS-ERROR \[CLI\] No platform support for the detected GPU or no GPU detected",
        "rvs, the ROCm Validation Suite",
        "rvs has no configuration for this GPU: with -m it chooses one by the device IDs that it "
        "knows, those of few Instinct products. Or it finds no GPU at all.",
        "Give a configuration: rvs -c FILE, with one of the files that come with rvs, changed for "
        "this GPU. If rocminfo names no GPU either, the driver is not loaded, or the user is not "
        "in the groups render and video.",
        "RVS-ERROR [CLI] No platform support for the detected GPU or no GPU detected !",
        "github.com/ROCm/ROCmValidationSuite/issues/1263",
        _READ,
        WARNING,
        confidence=POSSIBLE,
    ),
    Rule(
        "rvs_configuration",
        r"RVS-ERROR \[(?P<module>\w{1,20})\] \[\w{1,40}\] key '(?P<key>\w{1,40})' was not found",
        "rvs, the ROCm Validation Suite",
        "The configuration of rvs has no {key}, which its module {module} needs; no GPU was "
        "tested.",
        "Add {key} to the action in the configuration, as rvs documents it for the module, or take "
        "a file that comes with rvs.",
        "RVS-ERROR [GST] [gpustress] key 'target_stress' was not found",
        "github.com/ROCm/ROCmValidationSuite/issues/1131",
        _READ,
    ),
)

XPU_SMI = (
    Rule(
        "gpu_test_failed",
        r"(?:^|\n)\| (?P<test>[A-Z][\w /()-]{2,40}?) {1,40}\| Result: Fail\b(?:[^\n]{0,400}\n)"
        r"{1,3}?"
        r"\|[^|\n]{0,60}\|(?: Message:)?(?P<said> {1,4}(?!Message: )[A-Z(][^|\n]{4,160}?) "
        r"*(?:\||\n)",
        "xpu-smi diag",
        "A test of xpu-smi failed on an Intel GPU: {test}. It says:{said}",
        "Where the message names the software (libraries, permission, configuration, another "
        "process on the GPU), correct that and run the test again: xpu-smi diag -d ID --singletest "
        "N. For "
        "performance: see that nothing else uses the GPU, its power limit and its cooling. Then "
        "check dmesg | grep -e "
        "i915 -e xe; the card is to be checked only if it fails with an idle GPU and a current "
        "driver.",
        "| Performance Computation      | Result: Fail                |\n"
        "|                              | Message:                    |\n"
        "|                              |  GPU 0 : Fail to check computation performance.  |",
        "github.com/intel/xpumanager/issues/102; "
        "github.com/intel-gpu/intel-gpu-i915-backports/issues/192",
        _READ,
        WARNING,
        confidence=POSSIBLE,
    ),
)

OTHER_TOOLS = (
    Rule(
        "gpu_test_failed",
        r"(?:^|\n)\| Level {1,40}\| (?P<level>\d) [^\n]{0,200}\n\| Result {1,40}\| Fail\b",
        "xpu-smi diag",
        "The tests of level {level} of xpu-smi failed as a whole on an Intel GPU; the rows with "
        "Result: Fail name the test.",
        "Read these rows: what names software (libraries, permission, another process) is to be "
        "corrected before the test runs again. Without any, check dmesg | grep -e i915 -e xe: a "
        "GPU that hung ends the tests.",
        "| Level                         | 3      |\n| Result                        | Fail   |",
        "github.com/intel-gpu/intel-gpu-i915-backports/issues/192",
        _READ,
        WARNING,
        confidence=POSSIBLE,
    ),
    Rule(
        "xpum_not_running",
        r"XPUM Service Status Error",
        "xpumcli, XPU Manager",
        "The command does not reach the daemon of Intel's XPU Manager: it is not installed, was "
        "not started, "
        "or ended. It says nothing of the GPU.",
        "Check systemctl status xpum and journalctl --unit xpum; install the Level Zero packages "
        "of "
        "the driver's release, then: systemctl restart xpum. xpu-smi needs no daemon.",
        "Error: XPUM Service Status Error.",
        "github.com/intel/xpumanager/issues/72, 34",
        _READ,
    ),
    Rule(
        "nvlink_down",
        r"\bgpuId (?P<gpu>\d{1,2}):\s{1,20}D(?: D){2,35}(?![ \w])",
        "dcgmi nvlink --link-status",
        "All NVLinks of GPU {gpu} are down, so that programs on several GPUs use PCIe or fail. "
        "That is right for cards without a bridge; on a board with NVSwitches it is not.",
        "Check nvidia-smi nvlink -s and nvidia-smi topo -m. With NVSwitches: systemctl status "
        "nvidia-fabricmanager, in the driver's version. With cards of PCIe: whether the NVLink "
        "bridges are there and seated. dcgmi diag does not take it as a failure.",
        "    gpuId 0:\n        D D D D D D D D D D D D D D D D D D",
        "github.com/NVIDIA/DCGM/issues/198",
        _READ,
        WARNING,
        confidence=POSSIBLE,
    ),
)

SLURM = (
    Rule(
        "slurm_registration_invalid",
        r"gres/gpu\S{0,40} count reported lower than configured (?P<counts>\(\d{1,5} < \d{1,5}\))",
        "slurmctld, or Reason of scontrol show node",
        "Slurm takes the node as invalid (INVALID_REG): slurmd registered fewer GPUs {counts} than "
        "slurm.conf configures.",
        "See that the driver is loaded and has all GPUs (nvidia-smi -L, slurmd -G), then restart "
        "slurmd on the node: only a valid registration ends the state. Then scontrol update "
        "NodeName=NAME State=RESUME. If the node has fewer GPUs or MIG devices for good, correct "
        "Gres in slurm.conf and gres.conf.",
        "Reason=gres/gpu count reported lower than configured (0 < 8)",
        "github.com/awslabs/awsome-distributed-ai/issues/195",
        _READ,
    ),
    Rule(
        "device_nodes_missing",
        r"(?:can't stat|Waiting for) gres\.conf file (?P<file>/dev/[\w/.-]{1,60})",
        "slurmd",
        "slurmd finds no {file}, which gres.conf names: the driver is not loaded yet, or the node "
        "does not have that GPU.",
        "If the node has the GPU, load the driver and make its files before slurmd starts "
        "(nvidia-modprobe -c 0 -u, or nvidia-persistenced before slurmd.service), then: systemctl "
        "restart slurmd. Otherwise take the line out of gres.conf for this node.",
        "slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory",
        "github.com/BiBiServ/bibigrid/issues/705",
        _READ,
        confidence=POSSIBLE,
    ),
    Rule(
        "slurm_gres_ignored",
        r"The following autodetected GPUs are being ignored|Ignoring file-less GPU gpu:",
        "slurmd",
        "slurmd finds GPUs and ignores them: Gres in slurm.conf configures fewer of their type for "
        "this node, or gres.conf has no device file for them. Driver and GPUs work.",
        "Configure them for the node in slurm.conf (GresTypes=gpu, and Gres=gpu:TYPE:NUMBER with "
        "the type and number that slurmd -G prints) and in gres.conf (AutoDetect=nvml, or File=), "
        "then restart slurmctld and slurmd.",
        "warning: The following autodetected GPUs are being ignored:",
        "github.com/SlinkyProject/slurm-operator/issues/111",
        _READ,
    ),
)

#: The error of CUDA or of the system that they name says more, where one is known.
LAST_OF_TESTS = (
    Rule(
        "gpu_burn_not_run",
        r"Couldn't init (?:a GPU test|CUDA): (?P<said>[^\n]{0,200})",
        "gpu_burn",
        "gpu_burn could not start on a GPU: {said}. It tested none.",
        "See that its kernel compare.ptx is that of this build (gpu_burn -c FILE), and that it was "
        "built for this GPU (make COMPUTE=NN); then that another CUDA program runs. It says "
        "nothing of the GPU.",
        "Couldn't init a GPU test: Error in couldn't find compare kernel: compare.ptx "
        "(gpu_burn-drv.cpp:235): named symbol not found",
        "github.com/wilicc/gpu-burn/issues/100",
        _READ,
        last_resort=True,
    ),
    Rule(
        "nvbandwidth_error",
        r"\[(?P<error>CUDA_ERROR_\w{3,60})\] (?P<said>[^\n\[]{1,120}?) in expression "
        r"(?P<call>\w{2,60})\(",
        "nvbandwidth",
        "nvbandwidth ended at {call} with {error} ({said}): it measured no bandwidth, which says "
        "nothing of the GPU.",
        "Run a newer release of nvbandwidth. If that ends so, too, see that another CUDA program "
        "runs, and check dmesg | grep -i -e NVRM -e Xid.",
        "[CUDA_ERROR_INVALID_CONTEXT] invalid device context in expression cuMemHostAlloc((void "
        "**)&blockingVarHost) in NodeHelperSingle::NodeHelperSingle()() : memcpy.cpp:312",
        "github.com/NVIDIA/nvbandwidth/issues/47",
        _READ,
        last_resort=True,
    ),
    Rule(
        "nccl_test_failed",
        r"Test (?P<kind>CUDA|NCCL) failure (?P<place>[\w./]{1,60}:\d{1,6}) "
        r"'(?P<said>[^'\n]{1,200})'",
        "nccl-tests",
        "A program of nccl-tests ended at {place} with an error of {kind}: {said}. The text does "
        "not say whose fault it is: a release of NCCL that is older than the GPUs, the network, "
        "shared memory, or access between the GPUs.",
        "Run it again with NCCL_DEBUG=WARN, which names the call that failed. Update NCCL and "
        "build nccl-tests with it; then try one GPU (-g 1), two GPUs, and nodes, to see from where "
        "on it fails.",
        "localhost: Test CUDA failure hypercube.cu:57 'invalid argument'",
        "github.com/NVIDIA/nccl-tests/issues/289",
        _READ,
        confidence=POSSIBLE,
        last_resort=True,
    ),
    Rule(
        "nccl_warned",
        r"NCCL WARN (?P<said>[^\n]{1,200})",
        "NCCL",
        "NCCL warns: {said}.",
        "If the program failed, this call is the place: check what it names (network, memory, "
        "access between GPUs). If it works, the warning calls for nothing.",
        "misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
        "github.com/pytorch/pytorch/pull/40622",
        _READ,
        WARNING,
        last_resort=True,
    ),
)
