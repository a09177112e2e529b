# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The manifests of rights that roles offer: what a token of them could do to things of others.

The API server judges them in tests/integration/cluster.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_monitoring_plan import (
    gpu_monitoring_plan,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.manifests import (
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    read_request,
)

ROLES = Path(__file__).parents[3] / "roles"
FILES = sorted(ROLES.glob("*/files/rbac*.yml"))
CHANGING = {"patch", "update", "delete", "deletecollection"}
# Labels and taints are what the role gpu_node_labels is for, and nodes that are to come have no
# name yet. The DRA driver's pods have the others, and an account cannot give what it does not have.
ON_ANY = {
    ("gpu_node_labels", "nodes"),
    *(
        ("nvidia_dra_driver", resource)
        for resource in (
            *("resourceslices", "nodes", "pods", "resourceclaimtemplates", "computedomaincliques"),
            *("computedomains", "computedomains/status"),
        )
    ),
}
SLICING = {"sharing": {"timeSlicing": {"resources": [{"name": "gpu", "replicas": 2}]}}}
MPS = {"sharing": {"mps": {"resources": [{"name": "gpu", "replicas": 2}]}}}


def rules(path, kind):
    items = yaml.safe_load(path.read_text(encoding="utf-8"))["items"]
    return [rule for item in items if item["kind"] == kind for rule in item["rules"]]


def names(path, resource):
    """Return the names to which the manifest gives rights; None where it is to any."""
    found = set()
    for kind in ("ClusterRole", "Role"):
        for rule in rules(path, kind):
            if resource in rule["resources"] and CHANGING & set(rule["verbs"]):
                if "resourceNames" not in rule:
                    return None
                found.update(rule["resourceNames"])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-3])
def test_nothing_of_the_whole_cluster_is_changed_but_by_its_name(path):
    for rule in rules(path, "ClusterRole"):
        any_name = {(path.parts[-3], resource) for resource in rule["resources"]} <= ON_ANY
        assert any_name or "resourceNames" in rule or not CHANGING & set(rule["verbs"]), rule


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-3])
def test_logs_are_read_in_the_namespace_of_the_role_alone(path):
    assert not [rule for rule in rules(path, "ClusterRole") if "pods/log" in rule["resources"]]


PLUGIN = {
    "configs": {"a": SLICING, "m": MPS},
    "feature_discovery": True,
    "feature_discovery_api": True,
}
KINDS = ("ServiceMonitor", "PodMonitor", "PrometheusRule")
EXPORTER = [
    item
    for scrape in ("service_monitor", "pod_monitor")
    for item in gpu_monitoring_plan({"scrape": scrape, "pod_labels": ["app"]}, kinds=KINDS)[
        "objects"
    ]
]


@pytest.mark.parametrize(
    ("role", "objects"),
    [
        ("nvidia_device_plugin", manifests(read_request(PLUGIN))),
        ("gpu_monitoring", EXPORTER),
    ],
)
def test_the_names_are_those_of_the_objects_that_the_role_makes(role, objects):
    path = ROLES / role / "files" / "rbac.yml"
    made = {}
    for item in objects:
        kind, _namespace, name = identity(item)
        made.setdefault(f"{kind.lower()}{'es' if kind.endswith('s') else 's'}", set()).add(name)
    # The manifest makes the namespace itself.
    del made["namespaces"]
    assert {resource: names(path, resource) for resource in made} == made
