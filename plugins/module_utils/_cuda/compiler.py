# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Test that a toolkit's compiler works: its arguments, and what its output means. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._core.errors import KubegpuError
from .._known_faults.rules.compilers import HOST_TOO_NEW, NO_ARCHITECTURE, NO_HOST
from .._nvidia.compatibility import minor
from .known import failed

PROGRAM = """\
__global__ void kubegpu(int *value) { *value = 1; }
int main() { kubegpu<<<1, 1>>>(0); return 0; }
"""
_FOLDERS = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
# Two versions that differ by their labels: the release, and the build of nvcc.
_RELEASE = re.compile(r"release (\d+\.\d+), V([\d.]+)")
# What shows whose output it is.
_NVCC = "nvcc:\n"
# The versions N of the packages g++-N of Debian and Ubuntu.
_OLDEST_KNOWN, _NEWEST_KNOWN = 7, 15


@dataclass(frozen=True)
class CompileTest:
    """The compiler of one toolkit, and the options to test it with.

    :param architecture: the value of ``-arch``, such as ``sm_70``; None leaves it out.
    :param host_compiler: the value of ``-ccbin``; empty leaves it out.
    """

    version: str
    path: str
    architecture: str | None
    host_compiler: str = ""

    @property
    def nvcc(self) -> str:
        return f"{self.path}/bin/nvcc"

    @property
    def environment(self) -> dict[str, str]:
        """Return ``PATH``: nvcc runs ptxas by name, and must find that of its own version."""
        return {"PATH": f"{self.path}/bin:{_FOLDERS}"}

    def arguments(self, source: str, result: str) -> list[str]:
        architecture = [f"-arch={self.architecture}"] if self.architecture else []
        host = ["-ccbin", self.host_compiler] if self.host_compiler else []
        return [self.nvcc, "-c", *architecture, *host, "-o", result, source]


def nvcc_release(text: str) -> tuple[str, str] | None:
    """Return release and version from the output of ``nvcc --version``: ``12.4``, ``12.4.131``."""
    match = _RELEASE.search(text)
    return (match.group(1), match.group(2)) if match else None


def check_release(test: CompileTest, text: str, *, found: bool) -> str:
    """Return the compiler's version.

    :param text: the output of ``nvcc --version``.
    :param found: whether the compiler exists.
    :raises KubegpuError: it does not exist, or is of another release.
    """
    release = nvcc_release(text)
    if not found or release is None:
        raise KubegpuError(
            f"The compiler {test.nvcc} of CUDA {test.version} "
            + ("is not there." if not found else "does not say its version."),
            evidence=text.strip()[-500:],
            next_step="Check that the toolkit is complete (cuda-toolkit, or the runfile with "
            "--toolkit); remove the folder and run again.",
        )
    if release[0] != minor(test.version):
        raise KubegpuError(
            f"{test.nvcc} is of CUDA {release[0]}, not {minor(test.version)}.",
            evidence=text.strip().splitlines()[-1],
            next_step="Find out what installed it; remove the folder and run again.",
        )
    return release[1]


def other_host_compilers(output: str) -> tuple[str, ...]:
    """Return the host compilers to try if nvcc rejects the default one, newest first.

    :param output: the output of nvcc.
    """
    found = failed(f"{_NVCC}{output}")
    newest = found.get(HOST_TOO_NEW, {}).get("newest")
    if not newest and NO_HOST not in found:
        return ()
    last = int(newest) if newest else _NEWEST_KNOWN
    return tuple(f"/usr/bin/g++-{number}" for number in range(last, _OLDEST_KNOWN - 1, -1))


def explain_compile(test: CompileTest, output: str) -> KubegpuError:
    """Return why the test program did not compile, from the output of nvcc."""
    what = f"nvcc of CUDA {test.version} is installed, but cannot compile"
    host = test.host_compiler or "g++"
    found = failed(f"{_NVCC}{output}")
    if HOST_TOO_NEW in found:
        newest = found[HOST_TOO_NEW].get("newest")
        name = f"g++-{newest}" if newest else "an older compiler"
        return KubegpuError(
            f"{what}: the host compiler {host} is too new for it.",
            evidence=found[HOST_TOO_NEW]["text"],
            next_step=f"Install {name} or older, and give it: host_compiler: /usr/bin/{name}; or "
            "ask for a newer CUDA, or skip the compiler test (verify: false)."
            if newest
            else "Give an older one with host_compiler, or skip the compiler test (verify: false).",
        )
    if NO_HOST in found:
        return KubegpuError(
            f"{what}: no host compiler that it takes is there.",
            evidence=output.strip().splitlines()[0],
            next_step="Install g++ (on Debian and Ubuntu: build-essential), in a version that "
            f"CUDA {test.version} takes; give it by host_compiler where it is not the default "
            "one; or skip the compiler test (verify: false).",
        )
    if NO_ARCHITECTURE in found:
        names = found[NO_ARCHITECTURE]
        return KubegpuError(
            f"{what} for {names.get('architecture') or names.get('value')}, which a GPU of this "
            "node is.",
            evidence=output.strip().splitlines()[-1],
            next_step="Request a CUDA version that knows the GPU (driver_required_by shows "
            "dropped architectures).",
        )
    return KubegpuError(
        f"{what}.",
        evidence="\n".join(output.strip().splitlines()[-15:]),
        next_step=f"Run it manually: {test.nvcc} -c file.cu; or skip the compiler test "
        "(verify: false).",
    )
