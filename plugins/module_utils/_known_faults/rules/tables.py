# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All tables of known messages, in the order in which their rows count. Data."""

from __future__ import annotations

from ..types import Rule
from .amd_kernel import AMD
from .build_messages import BUILDS
from .cdi import CDI
from .compilers import COMPILERS
from .containers import GENERAL, LAST_RESORTS
from .drm_kernel import DRM
from .intel_kernel import INTEL, OTHERS
from .kubelet import KUBELET
from .kubernetes import CLUSTER
from .licences import LICENCE_LINES, LICENCES
from .nvcc import NVCC
from .nvidia_kernel import KERNEL
from .packages import PACKAGES
from .programs import PROGRAMS
from .selinux import SELINUX
from .smi_status import of_status
from .tests_of_gpus import LAST_OF_TESTS, OTHER_TOOLS, SLURM, TESTS, XPU_SMI
from .xids import XID_RULES

FAILURES = (
    *(*KUBELET, *GENERAL, *CDI, *SELINUX, *PROGRAMS, *CLUSTER, *LICENCES, *XID_RULES, *KERNEL),
    *(*AMD, *INTEL, *DRM),
    *of_status((*GENERAL, *PROGRAMS, *KERNEL)),
    *(*TESTS, *XPU_SMI, *OTHER_TOOLS, *SLURM, *NVCC, *COMPILERS, *BUILDS, *PACKAGES),
    *(*LAST_RESORTS, *LICENCE_LINES, *LAST_OF_TESTS, *OTHERS),
)

SUCCESSES = (
    Rule(
        "plugin_registered",
        r"Registered device plugin for '(?P<resource>[^']+)' with Kubelet",
        "the device plugin's log",
        "The device plugin offers {resource} to kubelet.",
        "",
        "Registered device plugin for 'nvidia.com/gpu' with Kubelet",
    ),
    Rule(
        "test_passed",
        r"Test PASSED",
        "the log of the CUDA vector-add sample",
        "A CUDA program ran on a GPU, and its result was right.",
        "",
        "Test PASSED",
    ),
)
