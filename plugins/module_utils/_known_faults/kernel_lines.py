# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the lines of the kernel's log that are about drivers and modules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_MOST_LINES = 200
_INTEREST = re.compile(
    r"NVRM|nvidia|nouveau|NovaCore|nova_(?:core|drm)|Lockdown|PKCS|X\.509|module verification"
    r"|Loading of |version magic|disagrees about version|Unknown symbol|vfio"
)
_STAMP = re.compile(r"^(?:<\d+>)?\[\s*(\d+\.\d+)\]")
_KERNEL_LOGS: tuple[tuple[str, ...], ...] = (
    ("dmesg", "--color=never"),
    ("dmesg",),
    ("journalctl", "-k", "-b", "-n", "5000", "-o", "short-monotonic", "--no-pager"),
)


def kernel_lines(
    reader: NodeReader, since: float | None = None, interest: re.Pattern[str] = _INTEREST
) -> tuple[str, ...]:
    """Return the last lines of the kernel's log about drivers and modules.

    :param interest: which lines are relevant.
    """
    for argv in _KERNEL_LOGS:
        result = reader.run(list(argv), timeout=30)
        if result is not None and result.ok and result.stdout.strip():
            return interesting(result.stdout.splitlines(), since, interest)
    return ()


def interesting(
    lines: Sequence[str], since: float | None = None, interest: re.Pattern[str] = _INTEREST
) -> tuple[str, ...]:
    """Return the relevant lines; one without a time stamp belongs to the line before it."""
    found: list[str] = []
    old = False
    for line in lines:
        match = _STAMP.match(line)
        if match:
            old = since is not None and float(match[1]) < since
        if not old and interest.search(line):
            found.append(line)
    return tuple(found[-_MOST_LINES:])
