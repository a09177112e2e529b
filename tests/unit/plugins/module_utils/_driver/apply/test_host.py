# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply import host as machine
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader

OK = Result(0, "", "")
ABSENT = Result(127, "", "no such program")


class StandinRunner:
    """Answers by the first words of a command; what it does not know is not there."""

    def __init__(self, **answers):
        self.answers = {name.replace("_", "-"): answer for name, answer in answers.items()}
        self.calls = []

    def __call__(self, argv, timeout=60, environment=None):
        self.calls.append(" ".join(argv))
        answer = self.answers.get(argv[0], ABSENT)
        return answer(argv) if callable(answer) else answer


@pytest.fixture
def tree(tmp_path):
    def make(**files):
        for path, text in files.items():
            place = tmp_path / path.replace("__", "/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return NodeReader(str(tmp_path))

    return make


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("update-initramfs", "update-initramfs -u -k all"),
        ("dracut", "dracut --force --regenerate-all"),
        ("mkinitrd", "mkinitrd"),
        ("mkinitcpio", "mkinitcpio -P"),
    ],
)
def test_the_tool_that_is_there_rebuilds_the_initramfs(tree, program, said):
    run = StandinRunner(**{program.replace("-", "_"): OK})
    assert machine.rebuild_initramfs(run, tree(**{f"usr__sbin__{program}": ""})) == ""
    assert run.calls == [said]


def test_an_initramfs_that_fails_is_an_error_and_no_tool_is_a_reason(tree):
    run = StandinRunner(dracut=Result(1, "", "No space left on device"))
    with pytest.raises(KubegpuError, match="No space left"):
        machine.rebuild_initramfs(run, tree(usr__bin__dracut=""))
    assert "no program" in machine.rebuild_initramfs(run, NodeReader("/nowhere"))


def test_looking_around(tree):
    look = machine.look_around(
        tree(
            sys__module__nvidia__version="580.1\n",
            sys__module__nvidia__holders__nvidia_fs="",
            sys__module__nvidia__holders__nvidia_uvm="",
            sys__module__nouveau__refcnt="2\n",
            proc__self__status="CapEff:\t0000000000000000\n",
        )
    )
    assert (look.loaded, look.nouveau, look.holders) == ("580.1", 2, ("nvidia_fs",))
    assert "CAP_SYS_MODULE" in look.cannot


def test_nova_is_looked_at_and_unloaded_as_nouveau_is(tree):
    reader = tree(sys__module__nova_core__refcnt="1\n", sys__module__nova_drm__refcnt="0\n")
    look = machine.look_around(reader)
    # nova_core is used by nova_drm, which goes first.
    assert (look.nouveau, look.kernel_driver) == (0, "nova_drm")
    run = StandinRunner(modprobe=OK)
    assert machine.Modules(run, reader).unload_nouveau() is None
    assert run.calls == ["modprobe -r nova_drm", "modprobe -r nova_core"]
    run = StandinRunner(modprobe=Result(1, "", "in use"))
    stays = machine.Modules(run, reader).unload_nouveau()
    assert stays is not None and stays.stderr == "in use"
    assert run.calls == ["modprobe -r nova_drm"]


def test_a_plain_machine_has_nothing_in_the_way(tree):
    look = machine.look_around(tree(proc__self__status="CapEff:\t000001ffffffffff\n"))
    assert look == machine.Look()


def test_modules_are_unloaded_in_their_order_until_one_stays(tree):
    reader = tree(
        sys__module__nvidia__refcnt="1", sys__module__nvidia_uvm__refcnt="0", x="",
        sys__module__nvidia_modeset__refcnt="1",
    )  # fmt: skip
    run = StandinRunner(
        rmmod=lambda argv: Result(1, "", "in use") if argv[1] == "nvidia_uvm" else OK,
        systemctl=OK,
    )
    stays = machine.Modules(run, reader).unload()
    assert stays is not None
    assert stays.stderr == "in use"
    assert run.calls == [
        "systemctl stop nvidia-persistenced",
        "rmmod nvidia_modeset",
        "rmmod nvidia_uvm",
    ]


def test_debians_module_is_found_without_its_alias(tree):
    def modprobe(argv):
        known = argv[1] in ("nvidia-current-open", "nvidia-current-open-uvm")
        words = f"modprobe: FATAL: Module {argv[1]} not found in directory /lib/modules/6.1"
        return OK if known else Result(1, "", words)

    run = StandinRunner(modprobe=modprobe)
    assert machine.Modules(run, tree(x="")).load().ok
    assert "modprobe nvidia-current-open" in run.calls
    assert run.calls[-1] == "nvidia-modprobe -c 0 -u"


def test_a_module_that_is_refused_is_not_tried_by_other_names(tree):
    run = StandinRunner(modprobe=Result(1, "", "Required key not available"))
    assert machine.Modules(run, tree(x="")).load().stderr == "Required key not available"
    assert run.calls == ["modprobe nvidia"]


def test_services(tree):
    states = {"a.service": "disabled", "b.service": "enabled", "m.service": "masked"}

    def systemctl(argv):
        if argv[1] == "is-enabled":
            return Result(0, states.get(argv[-1], "not-found") + "\n", "")
        return OK

    run = StandinRunner(systemctl=systemctl)
    wished = dict.fromkeys("abmx", "enabled")
    assert machine.read_services(run, wished)["x"] == machine.NO_UNIT
    run.calls.clear()
    warnings = machine.enable_services(run, wished, start=True)
    changes = [call for call in run.calls if "is-enabled" not in call and "reset" not in call]
    assert changes == [
        "systemctl enable a.service",
        "systemctl start a.service",
        "systemctl start b.service",
    ]
    assert len(warnings) == 2


def test_services_are_given_back(tree):
    run = StandinRunner(
        systemctl=lambda argv: Result(0, "enabled\n", "") if argv[1] == "is-enabled" else OK
    )
    machine.give_back_services(run, {"a": "disabled", "b": "enabled", "c": "not-found"})
    assert [call for call in run.calls if "disable " in call] == [
        "systemctl disable a.service",
        "systemctl disable c.service",
    ]


def test_without_systemctl_nothing_is_said_of_services():
    assert machine.read_services(StandinRunner(), ["a"]) == {}
    assert machine.enable_services(StandinRunner(), {"a": "enabled"}, start=True) == []


def test_a_service_that_does_not_start_is_an_error():
    def systemctl(argv):
        if argv[1] == "is-enabled":
            return Result(0, "enabled\n", "")
        return Result(1, "", "failed") if argv[1] == "start" else OK

    with pytest.raises(KubegpuError, match="start a failed"):
        machine.enable_services(StandinRunner(systemctl=systemctl), {"a": "enabled"}, start=True)


def test_uninstallers():
    run = StandinRunner(**{"/usr/bin/nvidia-uninstall": OK, "/usr/bin/nvidia-installer": OK})
    run.answers = {"/usr/bin/nvidia-uninstall": OK, "/usr/bin/nvidia-installer": OK}
    machine.uninstall_runfile(run, "/usr/bin/nvidia-uninstall")
    machine.uninstall_runfile(run, "/usr/bin/nvidia-installer")
    assert run.calls == [
        "/usr/bin/nvidia-uninstall --silent",
        "/usr/bin/nvidia-installer --uninstall --silent",
    ]
    with pytest.raises(KubegpuError, match="not there"):
        machine.uninstall_runfile(run, None)
    with pytest.raises(KubegpuError, match="uninstaller failed"):
        machine.uninstall_runfile(run, "/usr/bin/other")


def test_an_installer_that_fails_quotes_its_log(tree):
    reader = tree(var__log__nvidia_installer="", **{"var__log__nvidia-installer.log": "ERROR: x\n"})
    run = StandinRunner(sh=Result(1, "", "failed"))
    runfile = {"file": "/c/a.run", "arguments": ["--silent"], "version": "580.1"}
    with pytest.raises(KubegpuError) as caught:
        machine.execute_runfile(run, reader, runfile, 60)
    assert "ERROR: x" in caught.value.evidence
    assert run.calls == ["sh /c/a.run --silent"]


def test_an_installer_that_was_changed_is_not_run(tree):
    runfile = {"file": "/c/a.run", "arguments": [], "version": "580.1", "sha256": "a" * 64}
    run = StandinRunner(sh=OK, sha256sum=Result(0, f"{'b' * 64}  /c/a.run\n", ""))
    with pytest.raises(KubegpuError, match="not the file any more") as caught:
        machine.execute_runfile(run, tree(), runfile, 60)
    assert "b" * 64 in caught.value.evidence
    assert run.calls == ["sha256sum /c/a.run"]
    # A name with a backslash is told with one before the sum.
    run = StandinRunner(sh=OK, sha256sum=Result(0, f"\\{'a' * 64}  /c/a.run\n", ""))
    machine.execute_runfile(run, tree(), runfile, 60)
    assert run.calls[1:] == ["sh /c/a.run"]
    with pytest.raises(KubegpuError, match="no such program"):
        machine.execute_runfile(StandinRunner(sh=OK), tree(), runfile, 60)


def test_an_installer_that_was_stopped(tree):
    runfile = {"file": "/c/a.run", "arguments": [], "version": "580.1"}
    with pytest.raises(KubegpuError, match="after 60 seconds") as caught:
        machine.execute_runfile(StandinRunner(sh=Result(124, "x", "")), tree(), runfile, 60)
    assert "build_timeout" in caught.value.next_step


def test_what_was_loaded_is_loaded_again(tree):
    run = StandinRunner(modprobe=OK, systemctl=Result(0, "enabled\n", ""))
    assert machine.load_again(run, tree(), None) == ""
    assert run.calls == []
    assert machine.load_again(run, tree(), "580.1") == ""
    assert "modprobe nvidia" in run.calls
    assert [call for call in run.calls if " start " in call] == [
        f"systemctl start nvidia-{name}.service"
        for name in ("persistenced", "fabricmanager", "imex")
    ]
    run = StandinRunner(modprobe=Result(1, "", "Key was rejected"))
    assert "Key was rejected" in machine.load_again(run, tree(), "580.1")
    there = tree(sys__module__nvidia__version="580.1\n")
    assert machine.load_again(run, there, "580.1") == ""


def test_dkms_builds_for_kernels_whose_headers_came_later():
    run = StandinRunner(dkms=OK)
    node = {
        "driver": {"dkms": [{"kernel": "6.1", "version": "580.1", "state": "installed"}]},
        "kernels": [
            {"version": "6.1", "headers": True, "driver": "580.1"},
            {"version": "6.2", "headers": True, "driver": None},
            {"version": "6.3", "headers": False, "driver": None},
        ],
    }
    assert machine.build_missing(run, node) == ["6.2"]
    assert run.calls == ["dkms autoinstall -k 6.2"]
    node["driver"]["dkms"] = []
    assert machine.build_missing(run, node) == []


def test_asking_the_driver():
    assert machine.ask_driver(StandinRunner()) is None
    assert machine.ask_driver(StandinRunner(nvidia_smi=OK)) is None
    bad = Result(18, "Failed to initialize NVML: Driver/library version mismatch", "")
    assert machine.ask_driver(StandinRunner(nvidia_smi=bad)) == bad


def test_the_drivers_own_daemon_is_no_user(tree, tmp_path):
    for pid, comm, cgroup in (
        ("10", "nvidia-persiste", "0::/user.slice"),
        ("11", "sleep", "0::/system.slice/nvidia-persistenced.service"),
        ("12", "python3", "0::/system.slice/jobs.service"),
    ):
        folder = tmp_path / "proc" / pid / "fd"
        folder.mkdir(parents=True)
        (folder / "3").symlink_to("/dev/nvidia0")
        (folder.parent / "comm").write_text(f"{comm}\n")
        (folder.parent / "cgroup").write_text(f"{cgroup}\n")
    look = machine.look_around(tree(sys__module__nvidia__version="580.1\n"))
    assert look.users == ("python3 (pid 12, jobs.service)",)
