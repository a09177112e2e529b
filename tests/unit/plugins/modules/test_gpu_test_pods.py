# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose pod it is: that of a run that goes on, of one that is over, or of another machine."""

from __future__ import annotations

import subprocess
import sys

from ansible_collections.kubegpu.nodes.plugins.modules import gpu_test_pods

ALIVE = gpu_test_pods._alive


def test_a_run_that_goes_on_is_alive_and_one_that_ended_is_not():
    machine, pid, started = gpu_test_pods._myself().split(" ")
    assert ALIVE(f"{machine} {pid} {started}") is True
    # The number was given again to another process.
    assert ALIVE(f"{machine} {pid} 1{started}") is False
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(30)
    assert ALIVE(f"{machine} {ended.pid}") is False


def test_of_another_machine_nothing_is_known(monkeypatch):
    owner = gpu_test_pods._myself()
    assert ALIVE("elsewhere 1 1") is None and ALIVE("") is None
    # Containers in the network of their host have its name, and processes of their own.
    monkeypatch.setattr(gpu_test_pods.os, "readlink", lambda path: "pid:[1]")
    assert ALIVE(owner) is None
