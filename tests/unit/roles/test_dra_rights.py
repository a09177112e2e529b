# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights that the role nvidia_dra_driver offers are those that it needs, and no others.

No API server here has the group resource.k8s.io, so that the rules are computed as one would: what
is read, what is made by its name, and the rules of each role that is made.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.installed import dra_objects
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.manifests import manifests
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.types import Layout

FILES = Path(__file__).parents[3] / "roles" / "nvidia_dra_driver" / "files"
CHANGES = ("get", "create", "patch", "delete")
PLURALS = {
    "DeviceClass": "deviceclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}
GPUS = ("rbac.yml",)
BOTH = (*GPUS, "rbac-compute-domains.yml")


def given(files):
    """Return the rights of the files: namespace, group, resource, name (empty for any), verb."""
    found = set()
    for file in files:
        for item in yaml.safe_load((FILES / file).read_text(encoding="utf-8"))["items"]:
            if item["kind"] in ("ClusterRole", "Role"):
                namespace = item["metadata"].get("namespace", "")
                found |= expanded(namespace, item["rules"])
    return found


def expanded(namespace, rules):
    return {
        (namespace, group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def allows(rights, wanted):
    """Return whether a right is given, as it is, for any name, or for the whole cluster."""
    namespace, group, resource, name, verb = wanted
    return any(
        (where, group, resource, which, verb) in rights
        for where in (namespace, "")
        for which in (name, "")
    )


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
        found |= {(*place, verb) for verb in CHANGES}
        if kind in ("ClusterRole", "Role"):
            # Its binding may come before the API server's cache has the role.
            found |= {(*place, "bind"), *expanded(meta.get("namespace", ""), one["rules"])}
    return found


class Recorder:
    """A cluster that has nothing, and remembers what it was asked."""

    def __init__(self):
        self.asked = set()

    def _note(self, path, verb, name=""):
        parts = path.strip("/").split("/")
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        self.asked.add((namespace, group, rest[0], rest[1] if len(rest) > 1 else name, verb))

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


@pytest.mark.parametrize(("files", "domains"), [(GPUS, False), (BOTH, True)])
def test_the_offered_rights_are_enough(files, domains):
    rights = given(files)
    wanted = needed(objects(domains=domains)) | read()
    assert sorted(one for one in wanted if not allows(rights, one)) == []


@pytest.mark.parametrize(("files", "domains"), [(GPUS, False), (BOTH, True)])
def test_nothing_is_changed_for_which_there_is_no_need(files, domains):
    wanted = needed(objects(domains=domains))
    # With the feature gate MPSSupport.
    mps = manifests(read_request({"feature_gates": {"MPSSupport": True}}), Layout("v1", False))
    wanted |= needed(one for one in mps if one["kind"] in ("Role", "RoleBinding"))
    changing = {one for one in given(files) if one[-1] not in ("get", "list", "watch")}
    assert sorted(changing - wanted) == []
