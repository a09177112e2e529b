# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers use GPUs, and what becomes of containers."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.containers import (
    divide,
    gpu_runtimes,
    read_container,
    uses_gpu,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.types import (
    Container,
    Request,
)

VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def inspected(env=(), mounts=(), labels=None, **host):
    """Return what Docker tells of a container; the keys are its own."""
    return {
        "Id": "f" * 64,
        "Name": "/web",
        "Config": {"Env": list(env), "Labels": labels or {}},
        "HostConfig": {"Runtime": "runc", **host},
        "State": {"Running": True, "StartedAt": "2026-11-23T10:00:00.1Z"},
        "Mounts": list(mounts),
    }


@pytest.mark.parametrize(
    ("data", "used"),
    [
        (inspected(), False),
        # docker run --gpus
        (inspected(DeviceRequests=[{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}]), True),
        (inspected(DeviceRequests=[{"Driver": "nvidia", "DeviceIDs": ["0"]}]), True),
        # docker run --device nvidia.com/gpu=all
        (inspected(DeviceRequests=[{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]), True),
        (inspected(DeviceRequests=[{"Driver": "cdi", "DeviceIDs": ["vendor.com/net=a"]}]), False),
        (inspected(DeviceRequests=None, Devices=None), False),
        (inspected(Devices=[{"PathOnHost": "/dev/nvidia0"}]), True),
        (inspected(Devices=[{"PathOnHost": "/dev/fuse"}]), False),
        # NVIDIA's runtime looks at the environment.
        (inspected([f"{VISIBLE}=all"], Runtime="nvidia"), True),
        (inspected([f"{VISIBLE}=all"], Runtime="gpus"), True),
        (inspected([f"{VISIBLE}=all"]), False),
        (inspected(["PATH=/bin"], Runtime="nvidia"), False),
        (inspected([f"{VISIBLE}=void"], Runtime="nvidia"), False),
        (inspected([f"{VISIBLE}=all", f"{VISIBLE}="], Runtime="nvidia"), False),
        (
            inspected(
                mounts=[{"Destination": "/var/run/nvidia-container-devices/0"}], Runtime="nvidia"
            ),
            True,
        ),
    ],
)
def test_which_containers_use_gpus(data, used):
    assert uses_gpu(data, {"nvidia", "gpus"}) is used


def test_runtimes_are_found_by_their_program():
    runtimes = {
        "gpus": {"path": "/usr/bin/nvidia-container-runtime.cdi"},
        "runc": {"path": "runc"},
        "io.containerd.runc.v2": {"path": None},
    }
    assert gpu_runtimes({"Runtimes": runtimes}) == {"nvidia", "gpus"}
    assert gpu_runtimes({}) == {"nvidia"}


def test_the_parts_of_a_container_are_read():
    data = inspected(
        labels={"com.docker.swarm.task.id": "x"},
        RestartPolicy={"Name": "on-failure", "MaximumRetryCount": 3},
        AutoRemove=True,
    )
    assert read_container(data, ()) == Container(
        "f" * 64, "web", "on-failure", 3, auto_remove=True, swarm=True,
        started="2026-11-23T10:00:00.1Z",
    )  # fmt: skip
    # Docker writes an empty policy for none.
    assert read_container(inspected(RestartPolicy={"Name": ""}), ()).policy == "no"


def box(name, **more):
    return Container(name, name, gpu=True, **more)


def request(**more):
    return Request("gpu1", "drained", "r", **more)


SERVICE = box("service", policy="always", started="2")
JOB = box("job", started="1")
PASSING = box("passing", auto_remove=True, started="3")
OTHER = Container("other", "other", policy="always", started="4")


@pytest.mark.parametrize(
    ("options", "stop", "wait"),
    [
        ({}, ["service"], ["job", "passing"]),
        ({"containers": "stop"}, ["service", "job"], ["passing"]),
        ({"containers": "stop", "unmanaged": "delete"}, ["passing", "service", "job"], []),
        ({"containers": "wait"}, [], ["service", "job", "passing"]),
        ({"pods": "all"}, ["other", "service"], ["job", "passing"]),
    ],
)
def test_what_is_stopped_and_what_is_waited_for(options, stop, wait):
    stopped, waiting, findings = divide([SERVICE, JOB, PASSING, OTHER], request(**options))
    assert [one.name for one in stopped] == stop
    assert [one.name for one in waiting] == wait
    assert not findings


def test_tasks_of_a_swarm_refuse_the_host():
    _stop, _wait, findings = divide([box("task", swarm=True), JOB], request())
    assert [one.code for one in findings] == ["swarm_task"]
    # Those that do not use GPUs stay.
    assert not divide([Container("t", "t", swarm=True)], request())[2]
