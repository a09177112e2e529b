# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why CUDA's installer failed, from its output. Pure."""

from __future__ import annotations

from .._core.errors import KubegpuError
from .._host.temporary import UNPACKED
from .._known_faults.answers import complaints
from .._known_faults.rules.compilers import INSTALLER_FULL
from .known import failed


def explain_installer(version: str, path: str, output: str, log: str) -> KubegpuError:
    """Return why CUDA's installer failed.

    :param output: the installer's output.
    :param log: the end of the installer's log.
    """
    text = f"{output}\n{log}"
    lines = [line for line in text.splitlines() if line.strip()]
    relevant = complaints(text)
    # Its lines do not say whose they are.
    if INSTALLER_FULL in failed("\n".join(f"cuda-installer: {line[-180:]}" for line in lines)):
        return KubegpuError(
            f"The installer of CUDA {version} has too little disk space.",
            evidence="\n".join(relevant[-5:]),
            next_step=f"Free about 10 GB on the file systems of {path} and of {UNPACKED}, or "
            "name another folder to unpack in: temporary.",
        )
    return KubegpuError(
        f"The installer of CUDA {version} failed; {path} is as it was.",
        evidence="\n".join((relevant or lines)[-8:]),
        next_step="See /var/log/cuda-installer.log on the node.",
    )
