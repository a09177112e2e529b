# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in packages of the RPM families: drivers, CUDA, headers and DKMS.

Names, epochs, dependencies and the form of versions are those of the real packages, as far as they
are known (shared facts, drivers.md 3.4; SUSE's by its BCI-dockerfile-generator; the parts that the
driver's packages draw in are from memory: (u)). What they install says that it is a stand-in. They
are built by the real rpmbuild in a node's tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.testbed import elf

DRIVERS = {"580": ("580.95.05", "580.178.04"), "595": ("595.58.03", "595.91.07")}
TOOLKITS = {"12-9": "12.9.1", "13-0": "13.0.2"}
# The kernels whose headers the archives have: the running one and the newest.
KERNELS = {
    "rhel": ("5.14.0-427.13.1.el9_4.x86_64", "5.14.0-503.11.1.el9_5.x86_64"),
    "suse": ("6.4.0-150600.21-default", "6.4.0-150600.23.7-default"),
}
_LIB = "/usr/lib64"
# The module's streams: branch (None: the newest) and the package that makes the kernel modules.
STREAMS = {
    "580-open": ("580", "open"),
    "580-dkms": ("580", "latest"),
    "595-open": ("595", "open"),
    "595-dkms": ("595", "latest"),
    "open-dkms": (None, "open"),
    "latest-dkms": (None, "latest"),
}
_KMOD = {"open": "kmod-nvidia-open-dkms", "latest": "kmod-nvidia-latest-dkms"}
_SHARE = "/usr/share/kubegpu-standin"
# It keeps DKMS's tree as DKMS does, and builds nothing.
_DKMS = """#!/bin/sh
# STAND-IN for DKMS: add VERSION, remove VERSION, autoinstall -k KERNEL
tree=/var/lib/dkms/nvidia
build() {
    mkdir -p "$tree/$1/$2/x86_64/module" && ln -sfn "$1/$2/x86_64" "$tree/kernel-$2-x86_64"
}
case "$1" in
add)
    mkdir -p "$tree/$2/source"
    for place in /lib/modules/*; do
        if [ -d "$place/build" ]; then build "$2" "${place##*/}"; fi
    done
    ;;
remove)
    for link in "$tree"/kernel-*; do
        case "$(readlink "$link")" in "$2"/*) rm -f "$link" ;; esac
    done
    rm -rf "${tree:?}/$2"
    rmdir "$tree" 2>/dev/null
    ;;
autoinstall)
    for place in "$tree"/[0-9]*; do build "${place##*/}" "$3"; done
    ;;
esac
exit 0
"""
# Of packages whose modules are built where they are installed.
_PUT = (
    "for place in /lib/modules/*; do mkdir -p $place/updates; cp {0} $place/updates/nvidia.ko; "
    "echo updates/nvidia.ko: >$place/modules.dep; done\n"
)
_TAKE = (
    "if [ $1 = 0 ]; then rm -f /lib/modules/*/updates/nvidia.ko /lib/modules/*/modules.dep; "
    "rmdir /lib/modules/*/updates; fi; true\n"
)
_SCRIPT = "#!/bin/sh\n# STAND-IN for {0} {1}\n"


@dataclass(frozen=True)
class Rpm:
    """One package in one version. ``fields`` are more lines of a spec; ``files`` text by path."""

    name: str
    version: str
    release: str = "1"
    epoch: str = ""
    fields: tuple[str, ...] = ()
    files: Mapping[str, bytes | str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "noarch"

    @property
    def nevra(self) -> str:
        return f"{self.name}-{self.epoch or 0}:{self.version}-{self.release}.{self.architecture}"


def archive(family: str) -> Iterator[Rpm]:
    """The distribution's own archive (and EPEL's DKMS): what the driver needs of it."""
    yield Rpm("standin-base", "1", fields=("Provides: /bin/sh",))
    if family == "rhel":
        yield Rpm("dkms", "3.0.13", files={"/usr/sbin/dkms": _DKMS})
        for kernel in KERNELS["rhel"]:
            version, _dash, release = kernel.removesuffix(".x86_64").partition("-")
            build = {f"/usr/src/kernels/{kernel}/Makefile": "# stand-in\n"}
            # By this dnf knows that several may stand side by side.
            beside = ("Provides: installonlypkg(kernel)",)
            yield Rpm(
                *("kernel-devel", version, release),
                fields=beside,
                files=build,
                architecture="x86_64",
            )
            need = (f"Requires: kernel-devel = {version}-{release}",)
            yield Rpm("kernel-devel-matched", version, release, fields=need, architecture="x86_64")
    else:
        for kernel in KERNELS["suse"]:
            version, release = kernel.removesuffix("-default").split("-")
            build = {f"/usr/src/linux-{version}-{release}-obj/x86_64/default/Makefile": "# x\n"}
            # The package has one number more than the kernel's name.
            yield Rpm(
                *("kernel-default-devel", version, f"{release}.1"),
                fields=("Provides: multiversion(kernel)",),
                files=build,
                architecture="x86_64",
            )


def repository(family: str) -> Iterator[Rpm]:
    """NVIDIA's CUDA repository: both branches of drivers, CUDA, cuDNN and NCCL."""
    if family == "suse":
        # NVIDIA's folders for SUSE have it beside the drivers.
        yield Rpm("dkms", "3.0.13", files={"/usr/sbin/dkms": _DKMS})
    for versions in DRIVERS.values():
        for version in versions:
            yield from (_rhel if family == "rhel" else _suse)(version)
    for short, version in TOOLKITS.items():
        yield from _toolkit(short, version)
    for major, cudnn, nccl in (("12", "9.10.2.21", "2.27.7"), ("13", "9.13.0.50", "2.28.3")):
        yield Rpm(f"libcudnn9-cuda-{major}", cudnn)
        yield Rpm(
            f"cudnn9-cuda-{major}", cudnn, fields=(f"Requires: libcudnn9-cuda-{major} = {cudnn}",)
        )
        yield Rpm("libnccl", nccl, f"1+cuda{dict(zip(('12', '13'), ('12.9', '13.0')))[major]}")


def _libraries(version: str) -> dict[str, bytes | str]:
    return {
        f"{_LIB}/{name}.so.{version}": elf.library(name, version)
        for name in ("libcuda", "libnvidia-ml")
    }


def _links(version: str) -> dict[str, str]:
    return {f"{_LIB}/{name}.so.1": f"{name}.so.{version}" for name in ("libcuda", "libnvidia-ml")}


def _rhel(version: str) -> Iterator[Rpm]:
    def rpm(name: str, *needs: str, more: tuple[str, ...] = (), **rest: Any) -> Rpm:
        fields = (*(f"Requires: {need} = 3:{version}" for need in needs), *more)
        return Rpm(name, version, epoch="3", fields=fields, **rest)

    yield rpm("nvidia-driver-cuda-libs", files=_libraries(version), links=_links(version))
    yield rpm("nvidia-driver-libs")
    smi = {"/usr/bin/nvidia-smi": _SCRIPT.format("nvidia-smi", version)}
    yield rpm("nvidia-persistenced")
    yield rpm(
        "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-kmod-common", files=smi,
        more=("Requires: nvidia-persistenced",),
    )  # fmt: skip
    yield rpm("nvidia-driver", "nvidia-driver-libs", "nvidia-kmod-common")
    yield rpm(
        "nvidia-kmod-common", "nvidia-kmod",
        files={"/usr/lib/modprobe.d/nvidia.conf": "blacklist nouveau\n"},
    )  # fmt: skip
    yield rpm("nvidia-modprobe")
    for kernel_module, name in _KMOD.items():
        source = f"/usr/src/nvidia-{version}"
        binary = {} if kernel_module == "open" else {f"{source}/nvidia/nv-kernel.o_binary": "x\n"}
        (other,) = (one for one in _KMOD.values() if one != name)
        yield rpm(
            name, "nvidia-kmod-common",
            files={
                f"{source}/dkms.conf": f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n',
                **binary,
            },
            scripts={
                "post": f"/usr/sbin/dkms add {version}\n",
                "preun": f"test ! -x /usr/sbin/dkms || /usr/sbin/dkms remove {version}\n",
            },
            more=(
                "Requires(post): dkms", "Requires: dkms",
                f"Provides: nvidia-kmod = 3:{version}", f"Conflicts: {other}"
            ),
        )  # fmt: skip
    parts = ("nvidia-driver", "nvidia-driver-cuda", "nvidia-modprobe")
    yield rpm("nvidia-open", *parts, _KMOD["open"])
    yield rpm("cuda-drivers", *parts, _KMOD["latest"])
    yield rpm("nvidia-fabricmanager")
    yield rpm("libnvidia-nscq")


def _suse(version: str) -> Iterator[Rpm]:
    """A driver for SUSE: G06, and G07 from 590 on; NVIDIA's modules by DKMS, SUSE's come built."""
    generation = "G07" if version >= "590" else "G06"
    earlier = ("Conflicts: nvidia-compute-G06",) if generation == "G07" else ()

    def rpm(name: str, *needs: str, more: tuple[str, ...] = (), **rest: Any) -> Rpm:
        fields = (*(f"Requires: {need} = {version}" for need in needs), *more)
        return Rpm(name, version, fields=fields, **rest)

    compute = f"nvidia-compute-{generation}"
    yield rpm(compute, files=_libraries(version), links=_links(version), more=earlier)
    smi = {"/usr/bin/nvidia-smi": _SCRIPT.format("nvidia-smi", version)}
    yield rpm(f"nvidia-compute-utils-{generation}", compute, files=smi)
    yield rpm(f"nvidia-video-{generation}", compute)
    yield rpm(f"nvidia-gl-{generation}")
    yield rpm("nvidia-persistenced")
    yield rpm("nvidia-modprobe")
    signed = f"nvidia-open-driver-{generation}-signed-cuda-kmp-default"
    kinds = {
        f"nvidia-open-driver-{generation}": "open",
        signed: "open",
        f"nvidia-driver-{generation}": "proprietary",
    }
    for name, kind in kinds.items():
        if name == signed:
            module = f"{_SHARE}/{name}/nvidia.ko"
            made = elf.module("nvidia", version, KERNELS["suse"][0], "Dual MIT/GPL")
            files: dict[str, bytes | str] = {module: made}
            scripts = {"post": _PUT.format(module), "postun": _TAKE}
            by: tuple[str, ...] = ()
        else:
            source = f"/usr/src/nvidia-{version}"
            text = f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'
            binary = {} if kind == "open" else {f"{source}/nvidia/nv-kernel.o_binary": "x\n"}
            files = {f"{source}/dkms.conf": text, **binary}
            scripts = {
                "post": f"/usr/sbin/dkms add {version}\n",
                "preun": f"test ! -x /usr/sbin/dkms || /usr/sbin/dkms remove {version}\n",
            }
            by = ("Requires(post): dkms", "Requires: dkms")
        yield rpm(
            name, files=files, scripts=scripts,
            more=(
                f"Provides: nvidia-kmod = {version}",
                *([f"Provides: nvidia-open-kmod = {version}"] if kind == "open" else []),
                *(f"Conflicts: {other}" for other in kinds if other != name),
                *by,
            ),
        )  # fmt: skip
    parts = [f"nvidia-{part}-{generation}" for part in ("compute-utils", "video", "gl")]
    more = ("Requires: nvidia-persistenced", "Requires: nvidia-modprobe")
    yield rpm("nvidia-open", *parts, f"nvidia-open-driver-{generation}", more=more)
    yield rpm("cuda-drivers", *parts, f"nvidia-driver-{generation}", more=more)


def _toolkit(short: str, version: str) -> Iterator[Rpm]:
    home = f"/usr/local/cuda-{short.replace('-', '.')}"
    config = f"cuda-toolkit-{short}-config-common"
    conf = {f"/etc/ld.so.conf.d/988_cuda-{short}.conf": f"{home}/targets/x86_64-linux/lib\n"}
    yield Rpm(config, version, files=conf)
    nvcc = {
        f"{home}/bin/nvcc": _SCRIPT.format("nvcc", version),
        f"{home}/version.json": f'{{"cuda": {{"version": "{version}"}}}}\n',
    }
    yield Rpm(f"cuda-nvcc-{short}", version, fields=(f"Requires: {config}",), files=nvcc)
    library = {
        f"{home}/targets/x86_64-linux/lib/libcudart.so.{version}": elf.library("libcudart", version)
    }
    yield Rpm(f"cuda-cudart-{short}", version, fields=(f"Requires: {config}",), files=library)
    parts = (f"cuda-nvcc-{short}", f"cuda-cudart-{short}")
    yield Rpm(
        f"cuda-toolkit-{short}", version,
        fields=tuple(f"Requires: {part} >= {version}" for part in parts),
    )  # fmt: skip


def modules(packages: list[Rpm]) -> str:
    """The modules.yaml of NVIDIA's repositories for RHEL 8 and 9: a stream for each kind."""
    found = []
    newest = max(DRIVERS)
    kmods = set(_KMOD.values())
    metas = {"open": "nvidia-open", "latest": "cuda-drivers"}
    modular = {*kmods, *metas.values()}
    of_driver = [one for one in packages if one.epoch == "3"]
    for number, (stream, (branch, kind)) in enumerate(STREAMS.items()):
        mine = [
            one.nevra
            for one in of_driver
            if one.version.startswith(f"{branch or newest}.")
            and (one.name not in modular or one.name in (_KMOD[kind], metas[kind]))
        ]
        rpms = "".join(f"    - {name}\n" for name in mine)
        found.append(
            "---\ndocument: modulemd\nversion: 2\ndata:\n  name: nvidia-driver\n"
            f"  stream: {stream}\n  version: 2026110100000{number}\n  context: standin{number}\n"
            "  arch: x86_64\n  summary: stand-in\n  description: stand-in\n"
            "  license:\n    module: [MIT]\n"
            f"  profiles:\n    default:\n      rpms: [{metas[kind]}]\n"
            f"  artifacts:\n    rpms:\n{rpms}"
        )
    return "".join(found)
