# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The exceptions of the collection."""

from __future__ import annotations

from collections.abc import Mapping

from .message import message
from .printable import printable


class KubegpuError(Exception):
    """An error with all that the user needs to solve it.

    :param cause: what is wrong, with the name of the file, option or package.
    :param evidence: what shows it, such as a line of a log, or an empty string.
    :param next_step: what the user can do, or an empty string.
    :param code: identifies the cause for programs, or an empty string.
    :param names: the names that were put into its texts, such as that of a variable.

    All of them can contain output of nodes and servers, so unprintable characters are escaped.
    """

    def __init__(
        self,
        cause: str,
        *,
        evidence: str = "",
        next_step: str = "",
        code: str = "",
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.cause = printable(cause)
        self.evidence = printable(evidence)
        self.next_step = printable(next_step)
        self.code = code
        self.names = {name: printable(value) for name, value in (names or {}).items()}
        super().__init__(str(self))

    def __str__(self) -> str:
        return message(vars(self))


class InputError(KubegpuError):
    """An option or a file of the user is invalid; nothing was changed."""

    @property
    def variable(self) -> str:
        """Return the option or variable that is invalid; empty if no single one is."""
        return self.names.get("variable", "")


class Refusal(KubegpuError):
    """A request that this node or cluster cannot meet, raised or collected by a plan."""

    def __init__(self, cause: str, next_step: str = "", evidence: str = "") -> None:
        super().__init__(cause, evidence=evidence, next_step=next_step)

    @property
    def line(self) -> str:
        """Return it as one line, for plans that show each refusal as one reason."""
        return " ".join(str(self).splitlines())


class LockedError(KubegpuError):
    """Another run holds the lock of the node."""


class RolledBackError(KubegpuError):
    """A change failed and was rolled back."""
