# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that hide packages, read from what the package managers print and from their files."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import apt
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.dnf import Dnf, Dnf5
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.host import Host
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.obstacles import (
    Obstacle,
    joined,
    parse_excludes,
    parse_policy,
    parse_preferences,
    parse_providing_streams,
    pinned,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.zypper import Zypper

# Of apt 2.6.
POLICY = """\
nvidia-container-toolkit:
  Installed: (none)
  Candidate: (none)
  Version table:
     1.20.1-1 -1
        500 http://mirror.example/stable/deb/amd64  Packages
     1.20.0-1 -1
        500 http://mirror.example/stable/deb/amd64  Packages
libnvidia-container1:
  Installed: 1.19.0-1
  Candidate: 1.19.0-1
  Version table:
     1.20.1-1 500
        500 http://mirror.example/stable/deb/amd64  Packages
 *** 1.19.0-1 1001
        100 /var/lib/dpkg/status
"""
NEGATIVE = """\
# of the site
Package: nvidia-container-toolkit*
  libnvidia-container*
Pin: release *
Pin-Priority: -1
"""
POSITIVE = (
    "Explanation: x\nPackage: libnvidia-container1\nPin: version 1.19.*\nPin-Priority: 1001\n"
)
TOOLKIT = {"nvidia-container-toolkit": "1.20.1-1"}


def test_the_policy_of_apt():
    policies = parse_policy(POLICY)
    assert policies["nvidia-container-toolkit"].candidate is None
    assert dict(policies["nvidia-container-toolkit"].priorities) == {"1.20.1-1": -1, "1.20.0-1": -1}
    assert policies["libnvidia-container1"].candidate == "1.19.0-1"
    assert policies["libnvidia-container1"].priorities["1.19.0-1"] == 1001


def test_a_pin_is_named_with_file_and_priority():
    pins = parse_preferences("/etc/apt/preferences.d/12-site", NEGATIVE)
    (found,) = pinned(parse_policy(POLICY), pins, TOOLKIT)
    assert found.subject == "nvidia-container-toolkit"
    assert "version 1.20.1-1 is in a repository of this node, with priority -1" in found.reason
    assert "/etc/apt/preferences.d/12-site (Package: nvidia-container-toolkit*" in found.reason
    assert "apt-cache policy nvidia-container-toolkit" in found.next_step


def test_a_pin_on_a_dependency_is_named():
    pins = parse_preferences("/etc/apt/preferences", POSITIVE)
    found = {one.subject: one.reason for one in pinned(parse_policy(POLICY), pins, TOOLKIT)}
    assert "apt takes 1.19.0-1 by /etc/apt/preferences" in found["libnvidia-container1"]
    # Without the file of the pin, the priority is still a fact.
    assert "with priority -1 by apt's preferences" in found["nvidia-container-toolkit"]


@pytest.mark.parametrize(
    ("packages", "covered"),
    [
        ("*", True),
        ("nvidia-open:any", True),
        ("cuda nvidia-*", True),
        ("/^nvidia-/", True),
        ("/(/", False),
        ("src:nvidia-open", False),
        ("nvidia", False),
    ],
)
def test_the_packages_of_a_pin(packages, covered):
    text = f"Package: {packages}\nPin: origin mirror.example\nPin-Priority: 600\n"
    (pin,) = parse_preferences("x", text)
    assert pin.covers("nvidia-open") is covered


def test_packages_with_one_reason_are_named_together():
    cause, step = joined([*(Obstacle(f"p{at}", "why", "do") for at in range(7)),
                          Obstacle("q", "else", "do")])  # fmt: skip
    assert cause == "p0, p1, p2, p3, p4 and 2 more: why. q: else."
    assert step == "do"


def test_apt_is_asked(monkeypatch):
    monkeypatch.setattr(apt, "glob_files", lambda pattern: ())
    asked = []

    def run(argv, timeout=60, environment=None):
        asked.append(argv)
        return Result(0, POLICY, "")

    (found,) = apt.Apt(run).obstacles({"nvidia-container-toolkit": None})
    assert "priority -1" in found.reason
    assert asked == [["apt-cache", "policy", "nvidia-container-toolkit"]]


EXCLUDES = """\
/etc/dnf/dnf.conf:exclude=kernel* nvidia-open*, cuda
/etc/yum.repos.d/a.repo: excludepkgs = x
"""


def test_the_exclusions_of_dnf():
    assert parse_excludes(EXCLUDES) == (
        ("/etc/dnf/dnf.conf", "kernel*"),
        ("/etc/dnf/dnf.conf", "nvidia-open*"),
        ("/etc/dnf/dnf.conf", "cuda"),
        ("/etc/yum.repos.d/a.repo", "x"),
    )


class StandinDnf:
    """Offers packages by what hides them: excludes, and streams of modules."""

    def __init__(self, locks=""):
        self.locks = locks

    def __call__(self, argv, timeout=60, environment=None):
        words = " ".join(argv)
        if argv[0] == "sh":
            return Result(0, EXCLUDES, "")
        if argv[0] == "cat":
            return Result(0, self.locks, "")
        if "module provides" in words:
            module = (
                f"{argv[-1]}-590.x86_64\nModule   : nvidia-driver:590-open:1:x86_64\nRepo : r\n"
            )
            return Result(0, module, "")
        lines = []
        if "disable_excludes" in words:
            lines.append("nvidia-open\t0:580.1-1\tx86_64")
        if "module_hotfixes" in words:
            lines.append("nvidia-settings\t0:590.1-1\tx86_64")
        return Result(0, "\n".join(lines), "")


def test_dnf_names_the_file_of_an_exclusion_and_the_stream():
    found = {
        one.subject: one.reason
        for one in Dnf(StandinDnf()).obstacles({"nvidia-open": None, "nvidia-settings": None})
    }
    assert "580.1-1 is in a repository" in found["nvidia-open"]
    assert "/etc/dnf/dnf.conf (nvidia-open*)" in found["nvidia-open"]
    assert "module stream nvidia-driver:590-open" in found["nvidia-settings"]


def test_what_is_excluded_and_not_requested_hides_nothing():
    assert Dnf(StandinDnf()).obstacles({"nvidia-open": "595.1-1"}) == ()
    (found,) = Dnf(StandinDnf()).obstacles({"nvidia-open": "580.*"})
    assert found.subject == "nvidia-open"


def test_dnf_5_has_no_modules():
    found = Dnf5(StandinDnf()).obstacles({"nvidia-open": None, "nvidia-settings": None})
    assert [one.subject for one in found] == ["nvidia-open"]


def test_a_version_lock_of_a_package_that_is_not_installed_is_named():
    dnf = Dnf(StandinDnf(locks="nvidia-settings-0:580.1-1.*\n"))
    reasons = [one.reason for one in dnf.obstacles({"nvidia-settings": None})]
    assert "a lock in /etc/dnf/plugins/versionlock.list holds it" in reasons


def test_a_lock_of_zypper_is_named():
    text = "\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: nvidia-open*\n"
    zypper = Zypper(lambda *_args, **_more: Result(0, text, ""))
    (found,) = zypper.obstacles({"nvidia-open-driver-G06": None, "cuda": None})
    assert found.subject == "nvidia-open-driver-G06" and "zypper locks" in found.next_step


def test_the_streams_that_have_a_package():
    text = "Module   : a:1:x:y\nx\nModule   : a:1:z:y\nModule   : b:2:x\n"
    assert parse_providing_streams(text) == ("a:1", "b:2")


def test_a_foreign_hold_on_a_dependency_is_named():
    """The package itself may be held: the set releases what it installs."""
    fields = ("libhelper", "amd64", "1", "hold", "installed", "ok", "", "", "")

    def run(argv, timeout=60, environment=None):
        known = argv[0] == "dpkg-query"
        return Result(0, "\t".join(fields) if known else "amd64", "")

    words = (
        "The following packages have unmet dependencies:\n"
        " nvidia-open : Depends: libhelper (= 2) but 1 is to be installed\n"
        "E: Unable to correct problems, you have held broken packages."
    )
    host = Host(lambda: apt.Apt(run), 1)
    error = host.explain(words, "x", {"nvidia-open": "1"})
    assert error.cause == "x: libhelper: it is held in version 1."
    assert "libhelper (= 2)" in error.evidence
