# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a CUDA toolkit compiles with the node's glibc and g++, before it is installed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import Refusal
from .._core.versions import Version, version_numbers
from .._nvidia.compatibility import minor
from .._nvidia.cuda_releases import RELEASES, CudaData
from .types import DISTRO, PlannedVersion, Request

_SKIP = "or, where nothing is compiled on this node, skip the compiler test (verify: false)."


def check_compiles(
    node: Mapping[str, Any], request: Request, planned: Sequence[PlannedVersion], data: CudaData
) -> tuple[list[Refusal], list[str]]:
    """Return what keeps toolkits that would be installed from compiling.

    It refuses them where the compiler is tested after the installation, and is a warning
    otherwise. A distribution builds its own CUDA for its own glibc and compiler.
    """
    found = []
    for one in planned:
        if one.source != DISTRO and one.action != "none":
            obstacle = _glibc(node, one.release, data) or _gcc(node, request, one.release, data)
            found += [obstacle] if obstacle else []
    if request.verify:
        return found, []
    return [], [f"{one.cause} Next step: {one.next_step}" for one in found]


def _glibc(node: Mapping[str, Any], release: str, data: CudaData) -> Refusal | None:
    library = node["os"].get("libc") or {}
    have = version_numbers(library.get("version"))[:2]
    if library.get("name") != "glibc" or not have:
        return None
    rows = [cuda for glibc, cuda in data.glibc.items() if version_numbers(glibc) <= have]
    need = max(rows, key=version_numbers, default="0")
    if version_numbers(release)[:2] >= version_numbers(need):
        return None
    return Refusal(
        f"CUDA {minor(release)} does not compile with glibc {library['version']} of this node: its "
        "headers declare functions of the C library (sinpi, cospi, rsqrt) in another way.",
        f"{_other_cuda(node, need, data)}, {_SKIP}",
    )


def _other_cuda(node: Mapping[str, Any], need: str, data: CudaData) -> str:
    """Return what compiles instead: a newer CUDA, unless that has dropped a GPU of the node."""
    major = version_numbers(need)[0]
    dropped = [
        gpu["generation"]
        for gpu in node["gpus"]
        if gpu["vendor"] == "nvidia" and int(data.last.get(gpu["generation"]) or major) < major
    ]
    container = "compile in a container with an older glibc"
    if dropped:
        return f"{container}, as CUDA {need} has dropped {dropped[0]}"
    return f"ask for CUDA {need} or newer, {container}"


def _gcc(node: Mapping[str, Any], request: Request, release: str, data: CudaData) -> Refusal | None:
    compilers = node["cuda"].get("host_compilers") or ()
    newest = _newest_gcc(version_numbers(release), data)
    # Without any the package brings one; one that is named may be anywhere.
    if request.host_compiler or not compilers or newest is None or min(compilers) <= newest:
        return None
    takers = [cuda for cuda, gcc in data.gcc.items() if int(gcc) >= min(compilers)]
    newer = min(takers, key=version_numbers, default="")
    return Refusal(
        f"CUDA {minor(release)} takes gcc up to {newest} as its host compiler, and this node has "
        f"g++ {', '.join(map(str, compilers))}.",
        f"install g++-{newest} (RHEL: gcc-toolset-{newest}, and name its g++ by host_compiler), "
        + (f"ask for CUDA {minor(newer)} or newer, " if newer else "")
        + _SKIP,
    )


def _newest_gcc(release: Version, data: CudaData) -> int | None:
    """Return the newest gcc that a release takes; None if the table does not know the release."""
    rows = {version_numbers(cuda): int(gcc) for cuda, gcc in data.gcc.items()}
    since = max((cuda for cuda in rows if cuda <= release), default=None)
    last = max(version_numbers(known) for known in RELEASES)
    if since is None or (release[:2] > last[:2] and since[:2] != release[:2]):
        return None
    return rows[since]
