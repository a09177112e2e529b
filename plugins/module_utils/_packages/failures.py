# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of package managers: cause and next step, by their output."""

from __future__ import annotations

import re

from .._core.errors import KubegpuError

_EXPLANATIONS: tuple[tuple[str, str, str], ...] = (
    (
        r"could not get lock|unable to (?:acquire|lock)|is locked by another process"
        r"|Failed to lock|dpkg frontend lock|lock is held by|System management is locked"
        r"|transaction lock",
        "Another run of the package manager holds its lock.",
        "Wait until it has ended (an unattended upgrade can take minutes), or raise lock_timeout.",
    ),
    (
        r"no space left on device|enough free space|disk quota exceeded",
        "The disk of this node is full.",
        "Free space (below /var/cache, /var/lib or /usr), then run again: it continues "
        "where this run stopped.",
    ),
    (
        r"NO_PUBKEY|is not signed|EXPKEYSIG|BADSIG|REVKEYSIG|couldn.t be verified"
        r"|cannot be authenticated|Sub-process /usr/bin/sqv|GPG check FAILED|is not signed by"
        r"|Signature verification failed|GPG signature verification error|bad GPG signature"
        r"|Public key for \S+ is not installed|GPG key .*not (?:trusted|known)|NOKEY",
        "A repository's signature is not accepted.",
        "Correct the key of the repository that is named; kubegpu.nodes.package_repository checks "
        "it by fingerprint.",
    ),
    (
        r"remove is disabled|would be removed",
        "The set cannot be installed without removing other packages, which is never done.",
        "Remove them manually, or name them in obsolete.",
    ),
    (
        r"hash sum mismatch|size mismatch",
        "A package that was fetched is not the one that the repository lists.",
        "Refresh or repair the mirror.",
    ),
    (
        r"failed to fetch|could not resolve|could not connect|connection (?:refused|timed out)"
        r"|404 +Not Found|Failed to update apt cache|certificate verif|Curl error"
        r"|Failed to download metadata|Cannot download|Valid metadata not found|Download \(curl\)",
        "A package repository cannot be reached.",
        "Check the repository's address, proxy and certificate authority from this node.",
    ),
    (
        r"no available installation candidate|was not found|No package matching"
        r"|Unable to locate package|has no installation candidate|Unable to find a match"
        r"|No package \S+ available|No provider of|No match for argument"
        r"|Failed to install some of the specified packages",
        "A package or its version is in no repository of this node.",
        "Ask for a version that is available, or correct the repository.",
    ),
    (
        r"unmet dependencies|held broken packages|but it is not (?:going to be )?install"
        r"|nothing provides|conflicting requests|Depsolve Error|cannot install both"
        r"|requirement cannot be provided|not installable providers",
        "The packages' dependencies cannot be met.",
        "Add the repository that has what is missing, or ask for a version that fits.",
    ),
    (
        r"dpkg was interrupted|returned an error code|post-installation|subprocess .* script"
        r"|scriptlet failed|scriptlet, exit status",
        "A package's own script failed; packages are left half configured.",
        "Correct what the script reports, then run again: it continues where this run stopped.",
    ),
)


def cause_of(output: str) -> tuple[str, str] | None:
    """Return cause and next step for the output of a package manager; None if it is not known."""
    return next(
        (
            (cause, next_step)
            for pattern, cause, next_step in _EXPLANATIONS
            if re.search(pattern, output, re.IGNORECASE)
        ),
        None,
    )


def _relevant_lines(output: str, pattern: str = r"\Z.") -> str:
    """Return the lines that are errors or match the pattern, each once; else the last lines."""
    lines = [
        line.strip()
        for line in output.splitlines()
        if re.match(r"\s*(?:E:|Err:|W:|dpkg: error|error)", line)
        or re.search(pattern, line, re.IGNORECASE)
    ]
    return "\n".join(dict.fromkeys(lines or output.strip().splitlines()[-8:]))


def explain(output: str, doing: str) -> KubegpuError:
    """Return the error for the output of a package manager that failed."""
    for pattern, cause, next_step in _EXPLANATIONS:
        if re.search(pattern, output, re.IGNORECASE):
            evidence = _relevant_lines(output, pattern)
            return KubegpuError(f"{doing}: {cause}", evidence=evidence, next_step=next_step)
    evidence = _relevant_lines(output)
    return KubegpuError(
        f"{doing}: the package manager failed.",
        evidence=evidence,
        next_step="Fix what it says, then run again.",
    )
