# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's own NVIDIA packages, the real ones: built by DKMS against Debian's kernel headers.

Stood in for is what needs a kernel of one's own and a chip: loading, and the answers of
nvidia-smi and of the persistence daemon.
"""

from __future__ import annotations

import re

import pytest

from tests.integration.drivers.steps import (
    apply,
    assert_converged,
    converge,
    dpkg_is_consistent,
    etc,
    facts,
    held,
    installed,
    shell,
    words,
)

ON_12 = pytest.mark.xdist_group("drv-debian12")
ON_13 = pytest.mark.xdist_group("drv-debian13")
BOOT = "cat /proc/sys/kernel/random/boot_id"
pytestmark = pytest.mark.full(
    why="Debian's real packages, hundreds of MB and real builds, on two more nodes; "
    "test_faults.test_module_that_does_not_build has stand-ins"
)
MODULES = ("", "-drm", "-modeset", "-peermem", "-uvm")


@pytest.fixture(scope="module")
def debian12(fleet):
    return fleet["drv-debian12"]


@pytest.fixture(scope="module")
def debian13(fleet):
    return fleet["drv-debian13"]


@pytest.fixture(scope="module")
def before12(debian12):
    return etc(debian12)


@pytest.fixture(scope="module")
def packages12(debian12):
    return packages(debian12)


def packages(node):
    """All packages of the node."""
    return shell(
        node, "dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n'"
    ).splitlines()


def _but_users(lines):
    files = {
        f"etc/{name}{old}" for name in ("passwd", "group", "shadow", "gshadow") for old in ("", "-")
    }
    return [line for line in lines if not files & set(line.split())]


@ON_12
def test_debian12_builds_loads_and_holds_the_real_535(debian12, before12, packages12):
    _run, seconds = converge(debian12)
    found = facts(debian12)
    kernel, driver = found["os"]["kernel"], found["driver"]
    print(f"Debian 12: {driver['installed']} for {kernel} in {seconds:.0f} s")
    assert driver["installed"].startswith("535.")
    assert driver["loaded"] == driver["userland"] == driver["installed"]
    assert driver["source"] == "distro" and driver["held"]
    assert driver["dkms"] == [
        {"kernel": kernel, "version": driver["installed"], "state": "installed"}
    ]
    for name in MODULES:
        path = f"/lib/modules/{kernel}/updates/dkms/nvidia-current{name}.ko"
        version = shell(debian12, f"modinfo -F version {path}").strip()
        # The helper for RDMA has the version of its own source.
        assert version == driver["installed"] or name == "-peermem"
    # The real program looks for a chip: it is told that a driver is loaded, and finds none.
    assert "Failed to initialize NVML" in shell(debian12, "/usr/bin/nvidia-smi", check=False)
    assert {"nvidia-kernel-dkms", "libcuda1", "nvidia-smi"} <= held(debian12)
    early = shell(debian12, f"lsinitramfs /boot/initrd.img-{kernel}").split()
    assert "etc/modprobe.d/kubegpu-nouveau.conf" in early
    sources = shell(debian12, "cat /etc/apt/sources.list.d/debian.sources")
    assert "Components: main\n" in sources


@ON_12
def test_debian12_gives_everything_back(debian12, before12, packages12):
    converge(debian12, state="absent")
    assert installed(debian12) == {}
    assert dpkg_is_consistent(debian12)
    after = etc(debian12)
    assert _but_users(after) == _but_users(before12)
    # As Debian has it, the user of a service outlives its package.
    names = shell(debian12, "cut -d: -f1 /etc/passwd").split()
    assert [name for name in names if name.startswith("nv")] == ["nvpd"]
    assert packages(debian12) == packages12
    assert not shell(debian12, "find /lib/modules /var/lib/dkms -name 'nvidia-current*'").strip()


@pytest.fixture(scope="module")
def failed(debian13):
    """The open modules of Debian 13, which do not build with its present kernel."""
    run = apply(debian13, kernel_module="open")
    assert run.status != 0
    return run


@ON_13
def test_debian13_failing_build_is_explained(debian13, failed):
    said = words(failed)
    kernel = shell(debian13, "uname -r").strip()
    assert kernel in said
    # The first error of the compiler, with file and line.
    assert re.search(r"nv-pci\.c:\d+:\d+: error: too few arguments to function", said), said
    assert "pci_resize_resource" in said
    assert "make.log" in said
    assert "Next step" in said
    # What would do on this very machine.
    assert "proprietary" in said


@ON_13
def test_debian13_failing_build_leaves_dpkg_consistent(debian13, failed):
    assert dpkg_is_consistent(debian13)
    assert "nvidia-open-kernel-dkms" not in installed(debian13)
    shell(debian13, "dpkg --configure -a && apt-get check -q")


@pytest.fixture
def nouveau13(debian13):
    """The console of the node is nouveau's: it is in use, and goes only with a reboot."""
    shell(
        debian13,
        "touch /opt/standin/nouveau && modprobe nouveau && "
        "echo 1 > /opt/standin/sys-module/nouveau/refcnt",
    )
    yield
    shell(debian13, "rm /opt/standin/nouveau")


@ON_13
def test_debian13_second_wish_works_with_one_reboot(debian13, failed, nouveau13):
    boot = shell(debian13, BOOT)
    run = apply(debian13, kernel_module="proprietary", reboot=True)
    assert run.status == 0, words(run)
    assert shell(debian13, BOOT) != boot
    found = facts(debian13)
    driver, kernel = found["driver"], found["os"]["kernel"]
    assert not found["nouveau"]["loaded"]
    assert driver["loaded"] == driver["installed"] == driver["userland"]
    assert driver["loaded"].startswith("550.")
    assert driver["kernel_module"] == "proprietary" and driver["held"]
    assert driver["dkms"] == [
        {"kernel": kernel, "version": driver["installed"], "state": "installed"}
    ]
    assert dpkg_is_consistent(debian13)
    early = shell(debian13, f"lsinitramfs /boot/initrd.img-{kernel}").split()
    assert "etc/modprobe.d/kubegpu-nouveau.conf" in early
    boot = shell(debian13, BOOT)
    assert_converged(debian13, kernel_module="proprietary", reboot=True)
    assert shell(debian13, BOOT) == boot
