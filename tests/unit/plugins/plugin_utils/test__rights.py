# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which parts of rbac.yml a run needs, and the message of those that are missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rights import (
    NEEDS,
    Settings,
    missing_rights,
    needed_parts,
    read_rights,
)
from tests.unit.fixtures.rights import part_names, rights_of

PAGE = Path(__file__).parents[4] / "docs" / "rights.md"
ACCOUNT = "system:serviceaccount:kubegpu:kubegpu-ansible"
# The rows of the page by their beginning.
ROWS = {
    "labels": "tag `labels`",
    "nvidia_device_plugin": "tag `device_plugin`, NVIDIA",
    "pull_secret": "tag `device_plugin`, NVIDIA",
    "amd_device_plugin": "tag `device_plugin`, AMD",
    "intel_device_plugin": "tag `device_plugin`, AMD",
    "monitoring": "tag `monitoring`",
    "dra": "tag `dra`",
    "compute_domains": "tag `dra`",
    "mig": "tag `mig`",
    "verify": "tag or playbook `verify`",
    "diagnose": "`diagnose`",
    "accept": "`accept`",
    "upgrade": "`upgrade`",
    "teardown": "`teardown`",
    "maintenance": "module gpu_node_maintenance",
    "lease": "module gpu_node_maintenance",
}


def settings(*playbooks, tags=("all",), vendors=("nvidia",), options=(), tasks=()):
    return Settings(playbooks, tasks, list(tags), [], vendors, options)


def test_the_rights_are_those_of_the_file():
    found = read_rights()
    assert [one.part for one in found] == sorted(
        (one.part for one in found), key=part_names().index
    )
    assert {tuple(one)[1:] for one in found} == set(map(tuple, rights_of()))
    moved = read_rights("gpus")
    assert {one.namespace for one in moved} == {"", "gpus"} and len(moved) == len(found)


def test_the_page_has_the_same_parts_for_each_run():
    assert ROWS.keys() == NEEDS.keys()
    table = PAGE.read_text(encoding="utf-8").partition("## Which parts a run needs\n")[2]
    table = table.partition("\n## ")[0]
    for run, start in ROWS.items():
        (row,) = [line for line in table.splitlines() if line.startswith(f"| {start}")]
        assert set(NEEDS[run]) <= set(re.findall(r"`([a-z-]+)`", row.split("|")[2])), row
    assert {part for parts in NEEDS.values() for part in parts} == set(part_names())


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        (settings("site"), "base nodes read pods nvidia"),
        (settings("plan"), "base nodes read pods nvidia"),
        (settings("site", tags=["labels"]), "base nodes"),
        (settings("site", tags=["monitoring"]), ""),
        (settings("site", tags=["monitoring"], options=["monitoring"]), "base read monitoring"),
        (settings("site", vendors=["amd"]), "base nodes read pods amd"),
        (settings("site", options=["pull_secret"]), "base nodes read pods nvidia image-secret"),
        (settings("site", tags=["dra"], options=["dra", "compute_domains"]),
         "base read teardown dra nodes compute-domains"),
        (settings("verify", options=["monitoring"]), "base read pods monitoring"),
        (settings("teardown", vendors=["intel"]), "base read nodes pods teardown intel"),
        (settings("upgrade"), "base read nodes pods maintenance upgrade"),
        (settings("diagnose", "verify"), "base read pods"),
        # A playbook of somebody else, with the role or module of the task.
        (settings("mine", tasks=["gpu_kubernetes_objects", "nvidia_device_plugin"]),
         "base read pods nvidia"),
        (settings("mine", tasks=["gpu_node_maintenance"], options=["lease"]),
         "base read nodes maintenance upgrade"),
        (settings("mine", tasks=["other"]), ""),
    ],
)  # fmt: skip
def test_which_parts_a_run_needs(given, parts):
    assert sorted(needed_parts(given)) == sorted(parts.split())


def test_all_that_is_missing_is_one_message_with_the_command():
    needed = [one for one in read_rights() if one.part in ("base", "nodes", "pods", "nvidia")]
    missing = [
        one
        for one in needed
        if one.part in ("nodes", "pods") or (one.resource, one.verb) == ("daemonsets", "patch")
    ]
    error = missing_rights(missing, needed, ACCOUNT, "https://api:6443")
    assert "\n" not in error.cause and ACCOUNT in error.cause and "https://api:6443" in error.cause
    assert "lacks 6 of the 51 rights" in error.cause
    assert "rights of the parts nodes, pods, nvidia of rbac.yml" in error.cause
    assert error.evidence.splitlines() == [
        "part nodes: patch on nodes in the whole cluster",
        "part pods: all of its 2 rights, on pods",
        "part nvidia: patch on daemonsets in the namespace kubegpu",
    ]
    assert re.search(
        r"kubectl apply -f \S+/playbooks/files/rbac\.yml -l "
        r"'kubegpu\.nodes/rights in \(nodes, pods, nvidia\)'$",
        error.next_step,
    )


def test_another_namespace_and_another_user_have_their_own_next_step():
    needed = [one for one in read_rights("gpus") if one.part == "pods"]
    step = missing_rights(needed, needed, "jane", "https://api", "gpus").next_step
    assert "| kubectl apply -f - -l 'kubegpu.nodes/rights in (pods)'" in step
    assert "namespace: gpus/" in step
    assert "the account system:serviceaccount:gpus:kubegpu-ansible" in step
