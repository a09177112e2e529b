# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one exception tree of the collection."""

from __future__ import annotations

from .printable import printable


class KubegpuError(Exception):
    """Something that the user has to know about, said once and completely.

    :param cause: what is wrong, naming the file, option or package.
    :param evidence: what was seen that shows it (a line of a log, a value), or an empty string.
    :param next_step: what the user can do about it, or an empty string.

    What a node or a server said is in all of them: characters that are not printable are escaped.
    """

    def __init__(self, cause: str, *, evidence: str = "", next_step: str = "") -> None:
        self.cause = printable(cause)
        self.evidence = printable(evidence)
        self.next_step = printable(next_step)
        super().__init__(str(self))

    def __str__(self) -> str:
        parts = [self.cause.rstrip()]
        if self.evidence:
            parts.append(f"Seen: {self.evidence.rstrip()}")
        if self.next_step:
            parts.append(f"Next step: {self.next_step.rstrip()}")
        return "\n".join(parts)


class InputError(KubegpuError):
    """An option or a file of the user's is not valid; nothing was written."""


class LockedError(KubegpuError):
    """Another run holds the lock of this node."""


class RolledBackError(KubegpuError):
    """A change was applied, did not work, and was put back."""
