# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights that the role nvidia_dra_driver offers are those that it needs, and no others.

No API server here has the group resource.k8s.io, so that the rules are computed as one would: what
is read, what is made by its name, and the rules of each role that is made.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.installed import dra_objects
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.manifests import manifests
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.types import Layout
from tests.unit.fixtures.rights import Right, allows, expanded, lacking, rights_of

CHANGES = ("get", "create", "patch", "delete")
PLURALS = {
    "DeviceClass": "deviceclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}
#: What the account of the part dra has, and in addition for compute domains.
GPUS = ("base", "read", "teardown", "dra")
BOTH = (*GPUS, "nodes", "compute-domains")


def objects(*, domains):
    return manifests(read_request({}), Layout("v1", domains, clique_label=domains, policy=True))


def needed(made):
    """Return the rights to make these objects, and those that their roles give."""
    found = set()
    for one in made:
        kind, meta = one["kind"], one["metadata"]
        if kind == "Namespace":
            # The manifest of rights makes it.
            continue
        group = one["apiVersion"].partition("/")[0] if "/" in one["apiVersion"] else ""
        resource = PLURALS.get(kind, f"{kind.lower()}s")
        place = (meta.get("namespace", ""), group, resource, meta["name"])
        found |= {Right(*place, verb) for verb in CHANGES}
        if kind in ("ClusterRole", "Role"):
            # Its binding may come before the API server's cache has the role.
            found |= {Right(*place, "bind"), *expanded(one)}
    return found


class Recorder:
    """A cluster that has nothing, and remembers what it was asked."""

    def __init__(self):
        self.asked = set()

    def _note(self, path, verb, name=""):
        parts = path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 1:
            # The API server asks for the right to read a namespace in that namespace.
            namespace, rest = rest[1], rest[2:] or rest
        found = rest[1] if len(rest) > 1 else name
        self.asked.add(Right(namespace, group, rest[0], found, verb))

    def list(self, path, **_params):
        self._note(path, "list")
        return iter(())

    def get(self, path, **_params):
        self._note(path, "get")
        return {"metadata": {"name": path.rpartition("/")[2]}} if "definitions" in path else None


def read():
    recorder = Recorder()
    dra_objects(recorder, "kubegpu", "v1")
    assert len(recorder.asked) > 10
    return recorder.asked


@pytest.mark.parametrize(("parts", "domains"), [(GPUS, False), (BOTH, True)])
def test_the_offered_rights_are_enough(parts, domains):
    wanted = needed(objects(domains=domains)) | read()
    assert lacking(wanted, rights_of(*parts)) == []


def test_nothing_is_given_for_which_there_is_no_need():
    # The claim of a test pod, which gpu_test_pods makes.
    claim = Right("kubegpu", "resource.k8s.io", "resourceclaims", "", "create")
    wanted = needed(objects(domains=True)) | read() | {claim}
    # With the feature gate MPSSupport.
    mps = manifests(read_request({"feature_gates": {"MPSSupport": True}}), Layout("v1", False))
    wanted |= needed(one for one in mps if one["kind"] in ("Role", "RoleBinding"))
    given = rights_of("dra", "compute-domains")
    assert sorted(one for one in given if not any(allows(one, right) for right in wanted)) == []
