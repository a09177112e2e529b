# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a user of the node, who is not root, can read a file: apt reads keys as ``_apt``."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from .command import Runner

APT_USER = "_apt"


@dataclass(frozen=True)
class Barrier:
    """What keeps the user from a file: the file itself, or a folder above it."""

    path: str
    folder: bool
    mode: int

    def shown(self) -> str:
        return f"the {'folder' if self.folder else 'file'} {self.path} has mode {self.mode:04o}"

    def command(self) -> str:
        return f"chmod {'0755' if self.folder else '0644'} {self.path}"


def barrier(run: Runner, path: str, user: str = APT_USER) -> Barrier | None:
    """Return what keeps the user from reading the file; None if nothing does, or if the node cannot
    be asked. Of a file that does not exist, the folders above it count.
    """
    steps = [path]
    while os.path.dirname(steps[0]) not in ("", "/"):
        steps.insert(0, os.path.dirname(steps[0]))
    for step in steps:
        try:
            status = os.stat(step)
        except OSError:
            return None
        folder = stat.S_ISDIR(status.st_mode)
        needed, other = ("-x", 0o001) if folder else ("-r", 0o004)
        # Everybody may: no need to start a program.
        if status.st_mode & other:
            continue
        answer = run(
            [
                "setpriv",
                f"--reuid={user}",
                "--regid=nogroup",
                "--clear-groups",
                "test",
                needed,
                step,
            ]
        )
        # A program or user that does not exist has a message; test(1) has none.
        if answer.rc == 1 and not answer.stderr.strip():
            return Barrier(step, folder, stat.S_IMODE(status.st_mode))
    return None


def sandbox_user(run: Runner) -> str:
    """Return the user as which apt reads keys; empty if that is root."""
    answer = run(["apt-config", "dump", "--format=%v%n", "APT::Sandbox::User"])
    user = answer.stdout.strip() if answer.ok else APT_USER
    return "" if user in ("root", "0") else user or APT_USER
