# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role nvidia_dra_driver makes of its variables and of the cluster's answers."""

from __future__ import annotations

from pathlib import Path

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.filter.nvidia_dra_driver_plan import (
    nvidia_dra_driver_plan,
)
from tests.unit.fixtures.dra_cluster import release
from tests.unit.fixtures.node_facts import node

ROLE = Path(__file__).parents[3] / "roles" / "nvidia_dra_driver"
HOST = "gpu1"


def value(name, **variables):
    """Return a variable of the role for a host in the play, where these are set."""
    loader = DataLoader()
    known = {}
    for folder in ("defaults", "vars"):
        path = str(ROLE / folder / "main.yml")
        known.update(loader.load_from_file(path, trusted_as_template=True))
    known.update({"inventory_hostname": HOST, "ansible_check_mode": False, **variables})
    return Templar(loader, variables=known).template(trust_as_template("{{ " + name + " }}"))


def test_the_filter_takes_what_the_role_says_of_a_host():
    said = value(
        "__nvidia_dra_driver_this",
        kubegpu_plans={"plans": {HOST: {"nvidia_driver": {"next_driver": "580.126.09"}}}},
        nvidia_container_toolkit_runtime_cdi="yes",
        nvidia_dra_driver_compute_domains=False,
    )
    assert (said["driver"], said["cdi"], said["node"]) == ("580.126.09", True, HOST)
    host = {
        "__nvidia_dra_driver_host": said,
        "inventory_hostname": HOST,
        "ansible_facts": {"gpu_node": node(runtimes__containerd__version="1.7.24")},
    }
    hosts = {"ansible_play_hosts": [HOST, "failed"], "hostvars": {HOST: host, "failed": {}}}
    rows, facts = (value(f"__nvidia_dra_driver_{name}", **hosts) for name in ("rows", "facts"))
    assert list(rows) == [HOST]
    options = value("__nvidia_dra_driver_options")
    made = nvidia_dra_driver_plan(options, rows, release("1.34"), facts)
    assert made["action"] == "apply"
    assert made["nodes"][HOST]["resources"] is None
    # Two hosts with other options are refused.
    other = {**said, "options": {**said["options"], "version": "v0.4.0"}}
    refused = nvidia_dra_driver_plan(
        options, {**rows, "gpu2": other}, release("1.34"), {**facts, "gpu2": node()}
    )
    assert "nvidia_dra_driver_version differs" in refused["text"]
