# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On recorded output of the real zypper 1.14.42, with stand-in packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.failures import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.manager import Changes
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.zypper import (
    Zypper,
    messages,
    parse_search,
    parse_summary,
)

RECORDED = Path(__file__).parents[3] / "fixtures" / "packages"
CONTAINER = ("libnvidia-container-tools", "libnvidia-container1", "nvidia-container-toolkit")


def recorded(name):
    return (RECORDED / f"zypper-1.14.42-{name}.xml").read_text(encoding="utf-8")


def test_search():
    found = parse_search(recorded("search"))
    assert found["nvidia-container-toolkit"] == ("1.20.0-1", "1.19.0-1", "1.17.8-1")
    assert found["standin-epoch"] == ("3:595.58.03-1.el9",) and "nope" not in found


def test_what_is_in_no_repository_is_not_available():
    text = (
        '<solvable status="installed" name="a" edition="1-1" arch="noarch" '
        'repository="(System Packages)"/>'
    )
    assert parse_search(text) == {}


def test_summaries():
    removed, incoming = parse_summary(recorded("upgrade"))
    assert removed == ("standin-user",)
    assert incoming["kmod-nvidia-open-dkms-with-a-name-that-dnf-breaks"] == "3:595.58.03-1.el9"
    assert all(incoming[name] == "1.19.0-1" for name in CONTAINER)
    replaced = (("standin-user",), {"nvidia-container-runtime-new": "1-1"})
    assert parse_summary(recorded("obsoletes")) == replaced
    removed, incoming = parse_summary(recorded("remove"))
    assert (set(removed), incoming) == ({*CONTAINER, "standin-user"}, {})


@pytest.mark.parametrize(
    ("name", "cause"), [("unknown", "in no repository"), ("impossible", "dependencies")]
)
def test_failures_are_explained(name, cause):
    words = messages(recorded(name))
    assert cause in explain(words, "x").cause
    assert "<" not in words and "&apos;" not in words


AUTOMATIC = "/var/lib/zypp/AutoInstalled"


class Recorder:
    def __init__(self, locks="", answer=None):
        self.calls, self.locks, self.answer = [], locks, answer or Result(0, "", "")

    def __call__(self, argv, timeout=60, environment=None):
        self.calls.append(list(argv))
        if argv[0] == "cat":
            return Result(0, self.locks if "locks" in argv[1] else "# by zypp\nb\n", "")
        return self.answer


LOCKS = """
type: package
match_type: glob
case_sensitive: on
solvable_name: nvidia-*


type: package
match_type: glob
case_sensitive: on
solvable_name: other
version: > 2

"""


def test_held_and_automatic():
    text = "nvidia-open\tnoarch\t0:1-1\t1\nother\tnoarch\t0:1-1\t1\nb\tnoarch\t0:1-1\t1\n"
    packages = Zypper(Recorder(LOCKS, Result(0, text, ""))).read_all().packages
    assert packages["nvidia-open"].held and not packages["other"].held
    assert packages["b"].automatic and not packages["other"].automatic


def test_a_dry_run_sees_no_locks():
    run = Recorder("", Result(0, recorded("upgrade"), ""))
    answer = Zypper(run).simulate({"a": "1-1", "b": None}, ["c"])
    assert run.calls[-1][0] == "zypper" and run.calls[-1][-4:] == ["--", "a=1-1", "b", "-c"]
    assert answer.answer.ok and answer.removed == ("standin-user",)
    run.locks = LOCKS
    Zypper(run).simulate({}, ["c"])
    assert run.calls[-1][0] == "unshare" and run.calls[-1][5] == "/etc/zypp/locks"
    assert run.calls[-1][6] == "zypper" and run.calls[-1][-2:] == ["--", "c"]


def test_marks_and_what_ansible_is_told():
    zypper = Zypper(Recorder())
    hold, release, automatic = zypper.mark_commands(["a"], ["b"], ["c", "d"])
    assert hold[-2:] == ["addlock", "a"] and release[-2:] == ["removelock", "b"]
    assert automatic[-3:] == [AUTOMATIC, "c", "d"]
    work = Changes(purge=["x"], install={"a": "1-1", "b": None}, remove_last=["z"])
    told = [(call["module"], call["arguments"]["name"]) for call in zypper.tasks(work, 5)]
    module = "community.general.zypper"
    assert told == [(module, ["x"]), (module, ["a=1-1", "b"]), (module, ["z"])]


def test_automatic_marks_are_given_back(tmp_path):
    marks = tmp_path / "AutoInstalled"
    marks.write_text("# zypper's\nnvidia\n")
    command = Zypper(Recorder()).mark_commands((), (), ["nvidia", "nvidia-gl"])[0]
    subprocess.run([word.replace(AUTOMATIC, str(marks)) for word in command], check=True)
    assert marks.read_text() == "# zypper's\nnvidia\nnvidia-gl\n"


def test_a_lock_of_another_run():
    assert Zypper(Recorder()).locked(Result(7, "System management is locked", ""))
    assert not Zypper(Recorder()).locked(Result(4, "", "Problem: unlockable"))
