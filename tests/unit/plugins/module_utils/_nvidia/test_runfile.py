# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.runfile import (
    CUDA,
    DRIVER,
    GRID,
    STANDARD,
    VGPU_HOST,
    Runfile,
    beside_nouveau,
    check_cuda,
    check_driver,
    cuda_arguments,
    install_arguments,
    parse_name,
    uninstall_arguments,
    unpacked_in,
)

NAME = "NVIDIA-Linux-x86_64-580.95.05.run"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (f"/srv/{NAME}", Runfile(NAME, DRIVER, STANDARD, "580.95.05", None, "x86_64")),
        (
            "https://us.download.nvidia.com/tesla/595.58.03/NVIDIA-Linux-aarch64-595.58.03.run?x=/y",
            Runfile("NVIDIA-Linux-aarch64-595.58.03.run", DRIVER, STANDARD, "595.58.03", None,
                    "aarch64"),
        ),
        (
            "NVIDIA-Linux-x86_64-470.82-no-compat32.run",
            Runfile("NVIDIA-Linux-x86_64-470.82-no-compat32.run", DRIVER, STANDARD, "470.82", None,
                    "x86_64"),
        ),
        (
            "NVIDIA-Linux-x86_64-550.90.07-grid.run",
            Runfile("NVIDIA-Linux-x86_64-550.90.07-grid.run", DRIVER, GRID, "550.90.07", None,
                    "x86_64"),
        ),
        (
            "NVIDIA-Linux-x86_64-595.71.05-grid-aws.run",
            Runfile("NVIDIA-Linux-x86_64-595.71.05-grid-aws.run", DRIVER, GRID, "595.71.05", None,
                    "x86_64"),
        ),
        (
            "NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run",
            Runfile("NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run", DRIVER, VGPU_HOST, "550.90.05",
                    None, "x86_64"),
        ),
        (
            "cuda_13.0.2_580.95.05_linux.run",
            Runfile("cuda_13.0.2_580.95.05_linux.run", CUDA, None, "580.95.05", "13.0.2", "x86_64"),
        ),
        (
            # From 13.4.1 on without a driver (release notes of CUDA 13.4; NVIDIA's archive).
            "cuda_13.4.1_linux.run",
            Runfile("cuda_13.4.1_linux.run", CUDA, None, None, "13.4.1", "x86_64"),
        ),
        (
            "cuda_13.4.2_linux_sbsa.run",
            Runfile("cuda_13.4.2_linux_sbsa.run", CUDA, None, None, "13.4.2", "aarch64"),
        ),
        (
            "cuda_12.8.1_570.124.06_linux_sbsa.run",
            Runfile("cuda_12.8.1_570.124.06_linux_sbsa.run", CUDA, None, "570.124.06", "12.8.1",
                    "aarch64"),
        ),
        ("driver.run", Runfile("driver.run")),
        ("/srv/NVIDIA-Linux-x86_64-580.95.05.run.sha256sum",
         Runfile("NVIDIA-Linux-x86_64-580.95.05.run.sha256sum")),
        ("", Runfile("")),
    ],
)  # fmt: skip
def test_parse_name(place, expected):
    assert parse_name(place) == expected


@pytest.mark.parametrize(
    ("name", "arch", "guest", "said"),
    [
        ("NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run", "x86_64", True, "hypervisor's host"),
        ("NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run", None, None, "hypervisor's host"),
        ("NVIDIA-Linux-x86_64-550.90.07-grid.run", "x86_64", False, "has whole GPUs"),
        (NAME, "x86_64", True, "only a GRID driver"),
        (NAME, "aarch64", False, "is for x86_64, but this node is aarch64"),
        ("NVIDIA-Linux-aarch64-595.58.03.run", "amd64", False, "this node is x86_64"),
        ("cuda_13.0.2_580.95.05_linux.run", "x86_64", False, "not of a driver"),
    ],
)
def test_a_wrong_file_is_refused(name, arch, guest, said):
    with pytest.raises(InputError) as caught:
        check_driver(f"/srv/{name}", arch=arch, guest=guest)
    assert said in caught.value.cause and name in caught.value.cause and caught.value.next_step


@pytest.mark.parametrize(
    ("name", "guest"),
    [
        (NAME, False), (NAME, None), ("NVIDIA-Linux-x86_64-550.90.07-grid.run", True),
        ("NVIDIA-Linux-x86_64-550.90.07-grid.run", None), ("mine.run", True),
    ],
)  # fmt: skip
def test_a_right_file_is_taken(name, guest):
    assert check_driver(name, arch="x86_64", guest=guest).name == name


def test_cuda_files():
    assert check_cuda("cuda_13.0.2_580.95.05_linux.run", arch="x86_64").cuda == "13.0.2"
    with pytest.raises(InputError, match="installer of a driver"):
        check_cuda(NAME)
    with pytest.raises(InputError, match="is for aarch64"):
        check_cuda("cuda_12.8.1_570.124.06_linux_sbsa.run", arch="x86_64")


@pytest.mark.parametrize(
    ("version", "kernel_module", "dkms", "more", "arguments"),
    [
        ("580.95.05", "open", True, {}, ["--silent", "-m=kernel-open", "--dkms", "--no-x-check"]),
        (
            "580.95.05", "proprietary", False, {"load": False, "running": True},
            ["--silent", "-m=kernel", "--no-dkms", "--skip-module-load",
             "--allow-installation-with-running-driver", "--no-x-check"],
        ),
        (
            "470.256.02", "proprietary", True, {"load": False, "running": True},
            ["--silent", "--dkms", "--no-x-check"],
        ),
        (
            "535.288.01", "open", True,
            {"compute_only": True, "kernel": "6.1.0-37-amd64"},
            ["--silent", "-m=kernel-open", "--dkms", "--no-opengl-files",
             "--no-install-compat32-libs", "--no-x-check", "--kernel-name=6.1.0-37-amd64"],
        ),
    ],
)  # fmt: skip
def test_install_arguments(version, kernel_module, dkms, more, arguments):
    assert install_arguments(version, kernel_module, dkms, **more) == arguments


def test_arguments_that_cannot_be():
    with pytest.raises(InputError, match="has no open kernel modules"):
        install_arguments("470.256.02", "open", True)
    with pytest.raises(InputError, match="'auto'"):
        install_arguments("580.95.05", "auto", True)


def test_uninstall_and_cuda_arguments():
    assert uninstall_arguments() == ["/usr/bin/nvidia-uninstall", "--silent"]
    assert uninstall_arguments("/usr/bin/nvidia-installer") == [
        "/usr/bin/nvidia-installer", "--uninstall", "--silent",
    ]  # fmt: skip
    assert uninstall_arguments("/usr/local/cuda-13.0/bin/cuda-uninstaller")[1:] == ["--silent"]
    arguments = cuda_arguments("/usr/local/cuda-13.0")
    assert arguments[:3] == ["--silent", "--toolkit", "--toolkitpath=/usr/local/cuda-13.0"]
    assert "--override" in arguments and unpacked_in("/x") == (["--tmpdir=/x"], {"TMPDIR": "/x"})
    assert "--driver" not in arguments


def test_beside_nouveau():
    assert beside_nouveau("580.95.05") == ["--no-nouveau-check"]
    # It would try to load what it built.
    assert beside_nouveau("535.288.01") == []
