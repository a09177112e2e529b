# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the screen shows if the token of playbooks/files/rbac.yml lacks some parts."""

from __future__ import annotations

import pytest
import yaml

from tests.integration.cluster import rights
from tests.integration.cluster.own_plays import GROUPS, run_play
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ControlPlane
from tests.unit.fixtures.node_facts import node

HOST = "missing-nvidia"
SITE = """
- import_playbook: kubegpu.nodes.parts.cluster_nodes
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    plane = ControlPlane(tmp_path_factory.mktemp("missing") / "plane")
    try:
        plane.up(with_parent=True)
        cluster_made.create(plane, [cluster_made.node(HOST)])
        yield plane
    finally:
        plane.remove()


@pytest.fixture(scope="module")
def play(plane, tmp_path_factory):
    rights.apply(plane, "base", "read")
    token = rights.kubeconfig(plane, tmp_path_factory.mktemp("token") / "kubeconfig")
    folder = tmp_path_factory.mktemp("play")
    facts = node()
    system = {**facts["os"], "machine_id": cluster_made.machine_id(HOST)}
    hosts = {HOST: {"ansible_connection": "local", "facts": {**facts, "os": system}}}
    variables = {"kubegpu_kube": {"kubeconfig": token}, "nvidia_device_plugin_wait_timeout": 0}
    (folder / "inventory.yml").write_text(
        yaml.safe_dump({"all": {"hosts": hosts, "vars": variables}})
    )

    def run(text, *arguments, **options):
        (folder / "play.yml").write_text(GROUPS + text)
        return run_play(folder, *arguments, **options)

    return run


def test_x(plane, play):
    import time
    done = play(SITE)
    open("/work/h/tmp-c35/x/labels", "w").write(done.output)
    rights.apply(plane, "nodes", "pods", "nvidia")
    role = rights.less("nvidia", "Role", "daemonsets", "patch")
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(role))
    time.sleep(3)
    done = play(SITE)
    open("/work/h/tmp-c35/x/plugin", "w").write(done.output)
