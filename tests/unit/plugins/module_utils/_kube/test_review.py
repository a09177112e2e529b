# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which rights an API server says that its user lacks."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    Cluster,
    KubeError,
    Response,
    Server,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.review import lacking

NODES = {"namespace": "", "group": "", "resource": "nodes", "name": "", "verb": "patch"}
LOGS = {"namespace": "kubegpu", "group": "", "resource": "pods/log", "name": "", "verb": "get"}
CLASS = {"namespace": "", "group": "node.k8s.io", "resource": "runtimeclasses", "name": "nvidia",
         "verb": "create"}  # fmt: skip


def cluster(answer):
    sent = []

    def send(method, target, _headers, body):
        sent.append((method, target.partition("?")[0], json.loads(body)["spec"]))
        return answer(sent[-1][2]["resourceAttributes"])

    return Cluster(send, Server("https://api"), sleep=lambda _seconds: None), sent


def test_each_right_is_one_review_and_those_that_are_not_allowed_are_named_by_position():
    def answer(asked):
        allowed = {"allowed": asked["resource"] == "pods"}
        return Response(201, json.dumps({"status": allowed}).encode(), {})

    one, sent = cluster(answer)
    assert lacking(one, [NODES, LOGS, CLASS]) == [0, 2]
    assert {target for _method, target, _spec in sent} == {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    }
    asked = [spec["resourceAttributes"] for _method, _target, spec in sent]
    assert {"namespace": "kubegpu", "resource": "pods", "subresource": "log", "verb": "get"} in (
        asked
    )
    assert {"group": "node.k8s.io", "resource": "runtimeclasses", "name": "nvidia",
            "verb": "create"} in asked  # fmt: skip


def test_a_server_that_answers_no_reviews_is_an_error():
    one, _sent = cluster(lambda _asked: Response(404, b'{"kind":"Status"}', {}))
    with pytest.raises(KubeError):
        lacking(one, [NODES])
