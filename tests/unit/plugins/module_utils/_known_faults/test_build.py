# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.build import (
    first_error,
    known_fix,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.builds import (
    KNOWN_FIXES,
)

FIXTURES = Path(__file__).parents[4] / "unit" / "fixtures" / "driver_evidence"
MAKE_LOG = (FIXTURES / "debian13-nvidia-open-550.163.01-linux-6.12.117.make.log").read_text(
    encoding="utf-8"
)
KERNEL = "6.12.117+deb13-amd64"


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (MAKE_LOG, "/var/lib/dkms/nvidia-current-open/550.163.01/build/nvidia/nv-pci.c:237:9: "
         "error: too few arguments to function 'pci_resize_resource'"),
        ("warning: x\n  LD [M] y\nERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only "
         "symbol '__rcu_read_lock'\nmake[3]: *** [a:145: b] Error 1",
         "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol "
         "'__rcu_read_lock'"),
        ("make[1]: *** No rule to make target 'modules'.  Stop.\nmake: *** [Makefile:99: all] "
         "Error 2", "make[1]: *** No rule to make target 'modules'.  Stop."),
        ("/bin/sh: 1: gcc-12: not found\nmake: *** [x] Error 127",
         "/bin/sh: 1: gcc-12: not found"),
        ("make: *** [Makefile:99: all] Error 2", "make: *** [Makefile:99: all] Error 2"),
        ("cc -Werror=return-type -Wno-error x.c\nall is well", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_first_error(log, error):
    assert first_error(log) == error


@pytest.mark.parametrize(
    ("log", "version", "kernel", "kernel_module", "why"),
    [
        (MAKE_LOG, "550.163.01", KERNEL, "open", "one argument more"),
        (MAKE_LOG, "580.95.05", KERNEL, "open", "do not fit this kernel"),
        (MAKE_LOG, "550.163.01", KERNEL, "proprietary", "do not fit this kernel"),
        ("ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol "
         "'rcu_read_unlock_strict'", "470.199.02", "5.15.0-1070-aws", "proprietary", "early 2024"),
        ("ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol "
         "'__vma_start_write'", "570.153.02", "6.15.0", "proprietary", "since kernel 6.15"),
        ("ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'cc_mkdec'",
         "515.1.1", "5.14.0", None, "only GPL modules may use"),
        ("gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'",
         "550.54.15", "6.8.0", None, "not the one that the kernel was built with"),
        ("warning: the compiler differs from the one used to build the kernel\n"
         "  The kernel was built by: gcc-13\n  You are using: gcc-11\nx.c:1:1: error: y",
         "550.54.15", "6.8.0", None, "not the one that the kernel was built with"),
        ("warning: the compiler differs from the one used to build the kernel\n"
         "  The kernel was built by: gcc (Ubuntu 9.4.0-1ubuntu1) 9.4.0\n"
         "  You are using:           gcc (Ubuntu 9.5.0-1ubuntu1) 9.5.0\nx.cc:1: error: y",
         "550.54.15", "6.8.0", None, None),
        ("warning: the compiler differs from the one used to build the kernel\nall is well",
         "550.54.15", "6.8.0", None, None),
        ("/bin/sh: 1: gcc-12: not found", "550.54.15", None, None, "is not installed"),
        ("x.c:1: fatal error: error writing to /tmp/y.s: No space left on device", "550.54.15",
         None, None, "file system is full"),
        ("gcc: fatal error: Killed signal terminated program cc1", "550.54.15", None, None,
         "out of memory"),
    ],
)  # fmt: skip
def test_known_fix(log, version, kernel, kernel_module, why):
    fix = known_fix(log, version, kernel, kernel_module)
    assert (why in fix.why) if why else fix is None


def test_every_known_fix_says_where_it_is_from():
    for fix in KNOWN_FIXES:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", fix.date)
        assert fix.source and fix.step.endswith(".") and not fix.why.endswith(".")
        re.compile(fix.pattern)
