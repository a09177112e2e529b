# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvcc and CUDA's installer print if they fail. Data, not code."""

from __future__ import annotations

from ..types import Rule

READ = "2026-11-28"
HOST_TOO_NEW = "cuda_host_compiler_too_new"
NO_HOST = "cuda_host_compiler_missing"
NO_ARCHITECTURE = "cuda_architecture_unknown"
INSTALLER_FULL = "cuda_installer_disk_full"
_NVCC = "nvcc"
_SOURCE = "nvcc 11.8.89 and 13.0.88, recorded in tests/unit/fixtures/cuda"

COMPILERS = (
    Rule(
        HOST_TOO_NEW,
        r"unsupported (?P<kind>GNU|clang) version! [^\n]{0,120}?(?:gcc versions later than "
        r"(?P<newest>\d{1,3})[^\n]{0,40}?)?are not supported",
        _NVCC,
        "The host compiler is too new for this CUDA: it takes GCC up to {newest}.",
        "Install an older host compiler and give it to nvcc (-ccbin /usr/bin/g++-{newest}), or "
        "take a newer CUDA.",
        "/usr/include/crt/host_config.h:132:2: error: #error -- unsupported GNU version! gcc "
        "versions later than 11 are not supported!",
        _SOURCE,
        READ,
    ),
    Rule(
        NO_HOST,
        r"No supported gcc/g\+\+ host compiler|Failed to preprocess host compiler properties"
        r"|(?:gcc|g\+\+|clang|cc1plus)[\w.+-]{0,20}['\"]?:? (?:No such file|not found)",
        _NVCC,
        "nvcc finds no host compiler that it takes.",
        "Install g++ (on Debian and Ubuntu: build-essential), in a version that this CUDA takes.",
        "nvcc fatal   : Failed to preprocess host compiler properties.",
        _SOURCE,
        READ,
        context=r"\bnvcc\b",
    ),
    Rule(
        NO_ARCHITECTURE,
        r"Unsupported gpu architecture '(?P<architecture>\w{1,20})'"
        r"|Value '(?P<value>\w{1,20})' is not defined for option 'gpu-arch",
        _NVCC,
        "This CUDA does not compile for {architecture}{value}.",
        "Take a CUDA that knows the GPU: dropped and new architectures are in its release notes.",
        "nvcc fatal   : Unsupported gpu architecture 'sm_70'",
        _SOURCE,
        READ,
    ),
    Rule(
        INSTALLER_FULL,
        r"boost::filesystem::\w{1,40}: No space left on device"
        r"|Ensure there is enough space in /\S{1,100} and that the installation package"
        r"|\bcuda-installer\b[^\n]{0,200}?(?:no space left|not enough space|insufficient)",
        "CUDA's installer",
        "The installer of CUDA has too little disk space, or its file is not complete.",
        "Free about 10 GB on the file systems of /usr/local and of the folder that it unpacks in "
        "(/tmp, --tmpdir), and compare the checksum of the file.",
        '[ERROR]: boost::filesystem::copy_file: No space left on device: "./builds/libnpp/targets/'
        'x86_64-linux/lib/libnppif_static.a"',
        "github.com/Jimver/cuda-toolkit/issues/392, github.com/spack/spack/issues/22083",
        READ,
    ),
)
