# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On recorded output of the real dnf 4.14.0 and dnf5 5.4.6.0, with stand-in packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.dnf import (
    Dnf,
    Dnf5,
    parse_automatic,
    parse_transaction,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.failures import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.manager import Changes

RECORDED = Path(__file__).parents[3] / "fixtures" / "packages"
CONTAINER = ("libnvidia-container-tools", "libnvidia-container1", "nvidia-container-toolkit")
LOCKS = "# Added lock on Sat Nov 21\nnvidia-container-toolkit-0:1.17.8-1.*\n!other-0:1-1.*\nfoo*\n"


def recorded(name, version="dnf-4.14.0"):
    return (RECORDED / f"{version}-{name}.txt").read_text(encoding="utf-8")


def test_upgrade_that_replaces_somebody_elses_package():
    removed, incoming = parse_transaction(recorded("upgrade"))
    assert removed == ("standin-user",)
    assert incoming["kmod-nvidia-open-dkms-with-a-name-that-dnf-breaks"] == "3:595.58.03-1.el9"
    assert all(incoming[name] == "1.19.0-1" for name in CONTAINER)
    assert incoming["nvidia-container-runtime-new"] == "1-1"


def test_obsoletes_and_remove():
    replaced = (("standin-user",), {"nvidia-container-runtime-new": "1-1"})
    assert parse_transaction(recorded("obsoletes")) == replaced
    removed, incoming = parse_transaction(recorded("remove"))
    assert (set(removed), incoming) == ({*CONTAINER, "standin-user"}, {})


def test_a_line_that_is_broken_after_a_long_name():
    text = (
        "Upgrading:\n a-very-long-name\n                  x86_64   1:2-3   repo   5 k\n"
        " b noarch 4-5 repo 1 k\n"
    )
    assert parse_transaction(text) == ((), {"a-very-long-name": "1:2-3", "b": "4-5"})


def test_tables_of_dnf5():
    removed, incoming = parse_transaction(recorded("upgrade", "dnf5-5.4.6.0"))
    assert removed == ("standin-user",)
    assert incoming["standin-epoch"] == "3:595.58.03-1.el9"
    assert all(incoming[name] == "1.19.0-1" for name in CONTAINER) and len(incoming) == 5
    removed, incoming = parse_transaction(recorded("remove", "dnf5-5.4.6.0"))
    assert (set(removed), incoming) == ({*CONTAINER, "standin-user"}, {})


@pytest.mark.parametrize("version", ["dnf-4.14.0", "dnf5-5.4.6.0"])
@pytest.mark.parametrize(
    ("name", "cause"), [("unknown", "in no repository"), ("impossible", "dependencies")]
)
def test_failures_are_explained(name, cause, version):
    assert cause in explain(recorded(name, version), "x").cause


TOML = """version = "1.0"

[[packages]]
name = "nvidia-container-toolkit"
comment = "Added by 'versionlock add' command on 2026-11-21 16:39:59"

[[packages.conditions]]
key = "evr"
comparator = "="
value = "1.17.8-1"
"""


def test_dnf5_has_other_words_and_another_list():
    text = "nvidia-container-toolkit\tnoarch\t0:1.17.8-1\t1\nb\tnoarch\t0:1-1\t1\n"
    table = recorded("upgrade", "dnf5-5.4.6.0")
    run = Recorder(**{
        "-qa": Result(0, text, ""),
        "repoquery": Result(0, "b\tDependency\n", ""),
        "--assumeno": Result(1, table, "Operation aborted by the user."),
    })  # fmt: skip
    run.locks = TOML
    packages = Dnf5(run).read_all().packages
    assert packages["nvidia-container-toolkit"].held and not packages["b"].held
    assert packages["b"].automatic
    answer = Dnf5(run).simulate({"a": "1-1"}, ())
    assert answer.answer.ok and answer.removed == ("standin-user",)
    call = run.calls[-1]
    assert call[0] == "unshare" and call[5:7] == ["/etc/dnf/versionlock.toml", "dnf5"]
    assert call[-3:] == ["install", "--allowerasing", "a-1-1"]
    assert Dnf5(run).mark_commands((), (), ["c"])[0][-3:] == ["mark", "dependency", "c"]
    assert Dnf5(run).helpers({}, hold=True) == ()


class Recorder:
    def __init__(self, **answers):
        self.calls, self.answers, self.locks = [], answers, LOCKS

    def __call__(self, argv, timeout=60, environment=None):
        self.calls.append(list(argv))
        if argv[0] == "cat":
            return Result(0, self.locks, "")
        return next(
            (answer for word, answer in self.answers.items() if word in argv), Result(0, "", "")
        )


def test_simulation_is_an_answer_though_dnf_says_no_at_the_end():
    table = recorded("upgrade") + "Operation aborted.\n"
    run = Recorder(install=Result(1, table, ""), remove=Result(1, recorded("unknown"), ""))
    answer = Dnf(run).simulate({"nvidia-container-toolkit": "1.19.0-1", "x": None}, ())
    assert answer.answer.ok and answer.removed == ("standin-user",)
    command = ["install", "--allowerasing", "nvidia-container-toolkit-1.19.0-1", "x"]
    assert run.calls[-1][-4:] == command and run.calls[-1][0] == "dnf"
    assert "--disableplugin=versionlock" in run.calls[-1] and "--assumeno" in run.calls[-1]
    assert not Dnf(run).simulate({}, ["x"]).answer.ok


def test_available_versions_newest_first():
    text = "a\t0:1.9-1\tx86_64\na\t0:1.10-1\tx86_64\na\t0:2-1\ti686\nb\t3:1-1\tnoarch\n"
    run = Recorder(repoquery=Result(0, text, ""))
    assert Dnf(run).available(["a", "b"]) == {"a": ("1.10-1", "1.9-1"), "b": ("3:1-1",)}
    assert Dnf(run).available([]) == {}


def test_held_by_a_lock_on_its_name_or_by_a_pattern():
    text = "nvidia-container-toolkit\tnoarch\t0:{}\t1\nfoobar\tnoarch\t0:1-1\t1\n"
    run = Recorder(**{"-qa": Result(0, text.format("1.17.8-1"), "")})
    packages = Dnf(run).read(["nvidia-*", "foobar"]).packages
    assert packages["nvidia-container-toolkit"].held and packages["foobar"].held
    # dnf offers the version of the lock alone, so that this one is held, too.
    run.answers["-qa"] = Result(0, text.format("1.19.0-1"), "")
    assert Dnf(run).read(["nvidia-*"]).packages["nvidia-container-toolkit"].held
    run.answers["-qa"] = Result(0, "nvidia-container\tnoarch\t0:1-1\t1\nother\tx\t0:1-1\t1\n", "")
    packages = Dnf(run).read(["nvidia-*", "other"]).packages
    assert not any(package.held for package in packages.values()) and len(packages) == 2


def test_reasons():
    text = "a\tuser\nb\tdependency\nc\tweak-dependency\nd\tunknown\n"
    assert parse_automatic(text) == {"b", "c"}


def test_marks_and_what_ansible_is_told():
    dnf = Dnf(Recorder())
    hold, release, automatic = dnf.mark_commands(["a"], ["b"], ["c"])
    assert hold[-3:] == ["versionlock", "add", "a"]
    assert release[-3:] == ["versionlock", "delete", "b"]
    assert automatic[-3:] == ["mark", "remove", "c"]
    work = Changes(
        broken=["x"],
        remove=["x", "y"],
        install={"a": "1-1", "b": None},
        helpers=["h"],
        remove_last=["z"],
    )
    told = [(call["module"], call["arguments"]["name"]) for call in dnf.tasks(work, 5)]
    assert {module for module, _names in told} == {"ansible.builtin.dnf"}
    assert [names for _module, names in told] == [["x", "y"], ["h"], ["a-1-1", "b"], ["z"]]


def test_the_plugin_that_holds_is_brought_where_it_is_missing():
    run = Recorder(versionlock=Result(1, "", "No such command: versionlock."))
    assert Dnf(run).helpers({}, hold=True) == ("dnf-command(versionlock)",)
    assert Dnf(run).helpers({}, hold=False) == ()
    assert Dnf(Recorder()).helpers({}, hold=True) == ()


KERNELS = ("5.14.0-427.el9", "5.14.0-503.el9")
FULL = [f"kernel-devel-{kernel}.x86_64" for kernel in KERNELS]


def test_versions_that_stand_side_by_side_have_names_of_their_own():
    text = "".join(f"kernel-devel\tx86_64\t0:{one}\t1\n" for one in KERNELS)
    offered = "".join(f"kernel-devel\t0:{one}\tx86_64\n" for one in KERNELS)
    needs = "P\tkernel-devel\tkernel-devel\nR\tkernel-devel-matched\tkernel-devel\n"
    run = Recorder(repoquery=Result(0, offered, ""), **{"-qa": Result(0, text, "")})
    packages = Dnf(run).read(FULL[:1]).packages
    assert list(packages) == FULL[:1] and packages[FULL[0]].version == KERNELS[0]
    assert Dnf(run).read(["kernel-devel"]).packages["kernel-devel"].version == KERNELS[1]
    assert Dnf(run).available(FULL[:1])[FULL[0]] == (KERNELS[0],)
    # What needs one of them keeps each.
    run.answers["-qa"] = Result(0, text + needs, "")
    assert set(FULL) < set(Dnf(run).read_all().needs["kernel-devel-matched"])
    table = recorded("remove").replace("libnvidia-container1 ", "kernel-devel ")
    assert "kernel-devel" in parse_transaction(table, ["kernel-devel"])[0]
    assert any(name.startswith("kernel-devel-") for name in parse_transaction(table)[0])
    told = Dnf(run).tasks(Changes(install={FULL[0]: KERNELS[0]}), 5)
    assert told[0]["arguments"]["name"] == FULL[:1]


def test_streams_are_read_switched_and_assumed():
    run = Recorder(list=Result(0, "nvidia-driver 580-open default x\n", ""))
    run.locks = "[nvidia-driver]\nname=nvidia-driver\nstream=580-open\nprofiles=\nstate=enabled\n"
    dnf = Dnf(run)
    assert dnf.streams(["nvidia-driver"]) == {"nvidia-driver": "580-open"}
    assert dnf.available_streams(["nvidia-driver", "x"]) == {
        "nvidia-driver": ("580-open",),
        "x": (),
    }
    commands = dnf.stream_commands({"nvidia-driver": "580-open"}, {"nvidia-driver": "580-dkms"})
    assert [argv[-2:] for argv in commands] == [
        ["reset", "nvidia-driver"],
        ["enable", "nvidia-driver:580-dkms"],
    ]
    assumed = dnf.with_streams({"nvidia-driver": "580-dkms"})
    assumed.available(["a"])
    assert run.calls[-1][:2] == ["unshare", "--mount"] and "stream=580-dkms" in run.calls[-1][7]
    assumed.simulate({"a": None}, ())
    assert run.calls[-1][0] == "unshare"
    # What changes is never told of a stream that is only assumed.
    assert assumed.refresh_command()[0] == "dnf"
    assert assumed.mark_commands(["a"], (), ())[0][0] == "dnf"
    assert assumed.isolated("/x").manager.available_streams(["x"]) == {"x": ()}
    assert run.calls[-1][0] == "unshare"
    assert not Dnf5(run).has_streams


def test_what_goes_goes_together_and_what_is_replaced_with_the_new():
    def told(**work):
        return [call["arguments"] for call in Dnf(Recorder()).tasks(Changes(**work), 5)]

    # dnf 5 takes nothing away that something else still needs.
    (gone,) = told(purge=["x"], remove_last=["z"])
    assert gone["name"] == ["x", "z"]
    # What nobody needs any more can be somebody else's.
    changes = told(purge=["x"], install={"a": None}, remove_last=["z"])
    assert [one["autoremove"] for one in changes if one["state"] == "absent"] == [False, False]
    assert "allowerasing" not in told(install={"a": None})[0]
    assert told(install={"a": None}, replacing=True)[0]["allowerasing"] is True


@pytest.mark.parametrize("manager", [Dnf, Dnf5])
def test_weak_dependencies_are_planned_as_they_are_installed(manager):
    """dnf.conf can say that they are left out; Ansible's module does not go by it."""
    run = Recorder()
    dnf = manager(run)
    dnf.simulate({"nvidia-open": None}, ())
    assert "--setopt=install_weak_deps=1" in run.calls[-1]
    told = dnf.tasks(Changes(install={"nvidia-open": None}, helpers=["plugin"]), 5)
    assert [call["arguments"]["install_weak_deps"] for call in told] == [True, True]
