# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a package manager's output that show why it failed. Pure.

Package managers use words that other programs use, too: connection refused, 403 Forbidden, was not
found. In a log of several programs they count on lines only that a package manager begins as an
error, and on those that continue it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Lines about dependencies name the packages; the error comes after them. Those about keys name the
# key that the repository's entry has.
RELATION = (
    r"\b(?:Depends|PreDepends|Pre-Depends|Conflicts|Breaks|Recommends): "
    r"|^ *(?:- |Problem)|requires |but \S+ is to be installed|GPG Keys are configured as"
)


def relevant_lines(output: str, pattern: str = r"\Z.", more: Sequence[str] = ()) -> str:
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


# What apt and dpkg begin the lines of errors with, also behind the prefix of a log or a message.
_APT = (
    r"(?:^|[\s\"':>]|\\n)(?:[EW]:(?= |[A-Z])|Err(?::\d+)? )|\bdpkg(?:-deb|-divert)?: (?!warning)"
    r"|Errors were encountered while processing"
)
_DNF = (
    r"\bError: (?=$|Failed to d|Unable to find|Problem|Error downloading|Transaction|GPG|Status"
    r"|This command|Cannot (?:d|retr|find|prepare)|Package|Module|Conflict|Repository|No "
    r"|Nothing|Curl|Cache|rpmdb|Subprocess|You need)"
    r"|Errors? (?:during )?downloading|\bProbl.{1,2}me?s?(?: \d+)?: |\[(?:MIRROR|FAILED)\]|^>>> "
    r"|\[Errno (?:14|256)\]"
    r"|\bStatus code: \d|\bCurl error|\bDepsolve Error|^\s*error: |\bscriptlet"
    r"|\bFailed to (?:download (?:metadata|packages)|resolve the transaction|synchronize cache"
    r"|install some of|update apt cache|lock (?:apt|directory|/var)|obtain the transaction lock"
    r"|fetch (?:https?|file|cdrom|copy|store):)"
)
_WORDS = (
    r"unmet dependencies|but (?:it|\S+) is (?:not (?:going )?)?to be installed|is not installable"
    r"|No match for argument|Unable to (?:find a match|locate package)|[Nn]o package"
    r"|(?:All matches|matches) were filtered out|modular filtering|No provider of|\bSolution \d"
    r"|is not signed|is not installed$|\bPublic key for \S{1,120} is not installed"
    r"|GPG check FAILED|GPG signature|GPG key|Signing key"
    r"|(?:R|r)oot privileges|superuser privileges|is locked by|management is locked"
    r"|Download \(curl\)|not found on medium|Valid metadata not found"
    r"|Signature verification failed|Release file|remove is disabled"
    r"|Es konnte keine Übereinstimmung"
)
# In other languages only the shape of such a line is the same.
_RELATED = re.compile(
    r" {0,8}[a-z0-9][\w.+-]{1,60}(?::\w{1,8})? : [^\n:\d(]{2,40}: {0,2}[a-z0-9][\w.+-]{1,60} "
    r"\((?:[<>]=|=|<<|>>) "
)
_BEGINS = re.compile(rf"{_APT}|{_DNF}|{_WORDS}")
# rpm names the file system that is full, and apt and zypper the process that has the lock.
_POINT = re.compile(r"\bon the (?P<point>/\S*) filesystem", re.IGNORECASE)
_HOLDER = re.compile(
    r"held by process (?P<pid>\d+)(?: \((?P<name>[^)\n]+)\))?|with pid (?P<other>\d+)"
)
# What docker build writes before each line.
_STEP = re.compile(r"^(?:#\d+ )?\d+\.\d{1,4} ")
# apt waits for a lock and tries again, and a run of dnf that was completed skipped what it named.
_NO_ERROR = re.compile(r"Waiting for cache lock|^\s*Ign(?::\d+)? ")
_COMPLETED = re.compile(r"(?:^|[\s\"])Complete!\s*$")
_CONTINUES = (" ", "\t", "-", ">", "(")


def full_file_system(line: str) -> str:
    """Return the file system that a line names as full; empty for none."""
    found = _POINT.search(line)
    return found["point"] if found else ""


def lock_holder(output: str) -> str:
    """Return the process that has the lock, by its name and id; empty where none is named."""
    found = _HOLDER.search(output)
    if not found:
        return ""
    name = f"{found['name']}, " if found["name"] else ""
    return f"{name}process {found['pid'] or found['other']}"


def failed_lines(text: str) -> str:
    """Return the lines that a package manager begins as errors, with those that continue them."""
    found: list[str] = []
    inside = False
    for line in (_STEP.sub("", one) for one in text.split("\n")):
        if _COMPLETED.search(line):
            found.clear()
        if _NO_ERROR.search(line):
            inside = False
        elif _BEGINS.search(line) or (" : " in line and _RELATED.match(line)):
            inside = True
            found.append(line)
        elif inside and line.startswith(_CONTINUES):
            found.append(line)
        else:
            inside = False
    return "\n".join(found)
