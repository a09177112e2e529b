# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module and action together, on a stand-in for dpkg and apt.

tests/integration/packages/test_packages_live.py does the same with the real ones.
"""

from __future__ import annotations

import json
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.action import package_set as action
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host import temporary
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import apply as packages_apply
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import apt as _apt
from ansible_collections.kubegpu.nodes.plugins.modules import package_set as module
from tests.unit.module_process import run_module

TOOLKIT = ("libnvidia-container1", "nvidia-container-toolkit")


class Killed(BaseException):
    """Stand-in for a run that dies."""


class StandinNode:
    """Packages as dpkg has them: name -> [version, want, status, automatic]."""

    def __init__(self):
        self.packages = {
            "base-files": ["12", "install", "installed", False],
            "python3-apt": ["2.6", "install", "installed", True],
        }
        self.repository = {
            "libnvidia-container1": ["1.20.0-1", "1.19.0-1", "1.17.8-1"],
            "nvidia-container-toolkit": ["1.20.0-1", "1.19.0-1", "1.17.8-1"],
            "nvidia-docker2": ["2.13.0-1"],
            "libhelper": ["1"],
        }
        self.needs = {"nvidia-container-toolkit": "libnvidia-container1 (= 1), libhelper"}
        self.lists_known = True
        self.unreachable = ""
        self.edited = ()
        self.pins = ()
        self.pinned = ()
        self.waiting = None
        self.conflicts = ()
        # What apt takes in place of what goes.
        self.instead = {}
        self.late = []
        self.settings = []
        self.locked = False
        self.calls = []
        self.fail = None
        self.die = None
        # TMPDIR of each call of apt.
        self.temporary = []

    # -- commands that the module runs
    def __call__(self, argv, timeout=60, environment=None):
        if environment:
            # Lists of its own, which are read first of all.
            self.settings.append(Path(environment["APT_CONFIG"]).read_text(encoding="utf-8"))
            if tuple(argv) == ("apt-get", "update"):
                return Result(0, "", "")
            known, self.lists_known = self.lists_known, True
            try:
                return self.answer(argv)
            finally:
                self.lists_known = known
        return self.answer(argv)

    def answer(self, argv):
        return {
            "sh": self.nothing,
            "dpkg-query": self.query,
            "dpkg": self.dpkg,
            "apt-mark": self.mark,
            "apt-cache": self.policy if argv[1] == "policy" else self.madison,
            "apt-config": self.sandbox,
            "needrestart": self.needrestart,
            "setpriv": lambda _words: Result(1, "", ""),
            "apt-get": self.update if argv[1] == "update" else self.simulate,
        }[argv[0]](list(argv[1:]))

    def policy(self, words):
        pinned = {name: self.repository[name][0] for name in words[1:] if name in self.pinned}
        lines = [
            f"{name}:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n"
            f"     {version} -1\n        500 http://mirror.example  Packages\n"
            for name, version in pinned.items()
        ]
        return Result(0, "".join(lines), "")

    def sandbox(self, words):
        return Result(0, "root\n", "")

    def needrestart(self, words):
        assert words == ["-b", "-l", "-r", "l"]
        if self.waiting is None:
            return Result(127, "", "needrestart: no such program")
        lines = [f"NEEDRESTART-SVC: {name}\n" for name in self.waiting]
        return Result(0, "NEEDRESTART-VER: 3.6\n" + "".join(lines), "")

    def nothing(self, words):
        assert words == ["-c", "dpkg --set-selections </dev/null"]
        if self.late:
            self.late.pop()()
        if self.locked:
            return Result(2, "", "dpkg: error: dpkg frontend lock was locked by another process")
        return Result(0, "", "")

    def query(self, words):
        if words[1] == "--showformat=${Conffiles}":
            pins = words[2] in self.pins
            return Result(0, "\n /etc/apt/preferences.d/x 0123\n" if pins else "\n /etc/x 01\n", "")
        names = words[2:] or list(self.packages)
        lines = []
        for name in names:
            if name in self.packages:
                version, want, status, _auto = self.packages[name]
                lines.append(
                    "\t".join(
                        (
                            name,
                            "amd64",
                            version,
                            want,
                            status,
                            "ok",
                            self.needs.get(name, ""),
                            *[""] * 2,
                        )
                    )
                )
        return Result(0, "\n".join(lines) + "\n", "")

    def dpkg(self, words):
        if words[0] == "--print-architecture":
            return Result(0, "amd64\n", "")
        if words[0] == "--verify":
            return Result(0, "??5??????   c /etc/x\n" if words[1] in self.edited else "", "")
        for package in self.packages.values():
            if package[2] == "half-configured":
                package[2] = "installed"
        return Result(0, "", "")

    def mark(self, words):
        verb, names = words[0], words[1:]
        if verb == "showauto":
            return Result(0, "\n".join(n for n, p in self.packages.items() if p[3]), "")
        for name in names:
            if verb == "auto":
                self.packages[name][3] = True
            else:
                self.packages[name][1] = "hold" if verb == "hold" else "install"
        return Result(0, "", "")

    def madison(self, words):
        if not self.lists_known:
            return Result(0, "", "")
        return Result(
            0,
            "".join(
                f" {name} | {version} | http://mirror.example / Packages\n"
                for name in words[1:]
                for version in self.repository.get(name, [])
            ),
            "",
        )

    def update(self, words):
        self.calls.append("update")
        self.lists_known = self.lists_known or not self.unreachable
        return Result(100, "", self.unreachable) if self.unreachable else Result(0, "", "")

    def simulate(self, words):
        going = {word[:-1] for word in words if word.endswith("-")} | set(self.conflicts)
        installed = {n for n, p in self.packages.items() if p[2] == "installed"}
        for name in sorted(installed - going):
            if going & {part.split()[0] for part in self.needs.get(name, "").split(", ") if part}:
                going.add(name)
        removed = "".join(f"Remv {name} [1]\n" for name in going & installed)
        coming = {}
        for word in words[words.index("install") + 1 :]:
            if word.endswith("-"):
                continue
            name, _equals, version = word.partition("=")
            coming[name] = version or self.repository.get(name, ["1"])[0]
            if "libhelper" in self.needs.get(name, "") and "libhelper" not in self.packages:
                coming["libhelper"] = "1"
        if not coming:
            coming = {self.instead[name]: "1" for name in going & installed & set(self.instead)}
        lines = "".join(
            f"Inst {name} ({version} mirror [amd64])\n" for name, version in coming.items()
        )
        return Result(0, removed + lines, "")

    # -- Ansible's module
    def use(self, folder):
        """Leave a temporary file there, as a killed apt does."""
        self.temporary.append(folder)
        if folder:
            Path(folder, "apt-dpkg-install-x").mkdir(exist_ok=True)

    def apt(self, arguments):
        self.calls.append("apt change")
        if self.die == "before apt":
            raise Killed
        if self.fail:
            return {"failed": True, "msg": self.fail}
        for spec in arguments["name"]:
            name, _equals, version = spec.partition("=")
            if arguments["state"] == "absent":
                if arguments.get("purge"):
                    del self.packages[name]
                else:
                    self.packages[name][2] = "config-files"
                if name in self.instead:
                    self.packages[self.instead[name]] = ["1", "install", "installed", True]
                continue
            # apt forgets the hold and says that somebody asked for it.
            self.packages[name] = [
                version or self.repository[name][0],
                "install",
                "installed",
                False,
            ]
            if "libhelper" in self.needs.get(name, "") and "libhelper" not in self.packages:
                self.packages["libhelper"] = ["1", "install", "installed", True]
        if self.die == "after apt":
            raise Killed
        return {"changed": True}


class Task:
    """Runs the action plugin on the stand-in node."""

    def __init__(self, node, tmp_path, monkeypatch):
        self.node, self.state = node, tmp_path / "state.json"
        self.role, self.variables = None, {}
        self.tmp_path = tmp_path
        monkeypatch.setattr(module, "module_runner", lambda _module: node)
        monkeypatch.setattr(_apt.Apt, "journal", str(tmp_path / "none"))
        monkeypatch.setattr(_apt.Apt, "temporary", str(tmp_path / "cache/kubegpu/packages"))
        monkeypatch.setattr(action.ProxiedAction, "run", lambda *_a, **_k: {})

    def once(self, check, arguments):
        plugin = action.ActionModule.__new__(action.ActionModule)
        plugin._task = types.SimpleNamespace(args=arguments, no_log=False, _role=self.role)

        def execute(module_name, module_args, task_vars):
            if module_name == "ansible.builtin.apt":
                self.node.use(plugin._temporary)
                return self.node.apt(module_args)
            self.node.calls.append(f"module {module_args['_internal']['_phase']}")
            if not check and self.node.die == f"before {module_args['_internal']['_phase']}":
                raise Killed
            answer = run_module(module.main, module_args, check=check)
            if not check and self.node.die == f"after {module_args['_internal']['_phase']}":
                raise Killed
            return answer

        plugin._execute_module = execute
        return plugin.run(task_vars=self.variables)

    def arguments(self, **options):
        return {
            "name": "toolkit",
            "state_path": str(self.state),
            "lock_timeout": 0,
            **options,
        }

    def __call__(self, **options):
        arguments = self.arguments(**options)
        before = json.dumps(self.node.packages)
        check = self.once(True, arguments)
        assert json.dumps(self.node.packages) == before
        self.node.calls.clear()
        result = self.once(False, arguments)
        if not result.get("failed"):
            assert check.get("changed") == result["changed"]
            assert check.get("diff") == result["diff"]
            assert check.get("reasons") == result["reasons"]
        return result

    def present(self, version="1.20.0-1", **options):
        return self(packages=dict.fromkeys(TOOLKIT, version), **options)

    def absent(self):
        return self(state="absent")


@pytest.fixture
def node():
    return StandinNode()


@pytest.fixture
def task(node, tmp_path, monkeypatch):
    return Task(node, tmp_path, monkeypatch)


def snapshot(node):
    return json.loads(json.dumps(node.packages))


def test_create_again_absent_absent_again(task, node):
    start = snapshot(node)
    first = task.present()
    assert first["changed"]
    assert node.calls == ["module plan", "apt change", "module record"]
    assert first["packages"]["nvidia-container-toolkit"] == {"version": "1.20.0-1", "held": True}
    assert first["diff"][0]["before"] == ""
    assert first["diff"][0]["after"] == (
        "libnvidia-container1 1.20.0-1 held\nnvidia-container-toolkit 1.20.0-1 held\n"
    )
    assert not task.present()["changed"]
    # Nothing differs: one module call.
    assert node.calls == ["module plan"]
    gone = task.absent()
    assert gone["changed"]
    # What came along is gone too.
    assert snapshot(node) == start
    assert not task.state.exists()
    assert not task.absent()["changed"]
    assert node.calls == ["module plan"]


def test_upgrade_downgrade_and_back_to_what_was_there(task, node):
    for name in TOOLKIT:
        node.packages[name] = ["1.17.8-1", "install", "installed", name.startswith("lib")]
    node.packages["libhelper"] = ["1", "install", "installed", True]
    start = snapshot(node)
    assert task.present("1.20.0-1")["changed"]
    assert task.present("1.19.0-1")["diff"][0]["before"].count("1.20.0-1 held") == 2
    assert {p[0] for n, p in node.packages.items() if n in TOOLKIT} == {"1.19.0-1"}
    task.absent()
    assert snapshot(node) == start


def test_any_version_keeps_what_is_there_and_holds_it(task, node):
    node.packages["libnvidia-container1"] = ["1.17.8-1", "install", "installed", False]
    answer = task.present(None)
    assert "nvidia-container-toolkit any held\n" in answer["diff"][0]["after"]
    assert node.packages["libnvidia-container1"][:2] == ["1.17.8-1", "hold"]
    assert answer["packages"]["nvidia-container-toolkit"]["version"] == "1.20.0-1"


def test_hold_alone_needs_no_package_manager(task, node):
    task.present()
    node.packages["libnvidia-container1"][1] = "install"
    answer = task.present()
    assert answer["reasons"] == ["libnvidia-container1 is not held."]
    assert node.calls == ["module plan", "module record"]
    assert task.present(hold=False)["changed"]
    assert node.packages["libnvidia-container1"][1] == "install"


def test_obsolete_goes_without_purge_and_comes_back(task, node):
    node.packages["nvidia-docker2"] = ["2.13.0-1", "hold", "installed", False]
    start = snapshot(node)
    task.present(obsolete=["nvidia-docker2", "nvidia-container-runtime"])
    assert node.packages["nvidia-docker2"][2] == "config-files"
    task.absent()
    assert snapshot(node) == start


def test_an_obsolete_package_that_somebody_installs_later_is_his(task, node):
    task.present(obsolete=["nvidia-docker2"])
    node.packages["nvidia-docker2"] = ["2.13.0-1", "install", "installed", False]
    task.absent()
    assert node.packages["nvidia-docker2"][2] == "installed"


def test_what_comes_in_place_of_what_goes_is_ours(task, node):
    node.packages["nvidia-docker2"] = ["2.13.0-1", "install", "installed", False]
    start = snapshot(node)
    node.instead = {"nvidia-docker2": "docker-other"}
    task.present(obsolete=["nvidia-docker2"])
    assert node.packages["docker-other"][2] == "installed"
    task.absent()
    assert snapshot(node) == start


def test_what_is_in_the_way_is_shown_as_gone(task, node):
    node.packages["nvidia-container-old"] = ["1.0-1", "install", "installed", True]
    node.conflicts = ("nvidia-container-old",)
    answer = task.present(lock={"patterns": ["nvidia-container*"]})
    assert answer["diff"][0]["before"] == "nvidia-container-old 1.0-1\n"
    assert "nvidia-container-old" not in answer["diff"][0]["after"]
    assert "nvidia-container-old conflicts, and is not requested." in answer["reasons"]
    assert node.packages["nvidia-container-old"][2] == "config-files"


def test_what_no_repository_has_is_told_and_nothing_is_changed(task, node):
    task(packages=dict.fromkeys(TOOLKIT, "1.19.0-1"))
    node.repository["libnvidia-container1"] = ["1.20.0-1"]
    wanted = {**dict.fromkeys(TOOLKIT, "1.19.0-1"), "base-files": "12"}
    result = task(state="available", packages=wanted)
    assert not result["changed"]
    assert result["not_available"] == ["base-files", "libnvidia-container1"]
    assert not any("update" in str(call) for call in node.calls)
    assert task(state="available")["failed"]


def test_what_cannot_be_put_back_is_said(task, node):
    node.packages["nvidia-docker2"] = ["2.13.0-1", "install", "installed", False]
    task.present(obsolete=["nvidia-docker2"])
    del node.repository["nvidia-docker2"]
    answer = task.absent()
    assert "nvidia-docker2 2.13.0-1 was installed before and cannot" in answer["reasons"][-1]
    assert not task.absent()["changed"]


def test_edited_configuration_stays(task, node):
    task.present()
    node.edited = ("nvidia-container-toolkit",)
    task.absent()
    assert node.packages["nvidia-container-toolkit"][2] == "config-files"
    assert "libnvidia-container1" not in node.packages


def test_what_came_along_stays_where_something_else_needs_it(task, node):
    task.present()
    node.packages["other"] = ["1", "install", "installed", False]
    node.needs["other"] = "foo | libhelper (>= 1)"
    task.absent()
    assert "libhelper" in node.packages


def test_what_somebody_asked_for_since_stays(task, node):
    task.present()
    node.packages["libhelper"][3] = False
    task.absent()
    assert "libhelper" in node.packages


def test_nothing_else_is_ever_removed(task, node):
    task.present()
    node.packages["other"] = ["1", "install", "installed", False]
    node.needs["other"] = "nvidia-container-toolkit"
    before = snapshot(node)
    answer = task.absent()
    assert answer["failed"]
    assert "other" in answer["msg"]
    assert snapshot(node) == before


def test_lists_are_refreshed_only_where_a_version_is_unknown(task, node):
    node.lists_known = False
    assert task.present()["changed"]
    assert node.calls == ["module plan", "update", "apt change", "module record"]


def test_a_repository_that_cannot_be_reached_is_named(task, node):
    node.lists_known = False
    node.unreachable = "E: Failed to fetch http://mirror.example/InRelease  Could not connect"
    answer = task.present()
    assert answer["failed"]
    assert "cannot be reached" in answer["msg"]
    assert node.unreachable in answer["msg"]
    assert "proxy" in answer["msg"]


def test_check_mode_fails_like_the_run_where_no_repository_is_to_come(task, node):
    arguments = task.arguments(packages={"no-such": None})
    assert task.once(True, arguments)["changed"]
    arguments["repository_expected"] = False
    run, check = task.once(False, arguments), task.once(True, arguments)
    assert run["failed"] and "No package list of this node has no-such." in run["msg"]
    assert check["msg"] == run["msg"]
    # The lists that are too old for it are read again, apart.
    node.lists_known = False
    node.settings.clear()
    arguments["packages"] = dict.fromkeys(TOOLKIT, "1.20.0-1")
    check = task.once(True, arguments)
    assert check["changed"] and not check.get("failed")
    assert not node.lists_known
    assert "Dir::State::Lists" in node.settings[0]


def test_a_version_that_nobody_has_names_those_there_are(task, node):
    before = snapshot(node)
    answer = task.present("9.9.9-1")
    assert answer["failed"]
    assert "1.20.0-1, 1.19.0-1, 1.17.8-1" in answer["msg"]
    assert snapshot(node) == before
    assert not task.state.exists()


def test_refresh_is_not_done_where_it_is_not_allowed(task, node):
    node.lists_known = False
    assert task.present(update_cache=False)["failed"]
    assert node.calls == ["module plan"]


def test_a_killed_run_is_finished_by_the_next_and_undone_all_the_way(task, node):
    start = snapshot(node)
    node.die = "after apt"
    with pytest.raises(Killed):
        task.present()
    node.die = None
    answer = task.present()
    assert answer["reasons"] == [f"{name} is not held." for name in TOOLKIT]
    task.absent()
    assert snapshot(node) == start


BOUNDARIES = ["before plan", "after plan", "before apt", "after apt", "before record"]


@pytest.mark.full(
    *(f"{place} plan-{then}" for place in ("before", "after") for then in ("absent", "other")),
    "before record-present", "before record-other", "after apt-absent", "before apt-other",
    why="the same run ended at another moment",
)  # fmt: skip
@pytest.mark.parametrize("then", ["present", "absent", "other"])
@pytest.mark.parametrize("place", [*BOUNDARIES, "after record"])
def test_a_run_that_dies_anywhere_loses_no_package(task, node, place, then):
    """The next run goes on or takes back, and what somebody installed meanwhile is his."""
    start = snapshot(node)
    node.die = place
    with pytest.raises(Killed):
        task.present()
    node.die = None
    node.packages["his-own"] = ["1", "install", "installed", True]
    node.needs["his-own"] = "base-files"
    if then != "absent":
        assert not task.present("1.19.0-1" if then == "other" else "1.20.0-1").get("failed")
        assert not task.present("1.19.0-1" if then == "other" else "1.20.0-1")["changed"]
        assert node.packages["libhelper"][3]
    assert not task.absent().get("failed")
    assert node.packages.pop("his-own")
    assert snapshot(node) == start
    assert not task.state.exists()


def test_what_somebody_installs_beside_a_run_is_his(task, node):
    """An unattended upgrade has the lock, and the run waits for it."""
    start = snapshot(node)
    change = node.apt

    def beside(arguments):
        node.packages["his-own"] = ["1", "install", "installed", True]
        return change(arguments)

    node.apt = beside
    task.present()
    node.apt = change
    assert not task.absent().get("failed")
    assert node.packages.pop("his-own")
    assert snapshot(node) == start


def test_what_a_killed_run_has_left_at_work_is_waited_for(task, node):
    """Its apt goes on alone: what comes meanwhile is ours as well."""
    start = snapshot(node)
    node.die = "before apt"
    with pytest.raises(Killed):
        task.present()
    node.die = None
    node.locked = True
    assert "holds its lock" in task.absent()["msg"]
    node.locked = False
    names = [f"{name}=1.20.0-1" for name in TOOLKIT]
    node.late = [lambda: node.apt({"name": names, "state": "present"})]
    plan = task.once(False, task.arguments(state="absent"))
    assert plan["changed"] and not plan.get("failed")
    assert snapshot(node) == start


@pytest.mark.parametrize("place", [*BOUNDARIES, "after record"])
def test_an_absent_that_dies_anywhere_is_finished(task, node, place):
    start = snapshot(node)
    task.present()
    node.die = place
    with pytest.raises(Killed):
        task.absent()
    node.die = None
    assert not task.absent().get("failed")
    assert snapshot(node) == start


def test_what_was_named_for_its_version_alone_is_automatic_after_a_killed_run(task, node):
    """apt marks what it is told by name as asked for; which ones that were, the record says."""
    start = snapshot(node)
    node.repository["libhelper"] = ["1.20.0-1", "1"]
    options = {
        "packages": {"nvidia-container-toolkit": "1.20.0*", "libnvidia-container1": None},
        "lock": {"patterns": ["nvidia-container*", "libhelper"], "version": "1.20.0"},
    }
    node.die = "after apt"
    with pytest.raises(Killed):
        task(**options)
    node.die = None
    assert node.packages["libhelper"] == ["1.20.0-1", "install", "installed", False]
    task(**options)
    assert node.packages["libhelper"] == ["1.20.0-1", "hold", "installed", True]
    task.absent()
    assert snapshot(node) == start


def test_a_run_that_another_one_has_gone_on_from_stops(task, node):
    """It was thought dead, and the node is the other one's now."""
    start = snapshot(node)
    run, other = task.arguments(packages=dict.fromkeys(TOOLKIT, "1.20.0-1")), []

    def apt(arguments):
        answer = StandinNode.apt(node, arguments)
        if not other:
            other.append(None)
            other[0] = task.once(False, run)
        return answer

    node.apt = apt
    first = task.once(False, run)
    assert first["failed"] and "Another run has continued" in first["msg"]
    assert not other[0].get("failed")
    del node.apt
    assert not task.present()["changed"]
    task.absent()
    assert snapshot(node) == start


def test_an_obsolete_package_of_ours_that_pins_is_purged(task, node):
    start = snapshot(node)
    node.repository.update({"pinning-1": ["1"], "pinning-2": ["1"], "plain": ["1"]})
    node.pins = ("pinning-1", "pinning-2")
    task(packages={"pinning-1": None, "plain": None})
    task(packages={"pinning-2": None}, obsolete=["pinning-1", "plain"])
    assert "pinning-1" not in node.packages
    assert node.packages["plain"][2] == "config-files"
    # An edited one is left, as everywhere.
    node.edited = ("pinning-2",)
    task(packages={"pinning-1": None}, obsolete=["pinning-2"])
    assert node.packages.pop("pinning-2")[2] == "config-files"
    task.absent()
    assert snapshot(node) == start


def test_an_obsolete_package_that_pins_and_is_not_ours_keeps_its_file(task, node):
    node.packages["pinning-1"] = ["1", "install", "installed", False]
    node.repository.update({"pinning-1": ["1"], "pinning-2": ["1"]})
    node.pins = ("pinning-1",)
    task(packages={"pinning-2": None}, obsolete=["pinning-1"])
    assert node.packages["pinning-1"][2] == "config-files"


def test_a_killed_run_that_left_only_the_record_open(task, node):
    start = snapshot(node)
    node.die = "after apt"
    with pytest.raises(Killed):
        task.present(hold=False)
    node.die = None
    assert json.loads(task.state.read_text())["values"]["package_set:toolkit"]["pending"]
    assert not task.present(hold=False)["changed"]
    assert not json.loads(task.state.read_text())["values"]["package_set:toolkit"]["pending"]
    task.absent()
    assert snapshot(node) == start


def test_half_configured_packages_are_named_and_repaired(task, node):
    task.present()
    node.packages["nvidia-container-toolkit"][2] = "half-configured"
    answer = task.present()
    assert answer["broken"] == {"nvidia-container-toolkit": "half-configured"}
    assert "nvidia-container-toolkit 1.20.0-1 half-configured held" in answer["diff"][0]["before"]
    assert node.packages["nvidia-container-toolkit"][2] == "installed"
    assert not task.present()["changed"]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7", "lock"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "free space"),
    ],
)
def test_failures_are_explained(task, node, words, cause):
    node.fail = words
    answer = task.present()
    assert answer["failed"]
    assert cause in answer["msg"]
    assert words in answer["msg"]
    assert "Next step:" in answer["msg"]
    # The record of the attempt is there, and the next run goes on.
    node.fail = None
    assert task.present()["changed"]


@pytest.mark.parametrize(
    "options",
    [
        {"packages": {"a b": "1"}},
        {"packages": {"a": "1 --force"}},
        {"packages": {"a": "*"}},
        {"packages": {"a": "1"}, "obsolete": ["a"]},
    ],
)
def test_wrong_wishes_are_refused(task, options):
    assert task(**options)["failed"]


def test_a_prefix_takes_the_newest_and_keeps_any(task, node):
    node.repository["libnvidia-container1"].insert(1, "1.19.0-2")
    answer = task(packages={"libnvidia-container1": "1.19.0*"})
    assert answer["diff"][0]["after"] == "libnvidia-container1 1.19.0* held\n"
    assert answer["packages"]["libnvidia-container1"]["version"] == "1.19.0-2"
    assert not task(packages={"libnvidia-container1": "1.19.*"})["changed"]
    assert task(packages={"libnvidia-container1": "2.*"})["failed"]


def test_a_lock_holds_what_came_along_and_gives_all_back(task, node):
    start = snapshot(node)
    options = {
        "packages": {"nvidia-container-toolkit": "1.20.0*", "libnvidia-container1": None},
        "optional": {"nvidia-docker2": None, "no-such": None},
        "lock": {"patterns": ["nvidia-container*", "libhelper"], "version": "1.20.0"},
    }
    answer = task(**options)
    assert answer["diff"][0]["after"] == (
        "libnvidia-container1 any\nnvidia-container-toolkit 1.20.0* held\nnvidia-docker2 any\n"
    )
    assert {name for name, package in node.packages.items() if package[1] == "hold"} == {
        "nvidia-container-toolkit",
        "libhelper",
    }
    assert not task(**options)["changed"]
    node.packages["libhelper"][1] = "install"
    assert task(**options)["reasons"] == ["libhelper is not held."]
    assert task.absent()["changed"]
    assert snapshot(node) == start


def test_in_the_background_only_the_package_manager(task, node, monkeypatch):
    told = []

    def standin(plugin, name, arguments, variables, *, limit, what):
        told.append((name, limit, what))
        return node.apt(arguments)

    monkeypatch.setattr(action, "run_in_background", standin)
    assert task.present(background=True, timeout=99)["changed"]
    assert told == [("ansible.builtin.apt", 99, "packages toolkit")]
    assert node.calls == ["module plan", "apt change", "module record"]


def test_what_cannot_be_put_back_is_said_by_a_run_that_fails_later(task, node, monkeypatch):
    node.packages["nvidia-docker2"] = ["2.13.0-1", "install", "installed", False]
    task.present(obsolete=["nvidia-docker2"])
    del node.repository["nvidia-docker2"]

    def fail(*_given):
        raise KubegpuError("The disk is full.")

    said = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, text, **_more: said.append(text))
    monkeypatch.setattr(packages_apply, "mark", fail)
    monkeypatch.setattr(packages_apply, "release", fail)
    answer = task.absent()
    assert "The disk is full." in str(answer)
    assert any("nvidia-docker2 2.13.0-1 was installed before" in text for text in said)


@dataclass(frozen=True)
class Role:
    name: str

    def get_name(self):
        return self.name


@pytest.mark.parametrize(
    ("role", "option"),
    [
        ("kubegpu.nodes.nvidia_container_toolkit", "kubegpu_packages.lock_timeout"),
        ("base", "lock_timeout"),
    ],
    ids=["a role of the collection", "a role of somebody else"],
)
def test_what_sets_the_wait_for_the_lock_is_named(task, node, role, option):
    task.role = Role(role)
    node.fail = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)"
    answer = task.present()
    assert f"or raise {option}." in answer["msg"] and "apt, process 7" in answer["msg"]


def test_a_pin_is_named_that_keeps_a_listed_version_from_being_installed(task, node):
    """pop-os/pop#1708: the version is in the lists, at priority -1."""
    node.pinned = ("nvidia-container-toolkit",)
    node.fail = "no available installation candidate for nvidia-container-toolkit=1.20.0-1"
    answer = task.present()
    assert "version 1.20.0-1 is in a repository of this node, with priority -1" in answer["msg"]
    assert node.fail in answer["msg"] and "correct the repository" not in answer["msg"]
    assert "apt-cache policy nvidia-container-toolkit" in answer["msg"]


def test_the_services_that_needrestart_would_have_restarted_are_listed(task, node, capfd):
    node.waiting = ["containerd.service", "cron.service"]
    answer = task.present()
    assert answer["services_to_restart"] == ["containerd.service", "cron.service"]
    # A module that runs in this process shows its warnings itself.
    shown = capfd.readouterr().err
    assert "needrestart was suspended" in shown and "containerd.service, cron.service" in shown
    # Nothing is changed, and nothing is restarted.
    task.present()
    assert "needrestart" not in capfd.readouterr().err


@pytest.mark.parametrize("waiting", [None, []], ids=["no needrestart", "nothing waits"])
def test_without_a_service_that_waits_there_is_no_warning(task, node, capfd, waiting):
    node.waiting = waiting
    answer = task.present()
    assert answer["services_to_restart"] == []
    assert "needrestart" not in capfd.readouterr().err


@pytest.fixture
def open_to_others(monkeypatch):
    """pytest's folders are those of one user."""
    monkeypatch.setattr(temporary, "barrier", lambda _run, _path: None)
    monkeypatch.setattr(temporary, "_SELINUX", "/none")


@pytest.mark.usefixtures("open_to_others")
def test_temporary_files_of_apt_are_in_a_folder_that_is_removed(task, node, tmp_path):
    task.present(name="a/..")
    assert node.temporary == [str(tmp_path / "cache/kubegpu/packages-a%2F..")]
    assert not (tmp_path / "cache/kubegpu").exists()


@pytest.mark.usefixtures("open_to_others")
@pytest.mark.parametrize("die", ["before apt", "after apt", "before record"])
@pytest.mark.parametrize("then", ["present", "absent"])
def test_the_next_run_removes_what_a_killed_apt_has_left(task, node, tmp_path, die, then):
    """apt 2.6.1 leaves apt-dpkg-install-*, its folder of links to packages."""
    node.die = die
    with pytest.raises(Killed):
        task.present()
    assert list((tmp_path / "cache/kubegpu/packages-toolkit").iterdir())
    node.die = None
    getattr(task, then)()
    assert not (tmp_path / "cache/kubegpu").exists()


@pytest.mark.usefixtures("open_to_others")
def test_a_failed_apt_leaves_no_temporary_files(task, node, tmp_path):
    node.fail = "E: broken"
    assert task.present()["failed"] and node.temporary != [""]
    assert not (tmp_path / "cache/kubegpu").exists()


def test_a_folder_that_apts_user_cannot_enter_takes_no_temporary_files(task, node, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    assert task.present()["changed"] and node.temporary == [""]
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize(
    ("module_name", "expected"),
    [
        ("ansible.builtin.apt", "A=1 NEEDRESTART_SUSPEND=1"),
        ("community.general.zypper", "A=1 NEEDRESTART_SUSPEND=1"),
        ("kubegpu.nodes.package_set", "A=1"),
    ],
)
def test_needrestart_is_suspended_for_the_package_manager(monkeypatch, module_name, expected):
    """debops/debops#2668: the hook of apt saw nothing that told it to wait."""
    plugin = action.ActionModule.__new__(action.ActionModule)
    plugin._task = types.SimpleNamespace(args={}, no_log=False, _role=None)
    shell = types.SimpleNamespace(env_prefix=lambda **names: " ".join(map("=".join, names.items())))
    plugin._connection = types.SimpleNamespace(_shell=shell)
    base = action.ProxiedAction.__mro__[1]
    monkeypatch.setattr(base, "_compute_environment_string", lambda *_a, **_k: "A=1")
    monkeypatch.setattr(
        base,
        "_execute_module",
        lambda self, module_name, **more: {"environment": self._compute_environment_string()},
    )
    answer = plugin._execute_module(module_name=module_name)
    assert answer["environment"] == expected
    plugin._temporary = "/x"
    answer = plugin._execute_module(module_name=module_name)
    ours = module_name == "kubegpu.nodes.package_set"
    assert answer["environment"] == (expected if ours else f"{expected} TMPDIR=/x")
