# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identity of a process: alive, dead, or of another machine."""

from __future__ import annotations

import subprocess
import sys

from ansible_collections.kubegpu.nodes.plugins.module_utils._host import process
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.process import (
    is_alive,
    own_identity,
)


def test_a_run_that_goes_on_is_alive_and_one_that_ended_is_not():
    machine, pid, started = own_identity().split(" ")
    assert is_alive(f"{machine} {pid} {started}") is True
    # The number was given again to another process.
    assert is_alive(f"{machine} {pid} 1{started}") is False
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(30)
    assert is_alive(f"{machine} {ended.pid}") is False


def test_of_another_machine_nothing_is_known(monkeypatch):
    owner = own_identity()
    assert is_alive("elsewhere 1 1") is None and is_alive("") is None
    # Containers in the network of their host have its name, and processes of their own.
    monkeypatch.setattr(process.os, "readlink", lambda path: "pid:[1]")
    assert is_alive(owner) is None
