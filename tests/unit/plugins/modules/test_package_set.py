# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What comes before the package manager's call, with a stand-in for dnf 4 and its plugin."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import apply, host
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.apt import Apt
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.dnf import Dnf
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.host import Host
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.manager import Database
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.module_files import (
    module_file,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.options import Options
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.simulate import Resolution
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import (
    INSTALLED,
    Package,
    Plan,
    Request,
    Streams,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.zypper import Zypper
from ansible_collections.kubegpu.nodes.plugins.modules import package_set
from tests.unit.module_process import run_module

NAMES = ("nvidia-open", "nvidia-persistenced")
MODULE = "nvidia-driver"


class StandinDnf:
    """Two packages and their locks, a module and its stream. What has a word of ``fails`` fails."""

    def __init__(self, *, locks=NAMES, fails=()):
        self.locks, self.version = [*locks], "580.95.05"
        self.stream = "580-open"
        self.fails = set(fails)
        self.offers = ("590.48.01",)

    def __call__(self, argv, timeout=60, environment=None):
        if self.fails & set(argv):
            return Result(1, "", "Error: out of luck")
        if argv[0] == "cat":
            text = "\n".join(self.locks)
            if argv[1].endswith(".module"):
                text = module_file(MODULE, self.stream)
            return Result(0, text, "")
        if argv[0] == "rpm":
            lines = [f"{name}\tx86_64\t0:{self.version}-1\t1\n" for name in NAMES]
            return Result(0, "".join(lines) if "--queryformat" in argv else "", "")
        if "--available" in argv:
            made = [f"{name}\t0:{one}-1\tx86_64\n" for name in NAMES for one in self.offers]
            return Result(0, "".join(made), "")
        if "--assumeno" in argv:
            table = "".join(f" {name} x86_64 590.48.01-1 repo 5 k\n" for name in NAMES)
            return Result(0, f"Upgrading:\n{table}\nTransaction Summary\n", "")
        if "versionlock" in argv:
            words = argv[argv.index("versionlock") + 1 :]
            others = [name for name in self.locks if name not in words]
            self.locks = [*others, *words[1:]] if words[0] == "add" else others
        if "module" in argv:
            self.stream = argv[-1].partition(":")[2]
        return Result(0, "", "")


class StandinStore:
    """Takes what is recorded, and keeps nothing."""

    def put(self, key, value):
        assert key == "package_set:x"


def tasks(dnf):
    streams = Streams({MODULE: "580-open"}, {MODULE: "590-open"})
    packages = {name: Package(INSTALLED, "580.95.05-1", held=True) for name in NAMES}
    wanted = dict.fromkeys(NAMES, "590.48.01*")
    return apply._begin(
        Options("x", Request(wanted), lock_timeout=0),
        Host(lambda: Dnf(dnf), 0, streams),
        StandinStore(),
        Plan(packages, packages, install=wanted),
        None,
        Resolution(install=wanted),
        Database(packages, {}),
    )


def test_streams_are_switched_and_locks_released():
    dnf = StandinDnf()
    found = tasks(dnf)
    assert found["streams"] == {MODULE: "580-open"}
    assert (dnf.locks, dnf.stream) == ([], "590-open")


@pytest.mark.parametrize(
    ("dnf", "words"),
    [
        (StandinDnf(fails={f"{MODULE}:590-open"}), "out of luck"),
        (StandinDnf(fails={"delete"}), "out of luck"),
        # One of the two stays locked.
        (StandinDnf(locks=(*NAMES, "*persistenced")), "covers more than this one package"),
    ],
)
def test_what_fails_before_the_change_leaves_locks_and_stream(dnf, words):
    with pytest.raises(KubegpuError, match=words):
        tasks(dnf)
    held = Dnf(dnf).held()
    assert all(held(name, "580.95.05-1") for name in NAMES)
    assert dnf.stream == "580-open"


@pytest.mark.parametrize(("made", "waited"), [(Zypper, True), (Dnf, False)])
def test_zyppers_lock_is_waited_for_before_a_change(made, waited, monkeypatch, tmp_path):
    """Ansible's modules for the others wait themselves."""
    said = []

    def run(argv, timeout=60, environment=None):
        if tuple(argv) == made.lock_command:
            said.append("asked")
            return Result(7, "", "zypper: its lock is held by process 12")
        return Result(0, "", "")

    monkeypatch.setattr(package_set, "find_manager", lambda name, runner: made(run))
    monkeypatch.setattr(host.time, "sleep", lambda seconds: said.append("waited"))
    clock = iter(range(100))
    monkeypatch.setattr(host.time, "monotonic", lambda: next(clock))
    arguments = {"name": "x", "packages": {"nvidia-open": None}, "lock_timeout": 2}
    state = str(tmp_path / "state.json")
    answer = run_module(package_set.main, {**arguments, "state_path": state})
    assert answer["failed"] and ("held by process 12" in answer["msg"]) == waited
    assert said == (["asked", "waited", "asked"] if waited else [])


@pytest.mark.parametrize("done", [True, False], ids=["killed after it", "killed before it"])
def test_what_a_run_that_was_killed_had_released_is_held_again(done, monkeypatch, tmp_path):
    dnf = StandinDnf()
    monkeypatch.setattr(package_set, "find_manager", lambda name, run: Dnf(dnf))
    given = {"name": "x", "packages": {"nvidia-open": "590*"}, "update_cache": False}
    given["state_path"] = str(tmp_path / "state.json")
    first = run_module(package_set.main, {**given, "_run": "a"})
    # The daemon is not of the set: it comes along, and somebody had it locked.
    assert first["changed"] and dnf.locks == []
    if done:
        dnf.version = "590.48.01"
    again = run_module(package_set.main, {**given, "_run": "b"})
    assert again["changed"]
    dnf.version = "590.48.01"
    last = run_module(package_set.main, {**given, "_run": "b", "_phase": "record"})
    assert not last.get("failed") and sorted(dnf.locks) == sorted(NAMES)
    # And once only: what somebody releases later stays so.
    dnf.locks.remove("nvidia-persistenced")
    assert not run_module(package_set.main, given)["changed"]
    assert dnf.locks == ["nvidia-open"]


@pytest.mark.parametrize("check", [True, False])
def test_nothing_is_removed_from_an_image(monkeypatch, tmp_path, check):
    """As dnf on ostree, which cannot lock its database."""
    dnf = StandinDnf()
    dnf.offers = ("580.95.05", "590.48.01")
    monkeypatch.setattr(package_set, "find_manager", lambda name, run: Dnf(dnf))
    given = {"name": "x", "packages": {"nvidia-open": "590*"}, "update_cache": False}
    given["state_path"] = str(tmp_path / "state.json")
    run_module(package_set.main, {**given, "_run": "a"})
    dnf.version = "590.48.01"
    assert not run_module(package_set.main, {**given, "_run": "a", "_phase": "record"}).get(
        "failed"
    )
    image = {"id": "fedora", "version": "43", "image": "/run/ostree-booted"}
    system = {**image, "image_system": "rpm-ostree"}
    monkeypatch.setattr(host, "read_os", lambda _reader: system)
    state = (tmp_path / "state.json").read_bytes()
    absent = {**given, "state": "absent", "packages": {}}
    answer = run_module(package_set.main, absent, check=check)
    assert answer.get("failed") and "is an image that is not changed" in answer["cause"], answer
    assert (tmp_path / "state.json").read_bytes() == state and answer["evidence"]
    # A set that is not recorded is absent, and what is there as requested is.
    other = {**absent, "name": "y"}
    assert not run_module(package_set.main, other, check=check).get("failed")
    assert not run_module(package_set.main, given, check=check)["changed"]


class StandinApt:
    """A package that a killed dpkg left half configured, with its journal."""

    def __init__(self, journal):
        self.journal = journal
        (journal / "0001").touch()

    def __call__(self, argv, timeout=60, environment=None):
        if argv[0] == "dpkg-query":
            status = "half-configured" if self.interrupted() else "installed"
            line = ("nvidia-open", "amd64", "590.48.01-1", "install", status, "ok", "", "", "")
            return Result(0, "\t".join(line) + "\n", "")
        if argv[:2] == ["dpkg", "--print-architecture"]:
            return Result(0, "amd64\n", "")
        if argv[:2] == ["apt-cache", "madison"]:
            return Result(0, "nvidia-open | 590.48.01-1 | http://x ./ Packages\n", "")
        if tuple(argv) == ("dpkg", "--configure", "-a"):
            (self.journal / "0001").unlink()
        return Result(0, "", "")

    def interrupted(self):
        return any(self.journal.iterdir())


def test_what_repair_alone_brings_needs_no_second_call(monkeypatch, tmp_path):
    journal = tmp_path / "updates"
    journal.mkdir()
    apt = Apt(StandinApt(journal))
    monkeypatch.setattr(apt, "journal", str(journal), raising=False)
    monkeypatch.setattr(package_set, "find_manager", lambda name, run: apt)
    given = {"name": "x", "packages": {"nvidia-open": "590*"}, "update_cache": False, "hold": False}
    given["state_path"] = str(tmp_path / "state.json")
    first = run_module(package_set.main, {**given, "_run": "a"})
    assert first.get("changed"), first
    assert "_tasks" not in first
    assert not run_module(package_set.main, given)["changed"]
