# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows that a kernel module was not built. Data, not code. The causes are in "
"``builds.py``."""

from __future__ import annotations

from ..codes import BUILD_FAILED
from ..types import Rule

READ = "2026-11-28"
BUILDS = (
    Rule(
        BUILD_FAILED,
        r"Bad return status for module build on kernel|GPL-incompatible module \S{1,80} uses "
        r"GPL-only "
        r"symbol|Failed PREEMPT_RT sanity check|unrecognized command[- ]line option"
        r"|\b(?:nv|nvidia|uvm)[\w./-]{0,120}\.[ch]:\d{1,6}:\d{1,4}: (?:fatal )?(?:error|note): "
        r"|make\[\d\]: \*\*\* \[[^\]\n]{1,200}/var/lib/dkms/nvidia",
        "dkms, make, NVIDIA's installer",
        "The kernel module of the driver could not be built.",
        "Read the first error in the log.",
        "Error! Bad return status for module build on kernel: 6.1.0-21-amd64 (x86_64)",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/361",
        READ,
        covers=("package_script_failed", "package_conflict"),
    ),
)
