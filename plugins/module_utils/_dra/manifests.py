# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Kubernetes objects of NVIDIA's DRA driver. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._cluster.dra import GROUP
from .._device_plugin.objects import namespace_object
from .._kube.pod_parts import Object
from .crds import custom_resources
from .data import HOST_MANAGED, MPS
from .names import (
    CHANNEL_CLASS,
    CONTROLLER_NAME,
    DAEMON_ACCOUNT,
    DAEMON_CLASS,
    DAEMON_NAME,
    DOMAIN_GROUP,
    GPU_CLASS,
    MIG_CLASS,
    PLUGIN_NAME,
    POLICY_NAME,
)
from .pods import controller_deployment, metadata, plugin_daemonset
from .types import Layout, Request

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io/v1"
_GPU_DRIVER, _DOMAIN_DRIVER = "gpu.nvidia.com", "compute-domain.nvidia.com"
_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "update", "patch", "delete")

Rule = tuple[str, Sequence[str], Sequence[str]]


def manifests(request: Request, layout: Layout) -> list[Object]:
    """Return the objects in the order of application."""
    objects = [namespace_object(request.namespace)]
    if layout.compute_domains:
        objects += custom_resources()
    objects += _plugin_rights(request, layout)
    if layout.compute_domains:
        objects += [*_controller_rights(request), *_daemon_rights(request)]
    objects += device_classes(request, layout)
    if layout.policy:
        objects += _policy(request)
    objects.append(plugin_daemonset(request, layout))
    if layout.compute_domains:
        objects.append(controller_deployment(request))
    return objects


def device_classes(request: Request, layout: Layout) -> list[Object]:
    """Return the classes by which claims ask for devices."""
    found = []
    if request.gpus:
        gpu = _device_class(layout.api, GPU_CLASS, _GPU_DRIVER, "gpu")
        if layout.api == "v1":
            # Pods may then ask by limits, as with the device plugin (KEP-5004).
            gpu["spec"]["extendedResourceName"] = "nvidia.com/gpu"
        found = [gpu, _device_class(layout.api, MIG_CLASS, _GPU_DRIVER, "mig")]
    if layout.compute_domains:
        found.append(
            _device_class(
                layout.api, CHANNEL_CLASS, _DOMAIN_DRIVER, "channel",
                f" && device.attributes['{_DOMAIN_DRIVER}'].id == 0",
            )
        )  # fmt: skip
        if request.imex_mode != HOST_MANAGED:
            found.append(_device_class(layout.api, DAEMON_CLASS, _DOMAIN_DRIVER, "daemon"))
    return found


def _device_class(api: str, name: str, driver: str, kind: str, more: str = "") -> Object:
    rule = f"device.driver == '{driver}' && device.attributes['{driver}'].type == '{kind}'{more}"
    return {
        "apiVersion": f"{GROUP}/{api}",
        "kind": "DeviceClass",
        "metadata": metadata(name),
        "spec": {"selectors": [{"cel": {"expression": rule}}]},
    }


def _plugin_rights(request: Request, layout: Layout) -> list[Object]:
    rules: list[Rule] = [
        (GROUP, ["resourceclaims"], _READ),
        (GROUP, ["resourceslices"], (*_READ, "create", "update", "delete")),
        ("", ["pods"], _READ),
        # A compute domain is a label on the nodes that take part.
        ("", ["nodes"], (*_READ, "update", "patch") if layout.compute_domains else _READ),
    ]
    inside: list[Rule] = []
    if layout.compute_domains:
        rules.append((DOMAIN_GROUP, ["computedomains"], _READ))
        inside.append((DOMAIN_GROUP, ["computedomaincliques"], ("get",)))
    if request.gpus and request.gate(MPS):
        inside.append(("apps", ["deployments"], _WRITE))
    return _rights(request, PLUGIN_NAME, PLUGIN_NAME, rules, inside)


def _controller_rights(request: Request) -> list[Object]:
    rules: list[Rule] = [
        (DOMAIN_GROUP, ["computedomains"], (*_READ, "update")),
        (DOMAIN_GROUP, ["computedomains/status"], ("update",)),
        (GROUP, ["resourceclaimtemplates"], (*_READ, "create", "update", "delete")),
        ("", ["nodes"], (*_READ, "update")),
        ("", ["pods"], _READ),
    ]
    inside: list[Rule] = [
        ("apps", ["daemonsets"], _WRITE),
        (DOMAIN_GROUP, ["computedomaincliques"], (*_READ, "update")),
    ]
    return _rights(request, CONTROLLER_NAME, CONTROLLER_NAME, rules, inside)


def _daemon_rights(request: Request) -> list[Object]:
    if request.imex_mode == HOST_MANAGED:
        return []
    rules: list[Rule] = [
        (
            DOMAIN_GROUP,
            ["computedomains", "computedomains/status"],
            (*_READ, "update", "patch"),
        ),
        (DOMAIN_GROUP, ["computedomaincliques"], (*_READ, "create", "update", "patch")),
        ("", ["pods"], (*_READ, "patch")),
    ]
    return _rights(request, DAEMON_NAME, DAEMON_ACCOUNT, rules, [])


def _rights(
    request: Request,
    name: str,
    account: str,
    rules: Sequence[Rule],
    inside: Sequence[Rule],
) -> list[Object]:
    """Return the account, its rights in the cluster, and those in the namespace."""
    found: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(account, request.namespace),
        }
    ]
    for scope, given in (("Cluster", rules), ("", inside)):
        if not given:
            continue
        data = metadata(name, "" if scope else request.namespace)
        role = f"{scope}Role"
        found += [
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": role,
                "metadata": data,
                "rules": [
                    {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
                    for group, resources, verbs in given
                ],
            },
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": f"{role}Binding",
                "metadata": data,
                "roleRef": {"apiGroup": _RBAC, "kind": role, "name": name},
                "subjects": [
                    {"kind": "ServiceAccount", "name": account, "namespace": request.namespace}
                ],
            },
        ]
    return found


def _policy(request: Request) -> list[Object]:
    """Return the policy that a pod of the plugin writes the slices of its own node only.

    The name of the node is in the pod's token (ServiceAccountTokenPodNodeInfo, on by default from
    Kubernetes 1.30).
    """
    account = f"system:serviceaccount:{request.namespace}:{PLUGIN_NAME}"
    ours = "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')"
    written = "(request.operation == 'DELETE' ? oldObject : object).spec.?nodeName.orValue('')"
    policy: Mapping[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [GROUP],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["resourceslices"],
                }
            ]
        },
        "matchConditions": [
            {"name": "plugin", "expression": f"request.userInfo.username == '{account}'"}
        ],
        "variables": [
            {"name": "podNode", "expression": ours},
            {"name": "sliceNode", "expression": written},
        ],
        "validations": [
            {
                "expression": "variables.podNode != ''",
                "message": "the token of this pod does not name its node",
            },
            {
                "expression": "variables.podNode == variables.sliceNode",
                "message": "this pod may write the ResourceSlices of its own node only",
            },
        ],
    }
    return [
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata(POLICY_NAME),
            "spec": dict(policy),
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata(POLICY_NAME),
            "spec": {"policyName": POLICY_NAME, "validationActions": ["Deny"]},
        },
    ]
