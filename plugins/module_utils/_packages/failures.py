# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of package managers: cause and next step, by their output and by what the node shows.

What the output means is a table of the known faults; the first row that matches counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._core.errors import KubegpuError
from .._host.access import Barrier
from .._host.space import FileSystem, file_system_of
from .._known_faults.package_lines import RELATION, full_file_system, lock_holder, relevant_lines
from .._known_faults.rules.packages import PACKAGES
from .._known_faults.types import Rule
from .._known_faults.words import filled_in
from .obstacles import Obstacle, joined

SPACE, READ_ONLY, LOCK, SIGNATURE, CHOICE = "space", "read-only", "lock", "signature", "choice"
_AGAIN = "then run again: it continues where this run stopped."


@dataclass(frozen=True)
class Circumstances:
    """What the node shows in addition to the output.

    :param lock_option: the variable or option that says how long the lock is waited for.
    :param remove_kernels: the package manager's command that removes old kernels.
    :param unreadable: what keeps apt's own user from the keys of repositories.
    :param obstacles: settings that keep packages from being installed.
    """

    lock_option: str = "lock_timeout"
    remove_kernels: str = ""
    file_systems: tuple[FileSystem, ...] = ()
    unreadable: tuple[Barrier, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


#: What of the circumstances can say more about a cause.
_KINDS = {
    "package_disk_full": SPACE,
    "package_read_only": READ_ONLY,
    "package_locked": LOCK,
    "repository_key_rejected": SIGNATURE,
    "repository_key_weak": SIGNATURE,
    "package_filtered": CHOICE,
    "package_missing": CHOICE,
    "package_version_missing": CHOICE,
    "package_conflict": CHOICE,
}
# Absolute paths, also as dpkg writes those of a package: './usr/lib/x'.
_PATH = re.compile(
    r"(?<![\w/.:-])\.?(?P<path>/(?:boot|usr|var|etc|opt|lib|tmp|root|run|srv)(?:/[\w.+~@%-]+)*)"
)
# How far from the error a line can name its file: initramfs-tools names it before and after.
_BEFORE, _AFTER = 6, 3

NOTHING_SEEN = Circumstances()


def kind_of(output: str) -> str:
    """Return what of the circumstances can say more about the output; empty: nothing."""
    rule = _rule(output)
    return _kind(rule) if rule else ""


def is_locked(output: str) -> bool:
    """Return whether another run of the package manager holds its lock."""
    return kind_of(output) == LOCK


def cause_of(output: str, seen: Circumstances = NOTHING_SEEN) -> tuple[str, str, str] | None:
    """Return cause, next step and code for the output of a package manager, or None."""
    rule = _rule(output)
    if rule is None:
        return None
    cause, next_step, _lines = _judge(rule, output, seen)
    return cause, next_step, rule.code


def explain(output: str, doing: str, seen: Circumstances = NOTHING_SEEN) -> KubegpuError:
    """Return the error for the output of a package manager that failed."""
    rule = _rule(output)
    if rule is None:
        return KubegpuError(
            f"{doing}: the package manager failed.",
            evidence=relevant_lines(output),
            next_step="Fix what it says, then run again.",
        )
    cause, next_step, lines = _judge(rule, output, seen)
    # Of dependencies, the line of the package decides, and the error comes after it.
    pattern = f"{rule.pattern}|{RELATION}" if _kind(rule) == CHOICE else rule.pattern
    evidence = relevant_lines(output, pattern, lines)
    return KubegpuError(f"{doing}: {cause}", evidence=evidence, next_step=next_step, code=rule.code)


def _rule(output: str) -> Rule | None:
    return next((rule for rule in PACKAGES if _match(rule, output)), None)


def _match(rule: Rule, output: str) -> re.Match[str] | None:
    return re.search(rule.pattern, output, re.IGNORECASE)


def _kind(rule: Rule) -> str:
    return _KINDS.get(rule.code, "")


def _judge(rule: Rule, output: str, seen: Circumstances) -> tuple[str, str, tuple[str, ...]]:
    """Return cause, next step, and lines of evidence in addition to those of the rule."""
    if _kind(rule) in (SPACE, READ_ONLY):
        return _of_file_system(rule, output, seen)
    if _kind(rule) == LOCK:
        return _of_lock(rule, output, seen)
    if _kind(rule) == SIGNATURE and seen.unreadable:
        shown = ", ".join(dict.fromkeys(one.shown() for one in seen.unreadable))
        commands = "; ".join(dict.fromkeys(one.command() for one in seen.unreadable))
        cause = f"apt, which reads keys as its own user, cannot read one of a repository: {shown}."
        return cause, f"Run {commands}, then run again.", ()
    if _kind(rule) == CHOICE and seen.obstacles:
        return (*joined(seen.obstacles), ())
    match = _match(rule, output)
    if match is None:
        return rule.cause, rule.next_step, ()
    return filled_in(rule.cause, match), filled_in(rule.next_step, match), ()


def _of_lock(rule: Rule, output: str, seen: Circumstances) -> tuple[str, str, tuple[str, ...]]:
    holder = lock_holder(output)
    cause = f"{rule.cause[:-1]}: {holder}." if holder else rule.cause
    return cause, rule.next_step.replace("lock_timeout", seen.lock_option), ()


def _of_file_system(
    rule: Rule, output: str, seen: Circumstances
) -> tuple[str, str, tuple[str, ...]]:
    """Name the file system of the path in the text; what the node shows decides between several."""
    path, line, own = _named_path(output, rule.pattern)
    system = file_system_of(path, seen.file_systems) if path else None
    bad = [
        one for one in seen.file_systems if (one.full if _kind(rule) == SPACE else one.read_only)
    ]
    if bad and system not in bad and not (system and own):
        # No path, or that of another step: scripts also write temporary files.
        system = bad[0]
    point = system.point if system else _well_known(path)
    lines = [line] if line else []
    if system is not None and _kind(rule) == SPACE:
        lines.append(system.shown())
    if not point:
        return rule.cause, rule.next_step, tuple(lines)
    if _kind(rule) == READ_ONLY:
        return f"The file system {point} is mounted read-only.", rule.next_step, tuple(lines)
    if system is not None and system.without_inodes:
        cause = f"The file system {point} of this node has no free inodes."
        return cause, f"Remove files that are not needed there, {_AGAIN}", tuple(lines)
    cause = f"The file system {point} of this node has too little free space."
    if point == "/boot":
        how = f" by {seen.remove_kernels}" if seen.remove_kernels else ""
        step = f"Remove old kernels{how}, but not the running one (uname -r), {_AGAIN}"
        return cause, step, tuple(lines)
    return cause, f"Free space on {point}, {_AGAIN}", tuple(lines)


def _well_known(path: str) -> str:
    """Return the mount point of a path, where it can be told without the node."""
    return "/boot" if path == "/boot" or path.startswith("/boot/") else ""


def _named_path(output: str, pattern: str) -> tuple[str, str, bool]:
    """Return the path that the error is about, the line that names it, and whether that is the line
    of the error itself; empty texts if there is none.
    """
    lines = output.splitlines()
    places = [at for at, line in enumerate(lines) if re.search(pattern, line, re.IGNORECASE)]
    for at in places:
        point = full_file_system(lines[at])
        if point:
            return point, lines[at].strip(), True
        match = _PATH.search(lines[at])
        if match:
            return match["path"], lines[at].strip(), True
    for at in places:
        before = range(at - 1, max(-1, at - 1 - _BEFORE), -1)
        after = range(at + 1, min(len(lines), at + 1 + _AFTER))
        for near in (*before, *after):
            match = _PATH.search(lines[near])
            if match:
                return match["path"], lines[near].strip(), False
    return "", "", False


def deciding_lines(output: str) -> str:
    """Return the lines from which the cause was found, and those that name packages."""
    rule = _rule(output)
    return relevant_lines(output, f"{rule.pattern}|{RELATION}") if rule else ""
