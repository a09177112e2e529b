# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of the DRA driver against Kubernetes' own schemas, for each version of the API.

CEL expressions are compared as text: no test here evaluates them. The controller alone has the
schemas.
"""

from __future__ import annotations

import functools
import itertools
import json

import jsonschema
import kubernetes_validate
import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.plan import (
    claim_manifest,
    pod_manifest,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.types import Request, Target
from tests.unit.fixtures.dra_objects import OPTIONS, SERVED, made, named


@pytest.fixture(scope="module", autouse=True)
def schemas():
    """Each file of schemas is parsed once, not for each object."""
    with pytest.MonkeyPatch.context() as patch:
        read = kubernetes_validate.utils.schema_contents
        patch.setattr(kubernetes_validate.utils, "schema_contents", functools.lru_cache(read))
        yield


@pytest.mark.parametrize("release", SERVED)
def test_kubernetes_own_schema_takes_every_object(release):
    """Objects that several versions and options have in common are validated once."""
    distinct = {}
    for api, case in itertools.product(SERVED[release], OPTIONS):
        objects = made(OPTIONS[case], api)
        assert len(objects) >= 15
        identities = [identity(one) for one in objects]
        assert len(identities) == len(set(identities))
        distinct.update({json.dumps(one, sort_keys=True): one for one in objects})
    for one in distinct.values():
        kubernetes_validate.validate(one, release, strict=True)


@pytest.mark.parametrize(
    ("release", "api"), [(release, api) for release in SERVED for api in SERVED[release]]
)
def test_kubernetes_own_schema_takes_the_test_pod_and_its_claim(release, api):
    target = Target("gpu1", "n1", "n1", "gpu.nvidia.com", 2, dra=True, claim=True)
    request = Request("ubuntu:24.04", "GPU 0")
    pod = pod_manifest(target, request, "run1", "here 1 1")
    made_pod = {**pod, "metadata": {**pod["metadata"], "uid": "1"}}
    claim = claim_manifest(target, made_pod, api, request)
    assert claim["apiVersion"] == f"resource.k8s.io/{api}"
    for one in (pod, claim):
        kubernetes_validate.validate(one, release, strict=True)
    # The form of the other versions is not taken.
    other = claim_manifest(target, made_pod, "v1" if api == "v1beta1" else "v1beta1", request)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**claim, "spec": other["spec"]}, release, strict=True)


@pytest.mark.parametrize(("release", "api"), [("1.32", "v1"), ("1.33", "v1"), ("1.32", "v1beta2")])
def test_an_older_release_does_not_take_a_newer_version(release, api):
    with pytest.raises(kubernetes_validate.SchemaNotFoundError):
        kubernetes_validate.validate(
            named(made(api=api), "DeviceClass", "gpu.nvidia.com"), release, strict=True
        )


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"channel": {"resourceClaimTemplate": {"name": "c"}}, "numNodes": 0}, None),
        ({"channel": {"resourceClaimTemplate": {"name": "c"}, "allocationMode": "All"}}, None),
        ({"numNodes": 2}, "'channel' is a required property"),
        ({"channel": {"resourceClaimTemplate": {}}}, "'name' is a required property"),
        ({"channel": {"resourceClaimTemplate": {"name": "c"}, "allocationMode": "Two"}}, "Two"),
        ({"channel": {"resourceClaimTemplate": {"name": "c"}}, "numNodes": -1}, "minimum"),
    ],
)
def test_the_definition_of_a_compute_domain(spec, error):
    definition = named(made(), "CustomResourceDefinition", "computedomains.resource.nvidia.com")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    domain = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "spec": spec}
    if error is None:
        jsonschema.validate(domain, schema)
        return
    with pytest.raises(jsonschema.ValidationError, match=error):
        jsonschema.validate(domain, schema)
