# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user sees whose token lacks parts of playbooks/files/rbac.yml.

The part of ``site`` that speaks to the cluster, on a real API server without kubelets; the node is
made.
"""

from __future__ import annotations

import re

import pytest
import yaml

from tests.integration.cluster import rights
from tests.integration.cluster.own_plays import GROUPS, run_play
from tests.integration.cluster.workloads import admin, wait_until
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ACCOUNT
from tests.unit.fixtures.node_facts import node

HOST = "missing-nvidia"
SITE = """
- import_playbook: kubegpu.nodes.parts.cluster_nodes
"""
REVIEW = {
    "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
    "spec": {"user": ACCOUNT},
}  # fmt: skip


@pytest.fixture(scope="module")
def play(api, tmp_path_factory):
    """Run the part of site with the token and the callback of this collection."""
    cluster_made.create(api, [cluster_made.node(HOST)])
    rights.apply(api, "base", "read")
    folder = tmp_path_factory.mktemp("play")
    facts = node()
    system = {**facts["os"], "machine_id": cluster_made.machine_id(HOST)}
    hosts = {HOST: {"ansible_connection": "local", "facts": {**facts, "os": system}}}
    variables = {
        "kubegpu_kube": {"kubeconfig": rights.kubeconfig(api, folder / "kubeconfig")},
        # No controller makes pods here.
        "kubegpu_apply": {"wait_timeout": 0},
    }
    inventory = {"all": {"hosts": hosts, "vars": variables}}
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
    (folder / "play.yml").write_text(GROUPS + SITE)
    yield lambda **options: run_play(folder, **options)
    rights.delete(api)
    cluster_made.delete(api, [HOST])


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "kubegpu.nodes.tables")


def may(plane, verb, group, resource, name, allowed):
    """Wait until the API server knows whether the account has a right."""
    asked = {"verb": verb, "group": group, "resource": resource, "name": name,
             "namespace": "kubegpu"}  # fmt: skip
    body = {**REVIEW, "spec": {**REVIEW["spec"], "resourceAttributes": asked}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    wait_until(lambda: admin(plane).create(path, body)["status"]["allowed"] is allowed)


def test_all_parts_that_are_missing_are_named_before_anything_is_changed(api, play, tables):
    done = play()
    assert done.status == 2
    lines = [line.strip() for line in done.output.splitlines()]
    assert lines[0] == f"failed: [{HOST} -> localhost] Apply the labels of all nodes"
    (cause,) = [line for line in lines if "lacks" in line]
    needs = rf"The user {ACCOUNT} lacks 50 of the \d+ rights that this run needs at "
    assert re.match(needs, cause)
    assert cause.endswith(": rights of the parts nodes, pods, nvidia of rbac.yml")
    assert "Seen: part nodes: patch on nodes in the whole cluster" in lines
    assert "part pods: all of its 2 rights, on pods" in lines
    (step,) = [line for line in lines if line.startswith("Next step: ")]
    # The command that the message has gives all that is missing.
    command = re.search(r"kubectl (apply -f \S+rbac\.yml -l) '([^']+)'$", step)
    api.kubectl(*command[1].split(), command[2])
    may(api, "patch", "apps", "daemonsets", "kubegpu-nvidia-device-plugin", True)
    assert play().status == 0


def test_one_verb_that_is_missing_is_named_where_the_objects_are_applied(api, play):
    rights.apply(api, "base", "read", "nodes", "pods", "nvidia")
    role = rights.less("nvidia", "Role", "daemonsets", "patch")
    api.kubectl("replace", "-f", "-", stdin=yaml.safe_dump(role))
    may(api, "patch", "apps", "daemonsets", "kubegpu-nvidia-device-plugin", False)
    done = play(nvidia_device_plugin_mig_strategy="single")
    assert done.status == 2
    (line,) = [one for one in done.output.splitlines() if one.startswith(("failed: ", "fatal: "))]
    assert '"evidence": "part nvidia: patch on daemonsets in the namespace kubegpu"' in line
    # Neither the objects nor the answer of the API server hide the message.
    assert "containers" not in line and "Status" not in line and len(line) < 2500
