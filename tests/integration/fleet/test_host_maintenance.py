# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``gpu_host_maintenance`` and the playbook ``upgrade`` on hosts without Kubernetes, over ssh.

dockerd 20.10 and 28.5, their containers, and Debian's Slurm are the real ones. A GPU is a stand-in:
a device file with the name of one, and what the test bed's nodes have of a driver.
"""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.integration.fleet.playbooks import (
    BIN,
    PATIENT,
    environment,
    on_nodes,
    play,
    run_module,
)
from tests.integration.killing import kill
from tests.integration.printed import report_of
from tests.testbed import slurm
from tests.testbed.paths import INVENTORY, REPOSITORY

pytestmark = pytest.mark.full(
    why="another way to take a node out of service, on nodes of test_site.py"
)

NODES = "gpu1:gpu3"
LIMIT = ("--limit", "gpu1,gpu3")
IMAGE = "localhost/testbed/busybox:1"
DEVICE = "/dev/nvidia250"
SLEEP = f"{IMAGE} /bin/sleep 3600 >/dev/null"
START = (
    f"mknod -m 666 {DEVICE} c 1 3; "
    f"docker run -d --name service --restart always --stop-timeout 1 --device {DEVICE} {SLEEP} && "
    f"docker run -d --name flaky --restart on-failure:3 --stop-timeout 1 --device {DEVICE} {SLEEP} "
    f"&& docker run -d --name other --restart always --stop-timeout 1 {SLEEP} && "
    f"docker run -d --name job --stop-timeout 1 --device {DEVICE} {SLEEP}"
)
STOP = f"docker rm -f service flaky other job passing >/dev/null 2>&1; rm -f {DEVICE}"
# Which containers there are, whether they run, and with which policy.
LOOK = (
    "docker inspect -f '{{.Id}} {{.Name}} {{.State.Running}} {{.HostConfig.RestartPolicy.Name}}"
    ":{{.HostConfig.RestartPolicy.MaximumRetryCount}}' $(docker ps -aq --no-trunc) | sort"
)
LEFT = "ls -A /var/lib/kubegpu 2>/dev/null"


def ask(state, pattern=NODES, *, check=False, **options):
    """Run the module on the nodes and return the row of each."""
    arguments = {"name": "x", "state": state, "run": "live", "poll": 1, **options}
    flags = ["--diff", *(["--check"] if check else [])]
    answers = run_module(pattern, "kubegpu.nodes.gpu_host_maintenance", arguments, *flags)
    assert all("nodes" in answer for answer in answers.values()), answers
    return {host: answer["nodes"]["x"] for host, answer in answers.items()}


def names(rows, key):
    return {host: [one["name"] for one in row[key]] for host, row in rows.items()}


def codes(rows):
    return {host: [one["code"] for one in row["findings"]] for host, row in rows.items()}


def running(text):
    return {line.split()[1][1:] for line in text.splitlines() if line.split()[2] == "true"}


def each(value, pattern=NODES):
    return dict.fromkeys(pattern.split(":"), value)


def values(rows, key):
    return {host: row[key] for host, row in rows.items()}


@pytest.fixture
def containers(fleet):
    on_nodes(STOP, NODES)
    on_nodes(START, NODES)
    yield on_nodes(LOOK, NODES)
    on_nodes(STOP, NODES)


def test_containers_stop_stay_stopped_and_start_again(containers):
    assert {host: running(text) for host, text in containers.items()} == each(
        {"service", "flaky", "other", "job"}
    )
    predicted = ask("drained", check=True)
    assert names(predicted, "evicted") == each(["flaky", "service"])
    assert names(predicted, "waiting") == each(["job"])
    assert on_nodes(LOOK, NODES) == containers and on_nodes(LEFT, NODES) == each("")
    # Nothing is stopped while the job runs.
    assert codes(ask("drained", timeout=2)) == each(["work_left"])
    assert on_nodes(LOOK, NODES) == containers
    drained = ask("drained", containers="stop")
    assert names(drained, "evicted") == each(["job", "flaky", "service"])
    assert {host: running(text) for host, text in on_nodes(LOOK, NODES).items()} == each({"other"})
    # Not even a dockerd that starts again brings them back.
    on_nodes("systemctl restart docker", NODES)
    time.sleep(2)
    assert {host: running(text) for host, text in on_nodes(LOOK, NODES).items()} == each({"other"})
    assert values(ask("drained", containers="stop"), "changed") == each(False)
    released = ask("released")
    assert values(released, "ok") == each(True) and values(released, "changed") == each(True)
    # The same ones, with their policies.
    assert on_nodes(LOOK, NODES) == containers
    assert on_nodes(LEFT, NODES) == each("")
    assert values(ask("released"), "changed") == each(False)


def test_a_container_that_docker_removes_is_not_stopped_unasked(fleet):
    on_nodes(f"{STOP}; docker run -d --rm --name passing --stop-timeout 1 {SLEEP}", NODES)
    given = {"pods": "all", "containers": "stop"}
    assert codes(ask("drained", timeout=2, **given)) == each(["work_left"])
    assert values(ask("drained", unmanaged="delete", **given), "ok") == each(True)
    assert on_nodes("docker ps -aq", NODES) == each("")
    assert values(ask("released"), "ok") == each(True)


VARIABLES = {
    "gpu_upgrade_pods": "all",
    "gpu_upgrade_containers": "stop",
    "gpu_upgrade_max_unavailable": "100%",
    # gpu1 has no driver.
    "gpu_upgrade_gate": "{{ ['health'] + (['layers'] if inventory_hostname != 'gpu1' else []) }}",
    "gpu_upgrade_soak": 0,
}


def upgrade(report, *arguments, **variables):
    given = {**VARIABLES, "gpu_upgrade_file": str(report), **variables}
    run = play("upgrade", *LIMIT, *arguments, variables=given)
    report_of_run = report_of(run.output, "__gpu_upgrade_report", report)
    assert report_of_run, run.output
    return run, report_of_run


def outcomes(report):
    return {host: one["outcome"] for host, one in report["hosts"].items()}


def test_hosts_with_docker_are_upgraded_and_a_killed_run_is_finished(containers, tmp_path):
    report = tmp_path / "report.json"
    predicted, told = upgrade(report, "--check")
    assert predicted.status == 0, predicted.output
    assert outcomes(told) == each("planned") and on_nodes(LOOK, NODES) == containers
    assert on_nodes(LEFT, NODES) == each("")

    # The containers of the canary are stopped; then the controller dies.
    argv = [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), "kubegpu.nodes.upgrade", *LIMIT]
    given = {**VARIABLES, "gpu_upgrade_file": str(report), "gpu_upgrade_soak": 3600}
    with subprocess.Popen(
        [*argv, "--extra-vars", json.dumps(given)], env={**environment(), **PATIENT},
        cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            deadline = time.monotonic() + 300
            while running(on_nodes(LOOK, "gpu1")["gpu1"]):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(1)
        finally:
            # With its workers, of which one would wait in the gate for an hour.
            kill(process, workers=True)
    assert on_nodes(LOOK, "gpu3")["gpu3"] == containers["gpu3"]
    assert not running(on_nodes(LOOK, "gpu1")["gpu1"]) and on_nodes(LEFT, "gpu1")["gpu1"]

    run, told = upgrade(report)
    assert run.status == 0, run.output
    assert outcomes(told) == each("done") and told["hosts"]["gpu1"]["batch"] == 1
    assert sorted(told["hosts"]["gpu3"]["evicted"]) == [
        "docker/flaky", "docker/job", "docker/other", "docker/service",
    ]  # fmt: skip
    assert on_nodes(LOOK, NODES) == containers
    assert on_nodes("ls /var/lib/kubegpu/upgrade.json 2>/dev/null", NODES) == each("")

    again, told = upgrade(report)
    assert again.status == 0 and outcomes(told) == each("unchanged")
    assert {host: one["changed"] for host, one in again.stats.items()} == each(0)


@pytest.fixture
def cluster(fleet):
    """Slurm on gpu1, which is its own controller."""
    (node,) = (one for one in fleet if one.name == "gpu1")
    slurm.install(node)
    yield node
    slurm.purge(node)


def state():
    """Return the node's state and reason, as soon as its slurmd answers (no ``*``)."""
    shown = f"sinfo -h -n {slurm.NAME} -o '%T %E'"
    wait = f"for i in $(seq 60); do {shown} | grep -qF '*' || break; sleep 1; done"
    return on_nodes(f"{wait}; {shown}", "gpu1")["gpu1"]


def slurm_ask(state_, **options):
    return ask(state_, "gpu1", **options)["gpu1"]


def test_a_node_of_slurm_is_drained_and_only_our_drain_is_taken_back(cluster):
    # An upgrade has been here before, and has the record of its roles.
    before = on_nodes(LEFT, "gpu1")
    on_nodes("cd /tmp && sbatch --wrap 'sleep 15' -o /dev/null", "gpu1")
    on_nodes("for i in $(seq 20); do squeue -h -t R | grep -q . && exit; sleep 1; done", "gpu1")
    predicted = slurm_ask("drained", check=True)
    assert [one["name"] for one in predicted["waiting"]] == ["job 1"]
    assert state().split()[0] in ("mixed", "allocated")
    # The job ends by itself; no other one begins.
    row = slurm_ask("drained")
    assert row["ok"] and row["slurm_node"] == slurm.NAME and not row["was_unschedulable"]
    assert state() == "drained kubegpu.nodes maintenance live"
    on_nodes("cd /tmp && sbatch --wrap true -o /dev/null", "gpu1")
    assert on_nodes("sleep 3; squeue -h -o %t", "gpu1")["gpu1"] == "PD"
    row = slurm_ask("released")
    assert row["ok"] and row["changed"] and not slurm_ask("released")["changed"]
    on_nodes('for i in $(seq 60); do [ -z "$(squeue -h)" ] && exit; sleep 1; done', "gpu1")
    assert state() == "idle none"

    # A run that was killed, and slurmd starts again meanwhile.
    assert slurm_ask("cordoned")["changed"]
    on_nodes("systemctl restart slurmd", "gpu1")
    assert not slurm_ask("cordoned")["changed"] and slurm_ask("released")["ok"]
    assert state() == "idle none"

    by_hand = f"scontrol update NodeName={slurm.NAME} State=DRAIN Reason='fan broken'"
    on_nodes(by_hand, "gpu1")
    assert slurm_ask("drained")["was_unschedulable"] and slurm_ask("released")["ok"]
    assert state() == "drained fan broken"
    # Ours, until somebody else drains it.
    on_nodes(f"scontrol update NodeName={slurm.NAME} State=RESUME", "gpu1")
    assert slurm_ask("cordoned")["changed"]
    on_nodes(by_hand, "gpu1")
    assert slurm_ask("released")["ok"] and state() == "drained fan broken"
    assert on_nodes(LEFT, "gpu1") == before


SEEN = "/root/slurm-seen"
LOOK_AT_SLURM = f"""
- name: Store what Slurm has of the node while it is changed
  ansible.builtin.shell: sinfo -h -n {slurm.NAME} -o '%T %E' >{SEEN}; squeue -h >>{SEEN}
"""


def test_the_playbook_drains_and_resumes_a_node_of_slurm(cluster, tmp_path):
    """A job ends before the change; a node that a person drained before stays drained after it."""
    hook = tmp_path / "look.yml"
    hook.write_text(LOOK_AT_SLURM, encoding="utf-8")
    on_nodes("cd /tmp && sbatch --wrap 'sleep 15' -o /dev/null", "gpu1")
    on_nodes("for i in $(seq 20); do squeue -h -t R | grep -q . && exit; sleep 1; done", "gpu1")
    given = {"gpu_upgrade_hooks": {"before_change": str(hook)}}

    def upgrade_to(version):
        run, told = upgrade(
            tmp_path / "report.json", "--limit", "gpu1",
            **{**given, "nvidia_container_toolkit_version": version},
        )  # fmt: skip
        assert run.status == 0, run.output
        assert outcomes(told) == {"gpu1": "done"}
        assert told["hosts"]["gpu1"]["to"]["toolkit"].startswith(version)
        assert on_nodes("ls /var/lib/kubegpu/upgrade.json 2>/dev/null", "gpu1")["gpu1"] == ""
        return on_nodes(f"cat {SEEN}; rm -f {SEEN}", "gpu1")["gpu1"]

    # Drained by this run, and without the job.
    assert upgrade_to("1.19.0") == "drained kubegpu.nodes maintenance gpu-upgrade"
    assert state() == "idle none"

    on_nodes(f"scontrol update NodeName={slurm.NAME} State=DRAIN Reason='fan broken'", "gpu1")
    assert upgrade_to("1.20.1") == "drained fan broken"
    assert state() == "drained fan broken"
