# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a host is monitored, and what is taken out of a cluster, by the variables of the role."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[3] / "roles" / "gpu_monitoring"


def value(name, **variables):
    """Return a variable of the role, where these are set."""
    loader = DataLoader()
    known = {}
    for folder in ("defaults", "vars"):
        path = str(ROLE / folder / "main.yml")
        known.update(loader.load_from_file(path, trusted_as_template=True))
    known.update({"inventory_hostname": "gpu1", **variables})
    return Templar(loader, variables=known).template(trust_as_template("{{ " + name + " }}"))


@pytest.mark.parametrize(
    ("method", "kube", "in_cluster", "has_cluster"),
    [
        ("auto", {}, False, False),
        ("auto", {"kubeconfig": "/k"}, True, True),
        ("auto", {"host": "https://api"}, True, True),
        # The default kubeconfig.
        ("kubernetes", {}, True, True),
        ("textfile", {}, False, False),
        # An earlier run may have deployed the exporter.
        ("textfile", {"kubeconfig": "/k"}, False, True),
    ],
)
def test_where_a_host_is_monitored(method, kube, in_cluster, has_cluster):
    given = {"gpu_monitoring_method": method, "kubegpu_kube": kube}
    assert value("__gpu_monitoring_in_cluster", **given) is in_cluster
    assert value("__gpu_monitoring_has_cluster", **given) is has_cluster
