# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong on real machines: what the user is told, and that the next run converges."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest
import yaml

from tests.integration.drivers.steps import (
    apply,
    converge,
    dpkg_is_consistent,
    etc,
    facts,
    held,
    installed,
    settled,
    shell,
    words,
)
from tests.integration.fleet.playbooks import INVENTORY

NODE = "drv-ubuntu24b"
pytestmark = pytest.mark.xdist_group(NODE)

VERSION = "580.95.05"
WISH = {"source": "nvidia", "version": VERSION}


@pytest.fixture(scope="module")
def node(fleet):
    return fleet[NODE]


@pytest.fixture(autouse=True)
def bare(node):
    """Every fault meets a node without a driver, and leaves one."""
    yield
    shell(node, "rm -f /opt/standin/slow /opt/standin/dkms-fails /opt/standin/modprobe-fails")
    shell(node, "systemctl stop 'standin-lock-*'")
    run = apply(node, state="absent")
    assert run.status == 0, words(run)
    assert installed(node) == {}


def variables(node):
    data = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))
    return data["all"]["hosts"][node.name]


def test_repository_unreachable(node):
    before = etc(node)
    address = "http://127.0.0.1:9/cuda"
    run = apply(node, **WISH, repository_url=address, key_url=f"{address}/key.pub")
    assert run.status != 0
    assert f"{address}/key.pub" in words(run)
    assert "Next step" in words(run)
    assert etc(node) == before
    # The key is there, the packages are not.
    run = apply(node, **WISH, repository_url=address)
    assert run.status != 0
    assert address in words(run)
    assert "Next step" in words(run)
    # The entry stays: it is what was asked for.
    assert [line for line in etc(node) if line not in before and "kubegpu" not in line] == []
    converge(node, **WISH)


def test_wrong_key(node):
    before = etc(node)
    run = apply(node, **WISH, key_fingerprints=["0" * 40])
    assert run.status != 0
    assert "0" * 40 in words(run)
    assert variables(node)["nvidia_driver_key_fingerprints"][0] in words(run)
    assert etc(node) == before
    converge(node, **WISH)


def test_packages_signed_by_somebody_else(node):
    before = etc(node)
    other = variables(node)["testbed_wrong_key_driver_repository_url"]
    run = apply(node, **WISH, repository_url=other)
    assert run.status != 0
    assert other in words(run)
    assert "sign" in words(run)
    # The repository's entry stays, with the key that was asked for.
    assert [line for line in etc(node) if line not in before and "kubegpu" not in line] == []
    assert installed(node) == {}
    converge(node, **WISH)


def test_disk_full(node):
    shell(node, "mkdir -p /usr/src && mount -t tmpfs -o size=1M tmpfs /usr/src")
    try:
        run = apply(node, **WISH)
    finally:
        shell(node, "umount /usr/src")
    assert run.status != 0
    assert "The disk of this node is full" in words(run)
    assert "Next step" in words(run)
    converge(node, **WISH)
    assert dpkg_is_consistent(node)
    assert facts(node)["driver"]["loaded"] == VERSION


LOCK = """
import fcntl, time
lock = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
time.sleep({seconds})
"""


def _lock(node, seconds):
    unit = f"standin-lock-{time.monotonic_ns()}"
    script = LOCK.format(seconds=seconds)
    shell(node, f"systemd-run --quiet --unit={unit} python3 -c '{script}'; sleep 0.5")
    return unit


def test_package_manager_locked(node):
    unit = _lock(node, 900)
    run = apply(node, **WISH, lock_timeout=3)
    assert run.status != 0
    assert "Another run of the package manager holds its lock" in words(run)
    assert "Next step" in words(run)
    shell(node, f"systemctl stop {unit}")
    # A lock that goes away in time is waited for.
    _lock(node, 15)
    run = apply(node, **WISH)
    assert run.status == 0, words(run)
    settled(node, **WISH)


def test_killed_half_way(node):
    """dpkg dies in the middle of the build: half configured packages, mended by the next run."""
    shell(node, "echo 60 > /opt/standin/slow")
    killed = []

    def kill():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            found = shell(node, "pgrep -fx 'sleep 60' || true").split()
            if found:
                shell(node, "pkill -9 -x apt-get; pkill -9 -x dpkg; pkill -9 -x sleep; true")
                killed.append(found)
                return
            time.sleep(0.5)

    thread = threading.Thread(target=kill)
    thread.start()
    run = apply(node, **WISH)
    thread.join()
    assert killed
    assert run.status != 0
    assert "Next step" in words(run)
    shell(node, "rm /opt/standin/slow")
    converge(node, **WISH)
    assert dpkg_is_consistent(node)
    assert facts(node)["driver"]["loaded"] == VERSION
    assert set(installed(node)) - held(node) <= {"nvidia-modprobe"}


def test_controller_killed_half_way(node):
    """The node goes on without the controller; the next run finds its work, or finishes it."""
    shell(node, "echo 20 > /opt/standin/slow")
    wish = "import sys; from tests.integration.drivers.steps import *; "
    wish += "from tests.testbed.fleet import chosen; "
    wish += f"node = next(n for n in chosen() if n.name == {node.name!r}); apply(node, **{WISH!r})"
    controller = subprocess.Popen([sys.executable, "-c", wish], start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not shell(node, "pgrep -fx 'sleep 20' || true").strip():
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        subprocess.run(["pkill", "-9", "-s", str(controller.pid)], check=False)
        controller.wait()
    run = apply(node, **WISH)
    assert run.status == 0, words(run)
    assert dpkg_is_consistent(node)
    assert facts(node)["driver"]["loaded"] == VERSION
    settled(node, **WISH)


def test_module_that_does_not_build(node):
    """A compiler's error in a stand-in of DKMS: rolled back, then mended."""
    before = etc(node)
    text = "/var/lib/dkms/nvidia/build/nv.c:7:3: error: implicit declaration of function 'foo'"
    shell(node, f'echo "{text}" > /opt/standin/dkms-fails')
    run = apply(node, **WISH)
    assert run.status != 0
    said = words(run)
    assert "nv.c:7:3: error: implicit declaration" in said
    assert "6.8.0-85-generic" in said and "make.log" in said and "Next step" in said
    assert dpkg_is_consistent(node)
    assert installed(node) == {}
    # The repository stays: nothing is wrong with it.
    assert [line for line in etc(node) if line not in before and "kubegpu" not in line] == []
    shell(node, "rm /opt/standin/dkms-fails")
    converge(node, **WISH)


def test_module_that_the_kernel_refuses(node):
    """As with Secure Boot and a key that is not enrolled."""
    text = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
    shell(node, f'echo "{text}" > /opt/standin/modprobe-fails')
    run = apply(node, **WISH)
    assert run.status != 0
    said = words(run)
    assert "Key was rejected by service" in said
    assert "MOK" in said or "Secure Boot" in said
    assert "Next step" in said
    shell(node, "rm /opt/standin/modprobe-fails")
    run = apply(node, **WISH)
    assert run.status == 0, words(run)
    assert facts(node)["driver"]["loaded"] == VERSION
    settled(node, **WISH)


def test_nouveau_is_unloaded_first(node):
    shell(node, "touch /opt/standin/nouveau; /opt/standin/bin/modprobe nouveau")
    assert facts(node)["nouveau"]["loaded"]
    run = apply(node, **WISH)
    shell(node, "rm /opt/standin/nouveau")
    assert run.status == 0, words(run)
    found = facts(node)
    assert found["driver"]["loaded"] == VERSION and not found["nouveau"]["loaded"]
    settled(node, **WISH)
