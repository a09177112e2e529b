# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real API server for tests of labels and manifests, and the whole cluster for the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.integration.cluster import rights
from tests.testbed import paths
from tests.testbed.cluster_control import ControlPlane

# Kubernetes and the images are made on a machine that has none yet.
_BRING_UP_TIMEOUT = 7200


@pytest.fixture(scope="session")
def api(tmp_path_factory):
    """An API server of this test run's own, on loopback, without nodes; gone with the run."""
    plane = ControlPlane(tmp_path_factory.mktemp("api") / "plane")
    try:
        yield plane.up(with_parent=True)
    finally:
        plane.remove()


@pytest.fixture(scope="session")
def cluster():
    """The running cluster's control plane, with the nodes of this run's tier."""
    if paths.FLEET != "cluster":
        pytest.fail("the cluster is its own fleet: set KUBEGPU_FLEET=cluster")
    argv = [sys.executable, "-m", "tests.testbed", "cluster-up"]
    subprocess.run(argv, cwd=paths.REPOSITORY, check=True, timeout=_BRING_UP_TIMEOUT)
    return ControlPlane(paths.BUILD / "control")


@pytest.fixture(scope="module")
def account(api):
    """The account with the rights to label nodes, and a token; gone after the module.

    The end of its namespace takes seconds. A test that takes rights away gives them back.
    """
    rights.apply(api, "base", "nodes")
    yield {"host": api.server, "ca_cert": str(api.ca_file), "api_key": rights.token(api)}
    rights.delete(api)
