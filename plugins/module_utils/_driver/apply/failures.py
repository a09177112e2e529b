# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Classifies failures by their message. Pure."""

from __future__ import annotations

import re

# The beginning of the message if the installer failed.
INSTALLER = "The installer of the driver"
# Transient failures, or a full or read-only disk, on which nothing could be restored either: the
# change is kept, and the next run continues it.
_PASSING = re.compile(
    r"holds? its lock|could not get lock|is locked by|disk of this node is full"
    r"|no space left|(?:enough|too little) free space|no free inodes|more space needed"
    r"|read-only file ?system|mounted read-only|quota exceeded|cannot be reached|failed to fetch"
    r"|A repository refuses access|The proxy of this node|certificate of a repository's server"
    r"|could not (?:resolve|connect)|connection (?:refused|timed out|reset)",
    re.IGNORECASE,
)
_BUILD = re.compile(
    r"dkms|kernel module|post-?inst|returned an error code|subprocess|own script failed",
    re.IGNORECASE,
)
_NO_DKMS = re.compile(
    r"(?:No package list of this node has|nothing provides|No match for argument:?|No provider of)"
    r"[^\n]*(?<![\w-])dkms(?![\w-])",
    re.IGNORECASE,
)


def lacks_dkms(words: str) -> bool:
    """Return whether packages failed because no repository has DKMS."""
    return bool(_NO_DKMS.search(words))


def is_transient(words: str) -> bool:
    """Return whether the next run can continue after this failure."""
    return bool(_PASSING.search(words))


def is_installer_failure(words: str) -> bool:
    """Return whether the installer itself failed, and not a step before it."""
    return words.startswith(INSTALLER) and "build_timeout" not in words


def is_build_failure(words: str) -> bool:
    """Return whether a package manager's message can come from the build of a kernel module."""
    return bool(_BUILD.search(words))
