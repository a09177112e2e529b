# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver's upgrade and its rollback, killed at random points: the next run converges.

``KUBEGPU_KILL_POINTS`` says how often each is killed. apt, dpkg, systemd and the runtimes are real;
packages of the driver, DKMS, the GPU and the functions of the kernel are stand-ins.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.integration.drivers.steps import ETC, dpkg_is_consistent, shell
from tests.integration.drivers.test_upgrade import NEW, OLD, faulty, variables
from tests.integration.fleet.playbooks import play
from tests.integration.killed import LEFT, Started, assert_same, kill_at_random_points

NODE = "drv-up1"
pytestmark = [
    pytest.mark.xdist_group(NODE),
    pytest.mark.full(why="minutes; test_faults and test_upgrade kill at chosen points"),
]

# What is equal after any run that ended well: packages, holds, the loaded driver, files.
LOOK = (
    "dpkg -l | grep -v '^rc' | sort; apt-mark showhold; cat /proc/driver/nvidia/version; "
    f"{LEFT}; {ETC}"
)


def look(node):
    """What is on the node, whose record is whole."""
    assert isinstance(json.loads(shell(node, "cat /var/lib/kubegpu/state.json")), dict)
    return shell(node, LOOK)


@pytest.fixture(scope="module")
def node(fleet):
    return fleet[NODE]


def upgrade(version):
    given = variables(version, gpu_upgrade_file=os.devnull)
    return play("upgrade", "--limit", NODE, variables=given, timeout=1800)


def upgraded(version):
    run = upgrade(version)
    assert run.status == 0, run.output


@pytest.fixture(scope="module")
def right(node):
    """What each version leaves where nothing disturbs."""
    tags = ("--tags", "driver,toolkit,runtime")
    run = play("site", *tags, "--limit", NODE, variables=variables(OLD), timeout=1800)
    assert run.status == 0, run.output
    # From here on each version has been there once: what stays of a removed package is there.
    for version in (NEW, OLD):
        upgraded(version)
    found = {}
    for version in (NEW, OLD):
        upgraded(version)
        found[version] = look(node)
    return found


def test_an_upgrade_that_is_killed_converges(node, right, tmp_path):
    """One version and the other in turn; what was begun is finished."""

    def target(number):
        return (NEW, OLD)[number % 2]

    def start(number):
        report = tmp_path / "killed.json"
        given = variables(target(number), gpu_upgrade_file=str(report))
        return Started(
            "upgrade", "--limit", NODE, variables=given, screen=tmp_path / f"screen-{number}"
        )

    def survived(number, what):
        run = upgrade(target(number))
        assert run.status == 0, f"{what}\n{run.output}"
        assert dpkg_is_consistent(node), what
        assert_same(look(node), right[target(number)], what)
        again = upgrade(target(number))
        assert again.status == 0 and again.stats[NODE]["changed"] == 0, f"{what}\n{again.output}"
        assert {path.name for path in tmp_path.iterdir() if "screen" not in path.name} <= {
            "killed.json"
        }, what

    begin = Started(
        "upgrade",
        "--limit",
        NODE,
        screen=tmp_path / "screen-whole",
        variables=variables(NEW, gpu_upgrade_file=os.devnull),
    )
    assert begin.wait() == 0, begin.text
    whole = begin.lasted
    upgraded(OLD)
    kill_at_random_points(start, survived, node, seconds=(1, whole))


def test_a_rollback_that_is_killed_converges(node, right, tmp_path):
    """The new driver finds a fault in each run; the earlier one is there at the end of the next."""

    def start(number):
        given = variables(NEW, gpu_upgrade_file=str(tmp_path / "killed.json"))
        return Started(
            "upgrade", "--limit", NODE, variables=given, screen=tmp_path / f"screen-{number}"
        )

    def survived(_number, what):
        run = upgrade(NEW)
        assert run.status == 2, f"{what}\n{run.output}"
        assert dpkg_is_consistent(node), what
        assert_same(look(node), right[OLD], what)

    upgraded(OLD)
    with faulty(node, NEW):
        whole = start(0)
        assert whole.wait() == 2, whole.text
        # The change takes about as long as the way back.
        kill_at_random_points(start, survived, node, seconds=(0.45 * whole.lasted, whole.lasted))
