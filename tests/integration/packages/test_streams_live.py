# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""package_set and streams of modules, with the real dnf 4; dnf 5 and zypper have none."""

from __future__ import annotations

import pytest

from tests.integration.packages.rpm_node import needs_root

pytestmark = [
    *needs_root,
    pytest.mark.full(why="sets of a stream, which only drivers of dnf 4 have: of test_rpm_live"),
]

OPEN = {"nvidia-open": "3:580.95.05-1"}
DKMS = {"cuda-drivers": "3:580.95.05-1"}
LOCK = {"patterns": ["nvidia-*", "kmod-nvidia*", "cuda-drivers*"], "version": "580.95.05"}


@pytest.fixture(scope="module")
def node(driver_nodes):
    return driver_nodes("rocky9")


def request(stream="580-open", packages=None, **options):
    return {
        "name": "nvidia-driver",
        "module_streams": {"nvidia-driver": stream},
        "packages": OPEN if packages is None else packages,
        "lock": LOCK,
        **options,
    }


def test_before_the_repository_is_there(node):
    check = node.task("package_set", check=True, **request())
    assert check["changed"] and check["module_streams"] == {"nvidia-driver": "580-open"}
    told = node.task("package_set", check=True, **request(repository_expected=False))
    assert "has the module stream nvidia-driver:580-open" in told["msg"]
    assert node.stream() is None


def test_one_stream_after_another_and_back(node):
    node.task("package_repository", **node.repository())
    first = node.run("package_set", **request())
    assert first["reasons"][0] == (
        "The stream of the module nvidia-driver is not enabled, requested is 580-open."
    )
    assert node.stream() == "580-open" and node.driver()["kmod-nvidia-open-dkms"] == "580.95.05"
    assert node.held("nvidia-driver-cuda-libs")
    # Somebody took the stream away: no package differs.
    node.shell("dnf -C -y module reset nvidia-driver")
    fixed = node.run("package_set", **request())
    assert fixed["changed"] and node.stream() == "580-open"
    # Both types of kernel modules are never there at the same time.
    old = ["nvidia-open", "kmod-nvidia-open-dkms"]
    told = node.run("package_set", **request("580-dkms", DKMS, obsolete=old))
    assert "module nvidia-driver:580-open\n" in told["diff"][0]["before"]
    assert "module nvidia-driver:580-dkms\n" in told["diff"][0]["after"]
    assert node.stream() == "580-dkms" and "nvidia-open" not in node.driver()
    assert node.driver()["kmod-nvidia-latest-dkms"] == "580.95.05"
    words = node.task("package_set", **request("999-open"))["msg"]
    assert "nvidia-driver:999-open" in words and "580-open, " in words
    assert node.stream() == "580-dkms"
    gone = node.run("package_set", name="nvidia-driver", state="absent")
    assert gone["changed"] and node.driver() == {} and node.stream() is None


def test_a_stream_of_somebody_comes_back_after_a_fault_and_in_the_end(node):
    node.shell("dnf -C -y module enable nvidia-driver:595-open")
    node.shell("dnf clean packages")
    with node.web.without("kmod-nvidia-open-dkms-580.95.05-1.noarch.rpm"):
        failed = node.task("package_set", **request())
    assert failed["failed"] and node.stream() == "595-open"
    # A run that died between reset and enable has left no stream at all.
    node.shell("dnf -C -y module reset nvidia-driver")
    node.run("package_set", **request())
    assert node.stream() == "580-open"
    node.run("package_set", name="nvidia-driver", state="absent")
    assert node.stream() == "595-open" and node.driver() == {}
    node.shell("dnf -C -y module reset nvidia-driver")
    node.task("package_repository", name="kubegpu-test", state="absent")


@pytest.mark.parametrize("name", ["fedora44", "leap15"])
def test_no_streams_elsewhere(driver_nodes, name):
    node = driver_nodes(name)
    words = node.task("package_set", check=True, **request())["msg"]
    assert "module_streams:" in words and "has no streams of modules" in words
