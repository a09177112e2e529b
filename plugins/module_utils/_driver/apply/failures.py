# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Classifies failures by their code. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._known_faults.codes import BUILD_FAILED, DISK_FULL
from ..._known_faults.explain import explain
from ..._known_faults.rules.packages import DKMS_MISSING

#: The runfile's installer failed, or was stopped after build_timeout.
INSTALLER_FAILED = "driver_installer_failed"
INSTALLER_STOPPED = "driver_installer_stopped"
# Transient failures, or a full or read-only disk, on which nothing could be restored either: the
# change is kept, and the next run continues it.
_PASSING = frozenset({
    "package_locked", "package_disk_full", DISK_FULL, "package_read_only",
    "repository_unreachable", "repository_forbidden", "repository_proxy", "repository_certificate",
})  # fmt: skip
# What a package manager ends with where the build of a kernel module fails.
_BUILDS = frozenset({"package_script_failed", BUILD_FAILED})


def codes_of(failure: Mapping[str, Any]) -> frozenset[str]:
    """Return the code of a failure, and those of what its message quotes of other programs.

    :param failure: the result of a module or an action that failed.
    """
    quoted = explain(str(failure.get("msg") or ""))
    return frozenset({str(failure.get("code") or ""), *(one.code for one in quoted)} - {""})


def lacks_dkms(failure: Mapping[str, Any]) -> bool:
    """Return whether packages failed because no repository has DKMS."""
    return DKMS_MISSING in codes_of(failure)


def is_transient(codes: frozenset[str]) -> bool:
    """Return whether the next run can continue after this failure."""
    return bool(codes & _PASSING)


def is_installer_failure(codes: frozenset[str]) -> bool:
    """Return whether the installer itself failed, and not a step before it."""
    return INSTALLER_FAILED in codes


def is_build_failure(codes: frozenset[str]) -> bool:
    """Return whether a package manager's failure can come from the build of a kernel module."""
    return bool(codes & _BUILDS)
