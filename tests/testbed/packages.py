# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in packages of the container toolkit, with the names and dependencies of the real ones."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.testbed.paths import HERE
from tests.testbed.shell import run

VERSIONS = ("1.17.8-1", "1.19.0-1", "1.20.0-1")
DOCKER2_VERSION = "2.14.0-1"
_CDI_REFRESH_SINCE = (1, 18)

_SERVICE = """[Unit]
Description=Refresh the CDI specification (stand-in)

[Service]
Type=oneshot
RemainAfterExit=no
ExecCondition=/usr/bin/test -e /proc/driver/nvidia/version
ExecStart=/usr/bin/nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml

[Install]
WantedBy=multi-user.target
"""
_PATH = """[Unit]
Description=Refresh the CDI specification when the driver changes (stand-in)

[Path]
PathChanged=/usr/bin/nvidia-ctk

[Install]
WantedBy=multi-user.target
"""
_POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl enable --quiet --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service
fi
"""
_PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --quiet --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service
fi
"""


@dataclass(frozen=True)
class Package:
    """One package: control fields, files (path to content and mode) and maintainer scripts."""

    name: str
    version: str
    depends: tuple[str, ...] = ()
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    conffiles: tuple[str, ...] = ()


def packages() -> list[Package]:
    """Every stand-in package of the repository."""
    return [package for version in VERSIONS for package in _toolkit(version)] + [_docker2()]


def build(folder: Path, wanted: Sequence[Package]) -> None:
    """Build the packages into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in wanted:
        with tempfile.TemporaryDirectory() as temporary:
            root = Path(temporary) / package.name
            _lay_out(root, package)
            run(["dpkg-deb", "--build", "--root-owner-group", "-Zgzip", str(root), str(folder)])


def _lay_out(root: Path, package: Package) -> None:
    control = root / "DEBIAN"
    control.mkdir(parents=True)
    root.chmod(0o755)
    fields = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": "amd64",
        "Maintainer": "kubegpu.nodes test bed <testbed@kubegpu.test>",
        "Depends": ", ".join(package.depends),
        "Section": "utils",
        "Priority": "optional",
        "Description": "stand-in of the kubegpu.nodes test bed, not NVIDIA's package",
    }
    text = "".join(f"{name}: {value}\n" for name, value in fields.items() if value)
    (control / "control").write_text(text)
    for name, script in package.scripts.items():
        (control / name).write_text(script)
        (control / name).chmod(0o755)
    if package.conffiles:
        (control / "conffiles").write_text("".join(f"{path}\n" for path in package.conffiles))
    for path, (content, mode) in package.files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        target.chmod(mode)


def _standin(name: str, version: str = "") -> str:
    return (HERE / "standin" / name).read_text().replace("@VERSION@", version)


def _toolkit(version: str) -> list[Package]:
    upstream = version.partition("-")[0]
    base_files = {
        "/usr/bin/nvidia-ctk": (_standin("nvidia-ctk", upstream), 0o755),
        "/usr/bin/nvidia-container-runtime": (_standin("nvidia-container-runtime"), 0o755),
        "/etc/nvidia-container-runtime/config.toml": (_standin("config.toml"), 0o644),
    }
    scripts = {}
    if tuple(int(part) for part in upstream.split(".")[:2]) >= _CDI_REFRESH_SINCE:
        base_files["/usr/lib/systemd/system/nvidia-cdi-refresh.service"] = (_SERVICE, 0o644)
        base_files["/usr/lib/systemd/system/nvidia-cdi-refresh.path"] = (_PATH, 0o644)
        scripts = {"postinst": _POSTINST, "prerm": _PRERM}
    return [
        Package("libnvidia-container1", version),
        Package(
            "libnvidia-container-tools", version, depends=(f"libnvidia-container1 (= {version})",)
        ),
        Package(
            "nvidia-container-toolkit-base",
            version,
            files=base_files,
            scripts=scripts,
            conffiles=("/etc/nvidia-container-runtime/config.toml",),
        ),
        Package(
            "nvidia-container-toolkit",
            version,
            depends=(
                f"nvidia-container-toolkit-base (= {version})",
                f"libnvidia-container-tools (= {version})",
            ),
            files={
                "/usr/bin/nvidia-container-runtime-hook": (
                    _standin("nvidia-container-runtime-hook"),
                    0o755,
                )
            },
        ),
    ]


def _docker2() -> Package:
    """What the toolkit replaced; its daemon.json is what overwrote people's own."""
    return Package(
        "nvidia-docker2",
        DOCKER2_VERSION,
        files={"/usr/bin/nvidia-docker": ('#!/bin/sh\nexec docker "$@"\n', 0o755)},
    )
