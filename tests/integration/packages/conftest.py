# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of the RPM families with stand-in drivers in their repositories."""

from __future__ import annotations

import pytest

from tests.integration.packages import driver_node, standin_rpm_drivers
from tests.integration.packages.rpm_node import DNF, node_tree
from tests.testbed.mirror import debian_mirror


@pytest.fixture(scope="session")
def driver_web():
    """The repositories, served on loopback."""
    if debian_mirror() is None:
        pytest.skip("no Debian mirror can be reached")
    folder = standin_rpm_drivers.web(lambda: node_tree(DNF, "driver-builder"))
    web = driver_node.Web(folder)
    yield web
    web.close()


@pytest.fixture(scope="session")
def driver_nodes(driver_web, tmp_path_factory):
    """Give the node of a distribution; one tree for each package manager, for all tests."""
    made = {}

    def get(name):
        distribution = driver_node.DISTRIBUTIONS[name]
        manager = distribution.manager
        if manager.name not in made:
            work = tmp_path_factory.mktemp(manager.name)
            made[manager.name] = driver_node.make(manager, work, driver_web)
        made[manager.name].become(distribution)
        return made[manager.name]

    yield get
    for node in made.values():
        node.remove_tree()
