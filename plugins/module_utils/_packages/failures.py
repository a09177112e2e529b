# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of package managers: cause and next step, by their output and by what the node shows.

The first rule that matches counts: what is specific stands before what follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .._core.errors import KubegpuError
from .._host.access import Barrier
from .._host.space import FileSystem, file_system_of
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


@dataclass(frozen=True)
class Rule:
    """What a text means. ``kind``: what of the circumstances can say more; empty: nothing."""

    pattern: str
    cause: str
    next_step: str
    kind: str = ""

    def matches(self, text: str) -> bool:
        return bool(re.search(self.pattern, text, re.IGNORECASE))


_RULES: tuple[Rule, ...] = (
    Rule(
        r"no space left on device|enough free space|not enough (?:disk )?space|disk quota exceeded"
        r"|more space needed on the|needs \S+ (?:more space )?on the \S+ filesystem",
        "The disk of this node is full.",
        f"Free space (below /var/cache, /var/lib or /usr), {_AGAIN}",
        SPACE,
    ),
    Rule(
        r"read-only file ?system",
        "A file system of this node is mounted read-only.",
        "Mount it writable. If the kernel remounted it after an error (journalctl -k), check the "
        "disk first; on a system whose image is read-only by design, the packages belong into the "
        "image.",
        READ_ONLY,
    ),
    Rule(
        r"are you root\?|superuser privileges|root privileges are required",
        "The package manager was not run as root.",
        "Run with become, and with a become_user that is root.",
    ),
    Rule(
        r"could not get lock|unable to (?:acquire|lock)|is locked by another process"
        r"|Failed to lock|dpkg frontend lock|lock is held by|System management is locked"
        r"|transaction lock",
        "Another run of the package manager holds its lock.",
        "Wait until it has ended (an unattended upgrade can take minutes), or raise {lock_option}.",
        LOCK,
    ),
    Rule(
        r"Release file .*(?:is not valid yet|is expired)",
        "The metadata of a repository is not valid at the time of this node's clock.",
        "Compare date on the node with the time of other machines; if the clock is right, the "
        "mirror of the repository is old.",
    ),
    Rule(
        r"NO_PUBKEY|is not signed|EXPKEYSIG|BADSIG|REVKEYSIG|couldn.t be verified"
        r"|cannot be authenticated|Sub-process /usr/bin/sqv|GPG check FAILED|is not signed by"
        r"|Signature verification failed|GPG signature verification error|bad GPG signature"
        r"|Public key for \S+ is not installed|GPG key .*not (?:trusted|known)|NOKEY"
        r"|is not readable by user",
        "A repository's signature is not accepted.",
        "Correct the key of the repository that is named; kubegpu.nodes.package_repository checks "
        "it by fingerprint.",
        SIGNATURE,
    ),
    Rule(
        r"remove is disabled|would be removed",
        "The set cannot be installed without removing other packages, which is never done.",
        "Remove them manually, or name them in obsolete.",
    ),
    Rule(
        r"hash sum mismatch|size mismatch|checksum doesn.t match|checksums? .*do(?:es)? not match",
        "A package that was fetched is not the one that the repository lists.",
        "Refresh or repair the mirror.",
    ),
    Rule(
        r"407 +Proxy Authentication|could not resolve proxy|proxy CONNECT aborted"
        r"|Received HTTP code \d+ from proxy",
        "The proxy of this node refuses the connection, or is not found.",
        "Correct the address of the proxy, or its user and password.",
    ),
    Rule(
        r"certificate verif|SSL certificate problem|certificate is NOT trusted"
        r"|self.signed certificate|peer certificate",
        "The certificate of a repository's server is not accepted.",
        "Give the certificate authority by ca_file, or correct the server's certificate.",
    ),
    Rule(
        r"\b40[13] +(?:Unauthorized|Forbidden)|Status code: 40[13]\b|error: 40[13]\b",
        "A repository refuses access.",
        "Correct user and password of the repository or its mirror, or the rules of its server.",
    ),
    Rule(
        r"failed to fetch|could not resolve|could not connect|connection (?:refused|timed out)"
        r"|404 +Not Found|Failed to update apt cache|Curl error"
        r"|Failed to download metadata|Cannot download|Valid metadata not found|Download \(curl\)",
        "A package repository cannot be reached.",
        "Check the repository's address, proxy and certificate authority from this node.",
    ),
    Rule(
        r"filtered out by (?:exclude|modular) filtering|matches only excluded packages",
        "A setting of the package manager hides a package that a repository has.",
        "Check exclude and excludepkgs of its configuration, its version locks, and the "
        "streams of its modules.",
        CHOICE,
    ),
    Rule(
        r"no available installation candidate|was not found|No package matching"
        r"|Unable to locate package|has no installation candidate|Unable to find a match"
        r"|No package \S+ available|No provider of|No match for argument"
        r"|Failed to install some of the specified packages",
        "A package or its version is in no repository of this node.",
        "Ask for a version that is available, or correct the repository.",
        CHOICE,
    ),
    Rule(
        r"unmet dependencies|held broken packages|but it is not (?:going to be )?install"
        r"|nothing provides|conflicting requests|Depsolve Error|cannot install both"
        r"|requirement cannot be provided|not installable providers",
        "The packages' dependencies cannot be met.",
        "Add the repository that has what is missing, or ask for a version that fits.",
        CHOICE,
    ),
    Rule(
        r"dpkg was interrupted|returned an error code|post-installation|subprocess .* script"
        r"|scriptlet failed|scriptlet, exit status",
        "A package's own script failed; packages are left half configured.",
        f"Correct what the script reports, {_AGAIN}",
    ),
)
# Lines about dependencies name the packages; the error comes after them.
_RELATION = (
    r"\b(?:Depends|PreDepends|Pre-Depends|Conflicts|Breaks|Recommends): "
    r"|^ *(?:- |Problem)|requires |but \S+ is to be installed"
)
# Absolute paths, also as dpkg writes those of a package: './usr/lib/x'.
_PATH = re.compile(
    r"(?<![\w/.:-])\.?(?P<path>/(?:boot|usr|var|etc|opt|lib|tmp|root|run|srv)(?:/[\w.+~@%-]+)*)"
)
_POINT = re.compile(r"\bon the (?P<point>/\S*) filesystem", re.IGNORECASE)
# How far from the error a line can name its file: initramfs-tools names it before and after.
_BEFORE, _AFTER = 6, 3

NOTHING_SEEN = Circumstances()


def kind_of(output: str) -> str:
    """Return what of the circumstances can say more about the output; empty: nothing."""
    rule = _rule(output)
    return rule.kind if rule else ""


def cause_of(output: str, seen: Circumstances = NOTHING_SEEN) -> tuple[str, str] | None:
    """Return cause and next step for the output of a package manager; None if it is not known."""
    rule = _rule(output)
    if rule is None:
        return None
    cause, next_step, _lines = _judge(rule, output, seen)
    return cause, next_step


def explain(output: str, doing: str, seen: Circumstances = NOTHING_SEEN) -> KubegpuError:
    """Return the error for the output of a package manager that failed."""
    rule = _rule(output)
    if rule is None:
        return KubegpuError(
            f"{doing}: the package manager failed.",
            evidence=_relevant_lines(output),
            next_step="Fix what it says, then run again.",
        )
    cause, next_step, lines = _judge(rule, output, seen)
    # Of dependencies, the line of the package decides, and the error comes after it.
    pattern = f"{rule.pattern}|{_RELATION}" if rule.kind == CHOICE else rule.pattern
    evidence = _relevant_lines(output, pattern, lines)
    return KubegpuError(f"{doing}: {cause}", evidence=evidence, next_step=next_step)


def _rule(output: str) -> Rule | None:
    return next((rule for rule in _RULES if rule.matches(output)), None)


def _judge(rule: Rule, output: str, seen: Circumstances) -> tuple[str, str, tuple[str, ...]]:
    """Return cause, next step, and lines of evidence in addition to those of the rule."""
    if rule.kind in (SPACE, READ_ONLY):
        return _of_file_system(rule, output, seen)
    if rule.kind == LOCK:
        return _of_lock(rule, output, seen)
    if rule.kind == SIGNATURE and seen.unreadable:
        shown = ", ".join(dict.fromkeys(one.shown() for one in seen.unreadable))
        commands = "; ".join(dict.fromkeys(one.command() for one in seen.unreadable))
        cause = f"apt, which reads keys as its own user, cannot read one of a repository: {shown}."
        return cause, f"Run {commands}, then run again.", ()
    if rule.kind == CHOICE and seen.obstacles:
        return (*joined(seen.obstacles), ())
    return rule.cause, rule.next_step, ()


def _of_lock(rule: Rule, output: str, seen: Circumstances) -> tuple[str, str, tuple[str, ...]]:
    holder = re.search(
        r"held by process (?P<pid>\d+)(?: \((?P<name>[^)\n]+)\))?|with pid (?P<other>\d+)", output
    )
    cause = rule.cause
    if holder:
        name = f"{holder['name']}, " if holder["name"] else ""
        cause = f"{cause[:-1]}: {name}process {holder['pid'] or holder['other']}."
    return cause, rule.next_step.format(lock_option=seen.lock_option), ()


def _of_file_system(
    rule: Rule, output: str, seen: Circumstances
) -> tuple[str, str, tuple[str, ...]]:
    """Name the file system of the path in the text; what the node shows decides between several."""
    path, line, own = _named_path(output, rule.pattern)
    system = file_system_of(path, seen.file_systems) if path else None
    bad = [one for one in seen.file_systems if (one.full if rule.kind == SPACE else one.read_only)]
    if bad and system not in bad and not (system and own):
        # No path, or that of another step: scripts also write temporary files.
        system = bad[0]
    point = system.point if system else _well_known(path)
    lines = [line] if line else []
    if system is not None and rule.kind == SPACE:
        lines.append(system.shown())
    if not point:
        return rule.cause, rule.next_step, tuple(lines)
    if rule.kind == READ_ONLY:
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
        point = _POINT.search(lines[at])
        if point:
            return point["point"], lines[at].strip(), True
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
    return _relevant_lines(output, f"{rule.pattern}|{_RELATION}") if rule else ""


def _relevant_lines(output: str, pattern: str = r"\Z.", more: Sequence[str] = ()) -> str:
    """Return the lines that are errors or match the pattern, each once; else the last lines.

    :param more: further lines, which are added unless they are among them.
    """
    lines = [
        line.strip()
        for line in output.splitlines()
        if re.match(r"\s*(?:E:|Err:|W:|dpkg: error|error)", line)
        or re.search(pattern, line, re.IGNORECASE)
        or line.strip() in more
    ]
    return "\n".join(dict.fromkeys((*(lines or output.strip().splitlines()[-8:]), *more)))
