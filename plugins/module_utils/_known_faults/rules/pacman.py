# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of pacman, the package manager of Arch Linux and its siblings. Data, not code.

The collection installs nothing with it; people ask about its messages all the same.
"""

from __future__ import annotations

from ..._core.finding import POSSIBLE
from ..types import Rule

READ = "2026-11-28"
_PACMAN_SOURCE = "pacman, libalpm (sources); tests/reports"

PACMAN = (
    Rule(
        "repository_key_rejected",
        r"(?:error|fout|Fehler|erreur|错误)[\uff1a:] (?P<package>[\w.+-]{1,80}): "
        r"[^\n]{0,40}?\"[^\"\n]{3,120}\""
        r" (?:is (?:unknown|marginal) trust|is invalid)"
        r"|invalid or corrupted package \(PGP signature\)|required key missing from keyring"
        r"|is corrupted \(invalid or corrupted package",
        "pacman",
        "pacman does not accept the signature of a package {package}: the keys of this node are "
        "older "
        "than the packages, or the key of a repository was never trusted here.",
        "Update the keys first: pacman -Sy archlinux-keyring (or the keyring package of the "
        "distribution or the repository), then pacman -Syu. For a repository of somebody else: "
        "pacman-key --recv-keys and pacman-key --lsign-key with the fingerprint that its owner "
        "names. "
        "Do not set SigLevel = Never.",
        'error: rocm-opencl-runtime: signature from "Jingbei Li <i@jingbei.li>" is unknown trust',
        _PACMAN_SOURCE,
        READ,
    ),
    Rule(
        "package_conflict",
        r"\binstalling (?P<package>[\w.+-]{1,80}) \(\S{1,60}\) breaks dependency '[^'\n]{1,120}' "
        r"required by "
        r"(?P<other>[\w.+-]{1,80})"
        r"|:: removing (?P<gone>[\w.+-]{1,80}) breaks dependency|unable to satisfy dependency "
        r"'[^'\n]{1,120}'"
        r"|unresolvable package conflicts detected"
        r"|failed to prepare transaction \((?:conflicting|could not satisfy) dependencies\)"
        r"|(?:^|\n):: (?P<one>[\w.+-]{1,80}) [^\n\w]{0,4}[^\n ]{1,6} (?P<two>[\w.+-]{2,80}) 有冲突",
        "pacman",
        "The packages of the driver do not go together: pacman would break one that is installed, "
        "because the package of the kernel's modules and that of the libraries are of different "
        "versions or of different repositories.",
        "Upgrade all at once (pacman -Syu), with fresh lists of all repositories; never only one "
        "of them. If the module's package is not built for the new version yet, wait for it, or "
        "use "
        "nvidia-open-dkms. Remove a variant of the AUR before the one of the distribution is "
        "installed, together with what needs it.",
        ":: installing nvidia-utils (560.35.03-1) breaks dependency 'nvidia-utils=560.31.02' "
        "required by nvidia",
        _PACMAN_SOURCE,
        READ,
        confidence=POSSIBLE,
    ),
    Rule(
        "package_missing",
        r"(?:^|\n)error: target not found: (?P<package>[\w.+-]{1,80})|(?:^|\n)error: failed "
        r"retrieving file '[^'\n]{1,200}' "
        r"from \S{1,120} : The requested URL returned error: 404",
        "pacman",
        "No repository of this node has the package {package}, or has it in the version of the "
        "lists any more.",
        "Fetch the lists and upgrade all at once: pacman -Syu. If it is still missing, it was "
        "renamed or is in the AUR only.",
        "error: target not found: nvidia-dkms",
        _PACMAN_SOURCE,
        READ,
    ),
)
