# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What CUDA's installer prints if it fails. Data, not code."""

from __future__ import annotations

from ..types import Rule

READ = "2026-11-28"
INSTALLER_FULL = "cuda_installer_disk_full"

COMPILERS = (
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
