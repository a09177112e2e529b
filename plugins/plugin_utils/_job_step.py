# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a detached job does at the moment, from the processes that it has started. Pure.

Each user of a node chooses the names of their processes. Therefore only descendants of the job
count, and the words are those of the table.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

# The kernel has 15 characters of a name. The first step that is found is told: DKMS runs below
# dpkg, and compilers below DKMS or an installer.
_STEPS = (
    ("DKMS builds kernel modules", {"dkms"}),
    ("the initial RAM disk is made", {"update-initramf", "mkinitramfs", "dracut", "mkinitcpio"}),
    ("kernel modules are compiled", {"make"}),
    ("packages are unpacked and configured", {"dpkg", "rpm"}),
    ("packages are downloaded", {"http", "https"}),
)
# The locks of package managers; only root can open these files for writing.
_LOCK_FILES = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
    "/var/lib/rpm/.rpm.lock",
    "/usr/lib/sysimage/rpm/.rpm.lock",
)
# Their inodes, and the locks that are held with the process of each, of proc_locks(5).
_LOCK_INODE = re.compile(r"^lock-inode (\d+)$", re.M)
_HELD = re.compile(
    r"^\d+: (?:POSIX|FLOCK|OFDLCK) +ADVISORY +WRITE (?P<pid>\d+) "
    r"[0-9a-f]+:[0-9a-f]+:(?P<inode>\d+) ",
    re.M,
)
# Of proc_pid_stat(5): pid, ppid, starttime and comm.
_FIELDS = r"s/^\([0-9]*\) (\(.*\)) . \([0-9]*\) \([0-9-]* \)\{17\}\([0-9]*\) .*/\1 \3 \5 \2/p"
# Of Linux on all platforms, in units of starttime (USER_HZ).
_TICKS = 100
_WRAPPER = re.compile(r"^/proc/(\d+)/cmdline$", re.M)
_UPTIME = re.compile(r"^(\d+\.\d+) \d+\.\d+$", re.M)
_PROCESS = re.compile(r"^(\d+) (\d+) (\d+) (.+)$", re.M)


@dataclass(frozen=True)
class Job:
    """A job at one time.

    :param alive: whether its wrapper runs.
    :param step: what it does; empty if that is not known.
    :param seconds: since when; None if the node's clocks do not tell.
    """

    alive: bool
    step: str = ""
    seconds: float | None = None


def look_command(word: str) -> str:
    """Return the shell command whose output :func:`read_job` reads.

    :param word: a word of the wrapper's command line.
    """
    # The first letter in brackets: the pattern does not find itself.
    pattern = shlex.quote(f"[{word[0]}]{word[1:]}")
    return (
        f"grep -ls -- {pattern} /proc/[0-9]*/cmdline; cat /proc/uptime; "
        f"sed -n {shlex.quote(_FIELDS)} /proc/[0-9]*/stat 2>/dev/null; "
        f"stat -c 'lock-inode %i' {' '.join(_LOCK_FILES)} 2>/dev/null; cat /proc/locks; true"
    )


def read_job(text: str) -> Job | None:
    """Return the job from the output of :func:`look_command`; None if there is no output."""
    # With become, ssh gives the command a terminal, which ends lines with a carriage return.
    text = text.replace("\r\n", "\n")
    uptime = _UPTIME.search(text)
    processes = {
        int(pid): (int(parent), int(start), name)
        for pid, parent, start, name in _PROCESS.findall(text)
    }
    if uptime is None and not processes:
        return None
    wrappers = {int(pid) for pid in _WRAPPER.findall(text)}
    if not wrappers:
        return Job(alive=False)
    below = _descendants(wrappers, {pid: one[0] for pid, one in processes.items()})
    waits = _lock_holder(text, below, {pid: one[2] for pid, one in processes.items()})
    if waits:
        return Job(alive=True, step=f"waits for the package manager's lock, held by {waits}")
    for step, names in _STEPS:
        starts = [processes[pid][1] for pid in below if processes[pid][2] in names]
        if starts:
            since = float(uptime[1]) - min(starts) / _TICKS if uptime else -1.0
            return Job(alive=True, step=step, seconds=since if since >= 0 else None)
    return Job(alive=True)


def _lock_holder(text: str, below: set[int], names: dict[int, str]) -> str:
    """Return the foreign process that holds a lock of a package manager; empty if none does."""
    inodes = set(_LOCK_INODE.findall(text))
    holders = [int(held["pid"]) for held in _HELD.finditer(text) if held["inode"] in inodes]
    # The job's own package manager holds one lock after the other.
    if not holders or any(pid in below for pid in holders):
        return ""
    pid = holders[0]
    return f"{names[pid]} (process {pid})" if pid in names else f"process {pid}"


def _descendants(roots: set[int], parents: dict[int, int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    left = list(roots)
    while left:
        new = [pid for pid in children.get(left.pop(), ()) if pid not in found]
        found.update(new)
        left += new
    return found
