# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""playbooks/files/rbac.yml: each right stands once, changes have names, and docs/rights.md has all.

That no right is missing, and none too many, is shown by an API server in
tests/integration/cluster/test_rights.py.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.manifests import (
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    read_request,
)
from tests.unit.fixtures.plans import gpu_monitoring_plan
from tests.unit.fixtures.rights import (
    PART,
    allows,
    documents,
    expanded,
    part_names,
    parts_of,
    rights_of,
)

PAGE = Path(__file__).parents[3] / "docs" / "rights.md"
CHANGING = {"patch", "update", "delete", "deletecollection"}
# Labels and taints are what the role gpu_node_labels is for, and nodes that are to come have no
# name yet. The DRA driver's pods have the others, and an account cannot give what it does not have.
ON_ANY = {
    ("nodes", "nodes"),
    ("dra", "resourceslices"),
    *(
        ("compute-domains", resource)
        for resource in (
            *("nodes", "pods", "resourceclaimtemplates", "computedomaincliques"),
            *("computedomains", "computedomains/status"),
        )
    ),
}
SLICING = {"sharing": {"timeSlicing": {"resources": [{"name": "gpu", "replicas": 2}]}}}
MPS = {"sharing": {"mps": {"resources": [{"name": "gpu", "replicas": 2}]}}}


def names(part, resource):
    """Return the names to which the part gives rights to change; None where it is to any."""
    found = {
        right.name
        for right in rights_of(part)
        if right.resource == resource and right.verb in CHANGING
    }
    return None if "" in found else found


def test_each_right_stands_once():
    rights = rights_of()
    assert {right: count for right, count in Counter(rights).items() if count > 1} == {}
    # The controller of compute domains makes DaemonSets of names that it chooses.
    chosen = {right for right in rights_of("compute-domains") if right.resource == "daemonsets"}
    covered = [
        (right, other)
        for right in set(rights) - chosen
        for other in rights
        if right != other and allows(right, other)
    ]
    assert covered == []


def test_each_role_is_bound_to_the_one_account():
    found = documents()
    (account,) = [one["metadata"] for one in found if one["kind"] == "ServiceAccount"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": "kubegpu"}
    roles, bindings = {}, {}
    for one in found:
        meta, kind = one["metadata"], one["kind"]
        if not kind.endswith(("Role", "Binding")):
            continue
        assert meta["name"] == f"{account['name']}-{meta['labels'][PART]}"
        key = (kind.removesuffix("Binding"), meta["name"], meta["labels"][PART])
        assert meta.get("namespace") == (None if key[0] == "ClusterRole" else "kubegpu")
        if kind.endswith("Binding"):
            assert one["subjects"] == [subject]
            bindings[key] = (one["roleRef"]["kind"], one["roleRef"]["name"])
        else:
            roles[key] = key[:2]
    assert roles == bindings


@pytest.mark.parametrize("part", part_names())
def test_nothing_of_the_whole_cluster_is_changed_but_by_its_name(part):
    for right in rights_of(part):
        if not right.namespace and right.verb in CHANGING:
            assert right.name or (part, right.resource) in ON_ANY, right


def test_logs_are_read_in_the_namespace_alone():
    assert {one.namespace for one in rights_of() if one.resource == "pods/log"} == {"kubegpu"}


def test_secrets_are_read_and_changed_by_one_part_alone():
    """The part teardown lists them, in the namespace of this collection."""
    found = {
        (part, right.namespace, right.verb == "list")
        for part in part_names()
        for right in rights_of(part)
        if right.resource == "secrets"
    }
    assert found == {("image-secret", "kubegpu", False), ("teardown", "kubegpu", True)}


def rows():
    """Return the table of the page: a part, where, and its group, resources and verbs."""
    found = set()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [one.strip() for one in line.strip("|").split("|")]
        if not line.startswith("| `") or len(cells) != 6 or cells[1] not in ("cluster", "kubegpu"):
            continue
        part, where, group, resources, verbs = (re.findall(r"`([^`]*)`", one) for one in cells[:5])
        named = "(by name)" in cells[3]
        found |= {
            (part[0], cells[1], group[0] if group else "", resource, named, verb)
            for resource in resources
            for verb in verbs
        }
        assert not where
    return found


def test_the_page_has_each_right():
    given = {
        (item["metadata"]["labels"][PART], right.namespace or "cluster", right.group,
         right.resource, bool(right.name), right.verb)
        for item in parts_of()
        for right in expanded(item)
    }  # fmt: skip
    assert rows() == given


def test_the_page_has_each_part_and_its_runs():
    text = PAGE.read_text(encoding="utf-8")
    needs = text.partition("## Which parts a run needs\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z-]+)`", needs)) >= set(part_names())


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
    ("parts", "objects"),
    [
        (("nvidia",), manifests(read_request(PLUGIN))),
        (("monitoring",), EXPORTER),
    ],
    ids=["nvidia_device_plugin", "gpu_monitoring"],
)
def test_the_names_are_those_of_the_objects_that_the_role_makes(parts, objects):
    made = {}
    for item in objects:
        kind, _namespace, name = identity(item)
        made.setdefault(f"{kind.lower()}{'es' if kind.endswith('s') else 's'}", set()).add(name)
    # The file makes the namespace itself.
    del made["namespaces"]
    found = {resource: set() for resource in made}
    for part in parts:
        for resource in made:
            found[resource] |= names(part, resource)
    assert found == made
