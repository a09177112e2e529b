# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Known causes of failed builds of a driver's module, and their fixes. Data, not code.

Each row names its source. A row without branches or kernels applies to all. The first matching row
wins, so specific rows come before general ones.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownFix:
    """One known failure.

    :param pattern: a regular expression that the log must contain.
    :param why: the cause, as the end of a sentence.
    :param step: the fix.
    :param branches: lowest and highest driver branch; 0 is no limit.
    :param kernel_from: the oldest affected kernel, as (major, minor).
    :param kernel_module: open or proprietary, or "" for both.
    """

    pattern: str
    why: str
    step: str
    source: str
    date: str
    branches: tuple[int, int] = (0, 0)
    kernel_from: tuple[int, int] = (0, 0)
    kernel_module: str = ""
    #: A regular expression that the log must contain after the pattern.
    then: str = ""
    #: A regular expression that the log must not contain.
    unless: str = ""
    #: Whether the text proves the cause.
    proven: bool = True


# An error of the compiler in the driver's sources; gcc speaks the language of the user.
_COMPILER = (
    r"\b(?:nv|nvidia|uvm)[\w./-]{0,120}\.[ch]:\d{1,6}:\d{1,4}: "
    r"(?:error|Fehler|erreur|errore|erro|错误|エラー|ошибка) ?[:\uff1a]|\.[ch]:\d{1,6}:\d{1,4}: "
    r"(?:error: )?[^\n]{0,80}(?:undeclared|no member named|too (?:many|few) arguments)"
    r"|in expansion of macro .{0,40}ZONE_DEVICE"
)

KNOWN_FIXES = (
    KnownFix(
        r"PREEMPT_RT (?:kernel!|sanity check)",
        "the kernel is a real-time kernel (PREEMPT_RT), which NVIDIA's driver does not support",
        "Boot a kernel without PREEMPT_RT. IGNORE_PREEMPT_RT_PRESENCE=1 builds the module without "
        "NVIDIA's support.",
        "github.com/NVIDIA/open-gpu-kernel-modules/issues/1240, NVIDIA's conftest.sh",
        "2026-11-28",
    ),
    KnownFix(
        r"No space left on device",
        "a file system is full",
        "Free space in /var/lib/dkms, /lib/modules and /tmp (a build takes about 1 GB), then run "
        "again.",
        "errno ENOSPC in the compiler's or make's words",
        "2026-11-21",
    ),
    KnownFix(
        r"too few arguments to function \W?pci_resize_resource",
        "this kernel's pci_resize_resource() takes one argument more, which the open modules of "
        "the branch do not know",
        "Ask for kernel_module: proprietary where the GPU allows it (Turing to Hopper), or for a "
        "branch whose newest version knows this kernel (580 or later); until then the kernel that "
        "was there before works.",
        "make.log of Debian 13's nvidia-open-kernel-dkms 550.163.01 on 6.12.117+deb13, built by "
        "the tests of this collection; the proprietary modules of the same version built there",
        "2026-11-21",
        branches=(0, 570),
        kernel_module="open",
    ),
    KnownFix(
        r"Killed\s+signal terminated program cc1|fatal error: Killed|Cannot allocate memory",
        "the compiler ran out of memory",
        "Give the node more memory or swap for the build (2 GB are enough), then run again.",
        "gcc's words when the kernel kills it",
        "2026-11-21",
    ),
    KnownFix(
        r"gcc(?:-\d+)?: (?:command )?not found|/bin/sh: \d+: (?:gcc|cc|make)(?:-\d+)?: not found"
        r"|\bgcc(?:-\d+)?: No such file or directory"
        r"|Unable to find a suitable .{0,80}compiler",
        "the compiler that this kernel was built with is not installed",
        "Install the compiler named in the error (the kernel's header package depends on it, "
        "where it comes from the distribution), then run again.",
        "github.com/NVIDIA/gpu-operator/issues/526 and make's own words",
        "2026-11-21",
    ),
    KnownFix(
        r"unrecognized command[- ]line option",
        "the compiler is not the one that the kernel was built with",
        "Install the gcc that the line 'The kernel was built by' names, or the kernel's own "
        "headers with their compiler, then run again.",
        "warning of the kernel's build system since 5.15; "
        "github.com/mesosphere/konvoy-image-builder/pull/1200",
        "2026-11-21",
    ),
    KnownFix(
        r"compiler differs from the one used to build the kernel",
        "the compiler is not the one that the kernel was built with",
        "Install the gcc that the line 'The kernel was built by' names, or the kernel's own "
        "headers with their compiler, then run again.",
        "warning of the kernel's build system since 5.15; "
        "github.com/mesosphere/konvoy-image-builder/pull/1200",
        "2026-11-21",
        then=r"\berror:",
        # Another release of the same compiler is no cause.
        unless=r"The kernel was built by:[^\n]{0,120}?\b(\d{1,2})\.\d{1,2}\.\d[^\n]{0,80}\n"
        r"[^\n]{0,40}You are using:[^\n]{0,120}?\b\1\.\d",
    ),
    KnownFix(
        r"GPL-incompatible module \S+ uses GPL-only symbol '(?:__rcu_read_(?:un)?lock|"
        r"rcu_read_unlock_strict)'",
        "the proprietary module uses a function of the kernel that only GPL modules may use since "
        "early 2024",
        "Take the newest version of the branch (535.183 or later, 550.54 or later, 470.256), or "
        "the open modules where the GPU allows them.",
        "github.com/NVIDIA/gpu-operator/issues/729, github.com/zabbly/linux/issues/15",
        "2026-11-21",
    ),
    KnownFix(
        r"GPL-incompatible module \S+ uses GPL-only symbol '__vma_start_write'",
        "the proprietary module uses a function that only GPL modules may use since kernel 6.15",
        "Take the open modules where the GPU allows them, or branch 580 in its newest version.",
        "github.com/zabbly/linux/issues/43, github.com/chaotic-cx/nyx/issues/1069",
        "2026-11-21",
        kernel_from=(6, 15),
    ),
    KnownFix(
        r"GPL-incompatible module \S+ uses GPL-only symbol",
        "the proprietary module uses a function of the kernel that only GPL modules may use",
        "Take the newest version of the branch, or the open modules where the GPU allows them, or "
        "the kernel that was there before.",
        "modpost's words",
        "2026-11-21",
    ),
    KnownFix(
        rf"{_COMPILER}|Bad return status for module build|\*\*\* \[",
        "the branch of the driver (470 or older) gets no new versions, and does not know this "
        "kernel, "
        "whose interfaces have changed",
        "Boot the kernel that was there before, or a long-term kernel of the distribution that "
        "this branch was built for; some distributions patch the branch for newer ones. A newer "
        "branch does not drive a GPU of Kepler or Fermi: replace the card, or use it "
        "without NVIDIA's driver.",
        "github.com/NVIDIA/open-gpu-kernel-modules/issues/610, 526",
        "2026-11-28",
        branches=(0, 470),
        proven=False,
    ),
    KnownFix(
        _COMPILER,
        "the driver's sources do not fit this kernel, which is newer than the driver: its "
        "interfaces "
        "have changed",
        "Take a newer version of the driver that knows this kernel (nvidia_driver_branch, "
        "nvidia_driver_version), or boot the kernel that was there before.",
        "github.com/NVIDIA/open-gpu-kernel-modules/issues/594, 890, 1015",
        "2026-11-28",
        proven=False,
    ),
)
