# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers and CUDA from NVIDIA's repository with the real dnf 4, dnf 5 and zypper: the matrix.

distribution - source - step. The steps of a distribution are run in their order, on one node.
"""

from __future__ import annotations

import pytest

from tests.integration.packages.chroot_node import difference
from tests.integration.packages.driver_node import DISTRIBUTIONS
from tests.integration.packages.rpm_node import needs_root

pytestmark = needs_root

WHOLE = (
    *("wrong-key", "install", "again", "upgrade", "downgrade", "hold-lost", "proprietary"),
    *("other-branch", "fault", "killed", "remove"),
)
MAIN = ("wrong-key", "install", "again", "upgrade", "hold-lost", "killed", "downgrade", "remove")
SHORT = ("install", "again", "remove")
STEPS = {
    "rocky9": WHOLE,
    "alma10": MAIN,
    "rhel8": SHORT,
    "ol8": SHORT,
    "ol9": SHORT,
    "amzn2023": SHORT,
    "openeuler24": SHORT,
    "fedora44": MAIN,
    "leap15": MAIN,
    "sles15": SHORT,
}
OLD, NEW = {"branch": "580", "version": "580.95.05"}, {"branch": "580", "version": "580.178.04"}
NEXT = {"branch": "595", "version": "595.58.03"}
NEWEST = {"branch": "595", "version": "595.91.07"}
# NVIDIA's folder for it begins with 595.
PAIRS = {"fedora44": (NEXT, NEWEST)}
REPOSITORY = "kubegpu-nvidia-driver"
# dnf keeps the entry of a module without a stream, which says nothing.
_ENTRY = "etc/dnf/modules.d"


class Life:
    """What the steps of one distribution share: its node, and what was there before."""

    def __init__(self, name, node):
        self.node = node
        self.old, self.new = PAIRS.get(name, (OLD, NEW))
        self.streams = DISTRIBUTIONS[name].streams
        self.before = self.seen()

    def seen(self):
        etc = [line for line in self.node.etc() if _ENTRY not in line]
        return [*self.node.packages(), *etc]

    def driver(self, **wish):
        wish = {"kernel_module": "open", "source": "nvidia", "load": False, **wish}
        return self.node.run("nvidia_driver", **wish)

    def is_there(self, version, stream):
        driver = self.node.driver()
        assert driver and set(driver.values()) == {version}
        assert self.node.stream() == (stream if self.streams else None)
        assert all(self.node.held(name) for name in driver)

    def wrong_key(self):
        url = f"{self.node.web.url}/wrong/cuda/{self.node.distribution.folder}"
        self.node.task("nvidia_repository", **self.node.repository(name=REPOSITORY, url=url))
        before = self.seen()
        wish = {"kernel_module": "open", "source": "nvidia", "load": False, **self.old}
        answer = self.node.task("nvidia_driver", **wish)
        assert answer["failed"] and "signature is not accepted" in answer["msg"]
        assert difference(before, self.seen()) == []
        assert self.node.stream() is None and self.node.driver() == {}
        self.node.task("nvidia_repository", name=REPOSITORY, state="absent")

    def install(self):
        self.node.task("nvidia_repository", **self.node.repository(name=REPOSITORY))
        self.node.dracut()
        answer = self.driver(**self.old)
        assert answer["changed"]
        self.is_there(self.old["version"], f"{self.old['branch']}-open")
        assert "--force --regenerate-all" in self.node.dracut()
        assert "devel" in self.node.shell("rpm -qa '*devel*'")

    def again(self):
        wish = {"kernel_module": "open", "source": "nvidia", "load": False, **self.old}
        assert not self.node.task("nvidia_driver", **wish)["changed"]

    def upgrade(self):
        assert self.driver(**self.new)["plan"]["action"] == "upgrade"
        self.is_there(self.new["version"], f"{self.new['branch']}-open")

    def downgrade(self):
        assert self.driver(**self.old)["plan"]["action"] == "downgrade"
        self.is_there(self.old["version"], f"{self.old['branch']}-open")

    def hold_lost(self):
        now = next(iter(self.node.driver().values()))
        wish = self.old if now == self.old["version"] else self.new
        name = "nvidia-persistenced"
        self.node.shell(self.node.manager.unlock.format(name))
        assert not self.node.held(name)
        assert self.driver(**wish)["changed"]
        assert self.node.held(name)

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
        self.node.web.broken = ("nvidia-driver-cuda-libs-580.178.04-1.noarch.rpm",)
        self.node.shell("dnf clean packages")
        wish = {"kernel_module": "open", "source": "nvidia", "load": False, **NEW}
        answer = self.node.task("nvidia_driver", **wish)
        self.node.web.broken = ()
        assert answer["failed"] and answer["rolled_back"], answer["msg"]
        assert difference(before, self.seen()) == [] and self.node.stream() == stream

    def killed(self):
        """Where a transaction dies, the new package is there and the old one is not gone yet."""
        library = "nvidia-persistenced"
        there = self.node.driver()[library]
        other = next(v["version"] for v in (OLD, NEW, NEXT, NEWEST) if v["version"] != there)
        self.node.rpm_install(f"{library}-{other}-1")
        wish = next(v for v in (OLD, NEW, NEXT, NEWEST) if v["version"] == there)
        self.driver(**wish)
        self.is_there(there, f"{wish['branch']}-open")
        assert len(self.node.shell(f"rpm -q {library}").split()) == 1

    def remove(self):
        assert self.driver(state="absent")["changed"]
        self.node.task("nvidia_repository", name=REPOSITORY, state="absent")
        assert difference(self.before, self.seen()) == [] and self.node.stream() is None


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
        for name, steps in STEPS.items()
        for step in steps
    ],
)
def test_driver(lives, name, step):
    getattr(lives(name), step.replace("-", "_"))()
