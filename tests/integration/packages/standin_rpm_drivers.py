# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signed RPM repositories with stand-in drivers: one of the distribution, one of NVIDIA.

They are built once by the real rpmbuild in a node's tree, and kept in the user's cache by the hash
of what they are made of.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.integration.packages.standin_repository import forget, kept, sign_file
from tests.testbed import elf, rpm_standins
from tests.testbed.rpm_standins import Rpm

# Whose packages are in NVIDIA's folders, and whether they come in streams there.
FOLDERS = {
    "rhel8": ("rhel", True),
    "rhel9": ("rhel", True),
    "amzn2023": ("rhel", True),
    "rhel10": ("rhel", False),
    "fedora44": ("rhel", False),
    "sles15": ("suse", False),
    "opensuse15": ("suse", False),
}
_SPEC = """Name: {name}
Version: {version}
Release: {release}
Summary: stand-in
License: none
Vendor: {vendor}
AutoReqProv: no
{fields}
%description
A stand-in made by the tests of kubegpu.nodes; nothing of NVIDIA's or of a distribution's.
%install
mkdir -p %{{buildroot}}
cp -a {tree}/. %{{buildroot}}/
{scripts}
%files
{files}
"""
_MACROS = (
    *("--define", "_topdir /tmp/rpmbuild", "--define", "__os_install_post %{nil}"),
    *("--define", "_build_id_links none", "--define", "debug_package %{nil}"),
    *("--define", "_binaries_in_noarch_packages_terminate_build 0"),
)


def web(builder: Callable[[], Path]) -> Path:
    """The folder to serve; a node's tree with rpmbuild is asked for where it is not there yet.

    ``archive/FAMILY/x86_64``, ``cuda/FOLDER/x86_64``, the same in ``wrong`` signed by somebody
    else, and ``key`` and ``fingerprint`` of the right one.
    """
    sources = (Path(__file__), Path(rpm_standins.__file__), Path(elf.__file__))
    return kept("drivers-rpm", sources, lambda half: _with_tree(builder, half))


def _with_tree(builder: Callable[[], Path], half: Path) -> None:
    root = builder()
    try:
        _build(root, half)
    finally:
        shutil.rmtree(root)


def _build(root: Path, half: Path) -> None:
    for family in ("rhel", "suse"):
        packages = list(rpm_standins.repository(family))
        archive = half / "archive" / family / "x86_64"
        _repository(root, list(rpm_standins.archive(family)), archive, "the distribution", "")
        plain = half / f"packages-{family}"
        _repository(root, packages, plain, "NVIDIA Corporation", "")
        for folder in [name for name, (whose, _m) in FOLDERS.items() if whose == family]:
            target = half / "cuda" / folder / "x86_64"
            shutil.copytree(plain, target, copy_function=os.link)
            if FOLDERS[folder][1]:
                # Of its own: the index is written again.
                shutil.rmtree(target / "repodata")
                text = rpm_standins.modules(packages)
                _index(root, target, text)
        shutil.rmtree(plain)
    wrong = half / "wrong" / "cuda"
    shutil.copytree(half / "cuda", wrong)
    for top, keys in ((half / "cuda", "keys"), (half / "archive", "keys"), (wrong, "others")):
        for index in top.rglob("repomd.xml"):
            key, fingerprint = sign_file(index, half / keys)
            if keys == "keys":
                (half / "key").write_text(key)
                (half / "fingerprint").write_text(fingerprint)
    for keys in ("keys", "others"):
        forget(half / keys)


def _repository(root: Path, packages: list[Rpm], target: Path, vendor: str, text: str) -> None:
    specs = root / "tmp" / "specs"
    specs.mkdir()
    for number, rpm in enumerate(packages):
        tree = specs / f"{number}"
        tree.mkdir()
        for path, content in rpm.files.items():
            place = tree / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
            place.chmod(0o755 if content[:2] in ("#!", b"#!") else 0o644)
        for path, goal in rpm.links.items():
            (tree / path.lstrip("/")).symlink_to(goal)
        fields = [*rpm.fields]
        if rpm.epoch:
            fields.append(f"Epoch: {rpm.epoch}")
        if rpm.architecture == "noarch":
            fields.append("BuildArch: noarch")
        names = [("%config " if p.startswith("/etc/") else "") + p for p in rpm.files]
        (specs / f"{number}.spec").write_text(
            _SPEC.format(
                name=rpm.name, version=rpm.version, release=rpm.release, vendor=vendor,
                fields="\n".join(fields), tree=f"/tmp/specs/{number}",
                scripts="".join(f"%{kind}\n{script}\n" for kind, script in rpm.scripts.items()),
                files="\n".join([*names, *rpm.links]),
            )
        )  # fmt: skip
    names = [f"/tmp/specs/{number}.spec" for number in range(len(packages))]
    _chroot(root, "rpmbuild", "-bb", "--quiet", *_MACROS, *names)
    target.mkdir(parents=True)
    for built in (root / "tmp" / "rpmbuild" / "RPMS").rglob("*.rpm"):
        shutil.move(built, target / built.name)
    for name in ("rpmbuild", "specs"):
        shutil.rmtree(root / "tmp" / name, ignore_errors=True)
    _index(root, target, text)


def _index(root: Path, target: Path, modules: str) -> None:
    place = root / "tmp" / "repository"
    shutil.copytree(target, place, copy_function=os.link)
    _chroot(root, "createrepo_c", "--quiet", "--no-database", "/tmp/repository")
    if modules:
        (root / "tmp" / "modules.yaml").write_text(modules)
        _chroot(root, "modifyrepo_c", "/tmp/modules.yaml", "/tmp/repository/repodata")
        (root / "tmp" / "modules.yaml").unlink()
    shutil.copytree(place / "repodata", target / "repodata")
    shutil.rmtree(place)


def _chroot(root: Path, *argv: str) -> None:
    done = subprocess.run(["chroot", str(root), *argv], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv[0]}: {done.stdout}{done.stderr}")
