# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What CRI answers, by crictl and by ctr."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.cri import (
    CriStatus,
    read_info,
    read_plugins,
    read_status,
    wait_until_ready,
)


def info(ready=True, **more):
    conditions = [
        {"type": "RuntimeReady", "status": ready},
        {"type": "NetworkReady", "status": False},
    ]
    return json.dumps({"status": {"conditions": conditions}, **more})


@pytest.mark.parametrize(
    ("text", "ready", "handlers"),
    [
        (info(config={"containerd": {"runtimes": {"runc": {}, "nvidia": {}}}}), True,
         {"runc", "nvidia"}),
        (info(runtimeHandlers=[{"name": "nvidia"}, {"features": {}}]), True, {"nvidia"}),
        (info(), True, None),
        (info(False), False, None),
        ("{}", False, None),
        ("not json", False, None),
    ],
)  # fmt: skip
def test_read_info(text, ready, handlers):
    answer = read_info(text)
    assert (answer.ready, answer.handlers) == (ready, handlers and frozenset(handlers))


@pytest.mark.parametrize(
    ("text", "ready"),
    [
        ("io.containerd.grpc.v1    cri     linux/amd64    ok\n", True),
        ("io.containerd.grpc.v1    cri     linux/amd64    error\n", False),
        ("io.containerd.grpc.v1  cri  -  ok\nio.containerd.cri.v1 runtime linux/amd64 error\n",
         False),
        ("io.containerd.grpc.v1  cri  -  ok\nio.containerd.cri.v1 runtime linux/amd64 ok\n", True),
        ("io.containerd.grpc.v1  version  -  ok\n", False),
        ("", False),
    ],
)  # fmt: skip
def test_read_plugins(text, ready):
    assert read_plugins(text).ready is ready


def test_ctr_is_asked_only_where_there_is_no_crictl():
    asked = []

    def run(argv, timeout=60, environment=None):
        asked.append(argv[0])
        if argv[0] == "crictl":
            return Result(127, "", "no such program")
        return Result(0, "io.containerd.grpc.v1 cri - ok\n", "")

    assert read_status(run, "/run/x.sock").ready
    assert asked == ["crictl", "ctr"]


def test_crictl_that_fails_is_quoted():
    answer = read_status(lambda argv, **_: Result(1, "", "connection refused"), "/run/x.sock")
    assert answer == CriStatus(False, None, "connection refused")


def waited(answers, handler="nvidia", timeout=3.0):
    now = [0.0]
    answers = iter(answers)

    def sleep(seconds):
        now[0] += seconds

    wait_until_ready(lambda: next(answers), handler, timeout, lambda: now[0], sleep)
    return now[0]


def test_wait_ends_as_soon_as_the_handler_is_there():
    no, other, yes = (
        CriStatus(False),
        CriStatus(True, frozenset({"runc"})),
        CriStatus(True, frozenset({"runc", "nvidia"})),
    )
    assert waited([no, other, yes]) == 0.5
    assert waited([CriStatus(True)]) == 0
    assert waited([other], handler=None) == 0


def test_wait_ends_at_its_time_and_says_what_was_seen():
    with pytest.raises(KubegpuError, match="within 3 seconds") as caught:
        waited([CriStatus(True, frozenset({"runc"}))] * 99)
    assert "runc" in caught.value.evidence
    with pytest.raises(KubegpuError) as caught:
        waited([CriStatus(False, message="refused")] * 99)
    assert caught.value.evidence == "refused"
