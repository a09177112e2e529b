# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of which program a text is in which no message is known, and how the rest of it is got. Pure."""

from __future__ import annotations

import re

from .rules.packages import MANAGERS

_OTHER = "the whole output of the program that failed, from its command on"
# The first that fits counts.
_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), rest)
    for pattern, rest in (
        (r"\bnvidia-gridd\b", "the journal of nvidia-gridd (journalctl --unit nvidia-gridd)"),
        (
            r"\bdkms\b|\bmake(?:\[\d+\])?: |\bnvcc\b|\bgcc\b",
            "the whole log of the build (of DKMS: /var/lib/dkms/MODULE/VERSION/build/make.log)",
        ),
        (
            r"\bkubelet\b|\bFailedScheduling\b|^Events:|\bkubectl\b|\bpods?\b",
            "the events of the pod (kubectl describe pod NAME) and the log of the device plugin "
            "(kubectl logs)",
        ),
        (
            r"\bOCI runtime\b|\brunc\b|\bnvidia-container|\bcontainerd\b|\bdockerd?\b|\bpodman\b"
            r"|\bcri-?o\b",
            "the whole error of the engine and its log (journalctl --unit containerd, docker or "
            "crio), or the log of the container (docker logs NAME)",
        ),
        (
            MANAGERS.replace("(?m)", ""),
            "the whole output of the package manager, from its command on",
        ),
        (
            r"\bNVRM\b|\bamdgpu\b|\bi915\b|^\[ *\d{1,9}\.\d{6}\]|\bkernel: ",
            "the kernel's log of the whole boot (journalctl -k -b)",
        ),
        (r"\bnvidia-smi\b|\bLicense Status\b", "the whole output of nvidia-smi -q"),
    )
)


def rest_of(text: str) -> str:
    """Return what shows more than a text without a known message: by the program that it is of."""
    for pattern, rest in _KINDS:
        if pattern.search(text):
            return rest
    return _OTHER
