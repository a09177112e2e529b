# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA's self-extracting installers (``.run``): names, options and checksums.

Sources of names and options, read 2026-11-21: NVIDIA's download pages, the README of the driver
580, the CUDA installation guide 13; public scripts for the release that an option came with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError
from .._core.redact import addresses
from .checksum import file_name

DRIVER = "driver"
CUDA = "cuda"
# Variants of the driver's file. NVIDIA gives the data-centre driver and the general one the same
# name, so they are one here.
STANDARD = "standard"
GRID = "grid"
VGPU_HOST = "vgpu-kvm"

UNINSTALLER = "/usr/bin/nvidia-uninstall"
LOG = "/var/log/nvidia-installer.log"
UNINSTALL_LOG = "/var/log/nvidia-uninstall.log"
CUDA_LOG = "/var/log/cuda-installer.log"

# The first driver branch whose installer knows the option.
_KERNEL_MODULE_SINCE = 515
_SKIP_LOAD_SINCE = 550
_RUNNING_DRIVER_SINCE = 550
_DIRECTORIES = {"open": "kernel-open", "proprietary": "kernel"}

_VERSION = r"\d{3,}\.\d+(?:\.\d+)?"
_DRIVER_NAME = re.compile(
    rf"^NVIDIA-Linux-(?P<arch>x86_64|aarch64|ppc64le)-(?P<version>{_VERSION})"
    r"(?P<suffix>(?:-[a-z0-9]+)*)\.run$"
)
_CUDA_NAME = re.compile(
    # From 13.4.1 on there is no driver in the file, and none in its name.
    rf"^cuda_(?P<cuda>\d+\.\d+\.\d+)(?:_(?P<version>{_VERSION}))?_linux"
    r"(?:_(?P<arch>sbsa|ppc64le))?\.run$"
)
# What else is downloaded for a driver or for CUDA. A runfile that was renamed has none of these.
_NO_RUNFILE = (".deb", ".rpm", ".zip", ".tar", ".gz", ".xz", ".tgz", ".iso", ".exe")
_ARCHITECTURES = {"sbsa": "aarch64", "arm64": "aarch64", "amd64": "x86_64"}


@dataclass(frozen=True)
class Runfile:
    """The parts of a runfile's name; all None if the name is not one of NVIDIA's."""

    name: str
    kind: str | None = None
    variant: str | None = None
    version: str | None = None
    cuda: str | None = None
    architecture: str | None = None


def shown_runfile(runfile: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a plan's runfile without secrets; the checksum's URL can be a signed link too."""
    if runfile is None:
        return None
    return {
        name: addresses(value, True) if name in ("url", "checksum") and value else value
        for name, value in runfile.items()
    }


def parse_name(place: str) -> Runfile:
    """Return the parts of the file name at ``place``, a path or a URL."""
    name = file_name(place)
    match = _DRIVER_NAME.match(name)
    if match:
        suffix = match["suffix"]
        variant = STANDARD
        if "-vgpu" in suffix:
            variant = VGPU_HOST
        elif "-grid" in suffix:
            variant = GRID
        return Runfile(name, DRIVER, variant, match["version"], None, match["arch"])
    match = _CUDA_NAME.match(name)
    if match:
        architecture = _ARCHITECTURES.get(match["arch"] or "", match["arch"] or "x86_64")
        return Runfile(name, CUDA, None, match["version"], match["cuda"], architecture)
    return Runfile(name)


def check_driver(place: str, *, arch: str | None = None, guest: bool | None = None) -> Runfile:
    """Return the parts of a driver's file name.

    :param arch: the node's architecture, as ``uname -m`` prints it.
    :param guest: whether its GPUs are virtual ones; None is unknown.
    :raises InputError: the file is not for this node.
    """
    runfile = parse_name(place)
    _check_kind(
        runfile,
        "Give NVIDIA's installer NVIDIA-Linux-<architecture>-<version>.run, in a vGPU guest with "
        "-grid in its name. A driver that you install from a package manually is kept while it is "
        "loaded and serves the node's GPUs.",
    )
    if runfile.kind == CUDA:
        raise InputError(
            f"{runfile.name} is the installer of the CUDA toolkit {runfile.cuda}, not of a driver.",
            next_step=f"Give NVIDIA-Linux-*-{runfile.version or '<version>'}.run; install CUDA by "
            "cuda_toolkit.",
        )
    if runfile.variant == VGPU_HOST:
        raise InputError(
            f"{runfile.name} is the vGPU manager, the driver of a hypervisor's host.",
            evidence="-vgpu-kvm in the file's name",
            next_step="A guest takes the file with -grid in its name; a node that uses its GPUs "
            "itself takes the data-centre driver, which has neither.",
        )
    if runfile.variant == GRID and guest is False:
        raise InputError(
            f"{runfile.name} is the GRID driver of vGPU guests, but this node has whole GPUs.",
            evidence="no vGPU capability in the PCI configuration of any NVIDIA GPU",
            next_step=f"Give NVIDIA-Linux-{runfile.architecture}-{runfile.version}.run.",
        )
    if runfile.variant == STANDARD and guest:
        raise InputError(
            f"{runfile.name} is not for this node: its GPU is a virtual one (vGPU), which takes "
            "only a GRID driver of its host's branch.",
            next_step="Give the file with -grid in its name, from the licence portal or the "
            "cloud provider.",
        )
    _check_architecture(runfile, arch)
    return runfile


def check_cuda(place: str, *, arch: str | None = None) -> Runfile:
    """Return the parts of a CUDA installer's file name.

    :raises InputError: it is not CUDA's installer for this architecture.
    """
    runfile = parse_name(place)
    _check_kind(runfile, "Give cuda_<version>_<driver>_linux.run, or cuda_<version>_linux.run.")
    if runfile.kind == DRIVER:
        raise InputError(
            f"{runfile.name} is the installer of a driver, not of the CUDA toolkit.",
            next_step="Give cuda_<version>_<driver>_linux.run, or from 13.4.1 on "
            "cuda_<version>_linux.run.",
        )
    _check_architecture(runfile, arch)
    return runfile


def _check_kind(runfile: Runfile, step: str) -> None:
    if runfile.name.lower().endswith(_NO_RUNFILE):
        raise InputError(f"{runfile.name} is not a runfile (.run).", next_step=step)


def _check_architecture(runfile: Runfile, arch: str | None) -> None:
    if arch is None or runfile.architecture is None:
        return
    wanted = _ARCHITECTURES.get(arch, arch)
    if runfile.architecture != wanted:
        raise InputError(
            f"{runfile.name} is for {runfile.architecture}, but this node is {wanted}.",
            next_step=f"Give the file for {wanted}.",
        )


def install_arguments(
    version: str,
    kernel_module: str,
    dkms: bool,
    *,
    load: bool = True,
    running: bool = False,
    compute_only: bool = False,
    kernel: str | None = None,
) -> list[str]:
    """Return the arguments for a driver's file.

    :param kernel_module: open or proprietary.
    :param load: whether the installer may load the module that it built.
    :param running: whether a driver is loaded that remains until the node is rebooted.
    :param kernel: build for this kernel, not for the one that runs.
    """
    branch = int(version.partition(".")[0])
    if kernel_module not in _DIRECTORIES:
        raise InputError(f"kernel_module is {kernel_module!r}; open and proprietary are possible.")
    if kernel_module == "open" and branch < _KERNEL_MODULE_SINCE:
        raise InputError(
            f"The driver {version} has no open kernel modules.",
            next_step="Ask for kernel_module: proprietary, or a branch from 515 on.",
        )
    # silent answers every question with its default and shows no screen.
    arguments = ["--silent"]
    if branch >= _KERNEL_MODULE_SINCE:
        arguments.append(f"-m={_DIRECTORIES[kernel_module]}")
    arguments.append("--dkms" if dkms else "--no-dkms")
    if not load and branch >= _SKIP_LOAD_SINCE:
        arguments.append("--skip-module-load")
    if running and branch >= _RUNNING_DRIVER_SINCE:
        arguments.append("--allow-installation-with-running-driver")
    if compute_only:
        arguments.extend(("--no-opengl-files", "--no-install-compat32-libs"))
    # A running display server must not stop the installer.
    arguments.append("--no-x-check")
    if kernel:
        arguments.append(f"--kernel-name={kernel}")
    return arguments


def unpacked_in(folder: str) -> tuple[list[str], dict[str, str]]:
    """Return argument and environment for an installer that unpacks and runs itself there.

    Its shell script reads the variable, and the program in it the option (the README of the driver
    580; the CUDA installation guide 13).
    """
    return [f"--tmpdir={folder}"], {"TMPDIR": folder}


def beside_nouveau(version: str) -> list[str]:
    """Return the options to install a driver while nouveau is loaded; empty if it cannot be.

    An installer that insists on loading what it built fails next to nouveau.
    """
    if int(version.partition(".")[0]) < _SKIP_LOAD_SINCE:
        return []
    return ["--no-nouveau-check"]


def uninstall_arguments(uninstaller: str = UNINSTALLER) -> list[str]:
    """Return the command that uninstalls a runfile's driver or toolkit without prompts."""
    if file_name(uninstaller) == "nvidia-installer":
        return [uninstaller, "--uninstall", "--silent"]
    return [uninstaller, "--silent"]


def cuda_arguments(path: str) -> list[str]:
    """Return the arguments for CUDA's file: the toolkit into ``path``, never the driver."""
    return ["--silent", "--toolkit", f"--toolkitpath={path}", "--override", "--no-man-page"]
