# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real API server for tests of labels and manifests, and the whole cluster for the rest."""

from __future__ import annotations

import pytest

from tests.testbed.cluster_control import ControlPlane


@pytest.fixture(scope="session")
def api(tmp_path_factory):
    """An API server of this test run's own, on loopback, without nodes; gone with the run."""
    plane = ControlPlane(tmp_path_factory.mktemp("api") / "plane")
    try:
        yield plane.up(with_parent=True)
    finally:
        plane.remove()
