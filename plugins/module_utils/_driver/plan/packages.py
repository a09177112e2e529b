# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the packages of a driver are called in each source. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._distro.data import DISTRIBUTIONS, SUSE, kernel_flavour, kernel_headers
from ..._nvidia.driver_branches import (
    G07_FROM,
    OPEN,
    PINNED_FROM,
    PINNING_FROM,
    STREAM_MODULE,
    UBUNTU_FLAVOURS,
    UBUNTU_LTS,
    UBUNTU_ROLLING,
    DriverData,
)
from ..types import DriverWish, branch_of
from .fabric import members, needs
from .sources import DISTRO, NVIDIA, System, row

# What belongs to one driver, and must never be of two versions. The container toolkit, Debian's
# CUDA packages and tools with versions of their own stay out.
LOCK_PATTERNS = (
    "nvidia-*",
    "libnvidia-*",
    "linux-modules-nvidia-*",
    "linux-objects-nvidia-*",
    "linux-signatures-nvidia-*",
    "xserver-xorg-video-nvidia*",
    "libcuda1",
    "libcudadebugger1",
    "libnvcuvid1",
    "libnvoptix1",
    "libnvsdm*",
    "nvlsm",
    "cuda-drivers*",
    "firmware-nvidia-*",
    "!nvidia-container*",
    "!libnvidia-container*",
    "!nvidia-docker*",
    "!nvidia-cuda-*",
    "!nvidia-cudnn*",
    "!nvidia-visual-profiler*",
    "!nvidia-nsight*",
    "!nvidia-profiler*",
    "!nvidia-detect*",
    "!nvidia-installer-cleanup*",
)
# rpm's names that differ.
RPM_LOCK_PATTERNS = (*LOCK_PATTERNS, "kmod-nvidia*", "akmod-nvidia*", "dkms-nvidia*")

_STOCK = re.compile(
    r"(?P<series>\d+\.\d+)\.[\d.-]+-(?P<flavour>[a-z]+(?:-[a-z]+)*)(?P<pages>-64k)?\Z"
)
_SUFFIX = re.compile(r"-(?P<branch>[3-9]\d\d)(?=-|\Z)")
# SUSE's packages of one generation are in the way of those of another.
_GENERATION = re.compile(r"-(?P<generation>G\d\d)(?=-|\Z)")
_OF_DRIVER = ("nvidia-", "libnvidia-", "linux-modules-nvidia-", "cuda-drivers")
# Ubuntu's signatures are those of all branches and kinds for one kernel.
_SHARED = "linux-signatures-nvidia-"
# The packages that make the kernel modules, or draw them in.
_KERNEL = re.compile(
    r"(?:nvidia-(?:headless|dkms|kernel-source|kernel-open|kernel-dkms|kernel-support|open\b"
    r"|open-kernel|driver-\d+|driver\Z|driver-open)|cuda-drivers"
    r"|linux-(?:modules|objects)-nvidia-|kmod-nvidia)"
)
_SIGNED = {"modules": (), "architectures": (), "by": "its publisher", "trusted": False}
# Of RPM packages: nvidia-driver has no modules there.
_RPM_KERNEL = re.compile(
    r"(?:nvidia-open|cuda-drivers|a?kmod-nvidia|dkms-nvidia|nvidia-(?:open-)?driver-G\d+)"
)


@dataclass(frozen=True)
class PackageSet:
    """The packages of a driver in one source."""

    packages: Mapping[str, str | None] = field(default_factory=dict)
    optional: Mapping[str, str | None] = field(default_factory=dict)
    pinning: Mapping[str, str | None] = field(default_factory=dict)
    patterns: tuple[str, ...] = LOCK_PATTERNS
    signed: bool = False
    streams: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def lock_patterns(system: System) -> tuple[str, ...]:
    """Return which packages belong to one driver on this system."""
    return LOCK_PATTERNS if system.manager == "apt" else RPM_LOCK_PATTERNS


def package_set(
    node: Mapping[str, Any],
    system: System,
    source: str,
    branch: str,
    version: str | None,
    flavour: str,
    wish: DriverWish,
    data: DriverData,
) -> PackageSet:
    """Return the names of the driver's packages. ``version`` None is: the newest of the branch."""
    found = _of_driver(node, system, source, branch, version, flavour, wish, data)
    more = members(needs(node, wish), system, source, branch, version)
    return replace(
        found,
        packages={**found.packages, **more.packages},
        optional={**found.optional, **more.optional},
    )


def _of_driver(
    node: Mapping[str, Any],
    system: System,
    source: str,
    branch: str,
    version: str | None,
    flavour: str,
    wish: DriverWish,
    data: DriverData,
) -> PackageSet:
    text = f"{version}*" if version else f"{branch}.*"
    if system.manager != "apt":
        return _rpm(node, system, source, branch, version, flavour, wish, data)
    if source == NVIDIA:
        return _nvidia(node, system, branch, version, flavour, wish, data)
    if system.id == "ubuntu":
        return _ubuntu(node, system, branch, text, flavour, wish, data)
    return _debian(node, system, text, flavour, wish)


def headers(
    node: Mapping[str, Any], system: System, data: DriverData
) -> tuple[str | None, dict[str, str | None]]:
    """Return the package that follows the newest kernel's headers, and those of exact kernels."""
    if system.manager != "apt":
        found: dict[str, str | None] = {}
        for kernel in relevant_kernels(node):
            found.update(kernel_headers(system.family, kernel["version"], system.arch))
        return None, found
    exact: dict[str, str | None] = {
        f"linux-headers-{kernel['version']}": None for kernel in relevant_kernels(node)
    }
    running = node["os"]["kernel"] or ""
    if system.id == "ubuntu":
        meta, lts = _ubuntu_headers(running, system, data)
        return meta, {**exact, **lts}
    if system.id == "debian":
        arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(system.arch, system.arch)
        match = re.search(rf"-((?:cloud|rt)-)?{arch}\Z", running)
        kind = match.group(1) if match and match.group(1) else ""
        return f"linux-headers-{kind}{arch}", exact
    return None, exact


def relevant_kernels(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the kernels that need the driver: the running one, and the one of the next boot.

    In a container the running kernel is its host's: it is not on this disk, and nothing can be
    installed for it.
    """
    kernels = sorted(
        (kernel for kernel in node["kernels"] if kernel.get("on_disk", True)),
        key=lambda kernel: kernel_key(kernel["version"]),
    )
    running = [kernel for kernel in kernels if kernel["running"]]
    return [*running, *(kernel for kernel in kernels[-1:] if kernel not in running)]


def kernel_key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def ubuntu_flavour(kernel: str, system: System, data: DriverData) -> str | None:
    """Return the name behind Ubuntu's packages for a stock kernel, None for any other."""
    match = _STOCK.match(kernel)
    if match is None or match["flavour"] not in UBUNTU_FLAVOURS:
        return None
    # A kernel with pages of 64 KiB takes no module of the same kernel with small ones.
    flavour = match["flavour"] + (match["pages"] or "")
    if match["flavour"] in UBUNTU_ROLLING:
        return f"{flavour}-{match['series']}"
    first = (row(system, DISTRO, data) or {}).get("kernel")
    later = first and match["series"] != first
    return f"{flavour}-hwe-{system.version}" if later else flavour


def _ubuntu_headers(
    kernel: str, system: System, data: DriverData
) -> tuple[str | None, dict[str, None]]:
    """Return the package whose headers follow the kernel's, or those that may be there."""
    match = _STOCK.match(kernel)
    if match is None or match["flavour"] not in UBUNTU_ROLLING:
        return f"linux-headers-{ubuntu_flavour(kernel, system, data) or 'generic'}", {}
    flavour = match["flavour"] + (match["pages"] or "")
    if match["series"] != (row(system, DISTRO, data) or {}).get("kernel"):
        return f"linux-headers-{flavour}", {}
    # The plain name is of a later series. Not each flavour has one for the first.
    lts = match["flavour"] in UBUNTU_LTS
    return None, {f"linux-headers-{flavour}-lts-{system.version}": None} if lts else {}


def prebuilt_flavour(
    node: Mapping[str, Any], system: System, wish: DriverWish, data: DriverData
) -> str | None:
    """Return the flavour for which signed modules are taken, None where DKMS has to build them."""
    if system.id != "ubuntu" or wish.dkms == "true":
        return None
    flavour = ubuntu_flavour(node["os"]["kernel"] or "", system, data)
    if flavour is None and wish.dkms == "false":
        return "generic"
    return flavour


def _ubuntu(
    node: Mapping[str, Any],
    system: System,
    branch: str,
    text: str,
    flavour: str,
    wish: DriverWish,
    data: DriverData,
) -> PackageSet:
    suffix = f"{branch}-server"
    is_open = "-open" if flavour == OPEN else ""
    packages: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    prebuilt = prebuilt_flavour(node, system, wish, data)
    if prebuilt:
        modules = f"linux-modules-nvidia-{suffix}{is_open}"
        # These have the kernel's version, not the driver's.
        packages[f"{modules}-{prebuilt}"] = None
        packages[f"nvidia-headless-no-dkms-{suffix}{is_open}"] = text
        for kernel in relevant_kernels(node):
            if ubuntu_flavour(kernel["version"], system, data):
                optional[f"{modules}-{kernel['version']}"] = None
    else:
        meta, exact = headers(node, system, data)
        if meta:
            packages[meta] = None
        optional.update(exact)
        packages[f"nvidia-headless-{suffix}{is_open}"] = text
    packages[f"nvidia-utils-{suffix}"] = text
    if wish.persistence:
        packages[f"nvidia-compute-utils-{suffix}"] = text
    if not wish.compute_only:
        packages[f"libnvidia-decode-{suffix}"] = text
        packages[f"libnvidia-encode-{suffix}"] = text
    note = f"signed modules of Ubuntu for {prebuilt} kernels" if prebuilt else "built by DKMS"
    return PackageSet(packages, optional, signed=bool(prebuilt), note=note)


def _debian(
    node: Mapping[str, Any], system: System, text: str, flavour: str, wish: DriverWish
) -> PackageSet:
    meta, exact = headers(node, system, DriverData({}, {}, {}))
    packages: dict[str, str | None] = {}
    if meta:
        packages[meta] = None
    packages["nvidia-open-kernel-dkms" if flavour == OPEN else "nvidia-kernel-dkms"] = text
    for name in ("libcuda1", "libnvidia-ml1", "libnvidia-cfg1", "libnvidia-ptxjitcompiler1"):
        packages[name] = text
    packages["nvidia-smi"] = text
    # These are versioned apart from the driver.
    packages["nvidia-modprobe"] = None
    if wish.persistence:
        packages["nvidia-persistenced"] = None
    if not wish.compute_only:
        packages["libnvidia-encode1"] = text
    return PackageSet(packages, dict(exact), note="built by DKMS")


def _nvidia(
    node: Mapping[str, Any],
    system: System,
    branch: str,
    version: str | None,
    flavour: str,
    wish: DriverWish,
    data: DriverData,
) -> PackageSet:
    text = f"{version}*" if version else f"{branch}.*"
    pinned = int(branch) >= PINNED_FROM
    suffix = "" if pinned else f"-{branch}"
    is_open = flavour == OPEN
    meta, exact = headers(node, system, data)
    packages: dict[str, str | None] = {meta: None} if meta else {}
    optional: dict[str, str | None] = dict(exact)
    # A user's own row can take the folder for another system.
    folder = str((row(system, NVIDIA, data) or {}).get("folder") or system.folder or "")
    if not wish.compute_only:
        packages[f"nvidia-open{suffix}" if is_open else f"cuda-drivers{suffix}"] = text
    elif folder.startswith("ubuntu"):
        packages[f"libnvidia-compute{suffix}"] = text
        packages[f"nvidia-dkms{suffix}-open" if is_open else f"nvidia-dkms{suffix}"] = text
        optional.update(
            {
                f"nvidia-utils{suffix}": text,
                f"nvidia-compute-utils{suffix}": text,
                "nvidia-persistenced": None,
            }
        )
    else:
        # Debian's names, which NVIDIA's folders for Debian keep from 590 on (NVIDIA's driver
        # installation guide, compute-only; the table of renamed packages is Ubuntu's alone).
        packages["nvidia-driver-cuda"] = text
        packages["nvidia-kernel-open-dkms" if is_open else "nvidia-kernel-dkms"] = text
        optional["nvidia-persistenced"] = None
    pinning: dict[str, str | None] = (
        {f"nvidia-driver-pinning-{version or branch}": None} if int(branch) >= PINNING_FROM else {}
    )
    return PackageSet(packages, optional, pinning, note="built by DKMS")


def signed_modules(
    node: Mapping[str, Any],
    system: System,
    source: str | None,
    wish: DriverWish,
    data: DriverData,
) -> Mapping[str, Any] | None:
    """Return what the source has of signed kernel modules in RPM packages, where it is wished.

    Of Ubuntu's own says :func:`prebuilt_flavour`.
    """
    given = (row(system, source or "", data) or {}).get("signed")
    if not given or wish.dkms == "true":
        return None
    # A row of the user's own can say less.
    signed = {**_SIGNED, **given}
    if signed["architectures"] and system.arch not in signed["architectures"]:
        return None
    return signed if node["secure_boot"] is True or wish.dkms == "false" else None


def module_streams(
    system: System, source: str | None, branch: str, flavour: str, data: DriverData
) -> dict[str, str]:
    """Return the streams of dnf's modules that a driver built by DKMS comes from."""
    streams = (row(system, source or "", data) or {}).get("streams") or {}
    stream = streams.get(flavour)
    return {STREAM_MODULE: str(stream).format(branch=branch)} if stream else {}


def _rpm(
    node: Mapping[str, Any],
    system: System,
    source: str,
    branch: str,
    version: str | None,
    flavour: str,
    wish: DriverWish,
    data: DriverData,
) -> PackageSet:
    text = f"{version}*" if version else f"{branch}.*"
    is_open = flavour == OPEN
    signed = signed_modules(node, system, source, wish, data)
    if signed and flavour in signed["modules"]:
        return _signed_rpm(node, branch, text, wish, signed)
    packages: dict[str, str | None] = {}
    distribution = DISTRIBUTIONS.get(system.id)
    by_dkms = distribution is None or int(branch) >= distribution.dkms_from
    if not wish.compute_only:
        packages["nvidia-open" if is_open else "cuda-drivers"] = text
    elif system.family != SUSE:
        packages["nvidia-driver-cuda"] = text
        packages["kmod-nvidia-open-dkms" if is_open else "kmod-nvidia-latest-dkms"] = text
    else:
        packages[f"nvidia-compute-utils-{suse_generation(branch)}"] = text
        packages[_suse_modules(node, branch, is_open=is_open, by_dkms=by_dkms)] = text
    if by_dkms:
        packages["dkms"] = None
    _meta, exact = headers(node, system, data)
    if wish.persistence:
        exact["nvidia-persistenced"] = text
    streams = module_streams(system, source, branch, flavour, data)
    note = "built by DKMS" if by_dkms else "built where they are installed"
    return PackageSet(packages, exact, patterns=RPM_LOCK_PATTERNS, streams=streams, note=note)


def suse_generation(branch: str) -> str:
    """Return what the packages for SUSE are called after, by the driver's branch."""
    return "G07" if int(branch) >= G07_FROM else "G06"


def _suse_modules(node: Mapping[str, Any], branch: str, *, is_open: bool, by_dkms: bool) -> str:
    """Return NVIDIA's package of the kernel modules for SUSE (BCI-dockerfile-generator)."""
    name = f"nvidia-{'open-' if is_open else ''}driver-{suse_generation(branch)}"
    return name if by_dkms else f"{name}-kmp-{_kernel_kind(node)}"


def _kernel_kind(node: Mapping[str, Any]) -> str:
    """Return the flavour of the running kernel: default of SUSE's kernel-default."""
    flavour = kernel_flavour(node["os"]["family"] or "", node["os"]["kernel"] or "")
    return flavour.partition("-")[2]


def _signed_rpm(
    node: Mapping[str, Any], branch: str, text: str, wish: DriverWish, signed: Mapping[str, Any]
) -> PackageSet:
    words = {"flavour": _kernel_kind(node), "generation": suse_generation(branch)}
    names = list(signed.get("packages") or ())
    if not names:
        names = ["nvidia-driver-cuda" if wish.compute_only else "cuda-drivers"]
    elif not wish.compute_only:
        names.extend(signed.get("more") or ())
    stream = signed.get("stream")
    return PackageSet(
        {name.format(**words): text for name in names},
        {"nvidia-persistenced": text} if wish.persistence else {},
        patterns=RPM_LOCK_PATTERNS,
        signed=True,
        streams={STREAM_MODULE: stream.format(branch=branch)} if stream else {},
        note=f"built and signed by {signed['by']}",
    )


def makes_modules(name: str) -> bool:
    """Return whether a package of ours makes the kernel modules, or draws them in."""
    return "dkms" in name or name.startswith(
        (
            *("nvidia-headless", "nvidia-open", "cuda-drivers", "linux-modules-nvidia"),
            *("kmod-nvidia", "nvidia-driver-G"),
        )
    )


def obsolete(
    present: Mapping[str, str],
    wanted: PackageSet,
    *,
    branch: str,
    old_branch: str | None,
    flavour: str,
    other_source: bool,
) -> tuple[str, ...]:
    """Return the installed packages that cannot stay beside the wanted ones.

    :param present: the driver's packages that are installed, by name.
    :param other_source: whether they come from another source than the wanted ones.
    """
    names = {*wanted.packages, *wanted.optional, *wanted.pinning}
    gone = []
    for name in present:
        plain = name.partition(":")[0]
        if plain in names:
            continue
        match = None if plain.startswith(_SHARED) else _SUFFIX.search(plain)
        of_branch = match["branch"] if match else None
        kernel = _RPM_KERNEL if wanted.patterns == RPM_LOCK_PATTERNS else _KERNEL
        other_flavour = bool(kernel.match(plain)) and ("open" in plain) != (flavour == OPEN)
        # nvidia-headless brings its parts, of which one has the flavour in its name.
        renamed = (
            old_branch != branch
            and of_branch is None
            and branch_of(present[name].partition(":")[2] or present[name]) == old_branch
            and any(_SUFFIX.search(one) for one in wanted.packages if one.startswith(_OF_DRIVER))
        )
        of_suse = _GENERATION.search(plain)
        other_generation = of_suse is not None and of_suse["generation"] != suse_generation(branch)
        # Modules that come built replace those that DKMS builds, whose package would go on.
        unsigned = wanted.signed and plain.startswith("kmod-nvidia") and plain.endswith("-dkms")
        if (
            other_source
            or other_flavour
            or unsigned
            or renamed
            or other_generation
            or (of_branch is not None and of_branch != branch)
            or plain.startswith("nvidia-driver-pinning-")
        ):
            gone.append(name)
    return tuple(sorted(gone))
