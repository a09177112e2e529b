# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of a driver's packages in each source. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._distro.data import DISTRIBUTIONS, SUSE
from ..._distro.kernel_packages import following_headers, kernel_flavour, kernel_headers
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
from ..types import branch_of
from .decision import DecisionInput, Target
from .fabric import component_packages, needs
from .kernels import relevant_kernels
from .sources import DISTRO, NVIDIA, System, repository_entry, system_of

# Packages of one driver, which must never be of two versions. The container toolkit, Debian's
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
# Names that RPM has in addition.
RPM_LOCK_PATTERNS = (*LOCK_PATTERNS, "kmod-nvidia*", "akmod-nvidia*", "dkms-nvidia*")

_STOCK = re.compile(
    r"(?P<series>\d+\.\d+)\.[\d.-]+-(?P<flavour>[a-z]+(?:-[a-z]+)*)(?P<pages>-64k)?\Z"
)
_SUFFIX = re.compile(r"-(?P<branch>[3-9]\d\d)(?=-|\Z)")
# SUSE's packages of one generation conflict with those of another.
_GENERATION = re.compile(r"-(?P<generation>G\d\d)(?=-|\Z)")
_OF_DRIVER = ("nvidia-", "libnvidia-", "linux-modules-nvidia-", "cuda-drivers")
# Ubuntu's signatures for one kernel cover all branches and kinds.
_SHARED = "linux-signatures-nvidia-"
# Packages that provide the kernel modules or depend on those that do.
_KERNEL = re.compile(
    r"(?:nvidia-(?:headless|dkms|kernel-source|kernel-open|kernel-dkms|kernel-support|open\b"
    r"|open-kernel|driver-\d+|driver\Z|driver-open)|cuda-drivers"
    r"|linux-(?:modules|objects)-nvidia-|kmod-nvidia)"
)
_SIGNED = {"modules": (), "architectures": (), "by": "its publisher", "trusted": False}
# In RPM packages nvidia-driver has no modules.
_RPM_KERNEL = re.compile(
    r"(?:nvidia-open|cuda-drivers|a?kmod-nvidia|dkms-nvidia|nvidia-(?:open-)?driver-G\d+)"
)


@dataclass(frozen=True)
class PackageSet:
    """The packages of a driver in one source.

    ``packages`` and ``optional``: version pattern by name; None is any version. ``optional`` ones
    are installed where they exist. ``patterns``: the names that are locked together. ``streams``:
    stream by dnf module.
    """

    packages: Mapping[str, str | None] = field(default_factory=dict)
    optional: Mapping[str, str | None] = field(default_factory=dict)
    pinning: Mapping[str, str | None] = field(default_factory=dict)
    patterns: tuple[str, ...] = LOCK_PATTERNS
    signed: bool = False
    streams: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def lock_patterns(system: System) -> tuple[str, ...]:
    """Return the patterns of the package names that belong to one driver on this system."""
    return LOCK_PATTERNS if system.manager == "apt" else RPM_LOCK_PATTERNS


def package_set(inputs: DecisionInput, target: Target) -> PackageSet:
    """Return the packages of the target driver, NVLink components included.

    A target without a version means the newest version of its branch.
    """
    found = _driver_packages(inputs, target)
    more = component_packages(
        needs(inputs.node, inputs.request),
        inputs.system,
        str(target.source),
        target.branch,
        target.version,
    )
    return replace(
        found,
        packages={**found.packages, **more.packages},
        optional={**found.optional, **more.optional},
    )


def _driver_packages(inputs: DecisionInput, target: Target) -> PackageSet:
    if inputs.system.manager != "apt":
        return _rpm(inputs, target)
    if target.source == NVIDIA:
        return _nvidia_deb(inputs, target)
    if inputs.system.id == "ubuntu":
        return _ubuntu(inputs, target)
    return _debian(inputs, target)


def _version_pattern(target: Target) -> str:
    return f"{target.version}*" if target.version else f"{target.branch}.*"


def headers(
    node: Mapping[str, Any], system: System, data: DriverData
) -> tuple[str | None, dict[str, str | None]]:
    """Return the header packages: the one that follows the newest kernel, and the exact ones."""
    exact: dict[str, str | None] = {}
    for kernel in relevant_kernels(node):
        exact.update(kernel_headers(node["os"], kernel["version"]).packages)
    running = node["os"]["kernel"] or ""
    following = following_headers(running)
    if following:
        # Optional: it is in a repository of Proxmox, which may need a subscription.
        return None, {following: None, **exact}
    if system.manager != "apt":
        return None, exact
    if system.id == "ubuntu":
        meta, lts = _ubuntu_headers(running, system, data)
        return meta, {**exact, **lts}
    if system.id == "debian":
        arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(system.arch, system.arch)
        match = re.search(rf"-((?:cloud|rt)-)?{arch}\Z", running)
        kind = match.group(1) if match and match.group(1) else ""
        return f"linux-headers-{kind}{arch}", exact
    return None, exact


def ubuntu_kernel_flavour(kernel: str, system: System, data: DriverData) -> str | None:
    """Return the kernel flavour in the names of Ubuntu's packages; None for a custom kernel."""
    match = _STOCK.match(kernel)
    if match is None or match["flavour"] not in UBUNTU_FLAVOURS:
        return None
    # A kernel with pages of 64 KiB takes no module of the same kernel with small ones.
    flavour = match["flavour"] + (match["pages"] or "")
    if match["flavour"] in UBUNTU_ROLLING:
        return f"{flavour}-{match['series']}"
    first = (repository_entry(system, DISTRO, data) or {}).get("kernel")
    later = first and match["series"] != first
    return f"{flavour}-hwe-{system.version}" if later else flavour


def _ubuntu_headers(
    kernel: str, system: System, data: DriverData
) -> tuple[str | None, dict[str, None]]:
    """Return the package that follows the kernel's headers, and those that may not exist."""
    match = _STOCK.match(kernel)
    if match is None or match["flavour"] not in UBUNTU_ROLLING:
        return f"linux-headers-{ubuntu_kernel_flavour(kernel, system, data) or 'generic'}", {}
    flavour = match["flavour"] + (match["pages"] or "")
    if match["series"] != (repository_entry(system, DISTRO, data) or {}).get("kernel"):
        return f"linux-headers-{flavour}", {}
    # The plain name is that of a later series. Not every flavour has an -lts package.
    lts = match["flavour"] in UBUNTU_LTS
    return None, {f"linux-headers-{flavour}-lts-{system.version}": None} if lts else {}


def prebuilt_kernel_flavour(inputs: DecisionInput) -> str | None:
    """Return the kernel flavour of Ubuntu's signed modules; None where DKMS has to build them."""
    dkms = inputs.request.dkms
    if inputs.system.id != "ubuntu" or dkms == "true":
        return None
    flavour = ubuntu_kernel_flavour(inputs.node["os"]["kernel"] or "", inputs.system, inputs.data)
    if flavour is None and dkms == "false":
        return "generic"
    return flavour


def _ubuntu(inputs: DecisionInput, target: Target) -> PackageSet:
    node, request, version = inputs.node, inputs.request, _version_pattern(target)
    suffix = f"{target.branch}-server"
    is_open = "-open" if target.kernel_module == OPEN else ""
    packages: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    prebuilt = prebuilt_kernel_flavour(inputs)
    if prebuilt:
        modules = f"linux-modules-nvidia-{suffix}{is_open}"
        # These have the kernel's version, not the driver's.
        packages[f"{modules}-{prebuilt}"] = None
        packages[f"nvidia-headless-no-dkms-{suffix}{is_open}"] = version
        for kernel in relevant_kernels(node):
            if ubuntu_kernel_flavour(kernel["version"], inputs.system, inputs.data):
                optional[f"{modules}-{kernel['version']}"] = None
    else:
        meta, exact = headers(inputs.node, inputs.system, inputs.data)
        if meta:
            packages[meta] = None
        optional.update(exact)
        packages[f"nvidia-headless-{suffix}{is_open}"] = version
    packages[f"nvidia-utils-{suffix}"] = version
    if request.persistence:
        packages[f"nvidia-compute-utils-{suffix}"] = version
    if not request.compute_only:
        packages[f"libnvidia-decode-{suffix}"] = version
        packages[f"libnvidia-encode-{suffix}"] = version
    note = f"signed modules of Ubuntu for {prebuilt} kernels" if prebuilt else "built by DKMS"
    return PackageSet(packages, optional, signed=bool(prebuilt), note=note)


def _debian(inputs: DecisionInput, target: Target) -> PackageSet:
    request, version = inputs.request, _version_pattern(target)
    meta, exact = headers(inputs.node, inputs.system, inputs.data)
    packages: dict[str, str | None] = {}
    if meta:
        packages[meta] = None
    is_open = target.kernel_module == OPEN
    packages["nvidia-open-kernel-dkms" if is_open else "nvidia-kernel-dkms"] = version
    for name in ("libcuda1", "libnvidia-ml1", "libnvidia-cfg1", "libnvidia-ptxjitcompiler1"):
        packages[name] = version
    packages["nvidia-smi"] = version
    # The next two have versions of their own.
    packages["nvidia-modprobe"] = None
    if request.persistence:
        packages["nvidia-persistenced"] = None
    if not request.compute_only:
        packages["libnvidia-encode1"] = version
    return PackageSet(packages, dict(exact), note="built by DKMS")


def _nvidia_deb(inputs: DecisionInput, target: Target) -> PackageSet:
    system, branch, version = inputs.system, target.branch, _version_pattern(target)
    suffix = "" if int(branch) >= PINNED_FROM else f"-{branch}"
    is_open = target.kernel_module == OPEN
    meta, exact = headers(inputs.node, inputs.system, inputs.data)
    packages: dict[str, str | None] = {meta: None} if meta else {}
    optional: dict[str, str | None] = dict(exact)
    # A user's own entry can use the folder of another system.
    entry = repository_entry(system, NVIDIA, inputs.data) or {}
    folder = str(entry.get("folder") or system.folder or "")
    if not inputs.request.compute_only:
        packages[f"nvidia-open{suffix}" if is_open else f"cuda-drivers{suffix}"] = version
    elif folder.startswith("ubuntu"):
        packages[f"libnvidia-compute{suffix}"] = version
        packages[f"nvidia-dkms{suffix}-open" if is_open else f"nvidia-dkms{suffix}"] = version
        optional.update(
            {
                f"nvidia-utils{suffix}": version,
                f"nvidia-compute-utils{suffix}": version,
                "nvidia-persistenced": None,
            }
        )
    else:
        # Debian's names, which NVIDIA's folders for Debian keep from 590 on (NVIDIA's driver
        # installation guide, compute-only; the table of renamed packages is Ubuntu's alone).
        packages["nvidia-driver-cuda"] = version
        packages["nvidia-kernel-open-dkms" if is_open else "nvidia-kernel-dkms"] = version
        optional["nvidia-persistenced"] = None
    pinning: dict[str, str | None] = (
        {f"nvidia-driver-pinning-{target.version or branch}": None}
        if int(branch) >= PINNING_FROM
        else {}
    )
    return PackageSet(packages, optional, pinning, note="built by DKMS")


def signed_modules(inputs: DecisionInput, source: str | None) -> Mapping[str, Any] | None:
    """Return what the source has of signed kernel modules in RPM packages, if they are to be used.

    Ubuntu's own are handled by :func:`prebuilt_kernel_flavour`.
    """
    system, dkms = inputs.system, inputs.request.dkms
    given = (repository_entry(system, source or "", inputs.data) or {}).get("signed")
    if not given or dkms == "true":
        return None
    # A user's own entry can leave keys out.
    signed = {**_SIGNED, **given}
    if signed["architectures"] and system.arch not in signed["architectures"]:
        return None
    return signed if inputs.node["secure_boot"] is True or dkms == "false" else None


def module_streams(
    system: System, source: str | None, branch: str, kernel_module: str, data: DriverData
) -> dict[str, str]:
    """Return the streams of dnf's modules that a driver built by DKMS comes from."""
    streams = (repository_entry(system, source or "", data) or {}).get("streams") or {}
    stream = streams.get(kernel_module)
    return {STREAM_MODULE: str(stream).format(branch=branch)} if stream else {}


def _rpm(inputs: DecisionInput, target: Target) -> PackageSet:
    node, system, request = inputs.node, inputs.system, inputs.request
    branch, version = target.branch, _version_pattern(target)
    kernel_module = str(target.kernel_module)
    is_open = kernel_module == OPEN
    signed = signed_modules(inputs, target.source)
    if signed and kernel_module in signed["modules"]:
        return _signed_rpm(inputs, target, signed)
    packages: dict[str, str | None] = {}
    distribution = DISTRIBUTIONS.get(system.id)
    by_dkms = distribution is None or int(branch) >= distribution.dkms_from
    if not request.compute_only:
        packages["nvidia-open" if is_open else "cuda-drivers"] = version
    elif system.family != SUSE:
        packages["nvidia-driver-cuda"] = version
        packages["kmod-nvidia-open-dkms" if is_open else "kmod-nvidia-latest-dkms"] = version
    else:
        packages[f"nvidia-compute-utils-{suse_generation(branch)}"] = version
        packages[_suse_modules(node, branch, is_open=is_open, by_dkms=by_dkms)] = version
    if by_dkms:
        packages["dkms"] = None
    _meta, exact = headers(inputs.node, inputs.system, inputs.data)
    if request.persistence:
        exact["nvidia-persistenced"] = version
    streams = module_streams(system, target.source, branch, kernel_module, inputs.data)
    note = "built by DKMS" if by_dkms else "built where they are installed"
    return PackageSet(packages, exact, patterns=RPM_LOCK_PATTERNS, streams=streams, note=note)


def suse_generation(branch: str) -> str:
    """Return the generation in the names of the packages for SUSE, such as G06."""
    return "G07" if int(branch) >= G07_FROM else "G06"


def _suse_modules(node: Mapping[str, Any], branch: str, *, is_open: bool, by_dkms: bool) -> str:
    """Return NVIDIA's package of the kernel modules for SUSE (BCI-dockerfile-generator)."""
    name = f"nvidia-{'open-' if is_open else ''}driver-{suse_generation(branch)}"
    return name if by_dkms else f"{name}-kmp-{_suse_kernel_flavour(node)}"


def _suse_kernel_flavour(node: Mapping[str, Any]) -> str:
    """Return the flavour of the running kernel, such as ``default`` of SUSE's kernel-default."""
    flavour = kernel_flavour(node["os"]["family"] or "", node["os"]["kernel"] or "")
    return flavour.partition("-")[2]


def _signed_rpm(inputs: DecisionInput, target: Target, signed: Mapping[str, Any]) -> PackageSet:
    branch, version = target.branch, _version_pattern(target)
    placeholders = {
        "flavour": _suse_kernel_flavour(inputs.node),
        "generation": suse_generation(branch),
    }
    compute_only = inputs.request.compute_only
    names = list(signed.get("packages") or ())
    if not names:
        names = ["nvidia-driver-cuda" if compute_only else "cuda-drivers"]
    elif not compute_only:
        names.extend(signed.get("more") or ())
    stream = signed.get("stream")
    return PackageSet(
        {name.format(**placeholders): version for name in names},
        {"nvidia-persistenced": version} if inputs.request.persistence else {},
        patterns=RPM_LOCK_PATTERNS,
        signed=True,
        streams={STREAM_MODULE: stream.format(branch=branch)} if stream else {},
        note=f"built and signed by {signed['by']}",
    )


def provides_kernel_modules(name: str) -> bool:
    """Return whether a package provides the kernel modules or depends on those that do."""
    return "dkms" in name or name.startswith(
        (
            *("nvidia-headless", "nvidia-open", "cuda-drivers", "linux-modules-nvidia"),
            *("kmod-nvidia", "nvidia-driver-G"),
        )
    )


def obsolete(
    inputs: DecisionInput, target: Target, wanted: PackageSet, *, other_source: bool
) -> tuple[str, ...]:
    """Return the installed packages that cannot stay next to the wanted ones.

    :param other_source: whether they come from another source than the wanted ones.
    """
    installed = inputs.installed
    if installed is None:
        return ()
    branch, is_open = target.branch, target.kernel_module == OPEN
    names = {*wanted.packages, *wanted.optional, *wanted.pinning}
    kernel = _RPM_KERNEL if wanted.patterns == RPM_LOCK_PATTERNS else _KERNEL
    has_branches = any(_SUFFIX.search(one) for one in wanted.packages if one.startswith(_OF_DRIVER))
    gone = []
    for name, version in installed.packages.items():
        plain = name.partition(":")[0]
        if plain in names:
            continue
        match = None if plain.startswith(_SHARED) else _SUFFIX.search(plain)
        of_branch = match["branch"] if match else None
        other_modules = bool(kernel.match(plain)) and ("open" in plain) != is_open
        # nvidia-headless depends on packages of which one names the kernel modules.
        renamed = (
            installed.branch != branch
            and of_branch is None
            and branch_of(version.partition(":")[2] or version) == installed.branch
            and has_branches
        )
        of_suse = _GENERATION.search(plain)
        other_generation = of_suse is not None and of_suse["generation"] != suse_generation(branch)
        # Prebuilt modules replace those of DKMS, whose package would keep building.
        unsigned = wanted.signed and plain.startswith("kmod-nvidia") and plain.endswith("-dkms")
        if (
            other_source
            or other_modules
            or unsigned
            or renamed
            or other_generation
            or (of_branch is not None and of_branch != branch)
            or plain.startswith("nvidia-driver-pinning-")
        ):
            gone.append(name)
    return tuple(sorted(gone))


def streams_of_installed(node: Mapping[str, Any], data: DriverData) -> dict[str, str]:
    """Return the streams of dnf's modules that the installed driver comes from, by its branch.

    Empty if the facts have them, or there is no driver.
    """
    driver = node["driver"]
    branch = branch_of(driver["installed"])
    if driver.get("streams") is not None or not branch or not driver["kernel_module"]:
        return {}
    system = system_of(node, data)
    return module_streams(system, str(driver["source"]), branch, driver["kernel_module"], data)
