# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers and CUDA from NVIDIA's repository with the real dnf 4, dnf 5 and zypper: the matrix.

distribution - source - step. The steps of a distribution are run in their order, on one node.
"""

from __future__ import annotations

import pytest

from tests.integration import ansible_process
from tests.integration.packages.chroot_node import difference
from tests.integration.packages.driver_node import DISTRIBUTIONS
from tests.integration.packages.rpm_node import needs_root

pytestmark = [
    *needs_root,
    pytest.mark.full(
        why="drivers by other package managers than apt, which the stage drivers installs them "
        "with; dnf itself has test_rpm_live"
    ),
]

WHOLE = (
    *("wrong-key", "install", "again", "upgrade", "downgrade", "hold-lost", "proprietary"),
    *("other-branch", "fault", "killed", "cuda", "remove"),
)
MAIN = ("wrong-key", "install", "again", "upgrade", "downgrade", "hold-lost", "killed", "remove")
SHORT = ("install", "again", "remove")
STEPS = {
    "rocky9": WHOLE,
    "alma10": ("install", "again", "upgrade", "remove"),
    "rhel8": SHORT,
    "ol8": SHORT,
    "ol9": SHORT,
    "amzn2023": SHORT,
    "openeuler24": SHORT,
    "fedora44": MAIN,
    "leap15": (*MAIN[:-1], "cuda", "remove"),
    "sles15": SHORT,
}
OLD, NEW = {"branch": "580", "version": "580.95.05"}, {"branch": "580", "version": "580.178.04"}
NEXT = {"branch": "595", "version": "595.58.03"}
NEWEST = {"branch": "595", "version": "595.91.07"}
# NVIDIA's folder for it begins with 595.
PAIRS = {"fedora44": (NEXT, NEWEST)}
REPOSITORY = "kubegpu-nvidia-driver"
# The repository is there; nobody tells the key of the one for RHEL 10.
_WISH = {
    "kernel_module": "open", "source": "nvidia", "load": False, "manage_repository": False,
}  # fmt: skip
_LIBRARY = "nvidia-persistenced"
# dnf keeps the entry of a module without a stream, which says nothing.
_ENTRY = "etc/dnf/modules.d"


class Life:
    """What the steps of one distribution share: its node, and what was there before."""

    def __init__(self, name, node):
        self.node = node
        self.old, self.new = PAIRS.get(name, (OLD, NEW))
        self.streams = DISTRIBUTIONS[name].streams
        # Check mode before and after each run, once for each package manager: it takes its time.
        self.whole = len(STEPS[name]) > len(SHORT) + 1
        self.before = self.seen()

    def seen(self):
        etc = [line for line in self.node.etc() if _ENTRY not in line]
        return [*self.node.packages(), *etc]

    def same(self, before):
        told = difference(before, self.seen())
        assert told == [], told

    def driver(self, **request):
        request = {**_WISH, **request}
        answer = (self.node.run if self.whole else self.node.task)("nvidia_driver", **request)
        assert not answer.get("failed"), answer["msg"]
        return answer

    def is_there(self, version, stream):
        driver = self.node.driver()
        assert driver and set(driver.values()) == {version}
        assert self.node.stream() == (stream if self.streams else None)
        assert all(self.node.held(name) for name in driver)

    def wrong_key(self):
        url = f"{self.node.web.url}/wrong/cuda/{self.node.distribution.folder}"
        self.node.task("package_repository", **self.node.repository(name=REPOSITORY, url=url))
        before = self.seen()
        answer = self.node.task("nvidia_driver", **_WISH, **self.old)
        assert answer["failed"] and "signature is not accepted" in answer["msg"], answer["msg"]
        self.same(before)
        assert self.node.stream() is None and self.node.driver() == {}
        self.node.task("package_repository", name=REPOSITORY, state="absent")

    def install(self):
        self.node.task("package_repository", **self.node.repository(name=REPOSITORY))
        self.node.dracut()
        answer = self.driver(**self.old)
        assert answer["changed"]
        self.is_there(self.old["version"], f"{self.old['branch']}-open")
        assert "--force --regenerate-all" in self.node.dracut()
        assert "devel" in self.node.shell("rpm -qa '*devel*'")

    def again(self):
        assert not self.node.task("nvidia_driver", **_WISH, **self.old)["changed"]

    def upgrade(self):
        assert self.driver(**self.new)["plan"]["action"] == "upgrade"
        self.is_there(self.new["version"], f"{self.new['branch']}-open")

    def downgrade(self):
        assert self.driver(**self.old)["plan"]["action"] == "downgrade"
        self.is_there(self.old["version"], f"{self.old['branch']}-open")

    def hold_lost(self):
        now = next(iter(self.node.driver().values()))
        request = self.old if now == self.old["version"] else self.new
        self.node.shell(self.node.manager.unlock.format(_LIBRARY))
        assert not self.node.held(_LIBRARY)
        assert self.driver(**request)["changed"]
        assert self.node.held(_LIBRARY)

    def proprietary(self):
        self.driver(**self.old, **{"kernel_module": "proprietary"})
        self.is_there(self.old["version"], "580-dkms")
        assert "cuda-drivers" in self.node.driver()

    def other_branch(self):
        self.driver(**NEXT)
        self.is_there(NEXT["version"], "595-open")

    def fault(self):
        """The repository stops half way: all is as it was, the stream too."""
        before = self.seen()
        stream = self.node.stream()
        self.node.shell("dnf clean packages")
        with self.node.web.without("nvidia-driver-cuda-libs-580.178.04-1.noarch.rpm"):
            answer = self.node.task("nvidia_driver", **_WISH, **NEW)
        assert answer["failed"] and "repository cannot be reached" in answer["msg"], answer["msg"]
        self.same(before)
        assert self.node.stream() == stream

    def killed(self):
        """A run dies while it fetches packages, its transaction half way; the next one goes on."""
        there = self.node.driver()[_LIBRARY]
        request = self.new if there == self.old["version"] else self.old
        rpm = f"{_LIBRARY}-{request['version']}-1"
        broken = self.node.web.without(f"{rpm}.noarch.rpm", told=self.node.kill)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(ansible_process.AS_PROGRAM, "1")
            with broken, pytest.raises(AssertionError):
                self.node.task("nvidia_driver", **_WISH, **request)
        # As rpm leaves it: the new package is there and the old one is not gone yet.
        self.node.rpm_install(rpm)
        assert len(self.node.shell(f"rpm -q {_LIBRARY}").split()) == 2
        self.driver(**request)
        self.is_there(request["version"], f"{request['branch']}-open")
        assert len(self.node.shell(f"rpm -q {_LIBRARY}").split()) == 1

    def cuda(self):
        """The whole life of a toolkit: both in the one repository."""
        before = self.seen()
        request = {"versions": ["13.0"], "source": "package", "verify": False}
        assert self.node.run("cuda_toolkit", **request)["changed"]
        assert "cuda-nvcc-13-0-13.0.2-1" in self.node.shell("rpm -qa")
        assert self.node.held("cuda-toolkit-13-0")
        assert not self.node.task("cuda_toolkit", **request)["changed"]
        assert self.node.run("cuda_toolkit", state="absent")["changed"]
        self.same(before)

    def remove(self):
        assert self.driver(state="absent")["changed"]
        self.node.task("package_repository", name=REPOSITORY, state="absent")
        self.same(self.before)
        assert self.node.stream() is None


@pytest.fixture(scope="module")
def lives(driver_nodes):
    made = {}

    def get(name):
        if name not in made:
            made[name] = Life(name, driver_nodes(name))
        return made[name]

    return get


@pytest.mark.parametrize(
    ("name", "step"),
    [
        pytest.param(name, step, id=f"{name}-nvidia-{step}")
        for name in STEPS
        for step in STEPS[name]
    ],
)
def test_driver(lives, name, step):
    getattr(lives(name), step.replace("-", "_"))()
