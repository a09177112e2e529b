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
        f"sed -n {shlex.quote(_FIELDS)} /proc/[0-9]*/stat 2>/dev/null; true"
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
    for step, names in _STEPS:
        starts = [processes[pid][1] for pid in below if processes[pid][2] in names]
        if starts:
            since = float(uptime[1]) - min(starts) / _TICKS if uptime else -1.0
            return Job(alive=True, step=step, seconds=since if since >= 0 else None)
    return Job(alive=True)


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
