# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drivers' fleet: real Debian packages, and stand-ins of Ubuntu's and NVIDIA's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.tools import tiers

# Read by the testbed's modules when they are first imported: `nox -s drivers` sets it too.
os.environ.setdefault("KUBEGPU_FLEET", "drivers")

from tests.integration.fleet.playbooks import REPOSITORY
from tests.testbed.fleet import NAME, chosen
from tests.testbed.paths import BUILD, FLEET, locked

# The other fleet's tests came first in this process: a fleet is the choice of a process.
collect_ignore_glob = [] if FLEET == "drivers" else ["test_*.py"]

# The default tier needs one node, and none of Debian's real drivers.
if FLEET == "drivers" and not tiers.is_full():
    os.environ.setdefault("KUBEGPU_NODES", "drv-ubuntu24b")

# Images, and Debian's packages, are fetched on a machine that has none yet.
_BRING_UP_TIMEOUT = 3600


def node_of(nodeid: str) -> str:
    """Return the name of the node that a test works on; of several, the first."""
    if "debian" in nodeid:
        return "drv-debian12" if "debian12" in nodeid else "drv-debian13"
    if "test_amd" in nodeid:
        return "drv-amd"
    file = nodeid.partition("::")[0]
    if "test_upgrade" in file or "test_killed" in file:
        return "drv-up1"
    return "drv-ubuntu24b" if "test_faults" in nodeid or "[nvidia]" in nodeid else "drv-ubuntu24"


class _ByNode(LoadScopeScheduling):
    """One worker for the tests of a node, in their order.

    xdist's own loadgroup does not see its marks with pytest 9.2: every test went anywhere.
    """

    def _split_scope(self, nodeid: str) -> str:
        return node_of(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return _ByNode(config, log)


def pytest_collection_modifyitems(items):
    """The marks and the names say the same."""
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            marked = [mark.args[0] for mark in item.iter_markers("xdist_group")]
            assert marked == [node_of(item.nodeid)], item.nodeid


@pytest.fixture(scope="session")
def fleet():
    """The nodes by name, as new; with workers side by side, the first one starts them."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    started = BUILD / "started-for"
    with locked(f"fleet-{NAME}"):
        if not run or not started.is_file() or started.read_text() != run:
            argv = [sys.executable, "-m", "tests.testbed", "up", "--drivers", "--fresh"]
            subprocess.run(argv, cwd=REPOSITORY, check=True, timeout=_BRING_UP_TIMEOUT)
            started.write_text(run)
    return {node.name: node for node in chosen()}
