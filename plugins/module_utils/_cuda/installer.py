# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why CUDA's installer failed, from its output. Pure."""

from __future__ import annotations

import re

from .._core.errors import KubegpuError


def explain_runfile(version: str, path: str, words: str, log: str) -> KubegpuError:
    """Return why CUDA's installer failed.

    :param log: the end of the installer's own log.
    """
    said = f"{words}\n{log}"
    lines = [line for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|fail|no space|not enough", line, re.I)]
    if re.search(r"no space left|not enough space|insufficient", said, re.IGNORECASE):
        return KubegpuError(
            f"The installer of CUDA {version} found too little space.",
            evidence="\n".join(telling[-5:]),
            next_step=f"Free about 10 GB on the file systems of {path} and of /tmp, or name "
            "another folder to unpack in: temporary.",
        )
    return KubegpuError(
        f"The installer of CUDA {version} failed; {path} is as it was.",
        evidence="\n".join((telling or lines)[-8:]),
        next_step="See /var/log/cuda-installer.log on the node.",
    )
