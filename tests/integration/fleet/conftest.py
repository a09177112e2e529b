# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet for live tests: brought up once, given back to the test bed as it is."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from tests.integration.fleet.playbooks import REPOSITORY, play
from tests.testbed import calls
from tests.testbed.fleet import chosen

# Images of three releases are made on a machine that has none yet.
_BRING_UP_TIMEOUT = 1800


@pytest.fixture(scope="session")
def fleet():
    """The nodes, running and without anything of ours."""
    argv = [sys.executable, "-m", "tests.testbed", "up"]
    subprocess.run(argv, cwd=REPOSITORY, check=True, timeout=_BRING_UP_TIMEOUT)
    run = play("teardown")
    assert run.status == 0, run.output
    return chosen()


@pytest.fixture(scope="session")
def gpu_nodes(fleet):
    return [node.name for node in fleet if node.gpus]


@pytest.fixture(scope="session")
def cpu_nodes(fleet):
    return [node.name for node in fleet if not node.gpus]


@pytest.fixture
def count_calls(fleet):
    """A context that counts the modules which Ansible starts on each node meanwhile."""

    @contextlib.contextmanager
    def counting():
        counted: dict[str, int] = {}
        calls.reset(fleet)
        yield counted
        counted.update(calls.count(fleet))

    return counting
