# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The link ``/usr/local/cuda``: its state, and the commands that change it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import KubegpuError

# The name in update-alternatives.
GROUP = "cuda"

ABSENT = "absent"
SYMLINK = "link"
ALTERNATIVES = "alternatives"
OTHER = "other"


@dataclass(frozen=True)
class Link:
    """The state of ``/usr/local/cuda``.

    :param target: the target of a symbolic link, or the selected alternative.
    :param manual: whether the alternative was selected manually.
    :param choices: the registered alternatives.
    """

    kind: str = ABSENT
    target: str = ""
    manual: bool = False
    choices: tuple[str, ...] = ()

    def describe(self) -> str:
        if self.kind == ABSENT:
            return "absent\n"
        if self.kind == OTHER:
            return "a file or directory\n"
        return f"{self.target}\n"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "target": self.target,
            "manual": self.manual,
            "choices": list(self.choices),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Link:
        return cls(data["kind"], data["target"], data["manual"], tuple(data["choices"]))


@dataclass(frozen=True)
class LinkChange:
    """A change of the link. ``commands`` run in this order."""

    before: Link
    after: Link
    commands: tuple[tuple[str, ...], ...] = ()
    warning: str = ""

    @property
    def changed(self) -> bool:
        return (self.before.kind == ABSENT, self.before.target) != (
            self.after.kind == ABSENT,
            self.after.target,
        )


def parse_alternatives(text: str) -> Link | None:
    """Return the link from the output of ``update-alternatives --query``, or None."""
    values: dict[str, str] = {}
    choices = []
    for line in text.splitlines():
        name, _colon, value = line.partition(": ")
        if name == "Alternative":
            choices.append(value.strip())
        else:
            values.setdefault(name, value.strip())
    if "Link" not in values or "Value" not in values:
        return None
    return Link(ALTERNATIVES, values["Value"], values.get("Status") == "manual", tuple(choices))


def set_link(path: str, now: Link, target: str) -> LinkChange:
    """Return the change that points ``path`` at ``target``.

    :raises KubegpuError: ``path`` is a file or directory.
    """
    if now.kind == OTHER:
        raise KubegpuError(
            f"{path} is not a link; nothing was changed.",
            next_step="Move it away, or leave the link alone: default: none.",
        )
    if now.target == target and now.kind != ABSENT:
        return LinkChange(now, now)
    if now.kind == ALTERNATIVES:
        commands: list[tuple[str, ...]] = []
        if target not in now.choices:
            # The lowest priority: alternatives of packages installed later take precedence.
            commands.append(
                ("update-alternatives", "--install", path, GROUP, target, "1"),
            )
        commands.append(("update-alternatives", "--set", GROUP, target))
        return LinkChange(now, replace(now, target=target, manual=True), tuple(commands))
    return LinkChange(now, Link(SYMLINK, target), _symlink_commands(path, target))


def restore_link(path: str, target: str | None) -> LinkChange:
    """Return the change that restores a symbolic link; ``target`` None removes it."""
    if target is None:
        return LinkChange(Link(), Link(), (("rm", "-f", path),))
    after = Link(SYMLINK, target)
    return LinkChange(after, after, _symlink_commands(path, target))


def revert_link(
    path: str, now: Link, *, before: Link | None, target: str, added: Sequence[str]
) -> LinkChange:
    """Return the change that reverts the link to its state before this collection.

    :param before: the link before the first change; None if it was never changed.
    :param target: where the link was set to.
    :param added: the alternatives that were added.
    """
    if before is None or not target:
        return LinkChange(now, now)
    commands: list[tuple[str, ...]] = []
    if now.kind == ALTERNATIVES:
        left = tuple(choice for choice in now.choices if choice not in added)
        commands = [
            ("update-alternatives", "--remove", GROUP, choice)
            for choice in added
            if choice in now.choices
        ]
        if now.manual and now.target not in (target, before.target):
            warning = f"{path} was set to {now.target} since, and is kept."
            return LinkChange(now, now, tuple(commands), warning)
        if before.kind == ALTERNATIVES and before.manual and before.target in left:
            commands.append(("update-alternatives", "--set", GROUP, before.target))
            return LinkChange(now, before, tuple(commands))
        if left:
            commands.append(("update-alternatives", "--auto", GROUP))
            after = before if before.target in left else replace(now, target=left[0])
            return LinkChange(now, after, tuple(commands))
        if before.kind == SYMLINK:
            return LinkChange(now, before, (*commands, *_symlink_commands(path, before.target)))
        return LinkChange(now, Link(), tuple(commands))
    if now.kind == SYMLINK and now.target != target:
        return LinkChange(now, now, (), f"{path} was set to {now.target} since, and is kept.")
    if before.kind == SYMLINK:
        return LinkChange(now, before, _symlink_commands(path, before.target))
    if now.kind == SYMLINK and before.kind in (ABSENT, ALTERNATIVES):
        return LinkChange(now, Link(), (("rm", "-f", path),))
    return LinkChange(now, now)


def _symlink_commands(path: str, target: str) -> tuple[tuple[str, ...], ...]:
    # Renamed into place: the link exists at all times.
    temporary = f"{path}.kubegpu"
    return (
        ("ln", "-sfnT", target, temporary),
        ("mv", "-fT", temporary, path),
    )
