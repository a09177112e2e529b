# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a container ran decides what its message means, by the times that the API server has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pods import (
    find_pod_problem,
    pod_view,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring import verify

NVML = "Failed to initialize NVML: Unknown Error"
BEGAN = "2026-11-28T10:00:00Z"
#: The cgroup is the toolkit's, and kubelet's CPU manager has no policy.
FACTS = {
    "container_toolkit": {"config": {"nvidia-container-cli.no-cgroups": False}},
    "kubelet": {"cpu_manager_policy": "none"},
}


def pod(ended=None, waits=False):
    """Return a pod whose container began at 10:00:00 and ended at a time."""
    over = {"exitCode": 1, "reason": "Error", "startedAt": BEGAN, "finishedAt": ended}
    state = {"terminated": over}
    if waits:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    if ended is None:
        state, over = {"running": {"startedAt": BEGAN}}, {}
    status = {"name": "c", "restartCount": 1, "state": state, "lastState": {"terminated": over}}
    return {
        "metadata": {"namespace": "ml", "name": "train"},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def seen(made):
    return replace(pod_view(made), log=NVML)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("ended", ["2026-11-28T10:00:00Z", "2026-11-28T10:00:05Z"])
def test_a_container_that_ended_at_once_was_started_without_its_devices(ended, waits):
    found = find_pod_problem(seen(pod(ended, waits)), FACTS)
    assert (found.code, found.alternatives) == ("container_devices_denied", ())


@pytest.mark.parametrize("ended", ["2026-11-28T10:00:06Z", "2026-11-28T12:00:00Z", "", None])
def test_of_another_one_nothing_shows_when_it_said_so(ended):
    view = seen(pod(ended))
    assert view.seen == {}
    found = find_pod_problem(view, FACTS)
    assert "container_devices_denied" in {found.code, *found.alternatives} and found.alternatives


def test_times_that_are_none():
    never = pod("2026-11-28T10:00:00Z")
    over = never["status"]["containerStatuses"][0]["state"]["terminated"]
    for began in ("1970-01-01T00:00:00Z", None, "soon", "2026-11-28T11:00:00Z"):
        over["startedAt"] = began
        assert pod_view(never).seen == {}


@pytest.mark.parametrize(("no_cgroups", "code"), [(True, True), (False, False)])
def test_the_facts_of_the_node_decide_why_its_exporter_does_not_start(no_cgroups, code):
    config = {"config": {"nvidia-container-cli.no-cgroups": no_cgroups}}
    view = seen(pod("2026-11-28T10:00:02Z"))
    found, _proof = verify._judge(None, object(), [view], 1, {"container_toolkit": config})
    assert (found.code == "container_no_cgroups") is code
