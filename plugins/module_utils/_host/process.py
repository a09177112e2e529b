# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identify the process of a run, so that another run can tell whether it is still alive."""

from __future__ import annotations

import os
import socket

from .fingerprint import process_start_id


def own_identity() -> str:
    """Return an identity of this process: machine, process ID and start time."""
    return _identity(os.getpid())


def parent_identity() -> str:
    """Return the identity of the process that started this one, as Ansible does its workers."""
    return _identity(os.getppid())


def _identity(pid: int) -> str:
    return f"{_machine()} {pid} {process_start_id(pid) or ''}".strip()


def is_alive(identity: str) -> bool | None:
    """Return whether the process of an identity is alive; None if it is of another machine."""
    machine, pid, birth = (*identity.split(" "), "", "", "")[:3]
    if machine != _machine() or not pid.isdigit():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # A process ID can be reused, with another start time.
    return not birth or process_start_id(int(pid)) == birth


def _machine() -> str:
    """Return the machine and its PID namespace: containers may share their host's name."""
    try:
        return f"{socket.gethostname()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()
