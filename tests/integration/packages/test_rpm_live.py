# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""package_repository and package_set with the real dnf 4, dnf 5, zypper and rpm.

The distributions are stand-ins: a Debian root file system with one of them, and the os-release of
another distribution.
The packages are stand-ins; the managers, their repository and its signature are real. Each test
leaves the node as it found it.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from tests.integration.packages import standin_repository as standin
from tests.integration.packages import standin_rpm
from tests.integration.packages.chroot_node import difference
from tests.integration.packages.rpm_node import (
    DNF,
    DNF5,
    ZYPPER,
    Manager,
    RpmNode,
    needs_root,
    node_tree,
)
from tests.testbed.mirror import debian_mirror

TOOLKIT = "nvidia-container-toolkit"
LIBRARY = "libnvidia-container1"
HELPER = "libstandin-helper"

pytestmark = [
    *needs_root,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in repository is x86_64"),
]


class ToolkitNode(RpmNode):
    """The node and the set of the container toolkit on it."""

    def present(self, version="1.20.0-1", **options):
        packages = dict.fromkeys(standin.SET, version)
        return self.run("package_set", name="toolkit", packages=packages, **options)

    def failing(self, version="1.20.0-1", **options):
        before = (self.packages(), self.etc())
        packages = dict.fromkeys(standin.SET, version)
        answer = self.task("package_set", name="toolkit", packages=packages, **options)
        assert answer["failed"]
        assert (self.packages(), self.etc()) == before
        return answer["msg"]

    def absent(self):
        return self.run("package_set", name="toolkit", state="absent")

    def versions(self):
        return {
            line.rpartition("-")[0].rpartition("-")[2]
            for line in self.packages()
            if "nvidia-container" in line and not line.startswith("lock")
        }


@pytest.fixture(scope="module")
def served():
    """The repository on loopback, the same signed by somebody else, and the key of the first."""
    if debian_mirror() is None:
        pytest.skip("no Debian mirror can be reached")
    sources = (Path(standin.__file__), Path(standin_rpm.__file__))
    web = standin.signed("toolkit-rpm", "rpm/x86_64", sources, _build)
    server = standin.serve(web)
    key, fingerprint = ((web / name).read_text() for name in ("key", "fingerprint"))
    yield f"http://127.0.0.1:{server.server_port}", key, fingerprint
    server.shutdown()


def _build(folder):
    root = node_tree(DNF, "builder")
    try:
        standin_rpm.build(root, folder)
    finally:
        shutil.rmtree(root)


OTHER_WAY = pytest.mark.full(
    why="another way or fault than those of test_new_with_what_it_replaces_and_a_hold_that_is_lost"
)
OTHER = pytest.mark.full(why="another package manager than dnf 4, which the default tier has")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(DNF, id="rocky9-dnf4"),
        pytest.param(DNF5, id="fedora44-dnf5", marks=OTHER),
        pytest.param(ZYPPER, id="leap15-zypper", marks=OTHER),
    ],
)
def node(request, served, tmp_path_factory):
    manager: Manager = request.param
    root = node_tree(manager, manager.name)
    try:
        url, key, fingerprint = served
        work = tmp_path_factory.mktemp(manager.name)
        made = ToolkitNode(root, work, manager, f"{url}/stable/rpm", key, fingerprint)
        made.rpm_install(f"{standin_rpm.BASE}-1-1")
        assert standin_rpm.BASE in made.shell("rpm -qa")
        yield made
    finally:
        shutil.rmtree(root)


@pytest.fixture
def bare(node):
    """The node; after the test it has to be as it was."""
    before = (node.packages(), node.etc())
    yield node
    assert difference(before[0], node.packages()) == []
    assert difference(before[1], node.etc()) == []


@pytest.fixture(scope="module")
def with_repository(node):
    node.run("package_repository", **node.repository())
    yield node
    node.run("package_repository", name="kubegpu-test", state="absent")


@pytest.fixture
def ready(with_repository, bare):
    """The node with the repository."""
    return bare


@OTHER_WAY
def test_repository_and_what_stood_in_its_way(bare):
    path = f"{bare.manager.folder}/nvidia.repo"
    text = (
        f"[nvidia]\\nname=by hand\\nbaseurl={bare.url}/\\$basearch\\nenabled=1\\n"
        "gpgcheck=0\\n\\n# mine\\n[other]\\nname=o\\nbaseurl=file:///none\\nenabled=0\\n"
    )
    bare.shell(f'printf "{text}" > {path}')
    before = bare.shell(f"cat {path}")
    first = bare.run("package_repository", **bare.repository())
    assert first["changed"] and first["key_fingerprints"] == [bare.fingerprint]
    assert [entry["file"] for entry in first["disabled"]] == [path]
    assert "\nenabled=0\n" in bare.shell(f"cat {path}").partition("[other]")[0]
    entry = bare.shell(f"cat {bare.manager.folder}/kubegpu-test.repo")
    assert f"baseurl={bare.url}/$basearch\n" in entry and "repo_gpgcheck=1\n" in entry
    # zypper judges metadata by rpm's own keyring, dnf by one of the repository.
    assert ("gpg-pubkey" in bare.shell("rpm -qa")) == (bare.manager is ZYPPER)
    signed = bare.run("package_repository", **bare.repository(check_packages=True))
    assert signed["changed"] and "gpg-pubkey" in bare.shell("rpm -qa")
    bare.run("package_repository", name="kubegpu-test", state="absent")
    assert bare.shell(f"cat {path}") == before
    bare.shell(f"rm {path}")


def test_keys_of_somebody_else(bare):
    options = bare.repository(key_fingerprints=["AB" * 20])
    answer = bare.task("package_repository", **options)
    assert answer["failed"] and "is not the expected one" in answer["msg"]
    url = bare.url.replace("/stable/", "/wrong/")
    bare.run("package_repository", **bare.repository(url=url))
    words = bare.failing()
    assert "No package list" in words and "signature is not accepted" in words
    bare.run("package_repository", name="kubegpu-test", state="absent")


@OTHER_WAY
def test_up_down_killed_and_back_to_what_was_there(ready):
    for name in standin.SET[::-1]:
        ready.shell(ready.manager.install.format(name, "1.17.8-1"))
    assert ready.versions() == {"1.17.8"}
    assert ready.present("1.20.0-1")["changed"] and ready.versions() == {"1.20.0"}
    # What is held is changed where it is asked for, and held again.
    assert ready.present("1.19.0-1")["changed"] and ready.versions() == {"1.19.0"}
    assert all(ready.held(name) for name in standin.SET)
    words = ready.failing("9.9.9-1")
    assert f"{TOOLKIT} 9.9.9-1" in words and "1.20.0-1, 1.19.0-1, 1.17.8-1" in words
    # Where a transaction dies, the new package is there and the old one is not gone yet.
    ready.rpm_install(f"{LIBRARY}-1.20.0-1")
    assert ready.versions() == {"1.19.0", "1.20.0"}
    assert "at once" in ready.present("1.20.0-1")["broken"][LIBRARY]
    assert ready.versions() == {"1.20.0"}
    assert not any("1.19.0" in line for line in ready.packages())
    assert ready.absent()["changed"] and ready.versions() == {"1.17.8"}
    assert not any(ready.held(name) for name in standin.SET)
    ready.shell(ready.manager.remove.format(" ".join((*standin.SET, HELPER))))


def test_new_with_what_it_replaces_and_a_hold_that_is_lost(ready):
    ready.shell(ready.manager.install.format("nvidia-docker2", "2.13.0-1"))
    ready.shell(ready.manager.lock.format("nvidia-docker2"))
    answer = ready.present(obsolete=["nvidia-docker2"])
    assert "nvidia-docker2 2.13.0-1 is obsolete." in answer["reasons"]
    assert "nvidia-docker2" not in ready.shell("rpm -qa") and ready.versions() == {"1.20.0"}
    assert HELPER in ready.shell("rpm -qa")
    ready.shell(ready.manager.unlock.format(LIBRARY))
    assert not ready.held(LIBRARY)
    assert ready.present()["reasons"] == [f"{LIBRARY} is not held."]
    assert ready.held(LIBRARY)
    ready.absent()
    # What came along is gone too.
    assert HELPER not in ready.shell("rpm -qa") and ready.versions() == set()
    assert "nvidia-docker2-2.13.0-1.noarch" in ready.packages() and ready.held("nvidia-docker2")
    ready.shell(ready.manager.unlock.format("nvidia-docker2"))
    ready.shell(ready.manager.remove.format("nvidia-docker2"))


@OTHER_WAY
def test_nothing_of_somebody_else_is_removed(ready):
    ready.shell(ready.manager.install.format("standin-user", "1-1"))
    assert "without removing standin-user" in ready.failing()
    ready.shell(ready.manager.remove.format(" ".join(("standin-user", *standin.SET, HELPER))))
