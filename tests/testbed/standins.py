# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in packages of Ubuntu's archive and NVIDIA's CUDA repository: drivers and CUDA.

Names, dependencies, conflicts and the form of versions are those of the real packages, as far as
they are known; what they install says that it is a stand-in. Both sources have two branches of
drivers, and two versions of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.testbed import elf
from tests.testbed.paths import HERE
from tests.testbed.shell import run

SCRIPTS = HERE / "files" / "standins"
DRIVERS = {"580": ("580.95.05", "580.178.04"), "595": ("595.58.03", "595.91.07")}
KERNELS = ("6.8.0-85-generic", "6.8.0-90-generic")
TOOLKITS = {"12.9": "12.9.1", "13.0": "13.0.2"}
_LIB = "usr/lib/x86_64-linux-gnu"
_DESKTOP = ("libnvidia-encode", "libnvidia-gl", "nvidia-utils")
_SHARE = "usr/share/kubegpu-standin"
_LICENCES = {"": "NVIDIA", "-open": "Dual MIT/GPL"}
# Enough to fill a small file system.
_SOURCES = b"stand-in\n" * 500_000

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Deb:
    """One package in one version. Values of ``links`` are targets; ``scripts`` are dpkg's."""

    name: str
    version: str
    depends: tuple[str, ...] = ()
    # Names that only one installed package may provide.
    alone: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    files: Files = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    component: str = "main"


def build(deb: Deb, work: Path, target: Path) -> None:
    """Build one package below work and put it into target."""
    tree = work / f"{deb.name}_{deb.version}"
    control = tree / "DEBIAN"
    control.mkdir(parents=True)
    notice = f"{_SHARE}/{deb.name}/README"
    text = b"A stand-in made by the testbed of kubegpu.nodes; nothing of NVIDIA's or Ubuntu's.\n"
    for name, content in {notice: text, **deb.files}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if content.startswith(b"#!") else 0o644)
    for name, goal in deb.links.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(goal)
    for name, script in deb.scripts.items():
        (control / name).write_text(f"#!/bin/sh\nset -e\n{script}")
        (control / name).chmod(0o755)
    settings = "".join(f"/{name}\n" for name in sorted(deb.files) if name.startswith("etc/"))
    if settings:
        (control / "conffiles").write_text(settings)
    fields = {
        "Package": deb.name,
        "Version": deb.version,
        "Architecture": "amd64",
        "Section": f"{deb.component}/misc",
        "Priority": "optional",
        "Maintainer": _maker(deb),
        "Depends": ", ".join(deb.depends),
        "Provides": ", ".join((*deb.alone, *deb.provides)),
        "Conflicts": ", ".join(deb.alone),
        "Description": f"stand-in for {deb.name} of the kubegpu.nodes testbed",
    }
    (control / "control").write_text(
        "".join(f"{key}: {value}\n" for key, value in fields.items() if value)
    )
    for path in (tree, *(p for p in tree.rglob("*") if p.is_dir() and not p.is_symlink())):
        path.chmod(0o755)
    target.mkdir(parents=True, exist_ok=True)
    run(["dpkg-deb", "--build", "-Zgzip", "--root-owner-group", str(tree), str(target)])


def _maker(deb: Deb) -> str:
    """Whose package is stood in for, as the real one says it: facts tell the source by that."""
    if re.search(r"-[01]ubuntu1\Z", deb.version) or deb.name.startswith("cuda-"):
        return "NVIDIA (stand-in) <cudatools@nvidia.com>"
    return "Ubuntu Kernel Team (stand-in) <kernel-team@lists.ubuntu.com>"


def archive() -> Iterator[Deb]:
    """Ubuntu 24.04's own archive."""
    for kernel in KERNELS:
        yield from _kernel(kernel)
    newest = KERNELS[-1]
    for name in ("headers", "image"):
        version = _kernel_version(newest)
        yield Deb(f"linux-{name}-generic", version, (f"linux-{name}-{newest} (= {version})",))
    yield Deb(
        "dkms",
        "3.0.11-1ubuntu13",
        files={"usr/sbin/dkms": _script("dkms"), "etc/dkms/framework.conf": b"# stand-in\n"},
    )
    for branch, versions in DRIVERS.items():
        # Ubuntu 24.04 has 595 in multiverse, and the modules of both in restricted.
        component = "restricted" if branch == "580" else "multiverse"
        for number, version in enumerate(versions):
            full = f"{version}-0ubuntu0.24.04.1"
            yield from _driver(f"-{branch}-server", version, full, component)
            for kind, licence in _LICENCES.items():
                yield from _prebuilt(branch, kind, licence, version, full, number)


def repository() -> Iterator[Deb]:
    """NVIDIA's CUDA repository for Ubuntu 24.04; from 590 on the names have no branch.

    The packages that pin are there from 580 on.
    """
    for branch, versions in DRIVERS.items():
        suffix = f"-{branch}" if int(branch) < 590 else ""
        for version in versions:
            full = f"{version}-{'0' if suffix else '1'}ubuntu1"
            yield from _driver(suffix, version, full, "main")
            for name, kind in (("nvidia-open", "-open"), ("cuda-drivers", "")):
                driver = f"nvidia-driver{suffix}{kind}"
                yield Deb(f"{name}{suffix}", full, (f"{driver} (= {full})",))
            yield _pin(version, full)
        yield _pin(branch, f"{versions[-1]}-{'0' if suffix else '1'}ubuntu1")
    for short, version in TOOLKITS.items():
        yield from _toolkit(short, version)
    for major, cudnn, nccl in (
        ("12", "9.10.2.21-1", "2.27.7-1+cuda12.9"),
        ("13", "9.13.0.50-1", "2.28.3-1+cuda13.0"),
    ):
        file = f"{_LIB}/libcudnn.so.{cudnn.split('-', maxsplit=1)[0]}"
        content = elf.library("libcudnn", cudnn)
        name = f"libcudnn9-cuda-{major}"
        yield Deb(name, cudnn, alone=("libcudnn9",), files={file: content})
        yield Deb(f"libcudnn9-dev-cuda-{major}", cudnn, (f"{name} (= {cudnn})",))
        headers = f"libcudnn9-headers-cuda-{major}"
        yield Deb(headers, cudnn)
        yield Deb(f"cudnn9-cuda-{major}", cudnn, (f"{name} (= {cudnn})",))
        version = nccl.split("-", maxsplit=1)[0]
        files = {f"{_LIB}/libnccl.so.{version}": elf.library("libnccl", version)}
        yield Deb("libnccl2", nccl, files=files)
        yield Deb("libnccl-dev", nccl, (f"libnccl2 (= {nccl})",))


def _script(name: str) -> bytes:
    return (SCRIPTS / name).read_bytes()


def _hooks(name: str) -> dict[str, str]:
    return {path.suffix[1:]: path.read_text() for path in SCRIPTS.glob(f"{name}.p*")}


def _kernel_version(kernel: str) -> str:
    base = kernel.removesuffix("-generic")
    return f"{base}.{int(base.rsplit('-', 1)[1]) + 1}"


def _kernel(kernel: str) -> Iterator[Deb]:
    version, base = _kernel_version(kernel), kernel.removesuffix("-generic")
    modules = f"lib/modules/{kernel}"
    yield Deb(
        f"linux-image-{kernel}",
        version,
        files={
            f"boot/vmlinuz-{kernel}": b"stand-in\n",
            f"{modules}/modules.order": b"",
            f"{modules}/modules.builtin": b"",
            f"{modules}/modules.builtin.modinfo": b"",
        },
        scripts={"postinst": f"/sbin/depmod -a {kernel}\n"},
    )
    # The kernel's own amdgpu, which has no version.
    own = elf.module("amdgpu", "", kernel, "GPL and additional rights", srcversion="0A0A0A0A")
    yield Deb(
        f"linux-modules-extra-{kernel}",
        version,
        files={f"{modules}/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko": own},
        scripts=dict.fromkeys(("postinst", "postrm"), f"/sbin/depmod -a {kernel}\n"),
    )
    yield Deb(f"linux-headers-{base}", version, files={f"usr/src/linux-headers-{base}/Kbuild": b""})
    yield Deb(
        f"linux-headers-{kernel}",
        version,
        (f"linux-headers-{base} (= {version})",),
        files={f"usr/src/linux-headers-{kernel}/Makefile": b"# stand-in\n"},
        links={f"{modules}/build": f"/usr/src/linux-headers-{kernel}"},
        # As /etc/kernel/header_postinst.d/dkms does.
        scripts={"postinst": f"test ! -x /usr/sbin/dkms || /usr/sbin/dkms autoinstall {kernel}\n"},
    )


def _driver(suffix: str, version: str, full: str, component: str) -> Iterator[Deb]:
    """A driver in one version: what both sources have under names with another suffix."""

    def deb(name: str, *needs: str, **rest: Any) -> Deb:
        exact = tuple(f"{need} (= {full})" for need in needs)
        return Deb(name, full, exact, component=component, **rest)

    compute = f"libnvidia-compute{suffix}"
    libraries = {
        f"{_LIB}/{name}.so.{version}": elf.library(name, version)
        for name in ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler")
    }
    yield deb(
        compute,
        files=libraries,
        links={
            f"{_LIB}/{name}.so.1": f"{name}.so.{version}" for name in ("libcuda", "libnvidia-ml")
        },
        alone=("libnvidia-compute",),
        provides=("libcuda1",),
    )
    for name in ("cfg1", "decode", "encode", "gl"):
        file = f"{_LIB}/libnvidia-{name}.so.{version}"
        contents = {file: elf.library(f"libnvidia-{name}", version)}
        yield deb(f"libnvidia-{name}{suffix}", files=contents, alone=(f"libnvidia-{name}",))
    smi = {"usr/bin/nvidia-smi": _script("nvidia-smi")}
    yield deb(f"nvidia-utils{suffix}", compute, files=smi, alone=("nvidia-utils",))
    # Ubuntu's names have the branch; NVIDIA's have none from 580 on.
    branch = suffix.removesuffix("-server") if suffix.endswith("-server") else ""
    yield from _fabric(branch, version, deb)
    utilities = f"nvidia-compute-utils{suffix}" if suffix else "nvidia-persistenced"
    unit = _script("nvidia-persistenced.service")
    if suffix.endswith("-server"):
        # Ubuntu's unit has no section Install: a rule of udev starts it.
        unit = unit.partition(b"[Install]")[0].rstrip() + b"\n"
    yield deb(
        utilities,
        compute,
        files={
            "usr/bin/nvidia-persistenced": _script("nvidia-persistenced"),
            "usr/lib/systemd/system/nvidia-persistenced.service": unit,
        },
        scripts=_hooks("persistenced"),
        alone=("nvidia-compute-utils",),
    )
    yield deb(
        f"nvidia-kernel-common{suffix}",
        files={
            "usr/lib/udev/rules.d/71-nvidia.rules": b"# stand-in\n",
            "usr/lib/modprobe.d/nvidia-graphics-drivers.conf": b"blacklist nouveau\n"
            b"blacklist lbm-nouveau\nalias nouveau off\nalias lbm-nouveau off\n",
        },
        scripts={"postinst": "update-initramfs -u\n", "postrm": "update-initramfs -u\n"},
        alone=("nvidia-kernel-common",),
    )
    firmware = f"nvidia-firmware{suffix}-{version}" if suffix else "nvidia-firmware"
    yield deb(firmware, files={f"usr/lib/firmware/nvidia/{version}/gsp_ga10x.bin": b"stand-in\n"})
    for kind, licence in _LICENCES.items():
        source = f"nvidia-kernel-source{suffix}{kind}"
        modules = {
            f"{_SHARE}/{source}/{kernel}/{name}.ko": elf.module(name, version, kernel, licence)
            for kernel in KERNELS
            for name in ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm")
        }
        folder = f"usr/src/nvidia-{version}"
        configuration = f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'.encode()
        contents = {
            f"{folder}/dkms.conf": configuration,
            f"{folder}/sources": _SOURCES,
            **({} if kind else {f"{folder}/nvidia/nv-kernel.o_binary": b"stand-in\n"}),
            **modules,
        }
        yield deb(source, files=contents, alone=("nvidia-kernel-source",))
        dkms = f"nvidia-dkms{suffix}{kind}"
        made = deb(
            dkms,
            *(source, f"nvidia-kernel-common{suffix}", firmware),
            alone=("nvidia-dkms-kernel",),
            scripts={
                "postinst": f"/usr/sbin/dkms standin-add {version} /{_SHARE}/{source}\n"
                f"/usr/sbin/dkms standin-build {version}\n",
                "prerm": f"test ! -x /usr/sbin/dkms || /usr/sbin/dkms standin-remove {version}\n",
            },
        )
        yield replace(made, depends=("dkms", *made.depends))
        libs = (compute, f"libnvidia-cfg1{suffix}", f"libnvidia-decode{suffix}")
        if suffix:
            headless = f"nvidia-headless-no-dkms{suffix}{kind}"
            common = f"nvidia-kernel-common{suffix}"
            yield deb(headless, *libs, utilities, common, source, firmware)
            yield deb(f"nvidia-headless{suffix}{kind}", headless, dkms)
        more = tuple(f"{name}{suffix}" for name in _DESKTOP)
        yield deb(f"nvidia-driver{suffix}{kind}", *libs, *more, dkms, utilities)
    if not suffix:
        yield deb("nvidia-modprobe", files={"usr/bin/nvidia-modprobe": b"#!/bin/sh\nexit 0\n"})


def _fabric(suffix: str, version: str, deb: Callable[..., Deb]) -> Iterator[Deb]:
    """What goes with NVSwitches."""
    daemon = _script("nv-fabricmanager").replace(b"@VERSION@", version.encode())
    yield deb(
        f"nvidia-fabricmanager{suffix}",
        files={
            "usr/bin/nv-fabricmanager": daemon,
            "usr/lib/systemd/system/nvidia-fabricmanager.service": _script(
                "nvidia-fabricmanager.service"
            ),
        },
        scripts=_hooks("fabricmanager"),
        alone=("nvidia-fabric-manager",),
    )
    library = f"{_LIB}/libnvidia-nscq.so.{version}"
    yield deb(
        f"libnvidia-nscq{suffix}",
        files={library: elf.library("libnvidia-nscq", version)},
        alone=("libnvidia-nscq",),
    )


def _prebuilt(
    branch: str, kind: str, licence: str, version: str, full: str, number: int
) -> Iterator[Deb]:
    """Ubuntu's signed modules: their version is the kernel's, not the driver's."""
    common = f"nvidia-kernel-common-{branch}-server"
    stem = f"linux-modules-nvidia-{branch}-server{kind}"
    for kernel in KERNELS:
        ours = _kernel_version(kernel) + (f"+{number}" if number else "")
        folder = f"lib/modules/{kernel}/kernel/nvidia-{branch}srv{kind}"
        yield Deb(
            f"{stem}-{kernel}",
            ours,
            (f"linux-image-{kernel}", f"{common} (>= {version})", f"{common} (<= {version}-1)"),
            provides=(f"nvidia-prebuilt-kernel-{kernel}",),
            files={
                f"{folder}/{name}.ko": elf.module(name, version, kernel, licence)
                for name in ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm")
            },
            scripts=dict.fromkeys(("postinst", "postrm"), f"/sbin/depmod -a {kernel}\n"),
            component="restricted",
        )
    yield Deb(
        f"{stem}-generic",
        ours,
        (f"{stem}-{KERNELS[-1]} (= {ours})", f"{common} (>= {full})"),
        component="restricted",
    )


def _pin(what: str, full: str) -> Deb:
    """The package that keeps apt to a branch or a version, by a file of preferences."""
    names = "/nvidia|libnvidia|cuda-drivers/"
    text = f"# stand-in\nPackage: {names}\nPin: version {what}*\nPin-Priority: 1000\n"
    return Deb(
        f"nvidia-driver-pinning-{what}",
        full,
        alone=("nvidia-driver-pinning",),
        files={"etc/apt/preferences.d/nvidia-driver-pinning": text.encode()},
    )


def _toolkit(short: str, version: str) -> Iterator[Deb]:
    dashed, home = short.replace(".", "-"), f"usr/local/cuda-{short}"
    major = dashed.partition("-")[0]
    full = f"{version}-1"
    config = f"cuda-toolkit-{dashed}-config-common"
    priority = short.replace(".", "")
    names = " ".join(("cuda", f"cuda-{major}"))
    yield Deb(
        "cuda-toolkit-config-common",
        full,
        files={
            "etc/ld.so.conf.d/000_cuda.conf": b"/usr/local/cuda/targets/x86_64-linux/lib\n",
        },
    )
    yield Deb(
        f"cuda-toolkit-{major}-config-common",
        full,
        files={
            f"etc/ld.so.conf.d/{1000 - int(major)}_cuda-{major}.conf": (
                f"/usr/local/cuda-{major}/targets/x86_64-linux/lib\n".encode()
            )
        },
    )
    yield Deb(
        config,
        full,
        ("cuda-toolkit-config-common", f"cuda-toolkit-{major}-config-common"),
        scripts={
            "postinst": f"for name in {names}; do\n    update-alternatives --install "
            f"/usr/local/$name $name /{home} {priority}\ndone\n",
            "prerm": f"for name in {names}; do\n    update-alternatives --remove $name /{home}\n"
            "done\n",
        },
    )
    yield Deb(
        f"cuda-nvcc-{dashed}",
        full,
        (config,),
        files={
            f"{home}/bin/nvcc": _script("nvcc").replace(b"@VERSION@", version.encode()),
            f"{home}/version.json": f'{{"cuda": {{"version": "{version}"}}}}\n'.encode(),
        },
    )
    yield Deb(
        f"cuda-cudart-{dashed}",
        full,
        (config,),
        files={
            f"{home}/targets/x86_64-linux/lib/libcudart.so.{version}": elf.library(
                "libcudart", version
            )
        },
        links={f"{home}/lib64": "targets/x86_64-linux/lib"},
    )
    parts = (f"cuda-nvcc-{dashed}", f"cuda-cudart-{dashed}")
    yield Deb(f"cuda-toolkit-{dashed}", full, tuple(f"{part} (>= {full})" for part in parts))
