# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong on real machines: what the user is told, and that the next run converges."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from tests.integration import ansible_process
from tests.integration.drivers.steps import (
    apply,
    assert_converged,
    converge,
    dpkg_is_consistent,
    etc,
    facts,
    held,
    installed,
    reached,
    shell,
    words,
)
from tests.integration.fleet.playbooks import INVENTORY, play
from tests.integration.killing import kill

NODE = "drv-ubuntu24b"
pytestmark = pytest.mark.xdist_group(NODE)

VERSION = "580.95.05"
WISH = {"source": "nvidia", "version": VERSION}

OTHER_FAULT = pytest.mark.full(why="another fault of an install: test_module_that_does_not_build")


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
    shell(node, "cd /opt/standin && rm -f slow slow-begun dkms-fails modprobe-fails")
    shell(node, "systemctl stop 'standin-lock-*'")
    bare = shell(node, "test -e /var/lib/kubegpu || echo bare").strip()
    if not bare or installed(node) or etc(node) != as_new:
        run = apply(node, state="absent")
        assert run.status == 0, words(run)
    assert installed(node) == {}
    assert etc(node) == as_new
    assert not shell(node, "ls -A /var/lib/kubegpu 2>/dev/null || true").strip()


def variables(node):
    data = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))
    return data["all"]["hosts"][node.name]


@OTHER_FAULT
def test_repository_that_cannot_be_used(node, as_new):
    """One after the other, each told by its address or key; then the right one."""
    known = variables(node)["nvidia_driver_repository"]
    run = apply(node, **WISH, repository={**known, "key_fingerprints": ["0" * 40]})
    assert run.status != 0
    assert "0" * 40 in words(run)
    assert known["key_fingerprints"][0] in words(run)
    assert etc(node) == as_new
    address = "http://127.0.0.1:9/cuda"
    there = {"url": address, "key_url": f"{address}/key.pub"}
    run = apply(node, **WISH, repository={**known, **there})
    assert run.status != 0
    assert f"{address}/key.pub" in words(run)
    assert "Next step" in words(run)
    assert etc(node) == as_new
    # The key is there, the packages are not.
    run = apply(node, **WISH, repository={**known, "url": address})
    assert run.status != 0
    assert address in words(run)
    assert "Next step" in words(run)
    only_the_entry_stays(node, as_new)
    # Signed by somebody else.
    other = variables(node)["testbed_wrong_key_driver_repository"]["url"]
    run = apply(node, **WISH, repository={**known, "url": other})
    assert run.status != 0
    assert other in words(run)
    assert "sign" in words(run)
    only_the_entry_stays(node, as_new)
    converge(node, **WISH)


def only_the_entry_stays(node, as_new):
    """The repository's, with its key: it is what was asked for."""
    assert [line for line in etc(node) if line not in as_new and "kubegpu" not in line] == []
    assert installed(node) == {}


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


@OTHER_FAULT
def test_disk_full(node, full):
    run = apply(node, **WISH)
    assert run.status != 0
    assert "The file system /usr/src of this node has too little free space" in words(run)
    assert "Next step" in words(run)
    # Space is made; what was unpacked stays.
    shell(node, "mount -o remount,size=200M /usr/src")
    reached(node, **WISH)
    assert dpkg_is_consistent(node)
    assert facts(node)["driver"]["loaded"] == VERSION


LOCK = """
import fcntl, time
lock = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
open("/run/{unit}", "w").close()
time.sleep({seconds})
"""


def _lock(node, seconds):
    unit = f"standin-lock-{time.monotonic_ns()}"
    script = LOCK.format(seconds=seconds, unit=unit)
    shell(
        node,
        f"systemd-run --quiet --unit={unit} python3 -c '{script}'; "
        f"timeout 60 sh -c 'until test -e /run/{unit}; do sleep 0.1; done'",
    )
    return unit


@OTHER_FAULT
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
    assert_converged(node, **WISH)


def slow_build(node):
    """Let the next build of a module wait until it is told to go on."""
    shell(node, "rm -f /opt/standin/slow-begun; touch /opt/standin/slow")


def begun(node, doing):
    """Wait until the build has begun, as long as what leads to it is at work."""
    deadline = time.monotonic() + 900
    while not shell(node, "ls /opt/standin/slow-begun 2>/dev/null || true").strip():
        assert doing.poll() is None, "the run has ended"
        assert time.monotonic() < deadline
        time.sleep(0.5)


def background(node):
    """A controller of its own, with the request."""
    request = "import sys; from tests.integration.drivers.steps import *; "
    request += "from tests.testbed.fleet import chosen; "
    request += f"node = next(n for n in chosen() if n.name == {node.name!r}); "
    request += f"run = apply(node, **{WISH!r}); print(words(run)); sys.exit(run.status)"
    return subprocess.Popen(
        [sys.executable, "-c", request],
        env={**os.environ, ansible_process.AS_PROGRAM: "1"},
        start_new_session=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.full(why="the first line comes after half a minute")
def test_a_slow_build_is_told(node):
    slow_build(node)
    ended = threading.Event()

    def go_on():
        try:
            while not ended.wait(1):
                if shell(node, "ls /opt/standin/slow-begun 2>/dev/null || true").strip():
                    # A line falls in it, whenever the build has begun.
                    ended.wait(70)
                    break
        finally:
            shell(node, "rm -f /opt/standin/slow")

    other = threading.Thread(target=go_on)
    other.start()
    try:
        run = apply(node, **WISH)
    finally:
        ended.set()
        other.join()
    assert run.status == 0, words(run)
    step = r"DKMS builds kernel modules \([01]:\d\d\)"
    told = rf"^{NODE}: packages .+: {step}, for \d:\d\d of at most 70:00$"
    assert re.search(told, run.output, re.M), run.output


@OTHER_FAULT
def test_killed_half_way(node):
    """dpkg dies in the middle of the build: half configured packages, fixed by the next run."""
    slow_build(node)
    controller = background(node)
    begun(node, controller)
    # In brackets, so that this shell is not one of them.
    # The build goes last, as nothing of the others would be left to be killed after it.
    shell(
        node,
        "pkill -9 -x apt-get; pkill -9 -x dpkg; pkill -9 -f '[i]nfo/nvidia-.*postinst'; "
        "pkill -9 -x dkms",
    )
    said, _none = controller.communicate(timeout=900)
    assert controller.returncode != 0
    assert "Next step" in said
    shell(node, "rm /opt/standin/slow")
    reached(node, **WISH)
    assert dpkg_is_consistent(node)
    assert facts(node)["driver"]["loaded"] == VERSION
    assert set(installed(node)) - held(node) <= {"nvidia-modprobe"}


def ended(pids):
    """Whether none is at work; one that nobody has waited for has no command line any more."""
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/cmdline").read_bytes():
                return False
    return True


# Of a controller that is killed, the worker that waits for the package manager can live on.
@OTHER_FAULT
@pytest.mark.parametrize("workers", ["die too", "live on"])
@pytest.mark.parametrize("then", ["present", "absent"])
def test_controller_killed_half_way(node, workers, then):
    """apt goes on without the controller; the next run finishes the work, or takes it back."""
    slow_build(node)
    controller = background(node)
    living = []
    try:
        begun(node, controller)
    finally:
        living = kill(controller, workers=workers == "die too")
    assert facts(node)["driver"]["pending"]
    # The next run meets a package manager at work.
    timer = threading.Timer(10, shell, (node, "rm /opt/standin/slow"))
    timer.start()
    try:
        run = apply(node, **(WISH if then == "present" else {"state": "absent"}))
    finally:
        timer.join()
    assert run.status == 0, words(run)
    assert dpkg_is_consistent(node)
    deadline = time.monotonic() + 300
    while not ended(living):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    if then == "absent":
        # What else has to be as before, every test here ends with.
        return
    assert facts(node)["driver"]["loaded"] == VERSION
    assert_converged(node, **WISH)
    assert set(installed(node)) - held(node) <= {"nvidia-modprobe"}


def test_module_that_does_not_build(node):
    """A compiler's error in a stand-in of DKMS: rolled back, then fixed.

    The one driver's install of the default tier: check mode, the run and another one, the hold that
    somebody takes away, and, after each test here, absent that gives the node back.
    """
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
    driver = facts(node)["driver"]
    assert driver["loaded"] == driver["installed"] == driver["userland"] == VERSION
    assert driver["held"] and driver["managed"] and driver["kernel_module"] == "open"
    assert "blacklist nouveau" in shell(node, "cat /boot/initrd.img-$(uname -r)")
    assert set(installed(node)) - held(node) <= {"nvidia-modprobe"}
    name = sorted(installed(node))[0]
    shell(node, f"apt-mark unhold {name}")
    run = apply(node, **WISH)
    assert run.status == 0, words(run)
    assert run.stats[node.name]["changed"] >= 1
    assert name in held(node)


@OTHER_FAULT
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
    assert_converged(node, **WISH)


@OTHER_FAULT
def test_nouveau_is_unloaded_first(node):
    shell(node, "touch /opt/standin/nouveau; /opt/standin/bin/modprobe nouveau")
    assert facts(node)["nouveau"]["loaded"]
    run = apply(node, **WISH)
    shell(node, "rm /opt/standin/nouveau")
    assert run.status == 0, words(run)
    found = facts(node)
    assert found["driver"]["loaded"] == VERSION and not found["nouveau"]["loaded"]
    assert_converged(node, **WISH)


@OTHER_FAULT
def test_one_machine_under_two_names_is_left_alone(node, tmp_path):
    """It would be changed by two plans at once; which of them is meant, nothing can tell."""
    loaded = facts(node)["driver"]["loaded"]
    hosts = {
        node.name: {f"nvidia_driver_{name}": value for name, value in WISH.items()},
        "again": {**variables(node), "nvidia_driver_branch": "390"},
    }
    more = tmp_path / "more.yml"
    more.write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    limit = f"{node.name},again"
    run = play("site", "-i", str(more), "--tags", "driver", "--limit", limit, timeout=900)
    assert run.status == 2, run.output
    for name in (node.name, "again"):
        assert run.stats[name]["failures"] == 1 and run.stats[name]["changed"] == 0
    assert "are one machine" in words(run)
    assert facts(node)["driver"]["loaded"] == loaded


@OTHER_FAULT
def test_a_version_that_no_list_has(node):
    """Once the repository is there, check mode knows as much as the run."""
    request = {**WISH, "version": "580.99.99"}
    run = apply(node, **request)
    check = apply(node, "--check", **request)
    for one in (run, check):
        assert one.status != 0
        assert "No package list of this node has" in words(one) and "580.99.99" in words(one)
    # Lists that were never read are read for check mode alone.
    shell(node, "find /var/lib/apt/lists -maxdepth 1 -type f -name '*_Packages*' -delete")
    lists = shell(node, "find /var/lib/apt/lists | sort")
    check = apply(node, "--check", **request)
    assert check.status != 0
    assert "available are: " in words(check) and "nvidia-open-580: 580.178" in words(check)
    check = apply(node, "--check", **WISH)
    assert check.status == 0, words(check)
    assert shell(node, "find /var/lib/apt/lists | sort") == lists
    assert installed(node) == {}
