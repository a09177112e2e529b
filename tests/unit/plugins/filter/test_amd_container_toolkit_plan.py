# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What AMD's container toolkit needs on a node, and why."""

from __future__ import annotations

import copy

import pytest

from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.node_facts import node
from tests.unit.fixtures.plans import amd_container_toolkit_plan

NODES = ["/dev/dri/renderD128", "/dev/dri/renderD129"]
KEY = "CA8BB4727A47B4D09B4EE8969386B48A1A693C5C"
RUNTIME = "/usr/local/bin/amd-container-runtime"


def noble(docker="28.5.2", **changes):
    facts = amd_node()
    facts["os"].update(id="ubuntu", version="24.04", codename="noble")
    if docker:
        facts["runtimes"]["docker"]["version"] = docker
    else:
        facts["runtimes"]["docker"] = None
    facts.update(changes)
    return facts


def done(**options):
    """Return a node on which all is as requested."""
    made = amd_container_toolkit_plan(noble(), **options)
    facts = noble()
    facts["amd_container_toolkit"].update(
        version="1.3.0~24.04",
        held=True,
        cdi_spec={
            "path": "/etc/cdi/amd.json",
            "devices": ["0", "1", "all"],
            "nodes": NODES,
            "made_for": NODES,
        },
    )
    facts["repositories"] = [
        {
            "file": "/etc/apt/sources.list.d/kubegpu-amd-container-toolkit.sources",
            "uri": "https://repo.radeon.com/amd-container-toolkit/apt",
            "key_fingerprint": KEY,
            "enabled": True,
        }
    ]
    facts["runtimes"]["docker"]["runtimes"]["amd"] = {"path": RUNTIME}
    facts["runtimes"]["docker"]["converged"] = {"amd": made["fingerprint"]}
    return facts


def steps(facts, **options):
    plan = amd_container_toolkit_plan(facts, **options)
    return [(one["step"], one["action"]) for one in plan["steps"]]


def test_a_node_that_has_nothing_gets_all_of_it():
    plan = amd_container_toolkit_plan(noble())
    assert [(one["step"], one["action"]) for one in plan["steps"]] == [
        ("repository", "add"),
        ("packages", "install"),
        ("cdi", "refresh"),
        ("docker", "add"),
    ]
    assert (plan["action"], plan["work"]) == ("install", True)
    assert plan["packages"] == {"amd-container-toolkit": "1.3.0*"}
    assert plan["repository"] == {
        "name": "kubegpu-amd-container-toolkit",
        "url": "https://repo.radeon.com/amd-container-toolkit/apt",
        "suite": "noble",
        "components": ["main"],
        "key_fingerprints": [KEY],
        "replaces": ["https://repo.radeon.com/amd-container-toolkit/apt"],
        "check_metadata": True,
    }
    assert plan["programs"]["runtime"] == RUNTIME
    assert plan["warnings"] == []


def test_a_node_that_has_it_all_is_left_alone():
    facts = done()
    plan = amd_container_toolkit_plan(facts)
    assert (plan["action"], plan["work"], plan["steps"]) == ("none", False, [])
    # Another setting is another fingerprint, and the module is called.
    assert amd_container_toolkit_plan(facts, docker_restart="always")["docker"] is True


@pytest.mark.parametrize(
    ("change", "step", "words"),
    [
        ({"version": "1.2.0~24.04"}, None, ""),
        ({"held": False}, ("packages", "hold"), "removes? /etc/cdi|would remove /etc/cdi"),
        ({"interrupted": ["/etc/cdi/x"]}, ("packages", "repair"), "killed"),
        # It is among the files that come back.
        (
            {"interrupted": ["/etc/cdi/amd.json"], "cdi_spec": None},
            ("packages", "repair"),
            "killed",
        ),
        ({"cdi_spec": None}, ("cdi", "refresh"), "no CDI specification"),
        ({"render_nodes": NODES[:1]}, ("cdi", "refresh"), "renderD129, which is not there"),
        ({"render_nodes": [*NODES, "/dev/dri/renderD130"]}, ("cdi", "refresh"), "made for"),
    ],
)
def test_one_thing_that_differs(change, step, words):
    facts = done()
    facts["amd_container_toolkit"].update(change)
    plan = amd_container_toolkit_plan(facts)
    assert [(one["step"], one["action"]) for one in plan["steps"]] == ([step] if step else [])
    if step:
        assert plan["steps"][0]["reason"].count(words.partition("|")[2] or words) == 1


def test_versions_that_are_asked_for():
    facts = done()
    assert steps(facts, version="1.3.0") == []
    assert steps(facts, version="1.3.1") == [("packages", "upgrade")]
    assert steps(facts, version="1.2.0") == [("packages", "downgrade")]
    made = amd_container_toolkit_plan(facts, version="1.3.0~22.04")
    assert made["packages"] == {"amd-container-toolkit": "1.3.0~22.04"}
    # Installed already, and none is asked for: it is kept.
    facts["amd_container_toolkit"]["version"] = "1.1.0~24.04"
    kept = amd_container_toolkit_plan(facts)
    assert (kept["steps"], kept["version"]) == ([], "1.1.0~24.04")


def test_a_specification_of_somebody_else_stays_while_its_devices_are_there():
    facts = done()
    spec = facts["amd_container_toolkit"]["cdi_spec"]
    spec.update(made_for=None, nodes=NODES[:1])
    assert steps(facts) == []
    spec["nodes"] = ["/dev/dri/renderD200"]
    assert steps(facts) == [("cdi", "refresh")]
    assert steps(facts, cdi=False) == []


def test_docker():
    facts = done()
    assert steps(facts, docker_set_default=True) == [("docker", "default")]
    facts["runtimes"]["docker"]["runtimes"]["amd"] = {"path": "/usr/bin/amd-container-runtime"}
    assert steps(facts) == [("docker", "change")]
    assert steps(facts, docker="false") == []
    none = noble(docker=None)
    assert amd_container_toolkit_plan(none)["warnings"] == []
    (said,) = amd_container_toolkit_plan(none, docker="true")["warnings"]
    assert "Docker is requested" in said
    (said,) = amd_container_toolkit_plan(noble(docker="20.10.24"))["warnings"]
    assert "Docker 20.10.24 has no CDI" in said


def test_rhel_9_and_a_mirror():
    facts = noble()
    facts["os"].update(id="rocky", family="rhel", version="9.5", package_manager="dnf")
    plan = amd_container_toolkit_plan(facts)
    assert plan["repository"]["url"] == "https://repo.radeon.com/amd-container-toolkit/el9/main"
    assert (plan["repository"]["suite"], plan["repository"]["check_metadata"]) == ("/", False)
    assert plan["programs"]["ctk"] == "/usr/bin/amd-ctk"
    # A distribution that AMD has no repository for, with a mirror that has packages for it.
    facts = amd_node()
    mirror = "https://user:word@mirror.example/amd/apt"
    plan = amd_container_toolkit_plan(facts, repository_url=mirror, repository_suite="bookworm")
    assert plan["repository"]["suite"] == "bookworm" and "word" not in str(plan)
    assert amd_container_toolkit_plan(facts, manage_repository=False)["repository"] is None


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"repository_name": "amd"}, "amd_container_toolkit_repository.name is 'amd'"),
        ({"version": "12", "id": "debian"}, {}, "and not for debian 12"),
        ({"arch": "aarch64"}, {}, "not for aarch64"),
        ({"package_manager": None}, {}, "an unknown tool"),
        ({}, {"docker": "perhaps"}, "amd_container_toolkit_docker"),
    ],
)
def test_refusals(change, options, words):
    facts = noble()
    facts["os"].update(change)
    plan = amd_container_toolkit_plan(facts, **options)
    assert (plan["action"], plan["work"]) == ("refuse", True)
    assert words in " ".join(plan["reasons"])


def test_the_package_installs_only_with_its_driver():
    facts = noble(kernel_drivers={})
    plan = amd_container_toolkit_plan(facts)
    assert plan["action"] == "refuse" and "amdgpu is not loaded" in plan["reasons"][0]
    # What is installed stays as it is.
    facts = copy.deepcopy(done())
    facts["kernel_drivers"] = {}
    assert amd_container_toolkit_plan(facts)["action"] == "none"


@pytest.mark.parametrize("facts", [node(), intel_node("xe"), node(gpus=[])])
def test_other_nodes(facts):
    plan = amd_container_toolkit_plan(facts)
    assert (plan["action"], plan["work"]) == ("none", False)
