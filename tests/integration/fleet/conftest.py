# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet for live tests: brought up once, given back to the test bed as it is."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from tests.integration.fleet.playbooks import ETC, REPOSITORY, on_nodes, play
from tests.testbed import calls
from tests.testbed.fleet import chosen
from tests.testbed.paths import FLEET
from tests.tools import tiers

# Images of three releases are made on a machine that has none yet.
_BRING_UP_TIMEOUT = 1800
# Both ends of what the engines of Debian's releases differ in, and a node that is left alone.
_DEFAULT_TIER = "gpu1,gpu3,cpu1"

if FLEET == "testbed" and not tiers.is_full():
    # The testbed's commands read it too.
    os.environ.setdefault("KUBEGPU_NODES", _DEFAULT_TIER)

# What is there only while the collection has done something to a node.
_OURS = (
    "ls -A /var/lib/kubegpu /etc/apt/sources.list.d 2>/dev/null | grep -e kubegpu -e .json; "
    "dpkg-query -W -f '${Package} ${db:Status-Status}\\n' '*nvidia*' 2>/dev/null "
    "| grep ' installed'; true"
)


class Nodes:
    """The nodes' state between tests, so that none is made that is there already."""

    def __init__(self):
        self.converged = False

    def bare(self):
        """See that nothing of ours is on the nodes."""
        if self.converged or any(on_nodes(_OURS).values()):
            run = play("teardown")
            assert run.status == 0, run.output
        self.converged = False


class Story:
    """What the playbooks did to the bare nodes, one after another, each once."""

    def __init__(self, nodes):
        nodes.bare()
        self.etc_before = on_nodes(ETC)
        self.admins_file = on_nodes("cat /etc/docker/daemon.json 2>/dev/null", "gpu1")["gpu1"]
        self._predicted = self._first = None
        self._nodes = nodes

    @property
    def predicted(self):
        """What check mode says of the bare fleet."""
        if self._predicted is None:
            run = play("site", "--check", "--diff")
            assert run.status == 0, run.output
            self.etc_after_check = on_nodes(ETC)
            self._predicted = run
        return self._predicted

    @property
    def first(self):
        """The first run of site; the nodes are as it left them."""
        assert self.predicted
        if self._first is None:
            run = play("site", "--diff")
            assert run.status == 0, run.output
            self._first, self._nodes.converged = run, True
        elif not self._nodes.converged:
            run = play("site")
            assert run.status == 0, run.output
            self._nodes.converged = True
        return self._first


@pytest.fixture(scope="session")
def started():
    """The nodes, running, in whatever state."""
    argv = [sys.executable, "-m", "tests.testbed", "up"]
    subprocess.run(argv, cwd=REPOSITORY, check=True, timeout=_BRING_UP_TIMEOUT)
    return chosen()


@pytest.fixture(scope="session")
def nodes(started):
    return Nodes()


@pytest.fixture(scope="session")
def story(nodes):
    return Story(nodes)


@pytest.fixture(scope="module")
def fleet(started, nodes):
    """The nodes, running and without anything of ours."""
    nodes.bare()
    return started


@pytest.fixture
def converged(story):
    """The first run of site, whose state the nodes are in."""
    return story.first


@pytest.fixture(scope="session")
def gpu_nodes(started):
    return [node.name for node in started if node.gpus]


@pytest.fixture(scope="session")
def cpu_nodes(started):
    return [node.name for node in started if not node.gpus]


@pytest.fixture
def count_calls(started):
    """A context that counts the modules which Ansible starts on each node meanwhile."""

    @contextlib.contextmanager
    def counting():
        counted: dict[str, int] = {}
        calls.reset(started)
        yield counted
        counted.update(calls.count(started))

    return counting


def pytest_collection_modifyitems(items):
    """The fleet goes through the story once: what looks at converged nodes, then their end.

    A test makes the state that it needs, so that the order saves runs of playbooks only.
    """
    here = os.path.dirname(__file__)

    def turn(item):
        if not str(item.path).startswith(here):
            return 0
        if item.path.name in ("test_scenarios.py", "test_site.py", "test_verify.py"):
            return 4 if "teardown" in item.name else 2 if item.path.name == "test_site.py" else 3
        return 5

    items.sort(key=turn)
