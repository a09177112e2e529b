# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the message of a failed installation says of its cause. Pure."""

from __future__ import annotations

import re

# How the message of an installer that failed begins.
INSTALLER = "The installer of the driver"
# Failures that end by themselves, or by freeing space: what was done so far is kept, and the next
# run goes on.
_PASSING = re.compile(
    r"holds? its lock|could not get lock|is locked by|disk of this node is full"
    r"|no space left|enough free space|quota exceeded|cannot be reached|failed to fetch"
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
    """Return whether packages failed since no repository has DKMS."""
    return bool(_NO_DKMS.search(words))


def is_transient(words: str) -> bool:
    """Return whether a failure is one that the next run can simply go on after."""
    return bool(_PASSING.search(words))


def is_installer_failure(words: str) -> bool:
    """Return whether a failure is the installer's own, and not that of what comes before it."""
    return words.startswith(INSTALLER) and "build_timeout" not in words


def is_build_failure(words: str) -> bool:
    """Return whether a package manager's words can come from the build of a kernel module."""
    return bool(_BUILD.search(words))
