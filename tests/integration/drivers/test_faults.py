# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong on real machines: what the user is told, and that the next run converges."""

from __future__ import annotations

import contextlib
import os
import signal
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
from tests.integration.fleet.playbooks import INVENTORY, play

NODE = "drv-ubuntu24b"
pytestmark = pytest.mark.xdist_group(NODE)

VERSION = "580.95.05"
WISH = {"source": "nvidia", "version": VERSION}


@pytest.fixture(scope="module")
def node(fleet):
    return fleet[NODE]


@pytest.fixture(scope="module")
def as_new(node):
    """/etc of the bare node."""
    return etc(node)


@pytest.fixture(autouse=True)
def bare(node, as_new):
    """Every fault meets a bare node, and whatever it left, absent gives that back."""
    yield
    shell(node, "rm -f /opt/standin/slow /opt/standin/dkms-fails /opt/standin/modprobe-fails")
    shell(node, "systemctl stop 'standin-lock-*'")
    run = apply(node, state="absent")
    assert run.status == 0, words(run)
    assert installed(node) == {}
    assert etc(node) == as_new
    assert not shell(node, "ls -A /var/lib/kubegpu 2>/dev/null || true").strip()


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


@pytest.fixture
def full(node):
    """A disk of its own below /usr/src, of 1 MB."""
    shell(node, "mkdir -p /usr/src && mount -t tmpfs -o size=1M tmpfs /usr/src")
    yield
    shell(
        node,
        "cp -a /usr/src /root/usr-src && umount /usr/src && "
        "cp -a /root/usr-src/. /usr/src && rm -r /root/usr-src",
    )


def test_disk_full(node, full):
    run = apply(node, **WISH)
    assert run.status != 0
    assert "The disk of this node is full" in words(run)
    assert "Next step" in words(run)
    # Space is made; what was unpacked stays.
    shell(node, "mount -o remount,size=200M /usr/src")
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


def family(pid):
    """A process and all that it started; Ansible's workers have sessions of their own."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = [pid]
    for one in found:
        found.extend(child for child, parent in pairs if parent == one)
    return found


def ended(pids):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


# Of a controller that is killed, the worker that waits for the package manager can live on.
@pytest.mark.parametrize("workers", ["die too", "live on"])
@pytest.mark.parametrize("then", ["present", "absent"])
def test_controller_killed_half_way(node, workers, then):
    """apt goes on without the controller; the next run finishes the work, or takes it back."""
    shell(node, "echo 15 > /opt/standin/slow")
    wish = "import sys; from tests.integration.drivers.steps import *; "
    wish += "from tests.testbed.fleet import chosen; "
    wish += f"node = next(n for n in chosen() if n.name == {node.name!r}); apply(node, **{WISH!r})"
    controller = subprocess.Popen([sys.executable, "-c", wish], start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not shell(node, "pgrep -fx 'sleep 15' || true").strip():
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        pids = family(controller.pid)
        sessions = {pid: os.getsid(pid) for pid in pids}
        living = [pid for pid in pids if sessions[pid] != controller.pid and workers == "live on"]
        for pid in set(pids) - set(living):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        controller.wait()
    assert facts(node)["driver"]["pending"]
    shell(node, "rm /opt/standin/slow")
    if then == "absent":
        # The rest is what every test here ends with.
        return
    run = apply(node, **WISH)
    assert run.status == 0, words(run)
    assert dpkg_is_consistent(node)
    assert facts(node)["driver"]["loaded"] == VERSION
    deadline = time.monotonic() + 60
    while not ended(living):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    settled(node, **WISH)
    assert set(installed(node)) - held(node) <= {"nvidia-modprobe"}


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


def test_a_refused_node_among_others(node, tmp_path):
    """The others are done, the refused one is told with its reason, and the run has failed."""
    hosts = {
        node.name: {f"nvidia_driver_{name}": value for name, value in WISH.items()},
        # The same machine again: a refused node is not touched. No A10, no T4 has a driver 390.
        "refused": {**variables(node), "nvidia_driver_branch": "390"},
    }
    more = tmp_path / "more.yml"
    more.write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    limit = f"{node.name},refused"
    run = play("site", "-i", str(more), "--tags", "driver", "--limit", limit, timeout=900)
    assert run.status == 2, run.output
    assert run.stats["refused"]["failures"] == 1 and run.stats["refused"]["changed"] == 0
    assert run.stats[node.name]["failures"] == 0 and run.stats[node.name]["changed"] >= 1
    assert "390" in words(run) and "Next step" in words(run)
    assert facts(node)["driver"]["loaded"] == VERSION
    # Both stand in the table of the end, the refused one as such.
    assert "the run stopped at this node; its failed task says why" in run.output
    settled(node, **WISH)


def test_a_version_that_no_list_has(node):
    """Once the repository is there, check mode knows as much as the run."""
    wish = {**WISH, "version": "580.99.99"}
    run = apply(node, **wish)
    check = apply(node, "--check", **wish)
    for one in (run, check):
        assert one.status != 0
        assert "No package list of this node has" in words(one) and "580.99.99" in words(one)
    # Lists that were never read are read for check mode alone.
    shell(node, "find /var/lib/apt/lists -maxdepth 1 -type f -name '*_Packages*' -delete")
    lists = shell(node, "find /var/lib/apt/lists | sort")
    check = apply(node, "--check", **wish)
    assert check.status != 0 and "available are: nvidia-open-580: 580.178" in words(check)
    check = apply(node, "--check", **WISH)
    assert check.status == 0, words(check)
    assert shell(node, "find /var/lib/apt/lists | sort") == lists
    assert installed(node) == {}
