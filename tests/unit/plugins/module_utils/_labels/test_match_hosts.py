# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which node is which host, where a host may say of itself what it likes."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.match_hosts import match
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.node import read_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests

A, B, C = "a" * 32, "b" * 32, "c" * 32


def nodes(**ids):
    """Nodes by name, with dots for two underscores, and their machine ids."""
    return [
        read_node(
            {
                "metadata": {"name": name.replace("__", ".")},
                "status": {"nodeInfo": {"machineID": id_}},
            },
            "kubegpu.nodes",
        )
        for name, id_ in ids.items()
    ]


def found(hosts, there):
    """Return host -> node, or the refusal's cause."""
    answers = match(read_requests(hosts), there)
    assert [one.request.key for one in answers] == list(hosts)
    # Whoever forgets to look at the refusal finds no node either.
    assert all(one.node is None for one in answers if one.refusal)
    return {
        one.request.key: one.refusal.cause if one.refusal else one.node.name if one.node else None
        for one in answers
    }


def by_id(**ids):
    return {key.replace("__", "."): {"machine_id": id_} for key, id_ in ids.items()}


def test_a_machine_id_finds_a_node_of_another_name():
    answers = match(read_requests(by_id(gpu1=B, gpu2=A.upper())), nodes(n1=A, n2=B))
    assert [one.node.name for one in answers] == ["n2", "n1"]
    assert {one.found_by for one in answers} == {"machine_id"}
    assert not any(one.note or one.refusal for one in answers)


def test_dashes_of_a_machine_id_do_not_count():
    firmware = "2d9ad6e6-ed1c-4bd1-b4f1-f1bb2e4bbd2d"
    assert found(by_id(x=firmware.replace("-", "")), nodes(n1=firmware)) == {"x": "n1"}


def test_an_unknown_machine_id_falls_back_to_the_name_and_says_so():
    [one] = match(read_requests({"host": {"machine_id": C, "name": "N1"}}), nodes(n1=A))
    assert (one.node.name, one.found_by) == ("n1", "name")
    assert C in one.note and A in one.note
    [silent] = match(read_requests({"n1": {}}), nodes(n1=A))
    assert (silent.node.name, silent.found_by, silent.note) == ("n1", "name", None)
    [quiet] = match(read_requests(by_id(n1=C)), nodes(n1=""))
    assert (quiet.node.name, quiet.note) == ("n1", None)


def test_no_node_is_no_error():
    assert found(by_id(x=C), nodes(n1=A)) == {"x": None}
    # Clones that are no nodes: the cluster has nothing to do with them.
    assert found(by_id(x=C, y=C), nodes(n1=A)) == {"x": None, "y": None}


# The attack: root of a GPU node writes another node's id into its /etc/machine-id. The API server's
# NodeRestriction keeps its kubelet from that node's labels; this must not be the way around it.
# https://kubernetes.io/docs/reference/access-authn-authz/node/


def test_a_host_that_has_the_id_of_another_node_than_its_own_is_refused_alone():
    told = found(by_id(gpu7=A, gpu8=B), nodes(cp1=A, gpu7=C, gpu8=B))
    assert told["gpu8"] == "gpu8"
    assert told["gpu7"] == (
        "gpu7 has the machine id of the node cp1, but the cluster has a node gpu7, which is the "
        "host's name; nothing is done for gpu7"
    )
    [one] = match(read_requests(by_id(gpu7=A)), nodes(cp1=A, gpu7=C))
    assert one.refusal.evidence == f"machine id {A}; that of gpu7 is {C}"
    assert "/etc/machine-id of gpu7" in one.refusal.next_step
    assert "gpu_node_labels_node_name" in one.refusal.next_step


@pytest.mark.parametrize("attacker", ["before", "after"])
def test_the_node_whose_id_was_taken_is_served_all_the_same(attacker):
    hosts = by_id(gpu7=A, cp1=A) if attacker == "before" else by_id(cp1=A, gpu7=A)
    told = found(hosts, nodes(cp1=A, gpu7=C))
    assert told["cp1"] == "cp1" and "gpu7 has the machine id of the node cp1" in told["gpu7"]


def test_the_domain_of_the_inventory_s_name_makes_no_difference():
    cluster = nodes(cp1=A, gpu7=C)
    told = found(by_id(gpu7__example__com=A, cp1__example__com=A), cluster)
    assert told["cp1.example.com"] == "cp1"
    assert "but the cluster has a node gpu7" in told["gpu7.example.com"]
    # Nor does that of the node's.
    told = found(by_id(gpu7=A), nodes(cp1=A, gpu7__example__com=C))
    assert "but the cluster has a node gpu7.example.com" in told["gpu7"]


def test_a_node_of_that_name_that_is_another_host_s_is_no_reason():
    cluster = nodes(a1=A, worker__9=B)
    hosts = by_id(a1__site1__com=A, a1__site2__com=B)
    assert found(hosts, cluster) == {"a1.site1.com": "a1", "a1.site2.com": "worker.9"}
    # An address has no domain.
    hosts = {"10.0.0.7": {"machine_id": A}}
    assert found(hosts, nodes(gpu7=A, **{"10__1": B})) == {"10.0.0.7": "gpu7"}


def test_the_operator_s_name_is_stronger_than_the_host_s_id():
    hosts = {"gpu7": {"machine_id": A, "name": "cp1"}}
    assert found(hosts, nodes(cp1=A, gpu7=C)) == {"gpu7": "cp1"}


def test_a_kubelet_that_reports_the_id_of_another_node_gains_and_spoils_nothing():
    cluster = nodes(cp1=A, gpu7=A)
    assert found(by_id(cp1=A, gpu7=A), cluster) == {"cp1": "cp1", "gpu7": "gpu7"}
    [one] = match(read_requests(by_id(cp1=A)), cluster)
    assert (
        one.note
        == f"The nodes cp1 and gpu7 have the same machine id, {A}: cp1 is found by its name"
    )


# Duplicates


def test_nodes_with_one_id_are_named_and_only_who_may_be_either_is_refused():
    told = found(by_id(host=A, n3=C), nodes(n1=A, n2=A, n3=C))
    assert told["n3"] == "n3"
    assert told["host"] == (
        "The nodes n1 and n2 have the same machine id, that of host; nothing is done for host"
    )
    assert found({"n1": {}}, nodes(n1=A, n2=A)) == {"n1": "n1"}


def test_hosts_with_one_id_are_named_and_the_others_are_found():
    told = found(by_id(a=C, b=C, c=A), nodes(n1=A, n2=C))
    assert told["c"] == "n1"
    for name in "ab":
        assert told[name].startswith("The hosts a and b have the same machine id")
    [one, _two] = match(read_requests(by_id(a=C, b=C)), nodes(n2=C))
    assert "systemd-machine-id-setup" in one.refusal.next_step


def test_two_hosts_that_are_named_as_one_node_are_both_refused():
    hosts = {name: {"name": "n1"} for name in "ab"}
    told = found({**hosts, "n2": {}}, nodes(n1=A, n2=B))
    assert told["n2"] == "n2"
    for name in "ab":
        assert told[name].startswith("The hosts a and b are both the node n1; nothing is done")


def test_of_two_hosts_that_are_one_node_the_one_of_its_name_is_served():
    told = found({"gpu1": {"machine_id": A}, "n1": {}}, nodes(n1=A))
    assert told["n1"] == "n1"
    assert told["gpu1"].startswith("The hosts gpu1 and n1 are both the node n1")
