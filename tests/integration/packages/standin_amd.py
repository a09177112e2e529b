# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A signed apt repository as AMD's, with a stand-in of its container toolkit.

Layout, names, versions and what the scripts do are those of github.com/ROCm/container-toolkit,
v1.3.0 (Makefile, build/debian, build/cleanup.sh, internal/cdi); the programs are stand-ins.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.integration.packages import standin_repository as standin

SUITE = "noble"
VERSIONS = ("1.2.0~24.04", "1.3.0~24.04")
_CONTROL = """Package: amd-container-toolkit
Priority: optional
Section: utils
Maintainer: AMD Inc.
Architecture: amd64
Description: stand-in of AMD Container Toolkit for Ubuntu
Version: {}
"""
_PREINST = """#!/bin/sh
set -e
case "$1" in
    install|upgrade)
        if [ ! -d "/sys/module/amdgpu/drivers/" ]; then
            echo "Error: AMD GPU driver (amdgpu) is not installed or loaded."
            exit 1
        fi
        ;;
esac
"""
_POSTINST = """#!/bin/sh
set -e
case "$1" in
    configure) echo '{}' > /var/log/gpu-tracker.json ;;
esac
"""
# AMD's uses jq, and takes its runtime and features.cdi out of the file.
_PRERM = """#!/bin/bash
rm -f /var/log/gpu-tracker.json
if [ -d "/etc/cdi" ]; then
    rm -rf "/etc/cdi"
fi
if [ -f "/etc/docker/daemon.json" ]; then
    echo '{}' > "/etc/docker/daemon.json"
fi
"""
_CTK = """#!/bin/sh
# stand-in of amd-ctk: cdi generate --output=FILE
if [ ! -d /sys/module/amdgpu/drivers ]; then
    echo "amdgpu driver unavailable" >&2
    exit 1
fi
file="${3#--output=}"
number=0
all=""
{
    printf '{\\n  "cdiVersion": "0.6.0",\\n  "kind": "amd.com/gpu",\\n  "devices": [\\n'
    for node in /dev/dri/renderD*; do
        edit="{\\"path\\": \\"$node\\"}"
        printf '    {"name": "%s", "containerEdits": {"deviceNodes": [%s]}},\\n' $number "$edit"
        all="$all$edit, "
        number=$((number + 1))
    done
    printf '    {"name": "all", "containerEdits": {"deviceNodes": [%s]}}\\n' \\
        "$all{\\"path\\": \\"/dev/kfd\\"}"
    printf '  ],\\n  "containerEdits": {}\\n}\\n'
} > "$file"
echo "Generated CDI spec: $file"
"""


def build(folder: Path) -> None:
    """Fill the folder: ``key``, ``fingerprint`` and, below ``apt``, the repository."""
    root = folder / "apt"
    pool = root / "pool"
    pool.mkdir(parents=True)
    for version in VERSIONS:
        _deb(pool, version)
    index = root / "dists" / SUITE / "main" / "binary-amd64"
    index.mkdir(parents=True)
    (index / "Packages").write_text(_run(["apt-ftparchive", "packages", "pool"], root))
    fields = {"Suite": SUITE, "Codename": SUITE, "Components": "main", "Architectures": "amd64"}
    options = [
        word
        for name, value in fields.items()
        for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")
    ]
    release = root / "dists" / SUITE / "Release"
    text = _run(["apt-ftparchive", *options, "release", f"dists/{SUITE}"], root)
    release.write_text(text)
    key, fingerprint = standin.sign_file(release, folder / "keys")
    # apt's name of a detached signature.
    release.with_name("Release.asc").rename(release.with_name("Release.gpg"))
    (folder / "key").write_text(key)
    (folder / "fingerprint").write_text(fingerprint)
    standin.forget(folder / "keys")


def _deb(pool: Path, version: str) -> None:
    tree = pool.parent / "tree"
    control = tree / "DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text(_CONTROL.format(version))
    scripts = {
        control / "preinst": _PREINST,
        control / "postinst": _POSTINST,
        control / "prerm": _PRERM,
        tree / "usr/local/bin/amd-ctk": _CTK,
        tree / "usr/local/bin/amd-container-runtime": "#!/bin/sh\n# stand-in\nexit 1\n",
    }
    for path, text in scripts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    _run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", str(tree), str(pool)], pool)
    shutil.rmtree(tree)


def _run(argv: list[str], cwd: Path) -> str:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=True).stdout
