# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A signed apt repository with empty stand-in packages, served on loopback."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.testbed.paths import cache, locked

VERSIONS = ("1.17.8-1", "1.19.0-1", "1.20.0-1")
SET = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
# As in the real packages: one version for all, and the old ones in the way.
TOOLKIT = {
    "nvidia-container-toolkit": (
        "Depends: nvidia-container-toolkit-base (= {0}), libnvidia-container-tools (= {0})\n"
        "Breaks: nvidia-docker2 (<< 2.14)\n"
    ),
    "nvidia-container-toolkit-base": "",
    "libnvidia-container-tools": "Depends: libnvidia-container1 (= {0}), libstandin-helper\n",
    "libnvidia-container1": "",
}

DRIVERS = ("595.58.03-1", "595.71.05-1")
# Names and relations as in NVIDIA's repository since 590: most are strict, and some are not, so
# that apt alone would mix versions.
DRIVER = {
    "nvidia-open": (
        "Depends: nvidia-dkms-open (= {0}), libnvidia-compute (= {0}), nvidia-settings\n"
    ),
    "cuda-drivers": "Depends: nvidia-dkms (= {0}), libnvidia-compute (= {0})\n",
    "nvidia-dkms-open": "Depends: nvidia-kernel-common\nConflicts: nvidia-dkms\n",
    "nvidia-dkms": "Depends: nvidia-kernel-common\nConflicts: nvidia-dkms-open\n",
    "libnvidia-compute": "Depends: libnvidia-cfg1 (= {0})\n",
    "libnvidia-cfg1": "",
    "nvidia-kernel-common": "",
}
# As DKMS does: its build is part of the package's configuration. /fail-VERSION makes it fail.
_BUILD = """#!/bin/sh
case "$1" in configure) if [ -e /fail-{0} ]; then echo "Error! Bad return status" >&2; exit 10; fi;;
esac
"""
_PIN = """Package: *nvidia*
Pin: version 595.58.03*
Pin-Priority: 1000
"""


def build(folder: Path) -> None:
    for version in DRIVERS:
        for name, fields in DRIVER.items():
            script = _BUILD.format(version) if "dkms" in name else ""
            # What is purged must leave nothing behind, with configuration files or without.
            files = {"etc/nvidia/kernel.conf": "x\n"} if name == "nvidia-kernel-common" else {}
            _deb(folder, name, version, fields.format(version), files, script)
    pin = {"etc/apt/preferences.d/nvidia-driver-pinning": _PIN}
    _deb(folder, "nvidia-driver-pinning-595.58.03", "595.58.03-1", "", pin)
    # Of the set, in a version of its own.
    _deb(folder, "nvidia-settings", "570.133.20-1", "", {})
    for version in VERSIONS:
        for name, fields in TOOLKIT.items():
            files = {}
            if name == "nvidia-container-toolkit-base":
                files["etc/nvidia-container-runtime/config.toml"] = "disable-require = false\n"
            _deb(folder, name, version, fields.format(version), files)
    _deb(folder, "libstandin-helper", "1", "", {"etc/standin-helper.conf": "x\n"})
    # Its postinst fails while /fail is there: a package that is left half configured.
    _deb(folder, "standin-dkms", "1", "", {}, "#!/bin/sh\nif [ -e /fail ]; then exit 1; fi\n")
    _deb(folder, "standin-user", "1", "Depends: nvidia-container-toolkit (= 1.17.8-1)\n", {})
    _deb(folder, "nvidia-docker2", "2.13.0-1", "", {"etc/docker/daemon.json": "{}\n"})


def kept(name: str, sources: Iterable[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder that ``build`` fills, kept in the user's cache by what it is made from."""
    home = cache() / name
    home.mkdir(exist_ok=True)
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes())
    tree = home / digest.hexdigest()[:12]
    with locked(name):
        if not tree.is_dir():
            half = home / f"half-{os.getpid()}"
            half.mkdir()
            build(half)
            for old in home.iterdir():
                # Another checkout's tests may be served from a young one.
                if old != half and time.time() - old.stat().st_mtime > 24 * 3600:
                    shutil.rmtree(old)
            half.rename(tree)
        os.utime(tree)
    return tree


def signed(name: str, folder: str, sources: Iterable[Path], build: Callable[[Path], None]) -> Path:
    """Return a folder to serve, kept: ``stable/FOLDER`` as ``build`` fills it, signed.

    The same signed by somebody else is below ``wrong``; ``key`` and ``fingerprint`` are those of
    the right one.
    """

    def both(half: Path) -> None:
        right, wrong = half / "stable" / folder, half / "wrong" / folder
        build(right)
        shutil.copytree(right, wrong)
        for place, keys in ((wrong, half / "others"), (right, half / "keys")):
            index = place / "repodata" / "repomd.xml"
            key, fingerprint = sign_file(index, keys) if index.exists() else sign(place, keys)
            (half / "key").write_text(key)
            (half / "fingerprint").write_text(fingerprint)
            forget(keys)

    return kept(name, sources, both)


def forget(keys: Path) -> None:
    """Remove a folder of keys, and end the agent that gpg has started for it."""
    subprocess.run(["gpgconf", "--homedir", str(keys), "--kill", "all"], check=False)
    shutil.rmtree(keys)


def sign(folder: Path, keys: Path) -> tuple[str, str]:
    """Make index and signature; return the armored key and its fingerprint."""
    for command, target in (("packages", "Packages"), ("release", "Release")):
        text = _run(["apt-ftparchive", command, "."], cwd=folder)
        (folder / target).write_text(text)
    release = folder / "Release"
    gpg, key, fingerprint = _keys(keys)
    _run([*gpg, "--clearsign", "--output", str(folder / "InRelease"), str(release)])
    return key, fingerprint


def sign_file(path: Path, keys: Path) -> tuple[str, str]:
    """Lay a signature beside the file; return the armored key and its fingerprint."""
    gpg, key, fingerprint = _keys(keys)
    _run([*gpg, "--armor", "--detach-sign", "--output", f"{path}.asc", str(path)])
    return key, fingerprint


def _keys(keys: Path) -> tuple[list[str], str, str]:
    gpg = ["gpg", "--batch", "--yes", "--quiet", "--homedir", str(keys), "--passphrase", ""]
    if not keys.exists():
        keys.mkdir(mode=0o700)
        _run([*gpg, "--quick-generate-key", "standin@example.invalid", "rsa2048", "sign", "never"])
    listing = _run([*gpg, "--with-colons", "--list-keys"])
    fingerprint = next(
        line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:")
    )
    return gpg, _run([*gpg, "--armor", "--export"]), fingerprint


def serve(folder: Path) -> http.server.ThreadingHTTPServer:
    """Serve the folder on a free port of loopback, until ``shutdown`` is called."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _deb(
    folder: Path, name: str, version: str, fields: str, files: dict[str, str], script: str = ""
) -> None:
    tree = folder.parent / f"tree-{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: amd64\n"
        f"Maintainer: kubegpu.nodes <nobody@example.invalid>\n{fields}Description: stand-in\n"
    )
    if files:
        (tree / "DEBIAN" / "conffiles").write_text("".join(f"/{path}\n" for path in files))
    if script:
        (tree / "DEBIAN" / "postinst").write_text(script)
        (tree / "DEBIAN" / "postinst").chmod(0o755)
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True)
        (tree / path).write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    # Not compressed: xz takes longer than all the rest.
    _run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", str(tree), str(folder)])
    shutil.rmtree(tree)


def _run(argv: list[str], cwd: Path | None = None) -> str:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=True).stdout
