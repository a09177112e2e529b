# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the drivers' fleet is served beside the toolkit's packages.

``debian``: Debian's real packages. ``ubuntu``: the stand-in for Ubuntu's archive. ``cuda``: the
stand-in for NVIDIA's CUDA repository, and the same signed by another key in ``wrong-key/cuda``.
``amdgpu``: the stand-ins for AMD's repositories, a folder for each release.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed import amd_standins, debian, elf, standins
from tests.testbed.fleet import NAME, chosen
from tests.testbed.paths import cache
from tests.testbed.shell import run, say
from tests.testbed.signing import sign
from tests.testbed.tools import need

CUDA = "cuda/ubuntu2404/x86_64"
KEY = "3bf863cc.pub"
_UBUNTU = "noble"
_OWNERS = {"debian": "Debian mirror", "ubuntu": "Ubuntu stand-in", "cuda": "CUDA stand-in"}
_AMD = "AMD stand-in"


def beside(toolkit: Path) -> Path:
    """Build what is not there yet; the folder to serve, with the toolkit's repository in it."""
    need(["dpkg-deb", "apt-ftparchive", "gpg"])
    home = cache() / "drivers"
    home.mkdir(exist_ok=True)
    parts = {
        **{path.name: path for path in toolkit.iterdir() if path.name != "wrong-key"},
        **_built_once(home, "standins", _standins_key(), _build_standins),
    }
    if any(node.archive == "debian" for node in chosen()):
        # Downloaded: hundreds of MB.
        parts |= _built_once(home, "debian", _debian_key(), _build_debian)
    served = home / f"served-{NAME}"
    shutil.rmtree(served, ignore_errors=True)
    served.mkdir()
    for name, path in parts.items():
        if name != "wrong-key":
            (served / name).symlink_to(path)
    wrong = served / "wrong-key"
    wrong.mkdir()
    for path in [*(toolkit / "wrong-key").iterdir(), *parts["wrong-key"].iterdir()]:
        (wrong / path.name).symlink_to(path)
    return served


def fingerprint(served: Path, where: str) -> str:
    """The fingerprint of the key that signed a part."""
    return (served / where / "fingerprint").read_text().strip()


def _built_once(home: Path, name: str, key: str, build: Callable[[Path], None]) -> dict[str, Path]:
    tree = home / f"{name}.{key}"
    if not tree.is_dir():
        half = home / f"{name}.half"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        build(half)
        for old in home.glob(f"{name}.*"):
            # Another checkout's fleet may be served from a young one.
            if old != half and time.time() - old.stat().st_mtime > 24 * 3600:
                shutil.rmtree(old)
        half.rename(tree)
    return {path.name: path for path in tree.iterdir()}


def _standins_key() -> str:
    digest = hashlib.sha256()
    own = [Path(__file__), Path(standins.__file__), Path(elf.__file__)]
    own.append(Path(amd_standins.__file__))
    for path in (*own, *sorted(standins.SCRIPTS.iterdir())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _debian_key() -> str:
    names = sorted(path.name for path in debian.archives().values())
    return hashlib.sha256(f"1 {names}".encode()).hexdigest()[:12]


def _build_standins(half: Path) -> None:
    say("repository: building the stand-ins of Ubuntu's archive and NVIDIA's CUDA repository")
    work = half / "work"
    for deb in standins.archive():
        _once(deb, work / "ubuntu", half / "ubuntu" / "pool" / deb.component)
    _index_archive(half / "ubuntu", _UBUNTU, ("main", "restricted", "multiverse"), "Ubuntu")
    sign(half / "ubuntu", half / "ubuntu" / "dists" / _UBUNTU, _OWNERS["ubuntu"])
    flat = half / CUDA
    for deb in standins.repository():
        _once(deb, work / "cuda", flat)
    shutil.rmtree(work)
    _index(flat, ".")
    _release(flat, "NVIDIA stand-in")
    shutil.copytree(half / "cuda", half / "wrong-key" / "cuda")
    for where, owner in ((half, _OWNERS["cuda"]), (half / "wrong-key", "somebody else")):
        sign(where / "cuda", where / CUDA, owner)
        shutil.copy(where / "cuda" / "gpgkey", where / CUDA / KEY)
    for release in amd_standins.RELEASES:
        _build_amd(half / "amdgpu", release)


def _build_amd(half: Path, release: str) -> None:
    top, work = half / release / "ubuntu", half / "work"
    for deb in amd_standins.repository(release):
        standins.build(deb, work, top / "pool" / _UBUNTU / "main")
    shutil.rmtree(work)
    _index_archive(top, _UBUNTU, ("main",), "AMD")
    sign(half, top / "dists" / _UBUNTU, _AMD)


def _once(deb: standins.Deb, work: Path, target: Path) -> None:
    # Some are of both toolkits; the newer one stands for all.
    if not (work / f"{deb.name}_{deb.version}").exists():
        standins.build(deb, work, target)


def _build_debian(half: Path) -> None:
    say("repository: indexing Debian's packages")
    top = half / "debian"
    for suite, tree in debian.archives().items():
        pool = top / "pool" / suite
        # Links: the packages are big, and lie in the cache already.
        shutil.copytree(tree / "pool", pool, copy_function=os.link)
        _index_archive(top, suite, debian.COMPONENTS, "Debian")
        sign(top, top / "dists" / suite, _OWNERS["debian"])


def _index_archive(top: Path, suite: str, components: Iterable[str], label: str) -> None:
    """Lay out dists/SUITE as in a distribution's archive; packages are below pool already."""
    pools = "pool" if label == "Ubuntu" else f"pool/{suite}"
    names = list(components)
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda name: _component(top, suite, f"{pools}/{name}", name), names))
    _release(top / "dists" / suite, label, suite, names)


def _component(top: Path, suite: str, pool: str, component: str) -> None:
    target = top / "dists" / suite / component / "binary-amd64"
    target.mkdir(parents=True)
    (top / pool).mkdir(parents=True, exist_ok=True)
    _index(top, pool, target)


def _index(top: Path, pool: str, target: Path | None = None) -> None:
    text = run(["apt-ftparchive", "packages", pool], cwd=top, timeout=900).stdout
    path = (target or top) / "Packages"
    path.write_text(text)
    run(["gzip", "--keep", "--no-name", str(path)])


def _release(folder: Path, label: str, suite: str = "", components: Iterable[str] = ()) -> None:
    fields = {"Origin": label, "Label": label, "Architectures": "amd64"}
    if suite:
        fields |= {"Suite": suite, "Codename": suite, "Components": " ".join(components)}
    options = [f"-o=APT::FTPArchive::Release::{key}={value}" for key, value in fields.items()]
    text = run(["apt-ftparchive", *options, "release", "."], cwd=folder).stdout
    (folder / "Release").write_text(text)
