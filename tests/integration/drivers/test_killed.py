# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver's upgrade and its rollback, killed at random points: the next run converges.

``KUBEGPU_KILL_POINTS`` says how often each is killed. apt, dpkg, systemd and the runtimes are real;
packages of the driver, DKMS, the GPU and the functions of the kernel are stand-ins.
"""

from __future__ import annotations

import contextlib
import json
import os

import pytest

from tests.integration.drivers.steps import ETC
from tests.integration.drivers.test_upgrade import NEW, OLD, faulty, variables
from tests.integration.fleet.playbooks import on_nodes, play
from tests.integration.killed import (
    LEFT,
    Started,
    assert_same,
    kill_at_random_points,
    whole_runs,
)

NAMES = ("drv-up1", "drv-up2", "drv-up3")
ALL = ":".join(NAMES)
pytestmark = [
    pytest.mark.xdist_group(NAMES[0]),
    pytest.mark.full(why="minutes; test_faults and test_upgrade kill at chosen points"),
]

# What is equal after any run that ended well: packages, holds, the loaded driver, files.
LOOK = (
    "dpkg -l | grep -v '^rc' | sort; apt-mark showhold; cat /proc/driver/nvidia/version; "
    f"{LEFT}; {ETC}"
)


def look():
    """What is on the nodes, whose records are whole."""
    for text in on_nodes("cat /var/lib/kubegpu/state.json", ALL).values():
        assert isinstance(json.loads(text), dict)
    return on_nodes(LOOK, ALL)


def assert_as(right, folder, what):
    """The nodes are as a whole run leaves them; the controller has reports and nothing torn."""
    found = look()
    for name in NAMES:
        assert_same(found[name], right[name], f"{name}: {what}")
    assert not any(on_nodes("dpkg --audit", ALL).values()), what
    names = {path.name for path in folder.iterdir() if not path.name.startswith("screen-")}
    assert names <= {f"killed-{name}.json" for name in NAMES}, what


@pytest.fixture(scope="module")
def nodes(fleet):
    return [fleet[name] for name in NAMES]


def upgrade(version):
    """All nodes in one batch, whose ends are each one's own."""
    given = variables(version, gpu_upgrade_file=os.devnull, gpu_upgrade_canary=len(NAMES))
    return play("upgrade", "--limit", ALL, variables=given, timeout=1800)


def upgraded(version):
    run = upgrade(version)
    assert run.status == 0, run.output


@pytest.fixture(scope="module")
def right(nodes):
    """What each version leaves on each node where nothing disturbs."""
    tags = ("--tags", "driver,toolkit,runtime")
    run = play("site", *tags, "--limit", ALL, variables=variables(OLD), timeout=1800)
    assert run.status == 0, run.output
    upgraded(NEW)
    found = {}
    # Each version has been there once: what stays of a removed package is there.
    for version in (OLD, NEW):
        upgraded(version)
        found[version] = look()
    return found


def begin(folder, number, node, version):
    """Start an upgrade of one node."""
    report = folder / f"killed-{node.name}.json"
    return Started(
        "upgrade", "--limit", node.name, screen=folder / f"screen-{number}-{node.name}",
        variables=variables(version, gpu_upgrade_file=str(report)),
    )  # fmt: skip


def test_an_upgrade_that_is_killed_converges(nodes, right, tmp_path):
    """One version and the other in turn; what was begun is finished."""

    def target(number):
        return (NEW, OLD)[number % 2]

    def start(number, node):
        return begin(tmp_path, number, node, target(number))

    def survived(number, what):
        run = upgrade(target(number))
        assert run.status == 0, f"{what}\n{run.output}"
        assert_as(right[target(number)], tmp_path, what)
        again = upgrade(target(number))
        changed = {name: one["changed"] for name, one in again.stats.items()}
        assert again.status == 0 and not any(changed.values()), f"{what}\n{again.output}"

    # The nodes have the new version.
    whole = whole_runs(lambda _number, node: start(1, node), nodes)
    for run in whole:
        assert run.wait() == 0, run.text
    seconds = {node.name: (1, run.lasted) for node, run in zip(nodes, whole, strict=True)}
    kill_at_random_points(start, survived, nodes, seconds=seconds)


def test_a_rollback_that_is_killed_converges(nodes, right, tmp_path):
    """The new driver finds a fault in each run; the earlier one is there at the end of the next."""

    def start(number, node):
        return begin(tmp_path, number, node, NEW)

    def survived(_number, what):
        run = upgrade(NEW)
        assert run.status == 2, f"{what}\n{run.output}"
        assert_as(right[OLD], tmp_path, what)

    upgraded(OLD)
    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.enter_context(faulty(node, NEW))
        whole = whole_runs(start, nodes)
        for run in whole:
            assert run.wait() == 2, run.text
        # The change takes about as long as the way back.
        seconds = {
            node.name: (0.45 * run.lasted, run.lasted)
            for node, run in zip(nodes, whole, strict=True)
        }
        kill_at_random_points(start, survived, nodes, seconds=seconds)
