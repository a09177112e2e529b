# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The DRA driver takes the place of the device plugin: what the API server is asked, in its order.

The playbook and the roles are the real ones. Stand-ins answer for the node and for two modules that
speak to the cluster, whose objects are a file. That of ``kubernetes.core.k8s`` notes its calls, may
reject what it is given, and otherwise stores or removes it: an object counts as changed where the
stored one differs. It fills in no defaults, knows no field managers and validates nothing, so that
it cannot show what a real API server would make of the objects. That of ``gpu_cluster_info``
reads the stored objects by the module's own code.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.controller.standin_nodes import Nodes
from tests.tools.environments import REPOSITORY
from tests.unit.fixtures.cluster_objects import daemonset
from tests.unit.fixtures.node_facts import node
from tests.unit.plugins.module_utils._dra.test_node_preconditions import READY

NOTE = """
import json, os, sys
from pathlib import Path
from ansible.plugins.action import ActionBase

PLACE = Path(os.environ["STANDIN"])


def note(name, task, task_vars):
    call = [task_vars["inventory_hostname"], name, task.args.get("state")]
    with (PLACE / "calls").open("a") as calls:
        calls.write(json.dumps(call) + "\\n")
"""
READS = f"""
{NOTE}
sys.path.append({str(REPOSITORY)!r})
from tests.unit.fixtures.dra_cluster import by_plural, release


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        note("gpu_cluster_info", self._task, task_vars)
        stored = json.loads((PLACE / "objects").read_text())
        return {{**result, "changed": False, **release("1.34", **by_plural(stored))}}
"""
CHANGES = f"""
{NOTE}

def place_of(one):
    return one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        note("k8s", self._task, task_vars)
        args, tried = self._task.args, self._task.check_mode
        given = json.loads(json.dumps(args["definition"]))
        given = given if isinstance(given, list) else [given]
        kinds = [one["kind"] for one in given]
        call = [args["state"], bool(tried), bool(self._task.diff), kinds]
        with (PLACE / "asked").open("a") as asked:
            asked.write(json.dumps(call) + "\\n")
        if task_vars.get("standin_rejects") in kinds:
            return {{**result, "failed": True, "msg": "DeviceClass is invalid: spec.selectors"}}
        before = {{place_of(one): one for one in json.loads((PLACE / "objects").read_text())}}
        after = dict(before)
        for one in given:
            if args["state"] == "absent":
                after.pop(place_of(one), None)
            else:
                after[place_of(one)] = one
        if not tried:
            (PLACE / "objects").write_text(json.dumps([*after.values()]))
        return {{**result, "changed": after != before, "result": {{}}}}
"""
SWITCH = {
    "kubegpu_kube": {"kubeconfig": "/dev/null"},
    "nvidia_dra_driver_enabled": True,
    "nvidia_dra_driver_device_plugin": "remove",
    # No kubelet would publish anything.
    "kubegpu_apply": {"wait_timeout": 0},
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
        # The teardown of the device plugin has defaults for it, and does not call it.
        (changes / "helm.py").touch()
        (folder / "before").write_text(json.dumps(node(**READY)), encoding="utf-8")

    def begin(self):
        """Have nothing in the cluster but the device plugin."""
        there = [{"apiVersion": "apps/v1", "kind": "DaemonSet", **daemonset()}]
        (self._folder / "objects").write_text(json.dumps(there), encoding="utf-8")

    def objects(self):
        """Return the kind and the name of what is in the cluster."""
        stored = json.loads((self._folder / "objects").read_text(encoding="utf-8"))
        return [(one["kind"], one["metadata"]["name"]) for one in stored]

    def switch(self, name, *arguments, **own):
        """Run a playbook; return it, and what the API server was asked to change, in order."""
        asked = self._folder / "asked"
        asked.unlink(missing_ok=True)
        run = self.play(name, {"gpu1": own}, *arguments, everywhere=SWITCH)
        lines = asked.read_text(encoding="utf-8").splitlines() if asked.exists() else []
        return run, [tuple(json.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Cluster(tmp_path_factory.mktemp("cluster"))


@pytest.fixture
def cluster(made):
    made.begin()
    return made


def test_rejected_objects_leave_the_device_plugin_where_it_is(cluster):
    run, asked = cluster.switch("site", "--tags", "dra", standin_rejects="DeviceClass")
    assert run.status == 2, run.screen
    assert "DeviceClass is invalid: spec.selectors" in run.words()
    (only,) = asked
    assert only[:2] == (PRESENT, True)


@pytest.mark.full(why="the run of test_rejected_objects_... with an API server that takes them")
def test_the_device_plugin_goes_after_the_try_and_before_the_driver_comes(cluster):
    predicted, _asked = cluster.switch("site", "--check", "--tags", "dra")
    run, asked = cluster.switch("site", "--tags", "dra")
    assert run.status == 0, run.screen
    assert [call[:2] for call in asked] == [(PRESENT, True), (ABSENT, False), (PRESENT, False)]
    tried, removed, applied = (call[-1] for call in asked)
    assert tried == applied and "DeviceClass" in tried and "DaemonSet" in removed
    assert CHANGED.findall(run.screen) == CHANGED.findall(predicted.screen) == ["2"]


@pytest.mark.full(why="the same with --diff, and as a prediction")
def test_a_prediction_tries_once_and_the_try_shows_no_difference(cluster):
    for name, arguments in (("site", ("--check", "--tags", "dra")), ("plan", ())):
        run, asked = cluster.switch(name, *arguments)
        assert run.status == 0, run.screen
        assert [call[:2] for call in asked] == [(ABSENT, True), (PRESENT, True)], name
    run, asked = cluster.switch("site", "--tags", "dra", "--diff")
    assert run.status == 0, run.screen
    # With --diff each object is a call.
    shown = [(state, tried) for state, tried, shows, _kinds in asked if shows]
    assert set(shown) == {(ABSENT, False), (PRESENT, False)}
    assert {shows for _state, tried, shows, _kinds in asked if tried} == {False}


@pytest.mark.full(why="three runs; the stage unit has what is applied and what is removed")
def test_a_second_run_changes_nothing_and_the_teardown_leaves_nothing(cluster):
    run, asked = cluster.switch("site", "--tags", "dra")
    assert run.status == 0, run.screen
    made = cluster.objects()
    assert sorted(kind for kind, _name in made) == sorted(asked[-1][-1])
    assert ("DaemonSet", "kubegpu-nvidia-device-plugin") not in made
    run, asked = cluster.switch("site", "--tags", "dra")
    assert run.status == 0 and CHANGED.findall(run.screen) == ["0"], run.screen
    # All objects are one call, and nothing is tried before it.
    assert [call[:2] for call in asked] == [(PRESENT, False)]
    assert [call[1:] for call in run.calls] == [
        ("gpu_node_facts", None), ("gpu_cluster_info", None), ("gpu_cluster_info", None),
        ("k8s", PRESENT),
    ]  # fmt: skip
    assert cluster.objects() == made
    run, asked = cluster.switch("teardown")
    assert run.status == 0, run.screen
    # The other call has the names of the device plugin, of which nothing is there any more.
    assert [call[:2] for call in asked] == [(ABSENT, False)] * 2
    assert sorted(asked[0][-1]) == sorted(kind for kind, _name in made)
    assert cluster.objects() == []
