# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows that a kernel module was not built. Data, not code. The causes are in "
"``builds.py``."""

from __future__ import annotations

from ..._core.finding import POSSIBLE
from ..codes import BUILD_FAILED, NO_HEADERS, OTHER_KERNEL
from ..types import Rule

READ = "2026-11-28"
NO_HEADERS_TEXT = (
    r"Your kernel headers for kernel (?P<kernel>\S{1,80}) (?:cannot be found|are not installed)"
    r"|kernel headers for this kernel do not seem to be installed"
    r"|Unable to find the kernel source tree for the currently running kernel"
    r"|/lib/modules/(?P<folder>[\w.+~-]{1,80})/build: No such file or directory"
)
_DENIED = r"could not insert '?(?P<module>nvidia\w{0,20})'?: Permission denied"
BUILDS = (
    Rule(
        BUILD_FAILED,
        r"Bad return status for module build on kernel|GPL-incompatible module \S{1,80} uses "
        r"GPL-only "
        r"symbol|Failed PREEMPT_RT sanity check|unrecognized command[- ]line option"
        r"|\b(?:nv|nvidia|uvm)[\w./-]{0,120}\.[ch]:\d{1,6}:\d{1,4}: (?:fatal )?error: "
        r"|\b(?:nv|nvidia|uvm)[\w./-]{0,120}\.[ch]:\d{1,6}:\d{1,4}(?:: (?:schwerwiegender )?Fehler"
        r"|: erreur|: errore ?:|: erro ?:|: 错误|: エラー|: ошибка)"
        r"|Cannot build '[^'\n]{1,200}-nvidia-[^'\n]{1,100}'"
        r"|make\[\d\]: \*\*\* \[[^\]\n]{1,200}/var/lib/dkms/nvidia",
        "dkms, make, NVIDIA's installer",
        "The kernel module of the driver could not be built.",
        "Read the first error in the log.",
        "Error! Bad return status for module build on kernel: 6.1.0-21-amd64 (x86_64)",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/361",
        READ,
        context=r"(?i)nvidia|\bnv-?[\w-]{0,40}\.[ch]:\d|dkms|linux-headers|/lib/modules|module "
        r"build on kernel",
        covers=("package_script_failed", "package_conflict"),
    ),
    Rule(
        NO_HEADERS,
        NO_HEADERS_TEXT,
        "dkms, make, NVIDIA's installer",
        "The headers of the kernel are not installed.",
        "Install the headers of the running kernel.",
        "Error! Your kernel headers for kernel 6.8.12-4-pve cannot be found at "
        "/lib/modules/6.8.12-4-pve/build.",
        "github.com/strongtz/i915-sriov-dkms/issues/86",
        READ,
    ),
    Rule(
        OTHER_KERNEL,
        r"could not insert '?(?P<module>\w{1,40})'?: (?:Exec format error|Invalid module "
        r"format)"
        r"|version magic '[^'\n]{1,80}' should be|\.gnu\.linkonce\.this_module|failed to validate "
        r"module \[nvidia\w{0,20}\] BTF",
        "modprobe, the kernel's log",
        "The module {module} was built for another kernel than the running one, or with headers of "
        "another kernel.",
        "Install the headers of the running kernel (uname -r), then build the module again (dkms "
        "autoinstall) or reinstall the package of the prebuilt one; or boot the kernel that it was "
        "built for.",
        "modprobe: ERROR: could not insert 'nvidia': Exec format error",
        "github.com/negativo17/nvidia-driver/issues/97",
        READ,
        covers=("wrong_architecture",),
    ),
    Rule(
        "selinux_denies_module",
        r"avc: +denied +\{ module_load \}(?:[^\n]{0,300}?path=\"(?P<file>[^\"\n]{1,200})\")?",
        "the audit log, the kernel's log",
        "SELinux does not let a program load the kernel module {file}: the file has another label "
        "than modules have, or the policy of that program is missing.",
        "Compare ls -Z of the file with that of other modules, and run restorecon -Rv on its "
        "folder. "
        "Where a container loads it (the GPU operator's driver), install the policy package of the "
        "distribution (container-selinux, rke2-selinux). ausearch -m avc shows all denials.",
        'avc:  denied  { module_load } for  pid=1 comm="modprobe" path="/run/nvidia.ko"',
        "github.com/NVIDIA/gpu-operator/issues/2837",
        READ,
        covers=("module_not_loaded", "driver_not_loaded"),
    ),
    Rule(
        "selinux_denies_module",
        _DENIED,
        "modprobe",
        "SELinux is enforcing on the node and does not let root load the module {module}: its file "
        "has another label than modules have, or the policy of the program that loads it is "
        "missing.",
        "See the denial of module_load with ausearch -m avc -ts recent. Compare ls -Z of the file "
        "with that of other modules, run restorecon -Rv on its folder, and install the policy "
        "package of the distribution (container-selinux, rke2-selinux) where a container loads it.",
        "modprobe: ERROR: could not insert 'nvidia': Permission denied",
        "github.com/NVIDIA/gpu-operator/issues/2837",
        READ,
        when=("selinux_enforcing",),
        family="module_denied",
    ),
    Rule(
        "module_load_denied",
        _DENIED,
        "modprobe",
        "The kernel denies root to load the module {module}. Another security module than SELinux, "
        "which does not enforce here, forbids it.",
        "See which ones are active (cat /sys/kernel/security/lsm), and what journalctl -k says at "
        "the time of the attempt.",
        "modprobe: ERROR: could not insert 'nvidia': Permission denied",
        "github.com/NVIDIA/gpu-operator/issues/553",
        READ,
        confidence=POSSIBLE,
        when=("not selinux_enforcing",),
        family="module_denied",
    ),
)
