# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signed RPM repository with stand-in packages, built by the real rpmbuild in a node's tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.integration.packages.standin_repository import SET, VERSIONS

_SPEC = """Name: {name}
Version: {version}
Release: 1
Summary: stand-in
License: none
BuildArch: noarch
{fields}
%description
Stand-in.
%install
mkdir -p %{{buildroot}}/etc/standin
echo x > %{{buildroot}}/etc/standin/{name}.conf
%files
%config(noreplace) /etc/standin/{name}.conf
"""
# As in the real packages: one version for all, and what the toolkit replaced is in the way.
_TOOLKIT = {
    "nvidia-container-toolkit": (
        "Requires: nvidia-container-toolkit-base = {0}-1\n"
        "Requires: libnvidia-container-tools = {0}-1\n"
        "Conflicts: nvidia-docker2 < 2.14\n"
    ),
    "nvidia-container-toolkit-base": "",
    "libnvidia-container-tools": (
        "Requires: libnvidia-container1 = {0}-1\nRequires: libstandin-helper\n"
    ),
    "libnvidia-container1": "",
}
BASE = "standin-base"
_MACROS = (
    *("--define", "_topdir /tmp/rpmbuild", "--define", "_rpmdir /tmp/rpms"),
    *("--define", "__os_install_post %{nil}", "--define", "_build_id_links none"),
)


def build(root: Path, folder: Path) -> None:
    """Build the packages in the node's tree, and lay the repository out in the folder."""
    wanted = [
        (name, version.rpartition("-")[0], _TOOLKIT[name].format(version.rpartition("-")[0]))
        for version in VERSIONS
        for name in SET
    ]
    wanted += [
        ("libstandin-helper", "1", ""),
        # zypper takes a node without any package for a broken one.
        (BASE, "1", ""),
        ("nvidia-docker2", "2.13.0", ""),
        ("standin-user", "1", "Requires: nvidia-container-toolkit = 1.17.8-1\n"),
    ]
    specs = root / "tmp" / "specs"
    specs.mkdir()
    for name, version, fields in wanted:
        text = _SPEC.format(name=name, version=version, fields=fields)
        (specs / f"{name}-{version}.spec").write_text(text)
    names = [f"/tmp/specs/{path.name}" for path in sorted(specs.iterdir())]
    for argv in (
        ["rpmbuild", "-bb", "--quiet", *_MACROS, *names],
        ["createrepo_c", "--quiet", "/tmp/rpms/noarch"],
    ):
        subprocess.run(["chroot", str(root), *argv], check=True, capture_output=True)
    shutil.copytree(root / "tmp" / "rpms" / "noarch", folder)
    for name in ("rpms", "rpmbuild", "specs"):
        shutil.rmtree(root / "tmp" / name, ignore_errors=True)
