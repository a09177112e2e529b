# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which plays of ``kubegpu.nodes.cluster_nodes`` have hosts; no part of a cluster is asked for."""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.plans import playbook

DRA = ["What the DRA driver needs in Kubernetes, if requested"]
DRA += ["DRA driver in Kubernetes, if requested"]
OTHERS = "Device plugins of AMD and Intel, and monitoring in Kubernetes, where they are needed"
PLAY = re.compile(r"^PLAY \[(.*)\] \*+\n(skipping: no hosts matched)?", re.MULTILINE)


def plays(folder, passed):
    """Run it by a playbook that passes variables; return its plays that have hosts."""
    own, inventory = folder / "own.yml", folder / "inventory.yml"
    # Ansible knows no hostvars before the first play.
    before = {"name": "Before", "hosts": "all", "gather_facts": False}
    imported = {"import_playbook": "kubegpu.nodes.cluster_nodes", "vars": passed}
    own.write_text(json.dumps([before, imported]))
    cluster = {
        "hosts": {"gpu1": {"ansible_connection": "local", "kubegpu_become": False, "asked": False}},
        "vars": {"kubegpu_kube": {"kubeconfig": "/dev/null"}},
    }
    inventory.write_text(json.dumps({"kubegpu_cluster": cluster}))
    run = playbook.run(inventory, str(own), "--tags", "dra,monitoring")
    assert run.status == 0, run.screen
    return [name for name, none in PLAY.findall(run.screen)[1:] if not none]


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("", []),
        ("nvidia_dra_driver_enabled", DRA),
        ("gpu_monitoring_enabled", [OTHERS]),
    ],
)  # fmt: skip
def test_a_variable_that_a_playbook_passes_gives_its_plays_hosts(tmp_path, variable, expected):
    """It is a template of a host's variable, so that only the host's tasks can read it."""
    always = ["Labels in Kubernetes", "Device plugin in Kubernetes"]
    found = plays(tmp_path, {variable: "{{ asked }}"} if variable else {})
    assert [name for name in found if name not in always] == expected
    assert [name for name in found if name in always] == always
