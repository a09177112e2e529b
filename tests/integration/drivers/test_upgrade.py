# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook ``upgrade`` on three nodes with a driver from NVIDIA's repository, over ssh.

apt, repositories and signatures, systemd, containerd, Docker and the reboot are real; packages of
the driver, DKMS, the GPUs and the functions of the kernel are stand-ins. The tests run in this
order on the same nodes, which begin with the old driver.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time

import pytest

from tests.integration.drivers.steps import dpkg_is_consistent, facts, shell
from tests.integration.fleet.playbooks import (
    BIN,
    ETC,
    PATIENT,
    environment,
    on_nodes,
    play,
)
from tests.integration.killing import kill
from tests.integration.printed import report_of
from tests.testbed.paths import INVENTORY, REPOSITORY
from tests.unit.fixtures.health_node import xid

pytestmark = [
    pytest.mark.xdist_group("drv-up1"),
    pytest.mark.full(why="each run takes a minute; tests/integration/controller has stand-ins"),
]

# From 590 on no package has the version in its name but the one that pins it.
OLD, NEW = "595.58.03", "595.91.07"
BRANCH_580 = "580.178.04"
FIRST, SECOND, THIRD = NAMES = ("drv-up1", "drv-up2", "drv-up3")
ALL = ":".join(NAMES)
BOOT = "cat /proc/sys/kernel/random/boot_id"
PACKAGES = "dpkg -l | sort"
# What is on a node, and what runs there since when.
LOOK = (
    f"({ETC}); {PACKAGES}; {BOOT}; cat /proc/driver/nvidia/version; apt-mark showhold; "
    "find /var/lib/kubegpu -type f ! -name '*.lock' -print0 | sort -z | xargs -0 sha256sum; "
    "systemctl show -P InvocationID containerd docker nvidia-persistenced"
)
# A service that has a GPU open is not waited for: the driver needs a reboot. It comes back, and
# counts its starts.
STARTS = "/root/standin-starts"
UNIT = "/etc/systemd/system/standin-training.service"
SERVICE = f"""[Service]
ExecStart=bash -c 'echo >>{STARTS}; until exec 7</dev/nvidia0; do sleep 1; done; sleep 3600'
[Install]
WantedBy=multi-user.target
"""
# Stand-in of journalctl in front of the real one: one version of the driver, and no other, finds a
# dead GPU.
SICK = f"""#!/bin/sh
case "$*" in *"-b 0 "*)
    if grep -q VERSION /proc/driver/nvidia/version; then
        echo "$(date +%s).000000 $(hostname) kernel: {xid(79, gpu="0000:00:08.0")}"
    fi ;;
esac
exec /root/journalctl "$@"
"""


SAVED = "ls -A /var/lib/kubegpu-packages 2>/dev/null"
COMPILER = "/var/lib/dkms/nvidia/build/nv.c:7:3: error: implicit declaration of a function"


def variables(version, **more):
    return {
        "nvidia_driver_source": "nvidia",
        "nvidia_driver_version": version,
        # The layers need device nodes, which are plain files here.
        "gpu_upgrade_gate": ["health"],
        "gpu_upgrade_soak": 0,
        "gpu_upgrade_max_unavailable": "100%",
        **more,
    }


@pytest.fixture(scope="module")
def nodes(fleet):
    """The nodes with the old driver, by name."""
    tags = ("--tags", "driver,toolkit,runtime")
    run = play("site", *tags, "--limit", ALL, variables=variables(OLD), timeout=1800)
    assert run.status == 0, run.output
    return {name: fleet[name] for name in NAMES}


@pytest.fixture
def upgrade(nodes, tmp_path):
    """Run the playbook; return the run and its report."""

    def run(*arguments, version=NEW, limit=ALL, **more):
        path = tmp_path / "report.json"
        path.unlink(missing_ok=True)
        given = variables(version, gpu_upgrade_file=str(path), **more)
        done = play("upgrade", "--limit", limit, *arguments, variables=given, timeout=1800)
        report = report_of(done.output, "__gpu_upgrade_report", path)
        assert report and path.exists() != ("--check" in arguments), done.output
        return done, report

    return run


@contextlib.contextmanager
def in_use(node):
    """A service that uses the GPU, also after a reboot."""
    begin = "systemctl enable -q --now standin-training"
    shell(node, f"rm -f {STARTS}; cat >{UNIT} <<'END'\n{SERVICE}END\n{begin}")
    opened = "test -e /proc/$(systemctl show -P MainPID standin-training)/fd/7"
    shell(node, f"timeout 60 sh -c 'until {opened}; do sleep 0.1; done'")
    yield
    # It may be on its way up from a reboot.
    deadline = time.monotonic() + 120
    while shell(node, "systemctl is-system-running || true", check=False).strip() != "running":
        assert time.monotonic() < deadline
        time.sleep(0.5)
    shell(node, f"systemctl disable -q --now standin-training; rm {UNIT}; systemctl daemon-reload")


def outcomes(report):
    return {name: one["outcome"] for name, one in report["hosts"].items()}


def loaded():
    return {
        name: text.split("Module for x86_64  ")[1].split()[0]
        for name, text in on_nodes("cat /proc/driver/nvidia/version", ALL).items()
    }


def left():
    """What an unfinished upgrade leaves on nodes: its record, and that the host is held."""
    found = on_nodes(
        "ls /var/lib/kubegpu/upgrade.json 2>/dev/null; "
        "grep -o '\"maintenance\"' /var/lib/kubegpu/state.json", ALL
    )  # fmt: skip
    return {name for name, text in found.items() if text}


@contextlib.contextmanager
def faulty(node, version):
    """A version of the driver finds a fault on a node."""
    text = SICK.replace("VERSION", version)
    shell(node, "cp -a /usr/bin/journalctl /root/")
    shell(node, f"cat >/usr/bin/journalctl <<'END'\n{text}END")
    try:
        yield
    finally:
        shell(node, "mv /root/journalctl /usr/bin/")


@pytest.fixture
def sick(nodes):
    """The new driver finds a fault on the first node."""
    with faulty(nodes[FIRST], NEW):
        yield


def test_a_trial_changes_no_byte(upgrade):
    before = on_nodes(LOOK, ALL)
    run, report = upgrade("--check", "--diff")
    assert run.status == 0, run.output
    assert outcomes(report) == dict.fromkeys(NAMES, "planned")
    assert {one["disturbs"] for one in report["hosts"].values()} == {"all"}
    assert {host: one["changed"] for host, one in run.stats.items()} == dict.fromkeys(NAMES, 0)
    assert on_nodes(LOOK, ALL) == before


def test_a_bad_canary_has_its_packages_back_and_others_are_not_touched(nodes, upgrade, sick):
    """The driver is in use: there is a reboot on the way there, and one in the rollback."""
    before = on_nodes(LOOK, ALL)
    things = {what: on_nodes(what, FIRST) for what in (PACKAGES, ETC)}
    with in_use(nodes[FIRST]):
        # The configuration of containerd is of what goes back.
        run, report = upgrade(nvidia_container_toolkit_containerd_set_default=True)
    assert run.status == 2, run.output
    assert outcomes(report) == {
        FIRST: "rolled_back", SECOND: "not_started", THIRD: "not_started",
    }  # fmt: skip
    one = report["hosts"][FIRST]
    assert (one["from"]["driver"], one["to"]["driver"]) == (OLD, OLD)
    assert "runtime" in " ".join(one["changes"]) and one["rolled_back_because"]
    assert f"1 failed ({FIRST})" in report["stopped"]
    assert shell(nodes[FIRST], f"wc -l <{STARTS}").strip() == "3"
    assert {what: on_nodes(what, FIRST) for what in things} == things
    assert loaded() == dict.fromkeys(NAMES, OLD) and left() == set()
    after = on_nodes(LOOK, ALL)
    assert {name: after[name] for name in NAMES[1:]} == {name: before[name] for name in NAMES[1:]}


def test_a_good_canary_and_a_bad_second_one_that_is_allowed(nodes, upgrade):
    packages = shell(nodes[SECOND], PACKAGES).splitlines()
    shell(nodes[SECOND], f"echo '{COMPILER}' >/opt/standin/dkms-fails-{NEW}")
    run, report = upgrade(gpu_upgrade_max_failed=1)
    shell(nodes[SECOND], f"rm /opt/standin/dkms-fails-{NEW}")
    assert run.status == 2, run.output
    assert outcomes(report) == {FIRST: "done", SECOND: "rolled_back", THIRD: "done"}
    assert [report["hosts"][name]["batch"] for name in NAMES] == [1, 2, 3]
    assert "implicit declaration" in report["hosts"][SECOND]["rolled_back_because"]
    assert loaded() == {FIRST: NEW, SECOND: OLD, THIRD: NEW} and left() == set()
    assert shell(nodes[SECOND], PACKAGES).splitlines() == packages
    assert dpkg_is_consistent(nodes[SECOND])


def test_the_next_run_finishes_and_another_one_changes_nothing(upgrade):
    run, report = upgrade()
    assert run.status == 0, run.output
    assert outcomes(report) == {FIRST: "unchanged", SECOND: "done", THIRD: "unchanged"}
    assert loaded() == dict.fromkeys(NAMES, NEW) and left() == set()
    before = on_nodes(LOOK, ALL)
    run, report = upgrade()
    assert run.status == 0, run.output
    assert outcomes(report) == dict.fromkeys(NAMES, "unchanged")
    assert {host: one["changed"] for host, one in run.stats.items()} == dict.fromkeys(NAMES, 0)
    assert on_nodes(LOOK, ALL) == before


def test_a_node_that_does_not_come_back_from_its_reboot(nodes, upgrade):
    """The others follow, as one failure is allowed; the next run goes on with it."""
    given = {"version": OLD, "kubegpu_reboot_timeout": 20}
    shell(nodes[FIRST], "systemctl disable ssh")
    with in_use(nodes[FIRST]):
        run, report = upgrade(**given, gpu_upgrade_max_failed=1, limit=f"{FIRST}:{SECOND}")
    assert run.status == 2, run.output
    assert outcomes(report) == {FIRST: "unreachable", SECOND: "done"}
    assert report["hosts"][FIRST]["began"] and left() == {FIRST}
    shell(nodes[FIRST], "systemctl enable --now ssh")
    run, report = upgrade(**given, limit=f"{FIRST}:{SECOND}")
    assert run.status == 0, run.output
    assert outcomes(report) == {FIRST: "done", SECOND: "unchanged"}
    assert report["hosts"][FIRST]["from"]["driver"] == NEW
    assert loaded() == {FIRST: OLD, SECOND: OLD, THIRD: NEW} and left() == set()


class Controller:
    """An ansible-playbook of its own, which is killed."""

    def __init__(self, folder, node, **more):
        given = variables(OLD, gpu_upgrade_file=str(folder / "killed.json"), **more)
        argv = [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), "kubegpu.nodes.upgrade"]
        argv += ["--limit", node.name, "--extra-vars", json.dumps(given)]
        self._node, self._screen = node, folder / "screen"
        with self._screen.open("w", encoding="utf-8") as screen:
            self._process = subprocess.Popen(
                [sys.executable, *argv], env={**environment(), **PATIENT, "PYTHONUNBUFFERED": "1"},
                cwd=REPOSITORY, stdout=screen, stderr=screen, text=True, start_new_session=True,
            )  # fmt: skip

    def until(self, what):
        """Wait until something is so."""
        deadline = time.monotonic() + 600
        while not what():
            assert self._process.poll() is None, self._screen.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, self._screen.read_text(encoding="utf-8")
            time.sleep(0.2)

    def at(self, task):
        """Wait until a task begins."""
        self.until(lambda: f" : {task}]" in self._screen.read_text(encoding="utf-8"))

    def kill(self):
        kill(self._process, workers=True)


def test_a_controller_that_is_killed_in_each_step(nodes, upgrade, tmp_path):
    """Each run is killed further on than the one before, and goes on with what that one left."""
    node = nodes[THIRD]

    @contextlib.contextmanager
    def killed(**more):
        controller = Controller(tmp_path, node, **more)
        try:
            yield controller
        finally:
            controller.kill()

    def record():
        text = shell(node, "cat /var/lib/kubegpu/upgrade.json")
        return json.loads(text)["driver"]

    with killed() as run:
        run.at("Write the record")
    with killed() as run:
        run.at("Publish what was stopped, and what blocks")
    assert record() == NEW
    # apt is at work; it goes on without the controller.
    shell(node, "rm -f /opt/standin/slow-begun; touch /opt/standin/slow")
    with killed() as run:
        run.until(lambda: shell(node, "ls /opt/standin/slow-begun 2>/dev/null || true"))
    assert facts(node)["driver"]["pending"]
    shell(node, "rm /opt/standin/slow")
    # In the reboot.
    boot = shell(node, BOOT)
    with in_use(node), killed() as run:
        run.at("Reboot for the driver")
        run.until(lambda: shell(node, BOOT, check=False) not in ("", boot))
    with killed(gpu_upgrade_soak=3600) as run:
        run.at("Wait before the health is compared again")
    assert record() == NEW and left() == {THIRD}
    with killed() as run:
        run.at("Release the host")

    run, report = upgrade(version=OLD, limit=THIRD)
    assert run.status == 0, run.output
    assert outcomes(report)[THIRD] in ("done", "unchanged")
    assert loaded() == dict.fromkeys(NAMES, OLD) and left() == set()
    assert dpkg_is_consistent(node)
    again, report = upgrade(version=OLD)
    assert again.status == 0 and outcomes(report) == dict.fromkeys(NAMES, "unchanged")
    assert {host: one["changed"] for host, one in again.stats.items()} == dict.fromkeys(NAMES, 0)


def test_a_controller_that_is_killed_in_the_rollback(nodes, upgrade, sick, tmp_path):
    """The earlier driver is there again: the next run changes the node once more, and goes back."""
    controller = Controller(tmp_path, nodes[FIRST], nvidia_driver_version=NEW)
    try:
        controller.at("Configuration of the runtimes")
    finally:
        controller.kill()
    assert loaded()[FIRST] == OLD and left() == {FIRST}
    run, report = upgrade(limit=FIRST)
    assert run.status == 2, run.output
    assert outcomes(report) == {FIRST: "rolled_back"}
    assert report["hosts"][FIRST]["from"]["driver"] == OLD
    assert loaded() == dict.fromkeys(NAMES, OLD) and left() == set()
    assert dpkg_is_consistent(nodes[FIRST])


def test_all_nodes_are_upgraded_and_keep_their_packages(upgrade):
    """Those of the new driver; what was saved before the change is replaced by them."""
    run, report = upgrade(gpu_upgrade_save_packages=True)
    assert run.status == 0, run.output
    assert outcomes(report) == dict.fromkeys(NAMES, "done") and report["ok"]
    assert loaded() == dict.fromkeys(NAMES, NEW) and left() == set()
    for name, text in on_nodes(SAVED, ALL).items():
        files = [line for line in text.splitlines() if "nvidia-dkms" in line]
        assert files and all(NEW in line for line in files), (name, text)
    # apt has the folder as a repository, whose index it has read.
    listed = on_nodes("apt-cache policy nvidia-open | grep -c kubegpu-packages", ALL)
    assert all(int(count) for count in listed.values()), listed


def test_a_second_node_that_fails_the_gate_goes_back_and_the_third_follows(nodes, upgrade):
    packages = shell(nodes[SECOND], PACKAGES).splitlines()
    with faulty(nodes[SECOND], OLD):
        run, report = upgrade(version=OLD, gpu_upgrade_max_failed=1)
    assert run.status == 2, run.output
    assert outcomes(report) == {FIRST: "done", SECOND: "rolled_back", THIRD: "done"}
    assert report["hosts"][SECOND]["to"]["driver"] == NEW
    assert report["hosts"][SECOND]["rolled_back_because"]
    assert loaded() == {FIRST: OLD, SECOND: NEW, THIRD: OLD} and left() == set()
    assert shell(nodes[SECOND], PACKAGES).splitlines() == packages
    assert dpkg_is_consistent(nodes[SECOND])


def test_packages_with_the_branch_in_their_name_are_gone_after_the_rollback(nodes, upgrade):
    """Those of 580, its firmware included; what is left of them is configuration (rc)."""
    node, packages = nodes[THIRD], f"{PACKAGES} | grep -v '^rc'"
    before = shell(node, packages)
    with faulty(node, BRANCH_580):
        run, report = upgrade(version=BRANCH_580, limit=THIRD)
    assert run.status == 2, run.output
    assert outcomes(report) == {THIRD: "rolled_back"}
    assert report["hosts"][THIRD]["rolled_back_because"]
    assert "nvidia-open-580:" in shell(node, "cat /var/log/apt/history.log")
    assert shell(node, packages).splitlines() == before.splitlines()
    assert loaded()[THIRD] == OLD and left() == set()
    assert dpkg_is_consistent(node)


def test_teardown_restores_the_nodes(nodes):
    run = play("teardown", "--limit", ALL, variables=variables(OLD), timeout=1800)
    assert run.status == 0, run.output
    found = on_nodes(f"ls -A /var/lib/kubegpu 2>/dev/null; {SAVED}; apt-mark showhold", ALL)
    assert found == dict.fromkeys(NAMES, "")
