# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host is taken out of work and released, with stand-ins of dockerd and of Slurm's programs."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.apply import (
    Dependencies,
    HostMaintenance,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.engine import Engine
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.record import KEY
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.scheduler import (
    Scheduler,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.slurm import reason_of
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    DeviceUser,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore

RUN = "gpu-upgrade"
GPU = [{"Driver": "", "Capabilities": [["gpu"]]}]


class Killed(Exception):
    """The process ends here."""


class StandinHost:
    """dockerd, Slurm and the processes of a host."""

    def __init__(self, path):
        self.path = path
        self.containers = {}
        self.users = ()
        self.slurm = None  # state and reason
        self.jobs = []
        self.seconds = 0.0
        self.calls = []
        self.warnings = []
        self.kill_at = None
        self.refused = set()
        # What happens at a time, by seconds.
        self.events = {}
        # What a restart of slurmd does.
        self.restarted = lambda: None

    def add(self, name, policy="no", started=0, gpu=True, **host):
        self.containers[name] = {
            "Id": name, "Name": f"/{name}", "Config": {},
            "State": {"Running": True, "StartedAt": f"2026-11-23T10:00:{started:02d}Z"},
            "HostConfig": {"Runtime": "runc", "DeviceRequests": GPU if gpu else [],
                           "RestartPolicy": {"Name": policy, "MaximumRetryCount": 2}, **host},
        }  # fmt: skip

    def end(self, name):
        self.containers[name]["State"]["Running"] = False

    def running(self):
        return [name for name, one in self.containers.items() if one["State"]["Running"]]

    def policy(self, name):
        return self.containers[name]["HostConfig"]["RestartPolicy"]["Name"]

    def call(self, method, path, body=None, timeout=None):
        if path == "/info":
            return 200, {"Runtimes": {}}
        if path == "/containers/json":
            return 200, [{"Id": name} for name in self.running()]
        _empty, _containers, name, what = path.split("/")
        if name not in self.containers:
            return 404, {"message": "No such container"}
        if what == "json":
            return 200, self.containers[name]
        self.calls.append((what, name))
        if self.kill_at == (what, name):
            raise Killed
        if (what, name) in self.refused:
            return 500, {"message": "no GPU"}
        state = self.containers[name]["State"]
        if what == "update":
            self.containers[name]["HostConfig"]["RestartPolicy"] = body["RestartPolicy"]
        elif what == "stop":
            state["Running"] = False
            if self.containers[name]["HostConfig"].get("AutoRemove"):
                del self.containers[name]
        elif state["Running"]:
            return 304, None
        else:
            state["Running"] = True
        return 204, None

    def run(self, argv, timeout=60, environment=None):
        if argv[:2] == ["systemctl", "restart"]:
            self.calls.append(tuple(argv))
            self.restarted()
            return Result(0, "", "")
        if argv[0] == "systemctl":
            active = argv[2] == "docker" or (argv[2] == "slurmd" and self.slurm is not None)
            text = "LoadState=loaded\nActiveState=active\n" if active else "LoadState=not-found\n"
            return Result(0, text, "")
        if argv[0] == "squeue":
            return Result(0, "\n".join(self.jobs), "")
        if argv[1] == "update":
            self.calls.append(tuple(argv[3:]))
            reason = argv[4].partition("=")[2] if len(argv) > 4 else ""
            self.slurm = ("IDLE+DRAIN", reason) if "State=DRAIN" in argv else ("IDLE", "")
            return Result(0, "", "")
        if self.slurm == "away":
            return Result(1, "", "Unable to contact slurm controller")
        state, reason = self.slurm
        shown = f" Reason={reason} [root@2026-11-23T12:00:00]" if reason else ""
        return Result(0, f"NodeName=gpu-0 CPUAlloc=0 NodeHostName=rack1 State={state}{shown}\n", "")

    def sleep(self, seconds):
        self.seconds += seconds
        for time in [time for time in self.events if time <= self.seconds]:
            self.events.pop(time)()

    def node(self):
        return Dependencies(
            run=self.run,
            store=StateStore(str(self.path)),
            engine=Engine(self.call),
            users=lambda: self.users,
            scheduler=lambda name: Scheduler(self.run, name, "rack1"),
            warn=self.warnings.append,
            sleep=self.sleep,
            clock=lambda: self.seconds,
        )

    def ask(self, state, *, check=False, **options):
        request = Request(**{"name": "gpu1", "state": state, "run": RUN, **options})
        return HostMaintenance(request, self.node(), dry_run=check).run()

    def record(self):
        return StateStore(str(self.path)).get(KEY)


@pytest.fixture
def host(tmp_path):
    return StandinHost(tmp_path / "lib" / "state.json")


def codes(row):
    return [one["code"] for one in row["findings"]]


def names(rows):
    return [f"{row['namespace']}/{row['name']}" for row in rows]


def test_services_are_stopped_and_started_again_with_their_policies(host):
    host.add("db", "unless-stopped", started=1)
    host.add("web", "on-failure", started=2)
    host.add("proxy", "always", started=3, gpu=False)
    out = host.ask("drained")
    assert out["ok"] and out["changed"] and names(out["evicted"]) == ["docker/web", "docker/db"]
    assert host.running() == ["proxy"] and host.policy("proxy") == "always"
    # dockerd would start them again after a restart.
    assert host.policy("db") == host.policy("web") == "no"
    again = host.ask("drained")
    assert again["ok"] and not again["changed"] and again["held_by"] == RUN
    host.calls.clear()
    back = host.ask("released")
    assert back["ok"] and back["changed"] and back["held_by"] == ""
    assert [name for what, name in host.calls if what == "start"] == ["db", "web"]
    assert (host.policy("db"), host.policy("web")) == ("unless-stopped", "on-failure")
    assert host.containers["web"]["HostConfig"]["RestartPolicy"]["MaximumRetryCount"] == 2
    assert host.record() is None and not host.path.exists()
    assert not host.ask("released")["changed"]


def test_check_mode_tells_the_same_and_changes_nothing(host):
    host.slurm = ("IDLE", "")
    host.add("web", "always")
    host.add("job")
    row = host.ask("drained", check=True)
    assert row["ok"] and row["changed"] and not host.path.exists() and host.calls == []
    assert names(row["evicted"]) == ["docker/web"] and names(row["waiting"]) == ["docker/job"]
    # What the host is now.
    assert (row["held_by"], row["unschedulable"]) == ("", False)
    host.ask("cordoned")
    assert not host.ask("cordoned", check=True)["changed"]


@pytest.mark.parametrize("kill", [("update", "web"), ("stop", "web"), ("stop", "db")])
def test_a_killed_drain_loses_no_container(host, kill):
    host.add("db", "always", started=1)
    host.add("web", "always", started=2)
    host.kill_at = kill
    with pytest.raises(Killed):
        host.ask("drained")
    host.kill_at = None
    assert host.ask("drained")["ok"] and host.running() == []
    assert host.ask("released")["ok"]
    assert sorted(host.running()) == ["db", "web"]
    assert host.policy("db") == host.policy("web") == "always"


@pytest.mark.parametrize("kill", [("start", "db"), ("update", "db"), ("start", "web")])
def test_a_killed_release_is_finished_by_the_next_one(host, kill):
    host.add("db", "always", started=1)
    host.add("web", "always", started=2)
    host.ask("drained")
    host.kill_at = kill
    with pytest.raises(Killed):
        host.ask("released")
    host.kill_at = None
    assert host.ask("released")["ok"] and sorted(host.running()) == ["db", "web"]
    assert host.policy("db") == host.policy("web") == "always" and host.record() is None


def test_nothing_is_stopped_while_a_job_may_finish(host):
    host.slurm, host.jobs = ("MIXED", ""), ["7"]
    host.add("web", "always")
    host.add("job")
    service = DeviceUser(2, "nvidia-persiste", unit="nvidia-persistenced.service")
    host.users = (DeviceUser(9, "python", unit="session-3.scope"), service)
    seen = []
    host.events = {
        20: lambda: (host.jobs.clear(), seen.append(host.running())),
        40: lambda: (host.end("job"), seen.append(host.running())),
        60: lambda: (setattr(host, "users", ()), seen.append(host.running())),
    }
    row = host.ask("drained")
    assert row["ok"] and seen == [["web", "job"], ["web"], ["web"]]
    assert host.running() == [] and host.seconds >= 60


def test_what_does_not_leave_is_named_and_release_restores_the_host(host):
    host.slurm, host.jobs = ("IDLE", ""), ["7"]
    host.add("web", "always")
    host.users = (DeviceUser(9, "py\x1bthon", unit=None),)
    row = host.ask("drained", timeout=30)
    assert not row["ok"] and codes(row) == ["work_left"] and host.running() == ["web"]
    assert row["findings"][0]["evidence"] == (
        "slurm/job 7, process/py\\x1bthon (pid 9), docker/web"
    )
    assert host.ask("released")["ok"] and host.slurm == ("IDLE", "") and host.record() is None


def test_a_drain_goes_on_in_the_next_slice(host):
    host.add("web", "always", started=1)
    host.add("job", started=2)
    request = Request("gpu1", "drained", RUN, timeout=50)
    first = HostMaintenance(request, host.node(), limit=30)
    assert first.run()["ok"] and first.progress == ["gpu1: waiting for docker/job, docker/web"]
    carried = first.carry()
    assert carried["waited"] == 30
    second = HostMaintenance(request, host.node(), limit=30, carried=carried)
    # The times of the slices add up.
    assert codes(second.run()) == ["work_left"] and host.seconds == 50
    host.end("job")
    third = HostMaintenance(request, host.node(), limit=30, carried=carried)
    row = third.run()
    assert row["ok"] and third.carry() == {} and row["diff"][0]["run"] is None


def test_a_slurm_node_is_drained_with_our_reason_and_resumed(host):
    host.slurm = ("IDLE", "")
    row = host.ask("cordoned")
    assert row["ok"] and host.slurm == ("IDLE+DRAIN", reason_of(RUN)) and row["unschedulable"]
    assert row["slurm_node"] == "gpu-0" and not row["was_unschedulable"]
    # A reboot gives it Slurm's own reason, and at first slurmd does not answer.
    host.slurm = ("DOWN*", "Node unexpectedly rebooted")
    host.events = {host.seconds + 10: lambda: setattr(host, "slurm", ("DOWN", host.slurm[1]))}
    assert host.ask("cordoned", check=True)["ready"]
    assert host.ask("released")["changed"] and host.slurm == ("IDLE", "")


OURS = reason_of(RUN)
RESTART = ("systemctl", "restart", "slurmd")


def test_a_host_that_registered_without_its_gpus_registers_again(host):
    host.slurm = ("IDLE", "")
    host.ask("cordoned")
    host.slurm = ("IDLE+DRAIN+INVALID_REG", OURS)
    # Before the driver is loaded a registration would be refused again.
    row = host.ask("cordoned")
    assert row["ok"] and not row["ready"] and RESTART not in host.calls
    predicted = host.ask("cordoned", check=True, restart_slurmd=True)
    assert predicted["changed"] and RESTART not in host.calls
    # slurmctld takes some seconds.
    host.restarted = lambda: host.events.update(
        {host.seconds + 10: lambda: setattr(host, "slurm", ("IDLE+DRAIN", OURS))}
    )
    row = host.ask("cordoned", restart_slurmd=True)
    assert row["ok"] and row["ready"] and row["changed"] and host.calls.count(RESTART) == 1
    row = host.ask("cordoned", restart_slurmd=True)
    assert row["ready"] and not row["changed"] and host.calls.count(RESTART) == 1


def test_a_registration_that_stays_refused_is_a_finding(host):
    host.slurm = ("IDLE", "")
    host.ask("cordoned")
    missing = "gres/gpu count reported lower than configured (7 < 8)"
    host.slurm = ("IDLE+DRAIN+INVALID_REG", missing)
    row = host.ask("cordoned", restart_slurmd=True)
    assert codes(row) == ["slurm_registration_invalid"] and not row["ready"]
    assert missing in row["findings"][0]["evidence"] and host.calls.count(RESTART) == 1
    # Released by hand all the same, it says so.
    assert not host.ask("released")["ready"]
    assert "gives it no jobs" in host.warnings[-1] and host.record() is None


def test_a_node_that_was_drained_by_hand_stays_drained(host):
    host.slurm = ("IDLE+DRAIN", "fan broken")
    assert host.ask("cordoned")["was_unschedulable"]
    assert host.ask("released")["ok"] and host.slurm == ("IDLE+DRAIN", "fan broken")
    assert not [call for call in host.calls if call[0].startswith("State=")]


def test_a_drain_by_somebody_else_meanwhile_is_kept_and_told(host):
    host.slurm = ("IDLE", "")
    host.ask("cordoned")
    host.slurm = ("IDLE+DRAIN", "fan broken")
    assert host.ask("released")["ok"] and host.slurm == ("IDLE+DRAIN", "fan broken")
    assert "fan broken" in host.warnings[0]


def test_the_host_of_another_run_is_left_alone(host):
    host.add("web", "always")
    host.ask("drained", run="r2")
    row = host.ask("drained")
    assert codes(row) == ["host_held_by_other"] and row["held_by"] == "r2"
    row = host.ask("released")
    assert codes(row) == ["host_held_by_other"] and not row["ok"] and row["held_by"] == "r2"
    assert "by the run r2" in row["findings"][0]["cause"]
    assert "run: r2, state: released" in row["findings"][0]["next_step"]
    assert not row["changed"] and host.running() == []
    assert host.ask("released", run="r2")["ok"] and host.running() == ["web"]


def test_a_drain_of_another_run_without_a_record_counts(host):
    host.slurm = ("IDLE+DRAIN", reason_of("r2"))
    assert codes(host.ask("cordoned")) == ["host_held_by_other"]
    # Ours, whose record was lost, is taken back.
    host.slurm = ("IDLE+DRAIN", reason_of(RUN))
    assert host.ask("released")["changed"] and host.slurm == ("IDLE", "")


def test_a_container_that_does_not_start_is_tried_again(host):
    host.add("db", "always", started=1)
    host.add("web", "always", started=2)
    host.ask("drained")
    host.refused = {("start", "db")}
    row = host.ask("released")
    assert codes(row) == ["container_not_started"] and host.running() == ["web"]
    assert "no GPU" in row["findings"][0]["evidence"] and row["held_by"] == RUN
    host.refused = set()
    assert host.ask("released")["ok"] and sorted(host.running()) == ["db", "web"]


def test_a_container_that_was_removed_meanwhile_is_told(host):
    host.add("web", "always")
    host.ask("drained")
    del host.containers["web"]
    assert host.ask("released")["ok"] and host.record() is None
    assert host.warnings == ["The container web was removed meanwhile."]


def test_containers_start_although_slurm_is_away(host):
    host.slurm = ("IDLE", "")
    host.add("web", "always")
    host.ask("drained")
    drained, host.slurm = host.slurm, "away"
    row = host.ask("released")
    assert codes(row) == ["slurm_not_asked"] and host.running() == ["web"] and row["held_by"] == RUN
    host.slurm = drained
    assert host.ask("released")["ok"] and host.slurm == ("IDLE", "")


def test_one_that_docker_removes_is_stopped_only_if_that_is_asked_for(host):
    host.add("passing", AutoRemove=True)
    row = host.ask("drained", containers="stop", timeout=10)
    assert codes(row) == ["work_left"] and host.running() == ["passing"]
    assert host.ask("drained", containers="stop", unmanaged="delete")["ok"]
    assert host.record()["containers"] == [] and host.ask("released")["ok"]


def test_refusals_come_before_anything_is_written(host):
    host.slurm = ("IDLE", "")
    host.add("task", "always")
    host.containers["task"]["Config"] = {"Labels": {"com.docker.swarm.task.id": "x"}}
    assert codes(host.ask("drained")) == ["swarm_task"]
    assert host.record() is None and host.slurm == ("IDLE", "") and host.running() == ["task"]


def test_a_host_without_docker_and_slurm_is_only_recorded(host):
    host.run = lambda argv, timeout=60: Result(0, "LoadState=not-found\n", "")
    row = host.ask("drained", pods="all")
    assert row["ok"] and row["held_by"] == RUN and row["unschedulable"] and row["ready"]
    assert host.ask("released")["changed"] and host.record() is None


def test_a_record_that_cannot_be_read_is_not_overwritten(host):
    host.ask("cordoned")
    store = StateStore(str(host.path))
    with store.transaction():
        store.put(KEY, {**store.get(KEY), "containers": [{"id": 1}]})
    with pytest.raises(Exception, match="record of the maintenance") as caught:
        host.ask("released")
    assert caught.value.code == "maintenance_unreadable"
