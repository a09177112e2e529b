# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The environment of programs: no folder and no file in it that another user may change.

sudo resets it and has a path of its own (secure_path); su, a login as root and other ways of become
keep what the account has, such as a folder of PATH that everybody may write.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable

_PATH = "PATH"
_USUAL = "/usr/sbin:/usr/bin:/sbin:/bin"
# Variables that name code for programs to run: folders of programs, of libraries and of modules of
# interpreters, and files that a shell reads first.
_FOLDERS = (_PATH, "LD_LIBRARY_PATH", "PYTHONPATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "GCONV_PATH")
_FILES = ("LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "PYTHONSTARTUP", "PYTHONHOME")
_WRITABLE_BY_ALL = 0o002


def clean_environment(warn: Callable[[str], None]) -> None:
    """Take out of this process's environment what other users may change, and say so.

    Groups that may write a folder, such as Debian's ``staff``, are the administrator's choice.
    """
    for name in (*_FOLDERS, *_FILES):
        value = os.environ.get(name)
        if value is None:
            continue
        parts = [part for part in re.split("[: ]" if name in _FILES else ":", value) if part]
        kept = [part for part in parts if _is_named(name, part) or is_ours(part)]
        if kept == value.split(":"):
            continue
        left = [part for part in parts if part not in kept and os.path.exists(part)]
        if left:
            warn(
                f"{name}: {', '.join(dict.fromkeys(left))} is not used, as other users than root "
                f"can change it. Next step: take it out of {name}, or chown root and chmod o-w it "
                "and the folders above it."
            )
        if kept:
            os.environ[name] = ":".join(kept)
        elif name == _PATH:
            os.environ[name] = _USUAL
        else:
            del os.environ[name]


def _is_named(name: str, part: str) -> bool:
    """Return whether the linker finds the library by its name, in its own folders."""
    return name in ("LD_PRELOAD", "LD_AUDIT") and "/" not in part


def is_ours(path: str) -> bool:
    """Return whether only root, or the user of this process, can change what the path names.

    In a sticky folder, such as /tmp, others cannot exchange what is not theirs.
    """
    if not os.path.isabs(path):
        return False
    trusted = (0, os.geteuid())
    # The links on the way, and then what they name.
    for place in (os.path.normpath(path), os.path.realpath(path)):
        sticky = 0
        step = place
        while True:
            try:
                status = os.lstat(step)
            except OSError:
                return False
            writable = status.st_mode & _WRITABLE_BY_ALL and not stat.S_ISLNK(status.st_mode)
            if status.st_uid not in trusted or (writable and not status.st_mode & sticky):
                return False
            if step == os.path.dirname(step):
                break
            step, sticky = os.path.dirname(step), stat.S_ISVTX
    return True
