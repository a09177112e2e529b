# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of the DRA driver, and the claims of docs/dra.md against Kubernetes' own schemas."""

from __future__ import annotations

import json
import re

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.tools.environments import REPOSITORY
from tests.unit.fixtures.dra_cluster import release
from tests.unit.fixtures.node_facts import node
from tests.unit.fixtures.plans import nvidia_dra_driver_plan

ENOUGH = {"kubernetes": "v1.34.2", "dra": {"served": ["v1"]}}
#: The oldest and the newest release with schemas of each version.
RELEASES = {"v1": ("1.34", "1.37"), "v1beta2": ("1.33", "1.37"), "v1beta1": ("1.32", "1.37")}


def examples():
    """The objects of the page, each with the version of the API whose section it is in."""
    page = (REPOSITORY / "docs" / "dra.md").read_text()
    found = []
    for section in page.split("\n## Claims\n")[1].split("\n## ")[0].split("\n### ")[1:]:
        version = re.match(r"resource\.k8s\.io/(\w+)", section)
        for text in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL):
            found += [(version and version[1], one) for one in yaml.safe_load_all(text)]
    return found


def test_the_objects_alone_need_no_host():
    made = nvidia_dra_driver_plan({"compute_domains": False}, {}, ENOUGH)
    assert made["action"] == "apply" and made["api"] == "v1"
    assert [one["kind"] for one in made["objects"]][-1] == "DaemonSet"
    json.dumps(made)


def test_facts_may_be_given_apart():
    made = nvidia_dra_driver_plan({}, {"gpu1": {"cdi": True}}, release("1.20"), {"gpu1": node()})
    assert made["action"] == "refuse" and made["nodes"]["gpu1"]["resources"] is None


def test_teardown_reads_the_objects_of_the_cluster():
    labels = {"app.kubernetes.io/managed-by": "kubegpu.nodes"}
    there = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com", "labels": labels},
    }
    made = nvidia_dra_driver_plan({}, {}, {"dra_objects": [there]}, teardown=True)
    assert made["absent"] == [{**there, "metadata": {"name": "gpu.nvidia.com"}}]


def test_the_page_has_claims_for_each_version():
    versions = {version for version, one in examples() if one["kind"] == "ResourceClaimTemplate"}
    assert versions == set(RELEASES)


@pytest.mark.parametrize("version", RELEASES)
def test_kubernetes_own_schema_takes_the_claims_of_the_page(version):
    objects = [one for section, one in examples() if section == version]
    assert {one["kind"] for one in objects} == {"ResourceClaimTemplate", "Pod"}
    templates = {one["metadata"]["name"] for one in objects if one["kind"] != "Pod"}
    for one in objects:
        for name in RELEASES[version]:
            kubernetes_validate.validate(one, name, strict=True)
        if one["kind"] == "Pod":
            claims = one["spec"].get("resourceClaims", ())
            assert {claim["resourceClaimTemplateName"] for claim in claims} <= templates
        else:
            assert one["apiVersion"] == f"resource.k8s.io/{version}"


def test_the_classes_of_the_page_are_deployed():
    made = nvidia_dra_driver_plan({}, {}, ENOUGH)
    classes = {one["metadata"]["name"] for one in made["objects"] if one["kind"] == "DeviceClass"}
    text = json.dumps([one for _version, one in examples()])
    assert set(re.findall(r'"deviceClassName": "([^"]+)"', text)) == classes


def test_our_definition_takes_the_compute_domain_of_the_page():
    made = nvidia_dra_driver_plan({"compute_domains": True}, {}, ENOUGH)
    (definition,) = [
        one for one in made["objects"] if one["metadata"]["name"].startswith("computedomains.")
    ]
    (domain,) = [one for _version, one in examples() if one["kind"] == "ComputeDomain"]
    (version,) = definition["spec"]["versions"]
    assert domain["apiVersion"] == f"{definition['spec']['group']}/{version['name']}"
    jsonschema.validate(domain, version["schema"]["openAPIV3Schema"])
