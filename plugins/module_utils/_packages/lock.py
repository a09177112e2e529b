# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock of the package manager, which another run of it may hold."""

from __future__ import annotations

from .host import Host


def wait_for_lock(host: Host, name: str, pending: bool) -> None:
    """Wait for other runs of the package manager where the change does not do so itself.

    :param pending: whether an earlier run of the set did not finish. Its package manager can still
        be at work; what it installs has to be there before the node is read.
    :raises KubegpuError: the lock is still held after the time limit.
    """
    if host.manager.waits_for_lock and not pending:
        return
    answer = host.run_unlocked(host.manager.lock_command)
    if host.manager.locked(answer):
        which = ", which an earlier run began" if pending else ""
        raise host.explain(answer.last_output(), f"The package set {name}{which}")
