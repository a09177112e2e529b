# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.kernel_module import (
    KernelModules,
    build_missing_modules,
    failed_driver_query,
    read_module_state,
    reload_previous,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.loading import ModuleState
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.driver_nodes import OK, StandinRunner


def test_looking_around(tree):
    look = read_module_state(
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
    look = read_module_state(reader)
    # nova_core is used by nova_drm, which goes first.
    assert (look.nouveau, look.kernel_driver) == (0, "nova_drm")
    run = StandinRunner(modprobe=OK)
    assert KernelModules(run, reader).unload_nouveau() is None
    assert run.calls == ["modprobe -r nova_drm", "modprobe -r nova_core"]
    run = StandinRunner(modprobe=Result(1, "", "in use"))
    stays = KernelModules(run, reader).unload_nouveau()
    assert stays is not None and stays.stderr == "in use"
    assert run.calls == ["modprobe -r nova_drm"]


def test_a_plain_machine_has_nothing_in_the_way(tree):
    look = read_module_state(tree(proc__self__status="CapEff:\t000001ffffffffff\n"))
    assert look == ModuleState()


def test_modules_are_unloaded_in_their_order_until_one_stays(tree):
    reader = tree(
        sys__module__nvidia__refcnt="1", sys__module__nvidia_uvm__refcnt="0", x="",
        sys__module__nvidia_modeset__refcnt="1",
    )  # fmt: skip
    run = StandinRunner(
        rmmod=lambda argv: Result(1, "", "in use") if argv[1] == "nvidia_uvm" else OK,
        systemctl=OK,
    )
    stays = KernelModules(run, reader).unload()
    assert stays is not None
    assert stays.stderr == "in use"
    assert run.calls == [
        "systemctl stop nvidia-persistenced",
        "systemctl stop nvidia-cdi-refresh.service",
        "rmmod nvidia_modeset",
        "rmmod nvidia_uvm",
    ]


def test_debians_module_is_found_without_its_alias(tree):
    def modprobe(argv):
        known = argv[1] in ("nvidia-current-open", "nvidia-current-open-uvm")
        words = f"modprobe: FATAL: Module {argv[1]} not found in directory /lib/modules/6.1"
        return OK if known else Result(1, "", words)

    run = StandinRunner(modprobe=modprobe)
    assert KernelModules(run, tree(x="")).load().ok
    assert "modprobe nvidia-current-open" in run.calls
    assert run.calls[-1] == "nvidia-modprobe -c 0 -u"


def test_a_module_that_is_refused_is_not_tried_by_other_names(tree):
    run = StandinRunner(modprobe=Result(1, "", "Required key not available"))
    assert KernelModules(run, tree(x="")).load().stderr == "Required key not available"
    assert run.calls == ["modprobe nvidia"]


def test_what_was_loaded_is_loaded_again(tree):
    run = StandinRunner(modprobe=OK, systemctl=Result(0, "enabled\n", ""))
    assert reload_previous(run, tree(), None) == ""
    assert run.calls == []
    assert reload_previous(run, tree(), "580.1") == ""
    assert "modprobe nvidia" in run.calls
    assert [call for call in run.calls if " start " in call] == [
        f"systemctl start nvidia-{name}.service"
        for name in ("persistenced", "fabricmanager", "imex")
    ]
    run = StandinRunner(modprobe=Result(1, "", "Key was rejected"))
    assert "Key was rejected" in reload_previous(run, tree(), "580.1")
    there = tree(sys__module__nvidia__version="580.1\n")
    assert reload_previous(run, there, "580.1") == ""


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
    assert build_missing_modules(run, node) == ["6.2"]
    assert run.calls == ["dkms autoinstall -k 6.2"]
    node["driver"]["dkms"] = []
    assert build_missing_modules(run, node) == []


def test_asking_the_driver():
    assert failed_driver_query(StandinRunner()) is None
    assert failed_driver_query(StandinRunner(nvidia_smi=OK)) is None
    bad = Result(18, "Failed to initialize NVML: Driver/library version mismatch", "")
    assert failed_driver_query(StandinRunner(nvidia_smi=bad)) == bad


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
    look = read_module_state(tree(sys__module__nvidia__version="580.1\n"))
    assert look.users == ("python3 (pid 12, jobs.service)",)


def test_daemons_of_ours_are_no_users_and_are_stopped_for_a_change(tmp_path):
    for pid, comm, unit in (
        ("10", "nv-fabricmanage", "nvidia-fabricmanager.service"),
        ("11", "nvidia-imex", "nvidia-imex.service"),
    ):
        folder = tmp_path / "proc" / pid / "fd"
        folder.mkdir(parents=True)
        (folder / "3").symlink_to("/dev/nvidiactl")
        (folder.parent / "comm").write_text(f"{comm}\n")
        (folder.parent / "cgroup").write_text(f"0::/system.slice/{unit}\n")
    version = tmp_path / "sys/module/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("580.95.05\n")
    reader = NodeReader(str(tmp_path))
    ours = ("nvidia-fabricmanager",)
    # What an admin runs without us is named, and not stopped.
    assert read_module_state(reader, ours).users == ("nvidia-imex (pid 11, nvidia-imex.service)",)
    run = StandinRunner(systemctl=OK, rmmod=OK)
    assert KernelModules(run, reader, ours).unload() is None
    assert run.calls == [
        "systemctl stop nvidia-persistenced",
        "systemctl stop nvidia-fabricmanager.service",
        "systemctl stop nvidia-cdi-refresh.service",
    ]
