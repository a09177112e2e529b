# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the CUDA toolkits of a node from its files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._core.versions import find_version
from .._driver.facts import read_checksums
from .._nvidia.package_names import is_cuda
from .._packages import installed as _packages
from .._packages.installed import Package
from .config_files import PATHS

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_LOCAL = "/usr/local"
_DISTRO_PACKAGE = "nvidia-cuda-toolkit"
# Where cc1plus, the C++ compiler of gcc, is: below it the triplet and the major version.
_GCC_FOLDERS = ("/usr/libexec/gcc", "/usr/lib/gcc", "/usr/lib64/gcc")


def read_cuda(
    reader: NodeReader, packages: Sequence[Package], supports: str | None
) -> dict[str, Any]:
    """Return the fact ``cuda``: toolkits, packages, and the CUDA version that the driver supports.

    :param supports: that version, as NVML reports it.
    """
    default = reader.real_path(f"{_LOCAL}/cuda")
    toolkits = []
    for name in reader.list_dir(_LOCAL):
        path = f"{_LOCAL}/{name}"
        if not name.startswith("cuda-") or reader.is_link(path) or not reader.is_dir(path):
            continue
        uninstaller = reader.first([f"{path}/bin/cuda-uninstaller"])
        toolkits.append(
            {
                "version": cuda_version(
                    reader.read_text(f"{path}/version.json"),
                    reader.read_text(f"{path}/version.txt"),
                )
                or name[len("cuda-") :],
                "path": path,
                "default": path == default,
                "source": "package"
                if is_packaged(name, packages)
                else ("runfile" if uninstaller else None),
                "uninstaller": uninstaller,
            }
        )
    for package in _packages.select(packages, (_DISTRO_PACKAGE,)):
        toolkits.append(
            {
                "version": distro_version(package.version),
                "path": "/usr",
                "default": default is None,
                "source": "distro",
                "uninstaller": None,
            }
        )
    cuda_packages = [package for package in packages if is_cuda(package.name)]
    return {
        "toolkits": toolkits,
        "driver_supports": supports,
        "packages": _packages.versions(cuda_packages),
        "held": _packages.held(cuda_packages),
        "unheld": _packages.unheld(cuda_packages),
        "configuration": read_checksums(reader, PATHS),
        "host_compilers": read_host_compilers(reader, reader.kernel_value("arch")),
        # Only a run of the compiler shows it; the module does that.
        "compiler": None,
    }


def read_host_compilers(reader: NodeReader, arch: str | None) -> list[int]:
    """Return the major versions of the installed g++ for this machine, in order."""
    found = set()
    for folder in _GCC_FOLDERS:
        for triplet in reader.list_dir(folder):
            # Others are of cross compilers.
            if not triplet.startswith(f"{arch}-"):
                continue
            for name in reader.list_dir(f"{folder}/{triplet}"):
                number = re.match(r"\d{1,3}(?=\.|\Z)", name, re.ASCII)
                if number and reader.is_file(f"{folder}/{triplet}/{name}/cc1plus"):
                    found.add(int(number[0]))
    return sorted(found)


def is_packaged(folder: str, packages: Sequence[Package]) -> bool:
    """Return whether NVIDIA's packages installed the folder ``cuda-X.Y`` below ``/usr/local``."""
    version = folder[len("cuda-") :].replace(".", "-")
    return any(re.fullmatch(rf"cuda-[a-z-]+-{version}", package.name) for package in packages)


def distro_version(version: str) -> str | None:
    """Return the CUDA version in a package version such as 11.8.89~11.8.0-5~deb12u1."""
    # Debian writes the version of the compiler first, and that of CUDA after it.
    match = re.search(r"~(\d+\.\d+\.\d+)", version)
    return match.group(1) if match else find_version(version)


def cuda_version(version_json: str | None, version_txt: str | None) -> str | None:
    """Return the toolkit's version; before 11.1 it is in a text file."""
    # The file has the versions of all parts: the pattern finds the entry, not the version in it.
    match = re.search(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"', version_json or "")
    return match.group(1) if match else find_version(version_txt)
