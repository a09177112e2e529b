# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The custom resources of compute domains, from the types of the driver's API.

The fields are those of api/nvidia.com/resource/v1beta1/{computedomain,computedomainclique}.go of
github.com/kubernetes-sigs/dra-driver-nvidia-gpu (v0.5.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._kube.pod_parts import Object
from .names import CLIQUES, DOMAIN_GROUP, DOMAIN_VERSION, DOMAINS
from .pods import metadata

_TEXT: Mapping[str, Any] = {"type": "string"}
_STATUS: Mapping[str, Any] = {
    "type": "string",
    "enum": ["Ready", "NotReady"],
    "default": "NotReady",
}
_UNCHANGED = {"rule": "self == oldSelf", "message": "the spec of a compute domain cannot change"}


def custom_resources() -> list[Object]:
    """Return the definitions of ComputeDomain and ComputeDomainClique."""
    template = _fields({"name": _TEXT}, "name")
    channel = _fields(
        {
            "resourceClaimTemplate": template,
            "allocationMode": {"type": "string", "enum": ["All", "Single"], "default": "Single"},
        },
        "resourceClaimTemplate",
    )
    spec = {
        **_fields(
            {"channel": channel, "numNodes": {"type": "integer", "minimum": 0, "default": 0}},
            "channel",
        ),
        "x-kubernetes-validations": [_UNCHANGED],
    }
    status = _fields({"status": _STATUS, "nodes": _members("name")}, "status")
    return [
        _definition(DOMAINS, "ComputeDomain", {"spec": spec, "status": status}, status=True),
        _definition(CLIQUES, "ComputeDomainClique", {"daemons": _members("nodeName")}),
    ]


def _fields(properties: Mapping[str, Any], *required: str) -> Object:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _members(key: str) -> Object:
    """Return the schema of the nodes of a domain, or of the daemons of a clique."""
    member = _fields(
        {
            key: _TEXT,
            "ipAddress": _TEXT,
            "cliqueID": _TEXT,
            "index": {"type": "integer"},
            "status": _STATUS,
        },
        *(key, "ipAddress", "cliqueID"),
    )
    return {
        "type": "array",
        "items": member,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
    }


def _definition(
    name: str, kind: str, properties: Mapping[str, Any], *, status: bool = False
) -> Object:
    plural = name.partition(".")[0]
    top = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}, **properties}
    version: Object = {
        "name": DOMAIN_VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": top}},
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata(name),
        "spec": {
            "group": DOMAIN_GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }
