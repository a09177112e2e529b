# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of nvcc, the compiler of CUDA, about the node that it runs on. Data."""

from __future__ import annotations

from ..types import Rule

_READ = "2026-11-28"
_EXCEPTION = (
    r"exception\s{1,40}specification\s{1,40}is\s{1,40}incompatible\s{1,40}with\s{1,40}that\s{1,40}"
    r"of\s{1,40}previous\s{1,40}function\s{1,40}\W{0,4}"
)


def _glibc(functions: str, more: str, example: str, glibc: str, cuda: str, source: str) -> Rule:
    return Rule(
        "cuda_glibc",
        rf"{_EXCEPTION}(?P<function>{functions})\b{more}",
        "nvcc, cudafe++",
        f"The headers of this CUDA (crt/math_functions.h) do not fit the glibc of the node: "
        f"glibc {glibc} and later declare {{function}}{{other}} with another exception "
        "specification, so that no CUDA program compiles, with any host compiler.",
        f"Use CUDA {cuda} or later (cuda_toolkit_versions). An older CUDA compiles in a container "
        "whose distribution has an older glibc, such as an image nvidia/cuda with devel in its "
        "tag. ldd --version shows the glibc.",
        example,
        source,
        _READ,
    )


#: First what needs the newer CUDA.
GLIBC = (
    _glibc(
        "rsqrtf?",
        "",
        "/usr/include/bits/mathcalls.h(206): error: exception specification is incompatible with "
        'that of previous function "rsqrtf" (declared at line 653 of '
        "/usr/local/cuda/include/crt/math_functions.h)",
        "2.42",
        "13.2",
        "github.com/ggml-org/llama.cpp/issues/19100; github.com/llvm/llvm-project/pull/185701",
    ),
    _glibc(
        "(?:sinpi|cospi|sincospi)f?",
        r"|declaration of '[^'\n]{1,40}\b(?P<other>(?:sinpi|cospi|sincospi)f?)\([^'\n]{0,80}' has "
        r"a different exception specifier",
        "/usr/include/bits/mathcalls.h(79): error: exception specification is incompatible with "
        'that of previous function "cospi" (declared at line 2601 of '
        "/usr/local/cuda/include/crt/math_functions.h)",
        "2.41",
        "13.0",
        "github.com/NVIDIA/cuda-samples/issues/378",
    ),
)
GCC_TOO_NEW = Rule(
    "cuda_gcc_too_new",
    r"unsupported GNU version! gcc versions later than (?P<newest>\d{1,3}) are not supported",
    "nvcc (crt/host_config.h)",
    "The host compiler is too new for this CUDA, which takes gcc up to {newest}.",
    "Install g++-{newest} or older (RHEL: gcc-toolset-{newest}) and name it: nvcc -ccbin "
    "/usr/bin/g++-{newest}, or NVCC_CCBIN in the environment; for the role cuda_toolkit "
    "host_compiler: /usr/bin/g++-{newest} (cuda_toolkit_host_compiler). Or ask for a newer CUDA.",
    "#error -- unsupported GNU version! gcc versions later than 11 are not supported!",
    "github.com/NVIDIA/cuda-samples/issues/250",
    _READ,
)
NO_GCC = Rule(
    "cuda_no_gcc",
    r"No supported gcc/g\+\+ host compiler|Failed to preprocess host compiler properties"
    r"|(?:gcc|g\+\+|clang|cc1plus)[\w.+-]{0,20}:? {0,2}(?:No such file|not found)",
    "nvcc",
    "nvcc finds no host compiler that it takes.",
    "Install g++ (on Debian and Ubuntu: build-essential), in a version that this CUDA takes, and "
    "name it with nvcc -ccbin, or host_compiler of the role cuda_toolkit, where it is not the "
    "default one.",
    "ERROR: No supported gcc/g++ host compiler found. Use 'nvcc -ccbin <compiler>' to specify a "
    "host compiler.",
    "nvcc's own words, recorded of CUDA 11.8 and 13.0",
    _READ,
    context=r"(?i)\bnvcc\b",
)
NO_ARCHITECTURE = Rule(
    "cuda_architecture_unknown",
    r"Unsupported gpu architecture '(?P<one>\w{1,20})'"
    r"|Value '(?P<other>\w{1,20})' is not defined for option 'gpu-arch",
    "nvcc",
    "This CUDA does not compile for {one}{other}: it is older than that generation of GPUs, or "
    "has dropped it.",
    "Use a CUDA version that knows the GPU; the filter kubegpu.nodes.driver_required_by shows "
    "dropped generations.",
    "nvcc fatal   : Unsupported gpu architecture 'sm_70'",
    "nvcc's own words, recorded of CUDA 11.8 and 13.0",
    _READ,
)
NVCC = (*GLIBC, GCC_TOO_NEW, NO_ARCHITECTURE, NO_GCC)
