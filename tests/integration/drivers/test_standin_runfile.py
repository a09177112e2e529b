# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of a driver that comes by a runfile, a stand-in of NVIDIA's installer (testbed.runfile).

The steps run in this order on one node; the last one gives it back as it was.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.integration import ansible_process
from tests.integration.drivers.steps import (
    answer,
    apply,
    assert_converged,
    converge,
    dpkg_is_consistent,
    etc,
    facts,
    installed,
    shell,
    words,
)
from tests.integration.killing import family
from tests.testbed.runfile import driver_name, write

NODE = "drv-ubuntu24"
pytestmark = [
    pytest.mark.xdist_group(NODE),
    pytest.mark.full(
        why="a driver from a runfile; test_faults.test_module_that_does_not_build has packages"
    ),
]

OLD, NEW, NEXT = "580.95.05", "580.178.04", "595.58.03"
TASK = "Install, configure and load the driver"
CACHE = "/var/cache/kubegpu"
# The stand-in of Ubuntu's archive has no compiler, and the stand-in of an installer needs none.
COMPILER = """
for name in gcc make; do
    folder=$(mktemp -d); mkdir "$folder/DEBIAN"
    printf 'Package: %s\\nVersion: 1\\nArchitecture: all\\nMaintainer: testbed\\n' $name \
        >"$folder/DEBIAN/control"
    echo 'Description: stand-in' >>"$folder/DEBIAN/control"
    dpkg-deb --build "$folder" "/tmp/$name.deb" && dpkg -i "/tmp/$name.deb"
done
"""


@pytest.fixture(scope="module")
def node(fleet):
    node = fleet[NODE]
    shell(node, COMPILER)
    yield node
    shell(node, "dpkg --purge gcc make")


@pytest.fixture(scope="module")
def before(node):
    """/etc of the bare node."""
    return etc(node)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the files lie on the controller."""
    folder = tmp_path_factory.mktemp("runfiles")
    for version in (OLD, NEW):
        write(folder, version)
    for how in ("build", "slow"):
        (folder / how).mkdir()
    write(folder / "build", NEXT, fail="build")
    write(folder / "slow", NEXT, seconds=40)
    return folder


def request(folder, version, **more):
    path = str(folder / driver_name(version))
    return {"source": "runfile", "runfile": {"path": path, "checksum": f"{path}.sha256sum"}, **more}


def there(node, version):
    driver = facts(node)["driver"]
    assert driver["loaded"] == driver["installed"] == driver["userland"] == version
    assert driver["source"] == "runfile" and driver["kernel_module"] == "open"
    assert driver["managed"] and not driver["pending"] and not driver["pending_reboot"]
    assert driver["services"]["nvidia-persistenced"] == "active"
    assert not installed(node)


def cached(node):
    return shell(node, f"ls -A {CACHE} 2>/dev/null || true").split()


def test_wrong_checksum(node, folder, before):
    wrong = request(folder, OLD)
    wrong["runfile"]["checksum"] = "sha256:" + "0" * 64
    for options in (["--check"], []):
        run = apply(node, *options, **wrong)
        assert run.status != 0
        assert "is not the file that was meant" in words(run)
        assert "Next step" in words(run)
    assert etc(node) == before
    assert cached(node) == []
    assert facts(node)["driver"]["managed"] is False


def test_a_compiler_that_no_list_has(node, folder, before):
    """What fails before the installer is told as it is, and nothing stays."""
    shell(node, "dpkg --purge gcc")
    run = apply(node, **request(folder, OLD))
    shell(node, "dpkg -i /tmp/gcc.deb")
    assert run.status != 0
    assert "gcc" in words(run) and "no driver is installed, as before" in words(run)
    assert etc(node) == before
    assert cached(node) == []


def test_install(node, folder, before):
    converge(node, **request(folder, OLD))
    there(node, OLD)
    assert cached(node) == [driver_name(OLD)]


def test_the_same_version_needs_no_file(node, folder, before):
    assert_converged(node, **request(folder / "nowhere", OLD))


def test_upgrade(node, folder, before):
    run = apply(node, **request(folder, NEW))
    assert run.status == 0, words(run)
    there(node, NEW)
    assert answer(run, node, TASK)["previous"]["version"] == OLD
    assert sorted(cached(node)) == sorted([driver_name(OLD), driver_name(NEW)])


def test_an_installer_that_fails_half_way(node, folder, before):
    """It has taken the driver away by then, and that one comes back, loaded."""
    run = apply(node, **request(folder / "build", NEXT))
    assert run.status != 0
    said = words(run)
    assert "too few arguments to function" in said and "/var/log/nvidia-installer.log" in said
    assert f"Rolled back: {NEW} open from runfile" in said
    there(node, NEW)
    assert driver_name(NEXT) not in cached(node)
    # What builds its modules for the next kernel stays.
    assert "ok installed" in shell(node, "dpkg-query -W -f '${Status}' dkms")
    assert_converged(node, **request(folder, NEW))


def test_an_installer_that_is_killed(node, folder, before):
    """The controller dies, and the installer too: the next run finishes another request."""
    code = "import sys; from tests.integration.drivers.steps import *; "
    code += "from tests.testbed.fleet import chosen; "
    code += f"node = next(n for n in chosen() if n.name == {node.name!r}); "
    code += f"apply(node, **{request(folder / 'slow', NEXT)!r})"
    as_program = {**os.environ, ansible_process.AS_PROGRAM: "1"}
    controller = subprocess.Popen(
        [sys.executable, "-c", code], env=as_program, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 900
        while not shell(node, "pgrep -fx 'sleep 40' || true").strip():
            assert controller.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        for pid in family(controller.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        controller.wait()
    # In brackets, so that this shell is not one of them.
    shell(node, f"pkill -9 -f '[{driver_name(NEXT)[0]}]{driver_name(NEXT)[1:]}' || true")
    shell(node, "pkill -9 -fx 'sleep 40' || true")
    assert facts(node)["driver"]["pending"]
    run = apply(node, **request(folder, NEW))
    assert run.status == 0, words(run)
    there(node, NEW)
    assert driver_name(NEXT) not in cached(node)
    assert_converged(node, **request(folder, NEW))


def test_nouveau_is_unloaded_before(node, folder, before):
    """The installer refuses to run beside it."""
    assert apply(node, state="absent").status == 0
    shell(node, "touch /opt/standin/nouveau; /opt/standin/bin/modprobe nouveau")
    assert facts(node)["nouveau"]["loaded"]
    run = apply(node, **request(folder, OLD))
    shell(node, "rm /opt/standin/nouveau")
    assert run.status == 0, words(run)
    there(node, OLD)


def test_packages_in_its_place(node, folder, before):
    run = apply(node, source="distro", version=OLD)
    assert run.status == 0, words(run)
    assert facts(node)["driver"]["source"] == "runfile"
    run = apply(node, source="distro", version=NEW)
    assert run.status != 0 and "replace_source" in words(run)
    run = apply(node, source="distro", version=NEW, replace_source=True)
    assert run.status == 0, words(run)
    driver = facts(node)["driver"]
    assert (driver["loaded"], driver["source"], driver["uninstaller"]) == (NEW, "distro", None)
    assert_converged(node, source="distro", version=NEW, replace_source=True)


def test_and_back(node, folder, before):
    run = apply(node, **request(folder, OLD, replace_source=True))
    assert run.status == 0, words(run)
    there(node, OLD)
    assert_converged(node, **request(folder, OLD, replace_source=True))


def test_removal_gives_the_node_back(node, folder, before):
    converge(node, state="absent")
    found = facts(node)["driver"]
    assert (found["loaded"], found["installed"], found["uninstaller"]) == (None, None, None)
    assert etc(node) == before
    assert dpkg_is_consistent(node)
    assert cached(node) == []
    assert not shell(node, "ls -A /var/lib/kubegpu 2>/dev/null || true").strip()
