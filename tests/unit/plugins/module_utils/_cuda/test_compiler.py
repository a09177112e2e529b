# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.compiler import (
    CompileTest,
    check_release,
    explain_compile,
    nvcc_release,
    other_host_compilers,
)

# Recorded from the real nvcc: of Debian 12 and 13 (nvidia-cuda-toolkit), and of CUDA 13.0.
FIXTURES = Path(__file__).parents[3] / "fixtures/cuda"


def words(name):
    return (FIXTURES / name).read_text(encoding="utf-8")


def proof(version="11.8", **more):
    return CompileTest(version, f"/usr/local/cuda-{version}", "sm_70", **more)


@pytest.mark.parametrize("version", ["11.8.89", "12.4.131", "13.0.88"])
def test_what_the_real_compilers_say_of_their_version(version):
    text = words(f"nvcc-version-{version}.txt")
    release = version.rpartition(".")[0]
    assert nvcc_release(text) == (release, version)
    assert check_release(proof(release), text, found=True) == version


def test_a_compiler_of_another_release():
    with pytest.raises(KubegpuError, match=r"is of CUDA 13\.0, not 12\.9"):
        check_release(proof("12.9"), words("nvcc-version-13.0.88.txt"), found=True)


@pytest.mark.parametrize(("found", "cause"), [(False, "is not there"), (True, "does not say")])
def test_no_compiler(found, cause):
    with pytest.raises(KubegpuError, match=cause):
        check_release(proof(), "Segmentation fault", found=found)


@pytest.mark.parametrize(
    ("name", "cause", "next_step"),
    [
        ("compile-11.8.89-gcc-12.txt", "host compiler is too new", "/usr/bin/g++-11"),
        ("compile-11.8.89-debian-no-compiler.txt", "no host compiler", "build-essential"),
        ("compile-13.0.88-no-compiler.txt", "no host compiler", "Install g++"),
        ("compile-13.0.88-no-ccbin.txt", "no host compiler", "host_compiler"),
        ("compile-11.8.89-sm_100.txt", "not compile for sm_100", "knows the GPU"),
        ("compile-13.0.88-sm_70.txt", "not compile for sm_70", "dropped"),
        ("compile-11.8.89-ptxas-of-13.0.txt", "cannot compile.", "manually"),
    ],
)
def test_what_the_real_compilers_say_when_they_cannot(name, cause, next_step):
    error = explain_compile(proof(), words(name))
    assert cause in error.cause
    assert next_step in error.next_step
    assert error.evidence
    assert "verify: false" in error.next_step


@pytest.mark.parametrize(("function", "needs"), [
    ("cospi", "CUDA 13.0"), ("sinpif", "CUDA 13.0"), ("rsqrtf", "CUDA 13.2"),
])  # fmt: skip
def test_a_c_library_that_the_headers_do_not_fit(function, needs):
    """The words of nvcc 12.9 and 13.1 in public reports (cuda-samples 378, koboldcpp 1825)."""
    said = (
        "/usr/include/x86_64-linux-gnu/bits/mathcalls.h(79): error: exception\n  specification is "
        f'incompatible with that of previous function "{function}" (declared at line 2601 of\n  '
        "/usr/local/cuda/include/crt/math_functions.h)\n"
    )
    error = explain_compile(proof("12.9"), said)

    assert error.code == "cuda_glibc" and function in error.cause
    assert needs in error.next_step
    # Another compiler changes nothing: none is tried.
    assert other_host_compilers(said) == ()


def test_the_search_path_has_this_toolkit_first_and_no_local_programs():
    path = proof().environment["PATH"].split(":")
    assert path[0] == "/usr/local/cuda-11.8/bin"
    assert "/usr/local/bin" not in path


def test_arguments_of_the_proof():
    assert proof(host_compiler="/usr/bin/g++-11").arguments("a.cu", "a.o")[1:] == [
        *("-c", "-arch=sm_70", "-ccbin", "/usr/bin/g++-11", "-o", "a.o", "a.cu"),
    ]
    assert CompileTest("11.8", "/x", None).arguments("a.cu", "a.o") == [
        *("/x/bin/nvcc", "-c", "-o", "a.o", "a.cu"),
    ]
