# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease by which one run at a time changes nodes, against a stand-in for the API server."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import unix_time
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.lease import Lease
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.types import LeaseRequest

NOON = unix_time("2026-11-23T12:00:00Z")
FOLDER = "/apis/coordination.k8s.io/v1/namespaces/kubegpu/leases"
CONFLICT = KubeError("changed", status=409, reason="Conflict")


class StandinServer:
    """One Lease, with the versions and the clock of an API server."""

    def __init__(self, lease=None, namespace=True):
        self.lease, self.namespace, self.server_time = lease, namespace, NOON
        self.calls = []
        #: What happens before a write.
        self.meanwhile = []

    def get(self, path):
        assert path == f"{FOLDER}/up"
        return copy.deepcopy(self.lease)

    def create(self, path, body, dry_run=False, **_more):
        self.calls.append(f"{'try ' if dry_run else ''}create {body['kind']}")
        if body["kind"] == "Namespace":
            self.namespace = self.namespace or not dry_run
            return
        self._before()
        if not self.namespace:
            raise KubeError("no namespace", status=404)
        if self.lease:
            raise KubeError("there", status=409, reason="AlreadyExists")
        assert path == FOLDER
        if dry_run:
            return
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": "1", "uid": "u"}}

    def patch(self, path, body, dry_run=False, **_more):
        self.calls.append("try patch" if dry_run else "patch")
        self._before()
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise CONFLICT
        if not dry_run:
            self.lease["spec"].update(body["spec"])

    def delete(self, path, *, uid):
        assert uid == self.lease["metadata"]["uid"]
        self.calls.append("delete")
        self.lease = None

    def _before(self):
        if self.meanwhile:
            self.meanwhile.pop(0)()


def lease(server, process="host 1 a", **more):
    return Lease(server, LeaseRequest("up", process=process, **more), "r1")


def held(holder="r2: other 7 b", renewed="2026-11-23T11:59:00.000000Z", version="1"):
    return {
        "metadata": {"resourceVersion": version, "uid": "u"},
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 3600},
    }


def test_it_is_taken_renewed_and_released():
    server = StandinServer()
    assert lease(server).take(dry_run=True) is None and server.lease is None
    assert lease(server).take(dry_run=False) is None
    assert server.lease["spec"] == {
        "holderIdentity": "r1: host 1 a", "leaseDurationSeconds": 3600,
        "renewTime": "2026-11-23T12:00:00.000000Z",
    }  # fmt: skip
    server.server_time += 60
    again = lease(server)
    assert again.take(dry_run=True) is None
    assert server.lease["spec"]["renewTime"] == "2026-11-23T12:00:00.000000Z"
    assert again.take(dry_run=False) is None and again.notes == []
    assert server.lease["spec"]["renewTime"] == "2026-11-23T12:01:00.000000Z"
    again.release()
    assert server.lease is None
    assert server.calls == ["try create Lease", "create Lease", "try patch", "patch", "delete"]
    again.release()


def test_the_namespace_is_created_where_there_is_none():
    server = StandinServer(namespace=False)
    assert lease(server).take(dry_run=True) is None and not server.namespace
    server.calls.clear()
    assert lease(server).take(dry_run=False) is None
    assert server.calls == ["create Lease", "create Namespace", "create Lease"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_that_of_another_run_is_respected(dry_run):
    server = StandinServer(held())
    one = lease(server)
    found = one.take(dry_run=dry_run)
    assert found.code == "lease_held" and found.details == {"process": "other 7 b"}
    assert "The run r2" in found.cause and "renewed 2026-11-23T11:59:00Z" in found.cause
    assert "2026-11-23T12:59:00Z, when it expires" in found.next_step
    one.release()
    assert server.calls == []
    # The same run, started twice.
    server = StandinServer(held("r1: host 2 c"))
    assert lease(server).take(dry_run=dry_run).code == "lease_held"


def test_one_that_expired_and_one_of_a_dead_process_are_taken_over():
    server = StandinServer(held(renewed="2026-11-23T10:59:59.000000Z"))
    one = lease(server)
    assert one.take(dry_run=False) is None and server.calls == ["patch"]
    assert "of the run r2 is taken over: it was not renewed since 2026-11-23T10" in one.notes[0]
    server = StandinServer(held())
    one = lease(server, ended="other 7 b")
    assert one.take(dry_run=False) is None
    assert "its process has ended" in one.notes[0]
    # Another one took it since.
    assert lease(StandinServer(held("r3: x 1 y")), ended="other 7 b").take(dry_run=False)
    # Without a time it never expires; without a holder it is free.
    never = held()
    del never["spec"]["renewTime"]
    assert "remove the Lease" in lease(StandinServer(never)).take(dry_run=False).next_step
    assert lease(StandinServer(held(""))).take(dry_run=False) is None


def test_the_faster_one_of_two_gets_it():
    server = StandinServer()
    server.meanwhile = [lambda: setattr(server, "lease", held())]
    assert lease(server).take(dry_run=False).code == "lease_held"
    server = StandinServer(held(renewed="2026-11-23T10:00:00.000000Z"))
    server.meanwhile = [lambda: setattr(server, "lease", held(version="2"))]
    assert lease(server).take(dry_run=False).code == "lease_held"


def test_a_server_that_never_takes_it_is_told():
    server = StandinServer(held("r1: host 1 a"))

    def always():
        server.meanwhile.append(always)
        raise CONFLICT

    server.meanwhile = [always]
    with pytest.raises(KubeError, match="changed"):
        lease(server).take(dry_run=False)
    assert server.calls == ["patch"] * 5


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("found", [None, held(), held(renewed="2020-01-01T00:00:00.000000Z")])
def test_without_the_time_of_the_server_nothing_is_taken_and_nothing_written(found, dry_run):
    """A proxy that takes out the header Date made it 1970, so that any run took a live one over."""
    server = StandinServer(found)
    server.server_time = None
    with pytest.raises(KubeError, match="do not say their time") as caught:
        lease(server).take(dry_run=dry_run)
    assert "header Date" in caught.value.evidence and "without the proxy" in caught.value.next_step
    assert server.lease == found and server.calls == []


@pytest.mark.parametrize(
    ("renewed", "duration", "free"),
    [
        ("9999-12-31T23:59:59.000000Z", 3600, False),
        ("2026-11-23T11:00:00.000000Z", 10**400, False),
        ("2026-11-23T11:00:00.000000Z", -1, False),
        ("0001-01-01T00:00:00.000000Z", 3600, True),
        ("0000-00-00T00:00:00Z", 3600, False),
        ("99999-01-01T00:00:00Z", 3600, False),
        ("2026-11-23T11:00:00Z", "3600", False),
        ("2026-11-23T11:00:00Z", None, False),
        ({}, 3600, False),
    ],
)
def test_a_lease_with_times_that_no_run_writes_gives_a_finding(renewed, duration, free):
    """Who may patch Leases chooses its times."""
    found = held(renewed=renewed)
    found["spec"]["leaseDurationSeconds"] = duration
    server = StandinServer(found)
    answer = lease(server).take(dry_run=False)
    assert (answer is None) is free
    if answer is not None:
        assert answer.code == "lease_held" and "kubectl -n kubegpu delete lease up" in (
            answer.next_step
        )
        wrong = str(renewed).startswith("9999-")
        assert ("is 2026-11-23T12:00:00Z now" in answer.next_step) is wrong
