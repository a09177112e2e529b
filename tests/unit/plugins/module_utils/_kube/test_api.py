# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests to an API server: pages, retries, patience. What answers is a stand-in here.

The real one answers in tests/integration/cluster.
"""

from __future__ import annotations

import json
import threading

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    KUBE_ARGUMENTS,
    Cluster,
    Connection,
    KubeError,
    Response,
    Server,
    read_connection,
)

SERVER = Server("https://kube.example:6443", "context a of /kubeconfig")


class StandinServer:
    """Gives prepared answers in order, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.slept = []
        self.cluster = Cluster(self.send, SERVER, sleep=self.slept.append)

    def send(self, method, target, headers, body):
        self.asked.append((method, target, dict(headers), body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ok(data=None):
    return Response(200, json.dumps(data or {}).encode(), {})


def refusal(status, reason="", headers=None, **more):
    body = {"kind": "Status", "reason": reason, "message": f"{reason} said", **more}
    return Response(status, json.dumps(body).encode(), headers or {})


def lost(reason):
    return KubeError("no answer", reason=reason)


def test_pages_are_put_together():
    first = {"items": [{"a": 1}], "metadata": {"continue": "to ken/1"}}
    standin = StandinServer(ok(first), ok({"items": [{"a": 2}], "metadata": {}}))
    found = list(standin.cluster.list("/api/v1/nodes", labelSelector="x in (y)"))
    assert found == [{"a": 1}, {"a": 2}]
    targets = [target for _method, target, _headers, _body in standin.asked]
    assert targets == [
        "/api/v1/nodes?limit=500&labelSelector=x+in+%28y%29",
        "/api/v1/nodes?limit=500&labelSelector=x+in+%28y%29&continue=to+ken%2F1",
    ]
    assert standin.cluster.requests == {"list": 2}


def test_a_list_whose_token_is_too_old_starts_again_and_has_nothing_twice():
    first = {"items": [{"a": 1}], "metadata": {"continue": "t"}}
    standin = StandinServer(
        ok(first), refusal(410, "Expired"), ok(first), ok({"items": [{"a": 2}]})
    )
    assert list(standin.cluster.list("/x")) == [{"a": 1}, {"a": 2}]
    endless = StandinServer(*[ok(first), refusal(410, "Expired")] * 3)
    with pytest.raises(KubeError) as caught:
        endless.cluster.list("/x")
    assert caught.value.status == 410


def test_retry_after_is_kept():
    busy = refusal(429, "TooManyRequests", {"Retry-After": "7"})
    standin = StandinServer(busy, busy, ok())
    standin.cluster.patch("/x", {})
    assert standin.slept == [7.0, 7.0]
    assert standin.cluster.requests == {"patch": 3}


def test_a_server_that_stays_busy_is_given_up():
    standin = StandinServer(*[refusal(429, "TooManyRequests", {"retry-after": "20"})] * 6)
    with pytest.raises(KubeError) as caught:
        standin.cluster.get("/x")
    assert caught.value.status == 429
    assert standin.slept == [20.0] * 5


def test_a_server_is_never_asked_again_sooner_than_it_wants():
    standin = StandinServer(refusal(429, "TooManyRequests", {"Retry-After": "900"}), ok())
    with pytest.raises(KubeError, match="requested a pause of 900 s"):
        standin.cluster.get("/x")
    assert standin.slept == []
    assert len(standin.asked) == 1


def test_a_pod_that_may_not_be_evicted_yet_is_the_callers():
    standin = StandinServer(refusal(429, "TooManyRequests", {"Retry-After": "1"}))
    with pytest.raises(KubeError):
        standin.cluster.create("/api/v1/namespaces/a/pods/b/eviction", {})
    assert standin.slept == []


def test_a_server_in_maintenance_says_when():
    standin = StandinServer(refusal(503, "", {"Retry-After": "1"}), ok())
    assert standin.cluster.get("/x") == {}
    # 'ServerTimeout' is 500, with the same header.
    standin = StandinServer(refusal(500, "ServerTimeout", {"Retry-After": "1"}), ok())
    assert standin.cluster.get("/x") == {}
    assert standin.slept == [1.0]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_one_failure_of_a_load_balancer_ends_nothing(status):
    for do in ("get", "patch"):
        standin = StandinServer(refusal(status), refusal(status), ok())
        call = getattr(standin.cluster, do)
        assert call("/x", *({},) * (do == "patch")) == {}
        assert len(standin.asked) == 3 and len(standin.slept) == 2
        given_up = StandinServer(*[refusal(status)] * 3)
        with pytest.raises(KubeError):
            getattr(given_up.cluster, do)("/x", *({},) * (do == "patch"))
        assert len(given_up.asked) == 3
    # What may have been done is not redone.
    create = StandinServer(refusal(status))
    with pytest.raises(KubeError):
        create.cluster.create("/x", {})
    assert len(create.asked) == 1


def test_a_server_that_never_answered_is_not_tried_again():
    standin = StandinServer(lost("Unreachable"))
    with pytest.raises(KubeError):
        standin.cluster.get("/x")
    assert standin.slept == []


def test_a_server_that_answered_before_may_be_restarting():
    standin = StandinServer(ok(), lost("Unreachable"), lost("Unreachable"), ok({"a": 1}))
    standin.cluster.get("/x")
    assert standin.cluster.get("/x") == {"a": 1}
    assert len(standin.slept) == 2


def test_what_may_have_been_done_is_not_done_twice():
    standin = StandinServer(lost("Timeout"), ok())
    with pytest.raises(KubeError):
        standin.cluster.create("/x", {})
    # A patch says what is to be.
    standin = StandinServer(lost("Timeout"), ok())
    standin.cluster.patch("/x", {})


def test_a_certificate_is_not_tried_again():
    standin = StandinServer(lost("Certificate"))
    with pytest.raises(KubeError):
        standin.cluster.get("/x")


def test_what_is_not_there_is_none_or_false():
    standin = StandinServer(refusal(404, "NotFound"), refusal(404, "NotFound"), ok())
    assert standin.cluster.get("/x") is None
    assert standin.cluster.delete("/x") is False
    assert standin.cluster.delete("/x", grace=0) is True
    _method, target, _headers, body = standin.asked[-1]
    assert target == "/x"
    assert json.loads(body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
    }


def test_an_eviction_names_the_pod_that_is_meant():
    standin = StandinServer(ok(), ok())
    path = "/api/v1/namespaces/ml/pods/web-0"
    standin.cluster.evict(path, "u1", "policy/v1")
    standin.cluster.evict(path, "u1", "policy/v1beta1", grace=0, dry_run=True)
    first, second = standin.asked
    assert first[:2] == ("POST", f"{path}/eviction")
    assert json.loads(first[3]) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-0", "namespace": "ml"},
        "deleteOptions": {"preconditions": {"uid": "u1"}},
    }
    assert second[1] == f"{path}/eviction?dryRun=All"
    assert json.loads(second[3])["apiVersion"] == "policy/v1beta1"
    assert json.loads(second[3])["deleteOptions"]["gracePeriodSeconds"] == 0


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_version_of_evictions_is_the_servers(version):
    found = {"name": "pods/eviction", "group": "policy", "version": version}
    standin = StandinServer(ok({"resources": [{"name": "pods"}, found]}), ok({"resources": []}))
    assert standin.cluster.eviction_version() == f"policy/{version}"
    assert standin.asked[0][1] == "/api/v1"
    with pytest.raises(KubeError, match="offers no evictions"):
        standin.cluster.eviction_version()


def test_all_options_of_a_deletion_are_in_its_body():
    """With a body, a server reads no query: a dry run there would be none."""
    standin = StandinServer(ok())
    standin.cluster.delete("/x", uid="u1", dry_run=True)
    _method, target, _headers, body = standin.asked[-1]
    assert target == "/x"
    assert json.loads(body)["dryRun"] == ["All"]
    assert json.loads(body)["preconditions"] == {"uid": "u1"}


def test_writes_say_who_writes_and_whether_it_is_a_trial():
    standin = StandinServer(ok(), ok(), ok())
    standin.cluster.apply("/x", {"a": 1}, field_manager="me", force=True, dry_run=True)
    standin.cluster.patch("/x", [{"op": "remove"}], kind="json")
    standin.cluster.create("/x", {})
    apply, patch, create = standin.asked
    assert apply[:2] == ("PATCH", "/x?fieldManager=me&force=true&dryRun=All")
    assert apply[2]["Content-Type"] == "application/apply-patch+yaml"
    assert json.loads(apply[3]) == {"a": 1}
    assert patch[1:3] == (
        "/x?fieldManager=kubegpu.nodes",
        {"Accept": "application/json", "Content-Type": "application/json-patch+json"},
    )
    assert create[:2] == ("POST", "/x?fieldManager=kubegpu.nodes")


def test_text_is_not_parsed():
    standin = StandinServer(Response(200, b"Test PASSED\n\xff", {}))
    assert standin.cluster.text("/log", tailLines=5, previous=False) == "Test PASSED\n\ufffd"
    assert standin.asked[0][1] == "/log?tailLines=5&previous=false"


def test_something_else_than_an_api_server_is_told():
    standin = StandinServer(Response(200, b"<html>Welcome to nginx", {}))
    with pytest.raises(KubeError, match="not a Kubernetes object") as caught:
        standin.cluster.version()
    assert "nginx" in caught.value.evidence


# A few at a time


def test_each_keeps_the_order_and_the_errors():
    standin = StandinServer()

    def double(number):
        if number == 3:
            raise KubeError("no three", status=403)
        return number * 2

    found = standin.cluster.each(double, range(6))
    assert [one for one in found if not isinstance(one, KubeError)] == [0, 2, 4, 8, 10]
    assert str(found[3]) == "no three"
    assert standin.cluster.each(double, []) == []


def test_no_more_at_a_time_than_asked_for():
    lock = threading.Lock()
    running, most = set(), []
    gate = threading.Barrier(4, timeout=10)

    def work(number):
        with lock:
            running.add(number)
            most.append(len(running))
        if number < 4:
            # The first four are at it together.
            gate.wait()
        with lock:
            running.discard(number)

    StandinServer().cluster.each(work, range(40), at_once=4)
    assert max(most) == 4


def test_a_node_that_changed_in_between_is_tried_again_and_a_conflict_is_not():
    standin = StandinServer()
    seen = {"a": 0, "b": 0, "c": 0}

    def work(name):
        seen[name] += 1
        if name == "a" and seen[name] < 3:
            raise KubeError("changed", status=409)
        if name == "b":
            raise KubeError("owned", status=409, field_conflicts=(object(),))
        if name == "c":
            raise KubeError("always", status=409)
        return name

    found = standin.cluster.each(work, list(seen))
    assert found[0] == "a"
    assert seen == {"a": 3, "b": 1, "c": 6}
    assert [str(one) for one in found[1:]] == ["owned", "always"]


@pytest.mark.parametrize("reason", ["Unreachable", "Timeout"])
def test_a_server_that_has_gone_is_not_waited_for_by_every_item(reason):
    asked = []

    def work(number):
        asked.append(number)
        raise KubeError("gone", reason=reason)

    found = StandinServer().cluster.each(work, range(500), at_once=4)
    # Those that were under way when the fourth was lost.
    assert 4 <= len(asked) <= 8
    assert [str(one) for one in found] == ["gone"] * 500


def test_one_that_is_lost_now_and_then_stops_nothing():
    def work(number):
        if number % 2:
            raise KubeError("slow", reason="Timeout")
        return number

    found = StandinServer().cluster.each(work, range(40), at_once=1)
    assert [one for one in found if not isinstance(one, KubeError)] == list(range(0, 40, 2))


def test_requests_of_all_threads_are_counted():
    standin = StandinServer(*[ok()] * 400)
    standin.cluster.each(lambda _number: standin.cluster.patch("/x", {}), range(400))
    assert standin.cluster.requests == {"patch": 400}


def test_a_mistake_of_ours_is_no_result():
    def work(_item):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        StandinServer().cluster.each(work, [1, 2, 3])


# Options


def test_an_empty_option_is_none():
    params = dict.fromkeys(KUBE_ARGUMENTS, "")
    assert read_connection({**params, "host": "https://x"}) == Connection(host="https://x")


def test_every_option_is_a_field_and_secrets_are_not_shown():
    assert set(KUBE_ARGUMENTS) == set(Connection.__dataclass_fields__)
    secrets = {name for name, option in KUBE_ARGUMENTS.items() if option.get("no_log")}
    assert secrets == {"api_key", "password"}
    shown = repr(Connection(host="https://x", api_key="s3cret", password="s3cret"))
    assert "https://x" in shown and "s3cret" not in shown


def test_the_time_is_the_server_s():
    """RFC 9110, 6.6.1: the Date header is when the answer was made."""
    standin = StandinServer(
        Response(200, b"{}", {"date": "Sun, 22 Nov 2026 12:00:00 GMT"}),
        Response(200, b"{}", {"Date": "yesterday"}),
        ok(),
    )
    seen = [standin.cluster.server_time]
    for _number in range(3):
        standin.cluster.get("/x")
        seen.append(standin.cluster.server_time)
    assert seen == [None, 1795348800.0, None, None]
