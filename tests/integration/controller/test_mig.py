# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What refuses a change of MIG is known before anything else of the node is changed.

The playbooks and roles are the real ones; what runs on nodes is a stand-in (standin_nodes.py). With
a real cluster: tests/integration/cluster/test_mig.py.
"""

from __future__ import annotations

import pytest

from tests.integration.controller.standin_nodes import Nodes
from tests.unit.fixtures.mig_node import MigNode, card

CLUSTER = {"kubegpu_kube": {"kubeconfig": "/dev/null"}}
# What takes something away from a node, or from its cluster.
TAKING = {"node_gpu_label", "package_set", "nvidia_driver", "docker_runtime", "package_repository"}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    return Nodes(tmp_path_factory.mktemp("nodes"))


@pytest.fixture
def mig(tmp_path):
    """Facts of a node with a GPU that has MIG."""
    facts = MigNode(tmp_path, card(0, "2330")).facts()
    return {name: facts[name] for name in ("gpus", "nvml", "mig")}


def calls_of(run, host):
    return [(name, state) for called, name, state in run.calls if called == host]


def test_a_teardown_that_is_refused_takes_nothing_away(nodes, mig):
    with_record = {"standin_facts": {**mig, "mig": {**mig["mig"], "managed": True}}}
    hosts = {
        "gpu1": with_record,
        # The only one of a cluster, which loses no label then.
        "gpu2": {**with_record, **CLUSTER, "standin_fails": "nvidia_mig absent"},
        "gpu3": {},
    }
    run = nodes.play("teardown", hosts, everywhere={"kubegpu_serial": 1})
    assert run.status == 2, run.screen
    assert "gpu2 is refused: " in run.words()
    assert "It did not build." in run.screen
    refused = calls_of(run, "gpu2")
    assert ("node_pause", None) in refused and ("nvidia_mig", "absent") in refused
    assert not TAKING & {name for name, _state in refused}, refused
    # The others are restored: asked first, and the layout before the driver goes.
    first = [name for name, _state in calls_of(run, "gpu1")]
    at = [number for number, name in enumerate(first) if name == "nvidia_mig"]
    assert len(at) == 2, first
    assert at[0] < first.index("package_set") < at[1] < first.index("nvidia_driver")
    third = [name for name, _state in calls_of(run, "gpu3")]
    assert "nvidia_driver" in third
    # Without a record there is nothing to ask before.
    assert third.index("package_set") < third.index("nvidia_mig")
    # The pods of a cluster are asked for where there is one.
    assert run.hosts("node_pause") == ["gpu2"]


@pytest.mark.full("False", why="the same pause where no program is kept")
@pytest.mark.parametrize("refused", [True, False])
def test_a_program_that_stays_refuses_before_the_node_is_paused(nodes, mig, refused):
    host = {"standin_facts": mig, "nvidia_mig_config": "all-1g.10gb"}
    if refused:
        host["standin_fails"] = "nvidia_mig None"
    run = nodes.play("site", {"gpu1": host}, "--tags", "mig", everywhere=CLUSTER)
    asked = [("node_pause", None), ("nvidia_mig", None)]
    done = [one for one in calls_of(run, "gpu1") if one[0] in ("node_pause", "nvidia_mig")]
    if refused:
        assert run.status == 2, run.screen
        # The pause is asked for and not made, so that there is none to end.
        assert done == asked
        assert "gpu1 failed in the task Check whether a program prevents the change" in run.words()
    else:
        assert run.status == 0, run.screen
        assert done == [*asked, *asked, ("node_pause", "absent")]
