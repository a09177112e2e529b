# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Batches of nodes: how many are in work at once, and what a failing or lost node does to the rest.

The playbooks and roles are the real ones; what runs on nodes is a stand-in (standin_nodes.py).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.integration.controller.standin_nodes import Nodes
from tests.tools import environments
from tests.unit.fixtures.node_facts import installed

TWELVE = [f"gpu{number}" for number in range(1, 13)]
CLUSTER = {"kubegpu_kube": {"kubeconfig": "/dev/null"}}
# One role is enough, and the plugin's wants more of a cluster than labels and verification do.
PARTS = ("--tags", "driver,labels,verify")
DRIVER = ("--tags", "driver")
# Where the session of nox has an environment with the oldest ansible-core (noxfile.py).
OLDEST = "KUBEGPU_OLDEST_CORE"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    return Nodes(tmp_path_factory.mktemp("nodes"))


def hosts(count=12, **own):
    return {name: own.get(name, {}) for name in TWELVE[:count]}


@pytest.fixture(params=["newest", "oldest"])
def core(request):
    if request.param == "newest":
        return None
    given = os.environ.get(OLDEST)
    return Path(given) if given else environments.environment("sanity-oldest")


@pytest.mark.full("oldest", why="the same with the oldest ansible-core")
def test_nodes_in_work_at_once_and_a_failure_stops_what_is_not_begun(nodes, core):
    """12 hosts, 4 at once by group_vars: one of the first batch is refused, one of the next fails.

    All three batches were run before: serial sees no group_vars, and 9 of 12 hosts failed in a run
    that nothing stopped.
    """
    own = {
        "gpu2": {"nvidia_driver_branch": "390"},
        "gpu6": {"standin_fails": "nvidia_driver"},
    }
    run = nodes.play(
        "site", hosts(**own), *PARTS, everywhere={"kubegpu_serial": 4, **CLUSTER}, binaries=core
    )
    assert run.status == 2, run.screen
    assert run.at_once() == 4
    begun = ["gpu1", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7", "gpu8"]
    assert sorted(run.hosts("nvidia_driver")) == begun
    words = run.words()
    # The refused one did not count, and is told as such.
    assert "gpu2: the run stopped at this node, which is refused" in words
    assert (
        "gpu6: the run stopped at this node, in the task 'Install, configure and load the" in words
    )
    assert (
        "gpu9, gpu10, gpu11, gpu12: not started: 1 of 4 nodes of a batch failed (gpu6), and "
        "kubegpu_max_fail_percentage allows none. Next step: fix what failed and run again" in words
    )
    # What is behind has run: labels of all but the failed ones, verification of the changed ones.
    assert run.hosts("node_gpu_label")
    assert sorted(run.hosts("gpu_node_verify")) == sorted({*begun} - {"gpu6"})
    assert "Verification" in run.screen
    assert "gpu6 failed in the task Install, configure and load the driver" in words


FAILS = {"standin_layer_fails": True}
CDI = {"path": "/var/run/cdi/nvidia.yaml", "driver_version": "580.126.09"}
SET_UP = {
    "container_toolkit": {**installed()["container_toolkit"], "cdi_spec": CDI},
    "runtimes": {"containerd": None, "docker": None, "crio": None},
}
DONE = {"standin_done": True, "standin_facts": SET_UP}
DUE = {**DONE, "standin_facts": {**SET_UP, "verification_due": True}}


def marks(run):
    """Return how the mark was changed that a node has to be verified."""
    names = [name for _host, name, _state in run.calls]
    return [name.partition(" ")[2] for name in names if name.startswith("gpu_node_verify ")]


def test_a_node_whose_verification_failed_is_verified_by_the_next_run(nodes):
    """The second run found nothing changed, verified nothing and ended with 0."""
    first = nodes.play("site", {"gpu1": FAILS})
    names = [name for _host, name, _state in first.calls]
    # Marked before it is changed, so that a run that is killed is followed by a verification.
    assert first.status == 2 and names.index("gpu_node_verify due") < names.index("nvidia_driver")
    again = nodes.play("site", {"gpu1": {**DUE, **FAILS}})
    assert again.status == 2 and again.hosts("gpu_node_verify") == ["gpu1"], again.screen
    assert marks(first) == ["due"] and marks(again) == []


def test_what_a_runtime_still_needs_is_in_the_plan_before_it_is_done(nodes):
    """The facts show no difference; a restart of Docker that was pending was done unannounced."""
    docker = installed()["runtimes"]["docker"]
    runtimes = {"runtimes": {**SET_UP["runtimes"], "docker": docker}}
    run = nodes.play("site", {"gpu1": {**DONE, "standin_facts": {**SET_UP, **runtimes}}})
    assert run.status == 0, run.screen
    # In check mode, and then to do it.
    assert [name for _host, name, _state in run.calls].count("docker_runtime") == 2
    plan = run.screen[run.screen.index("Planned changes") : run.screen.index("\nResult\n")]
    assert "docker: change its configuration" in plan, plan


@pytest.mark.full(why="how a mark goes; test_a_node_whose_verification_failed_... has the failure")
def test_the_mark_of_a_node_goes_with_a_verification_that_passes(nodes):
    passed = nodes.play("site", {"gpu1": DUE})
    assert passed.status == 0 and passed.hosts("gpu_node_verify") == ["gpu1"], passed.screen
    assert marks(passed) == ["passed"]
    # Nothing is left to do: one module reads the node.
    last = nodes.play("site", {"gpu1": DONE})
    assert (last.status, last.calls) == (0, [("gpu1", "gpu_node_facts", None)]), last.screen
    # A verification by itself sets and drops it as well, and a teardown leaves none.
    assert marks(nodes.play("verify", {"gpu1": {**DONE, **FAILS}})) == ["due"]
    assert marks(nodes.play("verify", {"gpu1": DUE})) == ["passed"]
    assert marks(nodes.play("verify", {"gpu1": DONE})) == []
    assert marks(nodes.play("teardown", {"gpu1": DUE})) == ["passed"]


@pytest.mark.full(why="test_nodes_in_work_... with other numbers")
def test_a_share_of_failures_can_be_allowed(nodes):
    own = {"gpu1": {"standin_fails": "nvidia_driver"}, "gpu3": {"kubegpu_serial": 2}}
    some = {"everywhere": {"kubegpu_serial": 4, "kubegpu_max_fail_percentage": 50}}
    run = nodes.play("site", hosts(6, **own), *DRIVER, **some)
    assert run.status == 2, run.screen
    # One host's word in host_vars for smaller batches holds for all.
    assert run.at_once() == 2
    assert len(run.hosts("nvidia_driver")) == 6 and "not started" not in run.screen


@pytest.mark.full(why="test_nodes_in_work_... with the size from elsewhere")
@pytest.mark.parametrize("where", ["extra", "host_vars", "nowhere", "list"])
def test_where_the_size_of_batches_is_said(nodes, where):
    size = [1, "50%"] if where == "list" else 3
    own = {"gpu5": {"kubegpu_serial": size}} if where == "host_vars" else {}
    options = {"everywhere": {"kubegpu_serial": size}} if where == "list" else {}
    more = {"kubegpu_serial": size} if where == "extra" else {}
    run = nodes.play("site", hosts(8, **own), *DRIVER, **options, **more)
    assert run.status == 0, run.screen
    assert run.at_once() == {"list": 4, "nowhere": 8}.get(where, 3)


@pytest.mark.full(why="test_nodes_in_work_... has a failure, this a connection that is lost")
@pytest.mark.parametrize("module", ["nvidia_driver", "cdi_specification"])
def test_a_lost_node_in_a_batch_by_itself_does_not_end_the_run(nodes, module):
    """Ansible ends the run when all hosts of a batch are unreachable: with serial 1 any one."""
    own = {"gpu1": {"standin_lost": module}}
    some = {"everywhere": {"kubegpu_serial": 1, "kubegpu_max_fail_percentage": 100, **CLUSTER}}
    run = nodes.play("site", hosts(3, **own), *PARTS, **some)
    assert run.status == 2, run.screen
    assert run.at_once() == 1
    assert run.hosts("nvidia_driver") == ["gpu1", "gpu2", "gpu3"]
    # Nothing more was tried on it.
    lost = [name for host, name, _state in run.calls if host == "gpu1"]
    assert lost.index(module) == len(lost) - 1
    assert sorted(run.hosts("gpu_node_verify")) == ["gpu2", "gpu3"] and run.hosts("node_gpu_label")
    words = run.words()
    assert "gpu1 became unreachable" in words and "No route to host" in words
    assert "gpu1 failed in the task" in words


@pytest.mark.full(why="another fault than in test_nodes_in_work_...")
def test_a_failure_after_a_change_says_that_the_node_was_changed(nodes):
    """The CDI specification or the reboot failed after the driver was changed."""
    own = {
        "gpu1": {"standin_fails": "cdi_specification"},
        "gpu2": {"standin_lost": "reboot"},
        "gpu3": {"standin_fails": "nvidia_driver"},
    }
    run = nodes.play("site", hosts(3, **own), "-v", *DRIVER)
    assert run.status == 2, run.screen
    stored = r'ok: \[(gpu\d)\] => .*"kubegpu_failure": \{"changed": (\w+)'
    kept = dict(re.findall(stored, run.screen))
    assert kept == {"gpu1": "true", "gpu2": "true", "gpu3": "false"}


@pytest.mark.full(why="test_a_lost_node_in_... in another playbook")
def test_a_lost_node_does_not_end_a_verification(nodes):
    own = {"gpu1": {"standin_lost": "gpu_node_verify"}}
    run = nodes.play("verify", hosts(3, **own), everywhere={"kubegpu_serial": 1})
    assert run.status == 2, run.screen
    assert run.hosts("gpu_node_verify") == ["gpu1", "gpu2", "gpu3"]
    assert "Verification" in run.screen and "gpu1 failed in the task" in run.words()


@pytest.mark.full(why="test_nodes_in_work_... in another playbook")
def test_a_failing_teardown_stops_too(nodes):
    own = {"gpu2": {"standin_fails": "nvidia_driver"}}
    run = nodes.play("teardown", hosts(4, **own), everywhere={"kubegpu_serial": 2})
    assert run.status == 2, run.screen
    assert run.at_once() == 2 and sorted(run.hosts("nvidia_driver")) == ["gpu1", "gpu2"]
    words = run.words()
    assert "Restored nodes" in words and "docker: remove runtime" in words
    assert "gpu3, gpu4: not started: 1 of 2 nodes of a batch failed (gpu2)" in words
    assert "gpu2 failed in the task Restore the driver as it was" in words


@pytest.mark.full(why="a unit test of the filter has it")
def test_a_prometheus_that_cannot_be_changed_does_not_count_for_the_node_it_is_on(nodes):
    own = {"gpu1": {"standin_fails": "prometheus_gpu_files"}}
    some = {"everywhere": {"kubegpu_serial": 1, "gpu_monitoring_prometheus_host": "gpu1"}}
    run = nodes.play("teardown", hosts(3, **own), **some)
    assert run.status == 2, run.screen
    assert run.hosts("prometheus_gpu_files") == ["gpu1"]
    assert run.hosts("nvidia_driver") == ["gpu1", "gpu2", "gpu3"]
    words = run.words()
    assert "not started" not in words and "Restored nodes" in words
    assert (
        "gpu1 failed in the task Give Prometheus the targets and rules: It did not build." in words
    )
    # What fails at the node itself counts nevertheless, and both are told.
    own["gpu1"]["standin_lost"] = "nvidia_driver"
    run = nodes.play("teardown", hosts(3, **own), **some)
    assert run.status == 2 and run.hosts("nvidia_driver") == ["gpu1"], run.screen
    words = run.words()
    assert "gpu2, gpu3: not started: 1 of 1 nodes of a batch failed (gpu1)" in words
    assert (
        "gpu1 failed in the task Give Prometheus the targets and rules: It did not build." in words
    )
    assert "gpu1 failed in the task Restore the driver as it was" in words


@pytest.mark.full(why="test_nodes_in_work_... with tags")
def test_parts_that_are_skipped_take_nothing_else_along(nodes):
    """Ansible leaves out a task of which one tag is skipped, with all the other tags it has."""
    own = {"gpu1": {"standin_fails": "package_set"}}
    some = {"everywhere": {"kubegpu_serial": 1}}
    run = nodes.play("site", hosts(3, **own), "--skip-tags", "driver", **some)
    assert run.status == 2, run.screen
    assert run.hosts("package_set") == ["gpu1"] and not run.hosts("nvidia_driver")
    words = run.words()
    assert "Result" in words
    assert "gpu2, gpu3: not started: 1 of 1 nodes of a batch failed (gpu1)" in words
    assert "gpu1 failed in the task" in words


@pytest.mark.full(why="test_nodes_in_work_... with other tags")
def test_a_run_for_another_part_shows_no_result_of_these(nodes):
    run = nodes.play("site", hosts(2), "--tags", "labels", everywhere=CLUSTER)
    assert run.status == 0, run.screen
    assert run.hosts("node_gpu_label") and not run.hosts("nvidia_driver")
    assert "Planned changes" in run.screen and "Result" not in run.screen


@pytest.mark.full(
    "labels", "dra", "monitoring", "labels,dra,device_plugin,monitoring", why="another part"
)
@pytest.mark.parametrize(
    "skipped",
    ["labels", "dra", "device_plugin", "monitoring", "labels,dra,device_plugin,monitoring"],
)
def test_a_part_in_the_cluster_can_be_skipped(nodes, skipped):
    """docs/scale.md skips the device plugin; what the parts have in common is read all the same."""
    parts = skipped.split(",")
    more = [] if "device_plugin" in parts else ["device_plugin"]
    run = nodes.play("site", hosts(2), "--skip-tags", ",".join([*parts, *more]), everywhere=CLUSTER)
    assert run.status == 0, run.screen
    assert bool(run.hosts("node_gpu_label")) is ("labels" not in parts)


@pytest.mark.full(why="a unit test of the filter has it")
def test_a_refusal_after_a_changed_driver_counts(nodes):
    """A CUDA toolkit that is refused when the driver is installed already is no untouched node."""
    own = {"gpu1": {"cuda_toolkit_versions": ["99.9"]}}
    some = {"everywhere": {"kubegpu_serial": 1}}
    run = nodes.play("site", hosts(2, **own), "--tags", "driver,cuda", **some)
    assert run.status == 2, run.screen
    assert run.hosts("nvidia_driver") == ["gpu1"]
    assert "gpu2: not started: 1 of 1 nodes of a batch failed (gpu1)" in run.words()


@pytest.mark.full(why="test_nodes_in_work_... in a run of two playbooks")
def test_batches_of_an_earlier_playbook_are_not_those_of_this_one(nodes):
    """Facts live as long as the run, and so did that a batch was begun."""
    own = {"gpu1": {"cuda_toolkit_versions": ["99.9"]}}
    some = {"everywhere": {"kubegpu_serial": 1}}
    run = nodes.play("teardown", hosts(2, **own), "kubegpu.nodes.site", **some)
    assert run.status == 2, run.screen
    driver = [(host, state) for host, name, state in run.calls if name == "nvidia_driver"]
    assert [host for host, state in driver if state == "absent"] == ["gpu1", "gpu2"]
    assert [host for host, state in driver if state != "absent"] == ["gpu1"]
    assert "gpu2: not started: 1 of 1 nodes of a batch failed (gpu1)" in run.words()


@pytest.mark.full(why="another fault")
def test_a_node_that_does_not_come_back_from_the_last_reboot_fails(nodes):
    """Nothing of ours comes after the reboot in a teardown."""
    own = {
        "gpu1": {
            "standin_lost": "reboot",
            "nvidia_driver_reboot": True,
            # What the reboot asks: nobody listens there.
            "ansible_connection": "ssh",
            "ansible_host": "127.0.0.1",
            "ansible_port": 1,
        }
    }
    run = nodes.play("teardown", hosts(2, **own), everywhere={"kubegpu_serial": 1})
    assert run.status == 2, run.screen
    assert run.hosts("nvidia_driver") == ["gpu1"]
    words = run.words()
    assert "gpu2: not started: 1 of 1 nodes of a batch failed (gpu1)" in words
    assert "gpu1 failed in the task Reboot because the driver was removed" in words


@pytest.mark.full(why="a unit test of the filter has it")
def test_the_size_of_batches_is_that_of_the_nodes_with_work(nodes):
    """Of 12 nodes half are more than 4, but of the 6 with something to do they are 3."""
    # The plan finds nothing to do on the others.
    done = {
        "standin_done": True,
        "nvidia_driver_enabled": False,
        "nvidia_container_toolkit_containerd": False,
        "nvidia_container_toolkit_docker": False,
        "nvidia_container_toolkit_cdi": False,
    }
    own = {
        "gpu1": {"kubegpu_serial": "50%"},
        "gpu2": {"kubegpu_serial": 4},
        **dict.fromkeys(TWELVE[6:], done),
    }
    run = nodes.play("site", hosts(**own), *DRIVER)
    assert run.status == 0, run.screen
    assert sorted(run.hosts("nvidia_driver")) == TWELVE[:6]
    assert run.at_once() == 3
