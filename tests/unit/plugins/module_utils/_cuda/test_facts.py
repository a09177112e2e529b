# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.facts import (
    cuda_version,
    distro_version,
    is_packaged,
    read_cuda,
    read_host_compilers,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package
from tests.unit.fixtures.make_tree import write


@pytest.mark.parametrize(
    ("json", "txt", "expected"),
    [
        ('{\n  "cuda" : {"name" : "CUDA SDK", "version" : "12.2.2"}, "x": {}}', None, "12.2.2"),
        (None, "CUDA Version 10.2.89\n", "10.2.89"),
        ("{}", None, None),
    ],
)
def test_cuda_version(json: str | None, txt: str | None, expected: str | None) -> None:
    assert cuda_version(json, txt) == expected


def test_cuda_toolkits(tmp_path: Path) -> None:
    write(tmp_path, "/usr/local/cuda-12.8/version.json", '{"cuda": {"version": "12.8.1"}}')
    write(tmp_path, "/usr/local/cuda-11.8/bin/cuda-uninstaller")
    write(tmp_path, "/usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n")
    (tmp_path / "etc/alternatives").mkdir(parents=True)
    (tmp_path / "etc/alternatives/cuda").symlink_to("/usr/local/cuda-12.8")
    (tmp_path / "usr/local/cuda").symlink_to("/etc/alternatives/cuda")
    (tmp_path / "usr/local/cuda-12").symlink_to("/etc/alternatives/cuda")
    found = read_cuda(
        NodeReader(str(tmp_path)),
        (
            Package("cuda-toolkit-12-8", "12.8.1-1", held=True),
            Package("cuda-toolkit-12-8-config-common", "12.8.90-1"),
            Package("libnccl2", "2.27.3-1+cuda12.9"),
            Package("cuda-drivers", "580.95.05-1"),
        ),
        "13.0",
    )
    assert [tuple(toolkit.values()) for toolkit in found["toolkits"]] == [
        ("10.2.89", "/usr/local/cuda-10.2", False, None, None),
        (
            "11.8",
            "/usr/local/cuda-11.8",
            False,
            "runfile",
            "/usr/local/cuda-11.8/bin/cuda-uninstaller",
        ),
        ("12.8.1", "/usr/local/cuda-12.8", True, "package", None),
    ]
    assert found["driver_supports"] == "13.0"
    assert found["packages"] == {"cuda-toolkit-12-8": "12.8.1-1", "libnccl2": "2.27.3-1+cuda12.9"}
    assert (found["held"], found["unheld"]) == (False, ["libnccl2"])
    assert (found["configuration"], found["compiler"]) == ({}, None)


def test_the_distributions_toolkit(tmp_path: Path) -> None:
    package = Package("nvidia-cuda-toolkit", "11.8.89~11.8.0-5~deb12u1")
    assert read_cuda(NodeReader(str(tmp_path)), (package,), None)["toolkits"] == [
        {
            "version": "11.8.0",
            "path": "/usr",
            "default": True,
            "source": "distro",
            "uninstaller": None,
        }
    ]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("12.0.140~12.0.1-4build4", "12.0.1"), ("12.4.131-1", "12.4.131"), ("x", None)],
)
def test_distro_version(version: str, expected: str | None) -> None:
    assert distro_version(version) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cuda-cudart-dev-12-8", True),
        ("cuda-toolkit-12", False),
        ("cuda-toolkit-12-80", False),
        ("cuda-toolkit-12-8-config-common", False),
    ],
)
def test_is_packaged(name: str, expected: bool) -> None:
    assert is_packaged("cuda-12.8", (Package(name, "1"),)) is expected


@pytest.mark.parametrize(("files", "found"), [
    # Debian 12 and 13, RHEL 9 and SUSE.
    (["lib/gcc/x86_64-linux-gnu/12/cc1plus", "lib/gcc/x86_64-linux-gnu/11/cc1plus"], [11, 12]),
    (["libexec/gcc/x86_64-linux-gnu/14/cc1plus", "lib/gcc/x86_64-linux-gnu/14/crtbegin.o"], [14]),
    (["libexec/gcc/x86_64-redhat-linux/11/cc1plus"], [11]),
    (["lib64/gcc/x86_64-suse-linux/7/cc1plus", "lib64/gcc/x86_64-suse-linux/13/cc1plus"], [7, 13]),
    # Gentoo has the whole version; gcc without C++, a cross compiler, and what is none.
    (["libexec/gcc/x86_64-pc-linux-gnu/15.2.0/cc1plus"], [15]),
    (["lib/gcc/x86_64-linux-gnu/12/cc1"], []),
    (["lib/gcc/aarch64-linux-gnu/12/cc1plus"], []),
    (["lib/gcc/x86_64-linux-gnu/12-cross/cc1plus", "lib/gcc/x86_64-linux-gnu/x/cc1plus"], []),
    ([], []),
])  # fmt: skip
def test_host_compilers(tmp_path: Path, files: list[str], found: list[int]) -> None:
    for path in files:
        write(tmp_path, f"/usr/{path}")

    assert read_host_compilers(NodeReader(str(tmp_path)), "x86_64") == found
