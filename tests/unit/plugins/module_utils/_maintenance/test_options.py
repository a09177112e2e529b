# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of gpu_node_maintenance."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.options import (
    ARGUMENTS,
    INTERNAL,
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.types import (
    LeaseRequest,
    WaitFor,
)


def read(**given):
    result = ArgumentSpecValidator({**ARGUMENTS, **INTERNAL}).validate(
        {"nodes": {"a": None}, "state": "drained", "run": "r1", **given}
    )
    assert not result.error_messages
    return read_request(result.validated_parameters)


def test_defaults_disturb_least():
    request = read()
    assert not request.all_pods and not request.pause and not request.delete
    assert (request.unmanaged, request.local_data) == ("refuse", "memory")
    assert request.wait_for is None and request.grace_period is None
    assert request.keep_labels == {"kubegpu.nodes/maintenance": "keep"}
    assert [(host.key, host.name) for host in request.hosts] == [("a", "a")]


def test_all_options():
    request = read(
        nodes={"a": {"name": "n1", "machine_id": " 12 ", "boot_id": " 34\n"}},
        ready_timeout=9,
        lease={"name": "upgrade", "done": True},
        pods="all",
        eviction="delete",
        pause_plugins=True,
        grace_period=0,
        wait_for={"on_timeout": "evict", "timeout": 5, "namespaces": ["ml"]},
    )
    (host,) = request.hosts
    assert (host.name, host.machine_id) == ("n1", "12")
    assert request.boots == {"a": "34"} and request.ready_timeout == 9
    assert request.lease == LeaseRequest("upgrade", "kubegpu", 3600, done=True)
    assert request.all_pods and request.delete and request.pause and request.grace_period == 0
    assert request.wait_for == WaitFor(("Job",), {}, ("ml",), 5, True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"run": " "}, "run is empty"),
        ({"timeout": -1}, "timeout is -1"),
        ({"poll": 0}, "poll is 0"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"grace_period": -1}, "grace_period is -1"),
        ({"wait_for": {"timeout": -1}}, "wait_for.timeout is -1"),
        ({"wait_for": {"labels": {"a": 1}}}, "wait_for.labels.a"),
        ({"ready_timeout": -1}, "ready_timeout is -1"),
        ({"lease": {"name": "a", "duration": 59}}, "lease.duration is 59"),
        ({"keep_labels": {"a": ["b"]}}, "keep_labels.a"),
        ({"nodes": {"a": {"nmae": "n1"}}}, "nodes.a"),
        ({"nodes": {"a": ["n1"]}}, "nodes.a"),
    ],
)
def test_wrong_values_are_named(given, said):
    with pytest.raises(InputError) as caught:
        read(**given)
    assert said in str(caught.value)
