# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that were not read, and hosts that are refused for what was read."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import ABOVE
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import host_groups, wrong_values
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._reading import (
    known_result,
    left_out,
    refusals,
    was_read,
    why_not_read,
)
from tests.unit.fixtures.node_facts import node

ONE = {"machine_id": "a" * 32, "boot_id": "b1", "hostname": "gpu3"}


def host(as_root=True, gpus=True, system=None, **variables):
    facts = {**node(), "as_root": as_root}
    facts["os"] = {**facts["os"], **(system or {})}
    if not gpus:
        facts["gpus"] = []
    return {"ansible_facts": {"gpu_node": facts}, **variables}


def refused(hostvars):
    return {one["host"]: one["refusals"] for one in refusals([*hostvars], hostvars)}


@pytest.mark.parametrize(
    ("read", "why", "words"),
    [
        (
            {"unreachable": True, "msg": "Task failed: No route to host"},
            "the node cannot be reached, see below",
            ["No route to host\nNext step: See that the machine is up", "(ansible_user, -u)"],
        ),
        (
            {"failed": True, "msg": "Task failed: Missing sudo password"},
            "the node could not be read, see below",
            ["Missing sudo password\nNext step: ", "-K asks for it"],
        ),
        (
            {"failed": True, "msg": "Task failed: Incorrect sudo password"},
            "the node could not be read, see below",
            ["Incorrect sudo password\nNext step: ", "the password that `sudo -v` accepts"],
        ),
        (
            {"failed": True, "msg": "Task failed: Duplicate become password prompt encountered"},
            "the node could not be read, see below",
            [
                "Duplicate become password prompt encountered\nNext step: ",
                "the password that `sudo -v` accepts",
            ],
        ),
        (
            {
                "unreachable": True,
                "msg": "Task failed: ssh: Host key verification failed.",
            },
            "the node cannot be reached, see below",
            [
                "ssh: Host key verification failed.\nNext step: ",
                "log in once with ssh",
            ],
        ),
        (
            {
                "failed": True,
                "msg": "No start of json",
                "module_stdout": "sudo: a password is required",
            },
            "the node could not be read, see below",
            ["No start of json\nNext step: ", "-K asks for it"],
        ),
        (
            {"failed": True, "msg": "x\nNext step: y", "cause": "x", "next_step": "y"},
            "the node could not be read, see below",
            ["x\nNext step: y"],
        ),
        (
            {"failed": True, "module_stderr": "No python"},
            "the node could not be read, see below",
            ["No python\nNext step: Correct that, and try:\nansible gone1 "],
        ),
    ],
)
def test_why_a_host_was_not_read(read, why, words):
    short, (text,) = why_not_read("gone1", {"__kubegpu_read": read})
    assert short == why
    assert all(word in text for word in words) and text.count("Next step:") == 1, text


def test_facts_of_an_earlier_run_group_no_host_that_is_not_read_now():
    hostvars = {
        name: {**host(), "__kubegpu_read": read}
        for name, read in {
            "down": {"unreachable": True},
            "broken": {"failed": True},
            "left out": {"skipped": True},
            "gpu1": {"changed": False},
            "gpu2": {},
        }.items()
    }
    found = {one["host"]: one["groups"] for one in host_groups([*hostvars], hostvars)}
    assert found == {
        "down": ["kubegpu_not_read"],
        "broken": ["kubegpu_not_read"],
        "gpu1": ["kubegpu_nvidia", "kubegpu_gpu", "kubegpu_first_read"],
        "gpu2": ["kubegpu_nvidia", "kubegpu_gpu"],
    }
    assert [name for name in hostvars if was_read(hostvars[name])] == ["gpu1", "gpu2"]


def test_one_machine_under_two_names_and_what_only_looks_like_it():
    hostvars = {
        "gpu3": host(system=ONE),
        "gpu3.example.com": host(system=ONE),
        # The disk was cloned with the machine id.
        "clone": host(system={**ONE, "boot_id": "b2"}),
        # A container of the same host, from the same image.
        "container": host(system={**ONE, "hostname": "c1"}),
        # Facts of an earlier release in a cache.
        "old": host(system={**ONE, "boot_id": None}),
        "tree": host(system=ONE, kubegpu_root="/mnt"),
        "monitor": host(system=ONE, gpus=False),
    }
    found = refused(hostvars)
    assert list(found) == ["gpu3", "gpu3.example.com"]
    ((first,), (second,)) = found.values()
    assert first["why"] == "one machine with gpu3.example.com"
    assert second["why"] == "one machine with gpu3"
    assert first["message"].startswith("gpu3 and gpu3.example.com are one machine")
    assert "--limit 'all:!gpu3.example.com'" in first["message"]
    # Nothing tells a copied identity from a second name: the message names both.
    assert "or a machine answers with the identity of another one" in first["message"]
    seen = f"Seen: machine id {ONE['machine_id']}, boot id {ONE['boot_id']} of all of them"
    assert seen in first["message"]
    assert "leave out the one whose own /proc/sys/kernel/random/boot_id" in first["message"]
    assert first["message"] == second["message"]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ansible_become_user": "ops"}, "Seen: ansible_become_user is ops"),
        ({"ansible_sudo_user": "ops"}, "Seen: ansible_sudo_user is ops"),
        ({"ansible_become": False}, "Seen: ansible_become is false"),
        ({"ansible_become": "no"}, "Seen: ansible_become is false"),
        ({}, "--become-user names another user"),
    ],
)
def test_a_node_that_root_did_not_read(variables, words):
    (one,) = refused({"gpu1": host(as_root=False, **variables)})["gpu1"]
    assert one["why"] == "not read as root" and words in one["message"]


@pytest.mark.parametrize(
    "variables",
    [
        host(ansible_become_user="root"),
        # Its user says that nobody has to become root.
        host(as_root=False, kubegpu_become=False),
        host(as_root=False, __kubegpu_read={"become": False}),
        host(as_root=False, gpus=False),
        # A tree, and facts of an earlier release.
        host(as_root=None, ansible_become_user="ops"),
    ],
)
def test_a_node_that_is_read_as_it_should_be(variables):
    assert refused({"gpu1": variables}) == {}


def test_a_refusal_is_a_group_and_a_reason():
    hostvars = {"gpu1": host(as_root=False)}
    hostvars["gpu1"]["__kubegpu_refused"] = refused(hostvars)
    assert [one["why"] for one in wrong_values("gpu1", hostvars["gpu1"])] == ["not read as root"]
    (found,) = host_groups(["gpu1"], hostvars)
    assert found["groups"] == ["kubegpu_refused", "kubegpu_failed"]


def test_a_condition_that_leaves_out_the_first_host():
    variables = {
        "__kubegpu_variables": {"skipped": True},
        "ansible_play_hosts_all": ["cpu1", "gpu3"],
    }
    assert "does not apply to cpu1, the first host" in left_out(variables).cause
    assert known_result(variables) == {
        "failed": True, "changed": False, **failure(left_out(variables)),
    }  # fmt: skip
    assert left_out({"__kubegpu_variables": {"wrong": {}}}) is left_out({}) is None
    assert known_result({}) is None


def test_a_host_that_is_taken_out_ends_as_it_was_read():
    endings = {
        "gpu1": {"unreachable": True, "msg": "No route to host"},
        "gpu2": {"failed": True, "msg": "No Python\nNext step: install it."},
    }
    # As an action gets them: a variable of the task is a template still.
    earlier = {
        "__kubegpu_unread": "{{ __kubegpu_read.endings[inventory_hostname] }}",
        "__kubegpu_read": {"endings": endings},
    }
    for name, ending in endings.items():
        found = known_result({**earlier, "inventory_hostname": name})
        # The task that read the host has shown a failure, and the table has the message of each.
        text = ending["msg"] if "unreachable" in ending else found["msg"]
        assert found == {"changed": False, **ending, "msg": text}
        assert found["msg"].endswith(ABOVE) == ("failed" in ending)


@pytest.mark.parametrize("name", ["__kubegpu_changes_nodes", "__kubegpu_reports"])
def test_a_tree_is_refused_by_what_works_on_the_machine(name):
    found = known_result({name: True}, "/srv/image")
    assert found["failed"] and found["msg"].startswith("kubegpu_root is /srv/image: ")
    assert known_result({name: True}) is None
    assert known_result({name: False}, "/srv/image") is None
    ending = {"__kubegpu_read": found, "inventory_hostname": "gpu1"}
    _short, (text,) = why_not_read("gpu1", ending)
    assert text.count("Next step: ") == 1 and "ping" not in text
