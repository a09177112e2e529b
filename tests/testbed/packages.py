# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the stand-in packages of the NVIDIA Container Toolkit, and of DCGM.

Names, versions, paths and dependencies are those of the real packages, and so is what they make and
leave behind (NVIDIA/nvidia-container-toolkit, packaging/debian and deployments). The
programs say that they are stand-ins.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.paths import HERE
from tests.testbed.shell import run

TREES = HERE / "files" / "packages"
VERSIONS = ("1.17.8-1", "1.19.0-1", "1.20.1-1")
# The versions of DCGM and of its exporter that are released together.
DCGM = (("1:4.5.3-1", "4.8.2-1"), ("1:4.6.1-1", "4.8.4-1"))


@dataclass(frozen=True)
class Package:
    """One package in one version; trees are the folders below files/packages that fill it."""

    name: str
    version: str
    depends: tuple[str, ...]
    trees: tuple[str, ...]


def packages() -> Iterator[Package]:
    """All of them."""
    for version in VERSIONS:
        exact = f"(= {version})"
        # From 1.18 on the toolkit keeps the CDI specification fresh itself.
        release = tuple(map(int, version.split(".")[:2]))
        refresh: tuple[str, ...] = ("refresh",) if release >= (1, 18) else ()
        if release == (1, 19):
            refresh += ("refresh-1.19",)
        if version.startswith("1.20.1"):
            # The first release that has a rule of udev start the service.
            refresh += ("refresh-1.20.1",)
        base, tools = "nvidia-container-toolkit-base", "libnvidia-container-tools"
        yield Package("libnvidia-container1", version, (), ())
        yield Package(tools, version, (f"libnvidia-container1 {exact}",), (tools,))
        yield Package(base, version, (), (base, *refresh))
        yield Package(
            "nvidia-container-toolkit",
            version,
            (f"{base} {exact}", f"{tools} {exact}", f"libnvidia-container1 {exact}"),
            ("nvidia-container-toolkit",),
        )
    for dcgm, exporter in DCGM:
        core = "datacenter-gpu-manager-4-core"
        yield Package(core, dcgm, (), (core,))
        proprietary = "datacenter-gpu-manager-4-proprietary"
        yield Package(proprietary, dcgm, (f"{core} (= {dcgm})",), ())
        name = "datacenter-gpu-manager-exporter"
        yield Package(name, exporter, (f"{core} (>= 1:4.0.0)",), (name,))
    yield Package(
        "nvidia-docker2",
        "2.14.0-1",
        ("nvidia-container-toolkit (>= 1.14.0)", "docker.io | docker-ce"),
        ("nvidia-docker2",),
    )


def build(package: Package, architecture: str, work: Path, target: Path) -> None:
    """Build one package below work and put it into target."""
    tree = work / f"{package.name}-{package.version}"
    for source in package.trees:
        shutil.copytree(TREES / source, tree, dirs_exist_ok=True)
    for path in tree.rglob("*"):
        if path.is_file() and "@VERSION@" in (text := path.read_text()):
            path.write_text(text.replace("@VERSION@", package.version.split("-")[0].split(":")[-1]))
    notice = tree / "usr" / "share" / "kubegpu-standin" / package.name
    notice.parent.mkdir(parents=True)
    notice.write_text("A stand-in made by the testbed of kubegpu.nodes; nothing of NVIDIA's.\n")
    control = tree / "DEBIAN"
    control.mkdir(exist_ok=True)
    conffiles = sorted(p for p in (tree / "etc").rglob("*") if p.is_file())
    if conffiles:
        lines = "".join(f"/{path.relative_to(tree)}\n" for path in conffiles)
        (control / "conffiles").write_text(lines)
    fields = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": architecture,
        "Section": "utils",
        "Priority": "optional",
        "Maintainer": "kubegpu.nodes testbed <testbed@example.invalid>",
        "Depends": ", ".join(package.depends),
        "Description": f"stand-in for {package.name} of the kubegpu.nodes testbed",
    }
    (control / "control").write_text(
        "".join(f"{key}: {value}\n" for key, value in fields.items() if value)
    )
    for path in (tree, *(p for p in tree.rglob("*") if p.is_dir())):
        path.chmod(0o755)
    run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(target)])
