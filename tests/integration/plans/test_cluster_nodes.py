# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which parts of a cluster ``playbooks/parts/cluster_nodes.yml`` includes for a host."""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.plans import playbook

PART = re.compile(r"^included: \S+ for gpu1 => \(item=(\w+)\)", re.MULTILINE)


def parts(folder, passed):
    """Run it by a playbook that passes variables; return the roles that it includes."""
    own, inventory = folder / "own.yml", folder / "inventory.yml"
    # Ansible knows no hostvars before the first play.
    before = {"name": "Before", "hosts": "all", "gather_facts": False}
    imported = {"import_playbook": "kubegpu.nodes.parts.cluster_nodes", "vars": passed}
    own.write_text(json.dumps([before, imported]))
    cluster = {
        "hosts": {"gpu1": {"ansible_connection": "local", "kubegpu_become": False, "asked": False}},
        "vars": {"kubegpu_kube": {"kubeconfig": "/dev/null"}},
    }
    inventory.write_text(json.dumps({"kubegpu_cluster": cluster}))
    run = playbook.run(inventory, str(own), "--tags", "dra,monitoring")
    assert run.status == 0, run.screen
    return PART.findall(run.screen)


@pytest.mark.parametrize("variable", ["", "nvidia_dra_driver_enabled", "gpu_monitoring_enabled"])
def test_a_variable_that_a_playbook_passes_is_decided_by_the_host(tmp_path, variable):
    """It is a template of a host's variable, so that only the host's tasks can read it."""
    assert parts(tmp_path, {variable: "{{ asked }}"} if variable else {}) == []
