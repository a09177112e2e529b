# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the device plugins of all vendors share: their request, and parts of their objects. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError, Refusal
from .._kube.automatic import SECRET, is_automatic
from .._kube.image import check_pinned, is_tag
from .._kube.pod_parts import Object, check_max_unavailable, max_unavailable
from .._labels.pause import away_from_paused

# A constant of kubelet, whatever its --root-dir is (k8s.io/kubelet
# pkg/apis/deviceplugin/v1beta1/constants.go; k0sproject/k0s#7585).
SOCKETS = "/var/lib/kubelet/device-plugins"
MANAGED_BY = "kubegpu.nodes"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
APP_LABEL = "app.kubernetes.io/name"
SHARED_KINDS = ("Namespace", "RuntimeClass")
_HELM = "helm.sh/release.v1"

Seen = Mapping[tuple[str, str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class PluginRequest:
    """The options that all device plugins have, named as the role's, without its prefix."""

    namespace: str = "kubegpu"
    image: str = ""
    version: str = ""
    digest: str = ""
    image_pull_policy: str = "IfNotPresent"
    pull_secret: str = ""
    priority_class: str = "system-node-critical"
    tolerations: Sequence[Mapping[str, Any]] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    max_unavailable: str = "10%"
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The image with tag or digest."""
        return f"{self.image}@{self.digest}" if self.digest else f"{self.image}:{self.version}"


def default_tolerations(*keys: str) -> tuple[Mapping[str, Any], ...]:
    """Return the tolerations for a vendor's usual taints."""
    return (
        *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys),
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
    )


def check_request(request: PluginRequest, prefix: str, *needed: str) -> None:
    """Check the options that all device plugins have.

    :param prefix: of the role's variables.
    :param needed: further options that may not be empty.
    :raises InputError: one is invalid.
    """
    for name in ("namespace", "image", *needed):
        if not getattr(request, name):
            raise InputError(f"{prefix}{name} is empty")
    example = type(request)().version
    check_pinned(prefix, request.image, request.version, request.digest, example)
    check_max_unavailable(prefix, request.max_unavailable)


def check_version(name: str, version: str, example: str) -> None:
    """Check that a tag pins a version.

    :raises InputError: it does not.
    """
    if not is_tag(version) or version == "latest":
        raise InputError(
            f"{name} is {version!r}, which pins no version",
            next_step=f"Give a release's tag, such as {example}, or a digest.",
        )


# -- objects ----------------------------------------------------------------------------------


def identity(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return kind, namespace and name."""
    data = item["metadata"]
    return str(item["kind"]), str(data.get("namespace") or ""), str(data["name"])


def labels(name: str) -> dict[str, str]:
    return {
        APP_LABEL: name,
        "app.kubernetes.io/instance": "kubegpu",
        MANAGED_LABEL: MANAGED_BY,
    }


def metadata(request: PluginRequest | None, name: str, app: str) -> Object:
    data: Object = {"name": name, "labels": labels(app)}
    if request is not None:
        data["namespace"] = request.namespace
    return data


def not_paused() -> Object:
    """Return the affinity to the nodes whose GPUs are not being changed."""
    return {"nodeAffinity": away_from_paused()}


def namespace_object(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {
                MANAGED_LABEL: MANAGED_BY,
                # The pods mount host directories, which the stricter levels forbid.
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        },
    }


def service_account(request: PluginRequest, name: str, app: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(request, name, app),
        # Only pods that use the API server mount the token.
        "automountServiceAccountToken": False,
    }


def daemonset(
    request: PluginRequest,
    name: str,
    app: str,
    spec: Mapping[str, Any],
    node_selector: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Return a DaemonSet.

    :param spec: of the pods; it completes and replaces what the request says.
    :param annotations: of the pods.
    """
    pod: Object = {
        "priorityClassName": request.priority_class,
        "imagePullSecrets": [{"name": request.pull_secret}] if request.pull_secret else [],
        "nodeSelector": {**node_selector, **request.node_selector},
        "tolerations": [dict(one) for one in request.tolerations],
        **spec,
    }
    selector = {key: value for key, value in labels(app).items() if key != MANAGED_LABEL}
    template: Object = {"labels": labels(app)}
    if annotations:
        template["annotations"] = dict(annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(request, name, app),
        "spec": {
            "selector": {"matchLabels": selector},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": max_unavailable(request.max_unavailable)},
            },
            # Omit empty fields: applying them would take ownership of them.
            "template": {
                "metadata": template,
                "spec": {key: value for key, value in pod.items() if value not in ("", [], {})},
            },
        },
    }


# -- what is there ----------------------------------------------------------------------------


def is_managed(item: Mapping[str, Any]) -> bool:
    return (item["metadata"].get("labels") or {}).get(MANAGED_LABEL) == MANAGED_BY


def is_unmanaged(item: Mapping[str, Any], seen: Seen, shared: Sequence[str] = SHARED_KINDS) -> bool:
    """Return whether an object that several programs share was there before.

    :param shared: the kinds that several programs share.
    """
    return item["kind"] in shared and _is_of_others(item, seen)


def is_taken(item: Mapping[str, Any], seen: Seen, shared: Sequence[str] = SHARED_KINDS) -> bool:
    """Return whether somebody else has an object of this name, which is not to be shared."""
    return item["kind"] not in shared and _is_of_others(item, seen)


def taken(item: Mapping[str, Any], prefix: str, option: str = "") -> Refusal:
    """Return the refusal to take over an object of others.

    :param prefix: of the role's variables.
    :param option: what to set so that the object may stay, without the prefix. An object in a
        namespace may stay if the role uses another one.
    """
    kind, namespace, name = identity(item)
    where = f"{namespace}/{name}" if namespace else name
    option = option or ("namespace to another namespace" if namespace else "")
    return Refusal(
        f"the cluster has a {kind} {where} that this collection did not make",
        f"Remove it, or set {prefix}{option}." if option else "Remove it.",
        f"it has no label {MANAGED_LABEL}={MANAGED_BY}",
    )


def _is_of_others(item: Mapping[str, Any], seen: Seen) -> bool:
    there = seen.get(identity(item))
    return there is not None and not is_managed(there)


def place(item: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": str(item["metadata"]["name"]),
        "namespace": str(item["metadata"]["namespace"]),
    }


def keeps_namespace(
    inside: Iterable[Mapping[str, Any]], name: str, apps: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the objects for which the namespace remains: those of others, or of another plugin.

    :param name: the beginning of the names of this plugin's objects, some of which Helm makes.
    :param apps: the values of the application's label on this plugin's pods.
    """
    return [
        one
        for one in inside
        if (
            _app(one) not in apps and _app(one).endswith(("-device-plugin", "-node-labeller"))
            if is_managed(one)
            else not _is_automatic(one, name)
        )
    ]


def _app(item: Mapping[str, Any]) -> str:
    return str((item["metadata"].get("labels") or {}).get(APP_LABEL) or "")


def _is_automatic(item: Mapping[str, Any], own: str) -> bool:
    """Return whether the cluster or Helm creates this object by itself in such a namespace."""
    kind, _namespace, name = identity(item)
    secret = str(item.get("type"))
    return (
        is_automatic(kind, name, secret)
        or (kind == SECRET and secret == _HELM)
        or name.startswith(own)
    )
