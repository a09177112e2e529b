# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The DRA driver takes the place of the device plugin: what the API server is asked, in its order.

The playbook and the roles are the real ones. Stand-ins answer for the node, for what is read of the
cluster, and for ``kubernetes.core.k8s``, which notes its calls and may reject what it is given.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.controller.standin_nodes import Nodes
from tests.unit.fixtures.cluster_objects import daemonset
from tests.unit.fixtures.dra_cluster import release
from tests.unit.fixtures.node_facts import node
from tests.unit.plugins.module_utils._dra.test_node_preconditions import READY

READS = """
import json, os
from pathlib import Path
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        return {**result, **json.loads((Path(os.environ["STANDIN"]) / "cluster").read_text())}
"""
CHANGES = """
import json, os
from pathlib import Path
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        args, tried = self._task.args, self._task.check_mode
        given = args["definition"]
        kinds = [one["kind"] for one in (given if isinstance(given, list) else [given])]
        call = [args["state"], bool(tried), bool(self._task.diff), kinds]
        with (Path(os.environ["STANDIN"]) / "asked").open("a") as asked:
            asked.write(json.dumps(call) + "\\n")
        if task_vars.get("standin_rejects") in kinds:
            return {**result, "failed": True, "msg": "DeviceClass is invalid: spec.selectors"}
        return {**result, "changed": True, "result": {}}
"""
SWITCH = {
    "kubegpu_kube": {"kubeconfig": "/dev/null"},
    "nvidia_dra_driver_enabled": True,
    "nvidia_dra_driver_device_plugin": "remove",
    # No kubelet would publish anything.
    "nvidia_dra_driver_wait_timeout": 0,
}
PRESENT, ABSENT = "present", "absent"
# In the recap of the only node.
CHANGED = re.compile(r"changed=(\d+)")


class Cluster(Nodes):
    """A node with the device plugin, in a cluster that could have the DRA driver."""

    def __init__(self, folder):
        super().__init__(folder)
        reads = self._collections / "ansible_collections/kubegpu/nodes/plugins/action"
        changes = self._collections / "ansible_collections/kubernetes/core/plugins/action"
        changes.mkdir(parents=True)
        (reads / "gpu_cluster_info.py").write_text(READS, encoding="utf-8")
        (changes / "k8s.py").write_text(CHANGES, encoding="utf-8")
        (folder / "before").write_text(json.dumps(node(**READY)), encoding="utf-8")
        there = release("1.34", daemonsets=[daemonset()])
        (folder / "cluster").write_text(json.dumps(there), encoding="utf-8")

    def switch(self, name, *arguments, **own):
        """Run a playbook; return it, and what the API server was asked to change, in order."""
        asked = self._folder / "asked"
        asked.unlink(missing_ok=True)
        run = self.play(name, {"gpu1": own}, *arguments, everywhere=SWITCH)
        lines = asked.read_text(encoding="utf-8").splitlines() if asked.exists() else []
        return run, [tuple(json.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    return Cluster(tmp_path_factory.mktemp("cluster"))


def test_rejected_objects_leave_the_device_plugin_where_it_is(cluster):
    run, asked = cluster.switch("site", "--tags", "dra", standin_rejects="DeviceClass")
    assert run.status == 2, run.screen
    assert "DeviceClass is invalid: spec.selectors" in run.words()
    (only,) = asked
    assert only[:2] == (PRESENT, True)


@pytest.mark.full(why="the run of test_rejected_objects_... with an API server that takes them")
def test_the_device_plugin_goes_after_the_try_and_before_the_driver_comes(cluster):
    run, asked = cluster.switch("site", "--tags", "dra")
    assert run.status == 0, run.screen
    assert [call[:2] for call in asked] == [(PRESENT, True), (ABSENT, False), (PRESENT, False)]
    tried, removed, applied = (call[-1] for call in asked)
    assert tried == applied and "DeviceClass" in tried and "DaemonSet" in removed
    predicted, _asked = cluster.switch("site", "--check", "--tags", "dra")
    assert CHANGED.findall(run.screen) == CHANGED.findall(predicted.screen) == ["2"]


@pytest.mark.full(why="the same with --diff, and as a prediction")
def test_a_prediction_tries_once_and_the_try_shows_no_difference(cluster):
    run, asked = cluster.switch("site", "--tags", "dra", "--diff")
    assert run.status == 0, run.screen
    # With --diff each object is a call.
    shown = [(state, tried) for state, tried, shows, _kinds in asked if shows]
    assert set(shown) == {(ABSENT, False), (PRESENT, False)}
    assert {shows for _state, tried, shows, _kinds in asked if tried} == {False}
    for name, arguments in (("site", ("--check", "--tags", "dra")), ("plan", ())):
        run, asked = cluster.switch(name, *arguments)
        assert run.status == 0, run.screen
        assert [call[:2] for call in asked] == [(ABSENT, True), (PRESENT, True)], name
