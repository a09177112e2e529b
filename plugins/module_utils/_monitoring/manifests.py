# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Kubernetes objects of the monitoring. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from .._device_plugin.config import plain
from .._device_plugin.daemonsets import CHECKSUM, MARKER
from .._device_plugin.objects import MANAGED_BY, MANAGED_LABEL, namespace_object
from .._kube.pod_parts import (
    Object,
    environment,
    from_field,
    host_path,
    max_unavailable,
    mount,
    unprivileged,
)
from .._labels.pause import away_from_paused
from .metrics import JOB
from .names import (
    APPLICATION,
    COUNTERS_NAME,
    DASHBOARD_NAME,
    MONITORING_API,
    NAME,
    POD_MONITOR,
    PROMETHEUS_RULE,
    RULES_NAME,
    SERVICE_MONITOR,
)
from .types import ANNOTATIONS, Request

# Its value becomes the label ``job`` of the targets.
_JOB_LABEL = "kubegpu.nodes/job"
_COUNTERS_FOLDER = "/etc/kubegpu"
_COUNTERS_FILE = "counters.csv"
_PORT = "metrics"
_RBAC = "rbac.authorization.k8s.io"
# Of the exporter's own manifest. It starts DCGM first.
_START_SECONDS = 45


def manifests(request: Request, scrape: str, with_rules: bool) -> list[Object]:
    """Return the objects in the order of application.

    :param scrape: the kind of monitor, ``annotations`` or ``none``.
    :param with_rules: whether the cluster takes a PrometheusRule.
    """
    found = [namespace_object(request.namespace), _service_account(request)]
    if request.api_rules:
        found += _rights(request)
    found.append(_config_map(request, COUNTERS_NAME, {_COUNTERS_FILE: request.counters_text}, {}))
    found.append(_daemonset(request, scrape))
    if scrape == SERVICE_MONITOR:
        found += [_service(request), _monitor(request, SERVICE_MONITOR, "endpoints")]
    elif scrape == POD_MONITOR:
        found.append(_monitor(request, POD_MONITOR, "podMetricsEndpoints"))
    if with_rules:
        found.append(
            {
                **_monitoring(request, PROMETHEUS_RULE, RULES_NAME),
                "spec": request.rules_document,
            }
        )
    if request.dashboard:
        text = json.dumps(request.dashboard_document, indent=2, sort_keys=True) + "\n"
        files = {f"{RULES_NAME}.json": text}
        found.append(_config_map(request, DASHBOARD_NAME, files, request.dashboard_labels))
    return found


def _labels(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        **(more or {}),
        "app.kubernetes.io/name": APPLICATION,
        "app.kubernetes.io/instance": "kubegpu",
        MANAGED_LABEL: MANAGED_BY,
    }


def _selector() -> dict[str, str]:
    return {key: value for key, value in _labels().items() if key != MANAGED_LABEL}


def _metadata(name: str, namespace: str = "", more: Mapping[str, str] | None = None) -> Object:
    data: Object = {"name": name, "labels": _labels(more)}
    return {**data, "namespace": namespace} if namespace else data


def _service_account(request: Request) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(NAME, request.namespace),
        "automountServiceAccountToken": False,
    }


def _rights(request: Request) -> list[Object]:
    """Return the rights to read pods and slices, of which a rule cannot name the future ones."""
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(NAME),
            "rules": request.api_rules,
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _metadata(NAME),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": request.namespace}],
        },
    ]


def _config_map(
    request: Request, name: str, files: Mapping[str, str], labels: Mapping[str, str]
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(name, request.namespace, labels),
        "data": dict(files),
    }


def _daemonset(request: Request, scrape: str) -> Object:
    annotations = {
        **request.annotations,
        # The exporter reads its counters only at startup.
        CHECKSUM: hashlib.sha256(request.counters_text.encode()).hexdigest(),
    }
    if scrape == ANNOTATIONS:
        annotations.update(
            {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": str(request.port),
                "prometheus.io/path": "/metrics",
            }
        )
    pod = {
        "priorityClassName": request.priority_class,
        "runtimeClassName": request.runtime_class,
        "imagePullSecrets": [{"name": request.pull_secret}] if request.pull_secret else [],
        "nodeSelector": {**MARKER, **request.node_selector},
        "affinity": {"nodeAffinity": away_from_paused()},
        "tolerations": [dict(one) for one in request.tolerations],
        "serviceAccountName": NAME,
        "automountServiceAccountToken": bool(request.api_rules),
        "containers": [_container(request)],
        "volumes": [
            host_path("pod-resources", f"{request.kubelet_directory}/pod-resources", "Directory"),
            {"name": "counters", "configMap": {"name": COUNTERS_NAME}},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(NAME, request.namespace),
        "spec": {
            "selector": {"matchLabels": _selector()},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": max_unavailable(request.max_unavailable)},
            },
            "template": {
                "metadata": {"labels": _labels({_JOB_LABEL: JOB}), "annotations": annotations},
                # Omit empty fields: applying them would take ownership of them.
                "spec": {key: value for key, value in pod.items() if value not in ("", [], {})},
            },
        },
    }


def _container(request: Request) -> Object:
    pairs: dict[str, Any] = {
        "DCGM_EXPORTER_LISTEN": f":{request.port}",
        "DCGM_EXPORTER_KUBERNETES": True,
        "DCGM_EXPORTER_COLLECTORS": f"{_COUNTERS_FOLDER}/{_COUNTERS_FILE}",
        "DCGM_EXPORTER_INTERVAL": request.interval * 1000,
        # The toolkit puts the driver into the container.
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    if request.with_profiling:
        # Only with SYS_ADMIN, without which the toolkit refuses to start a container with it.
        pairs["NVIDIA_MIG_MONITOR_DEVICES"] = "all"
    if request.pod_labels:
        pairs["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"] = True
        pairs["DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"] = ",".join(request.pod_labels)
    probe = {"httpGet": {"path": "/health", "port": request.port}}
    # The driver's profiling counters are for administrators only.
    context = unprivileged("SYS_ADMIN") if request.with_profiling else unprivileged()
    container: Object = {
        "name": APPLICATION,
        "image": request.reference,
        "imagePullPolicy": request.image_pull_policy,
        "env": [
            from_field("NODE_NAME", "spec.nodeName"),
            *environment({**pairs, **request.environment}),
        ],
        "ports": [{"name": _PORT, "containerPort": request.port, "protocol": "TCP"}],
        "securityContext": {**context, "runAsUser": 0, "runAsNonRoot": False},
        "livenessProbe": {**probe, "initialDelaySeconds": _START_SECONDS, "periodSeconds": 10},
        "readinessProbe": {**probe, "initialDelaySeconds": 1, "periodSeconds": 5},
        "volumeMounts": [
            mount("pod-resources", "/var/lib/kubelet/pod-resources", True),
            mount("counters", _COUNTERS_FOLDER, True),
        ],
    }
    if request.resources:
        container["resources"] = plain(request.resources)
    return container


def _service(request: Request) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(NAME, request.namespace, {_JOB_LABEL: JOB}),
        "spec": {
            "clusterIP": "None",
            "selector": _selector(),
            "ports": [
                {"name": _PORT, "port": request.port, "targetPort": _PORT, "protocol": "TCP"}
            ],
        },
    }


def _monitoring(request: Request, kind: str, name: str) -> Object:
    return {
        "apiVersion": MONITORING_API,
        "kind": kind,
        "metadata": _metadata(name, request.namespace, request.labels),
    }


def _relabelings() -> list[Object]:
    """Return what is done to each sample.

    A GPU that no pod uses has no label of a pod, so that it would get those of the exporter's own.
    Exporters before 4.8.3 call the node ``Hostname``.
    """
    pods = f"{NAME}-.+"
    return [
        {"sourceLabels": ["Hostname"], "regex": "(.+)", "targetLabel": "hostname"},
        *(
            {"sourceLabels": ["pod"], "regex": pods, "targetLabel": label, "replacement": ""}
            # The pod is last: the others are decided by it.
            for label in ("namespace", "container", "pod")
        ),
    ]


def _monitor(request: Request, kind: str, endpoints: str) -> Object:
    endpoint = {
        "port": _PORT,
        "path": "/metrics",
        "interval": f"{request.interval}s",
        "scrapeTimeout": f"{min(request.interval, 10)}s",
        # Otherwise the labels pod and namespace of the samples, the pods that use the GPUs, give
        # way to those of the exporter.
        "honorLabels": True,
        "metricRelabelings": _relabelings(),
    }
    return {
        **_monitoring(request, kind, NAME),
        "spec": {
            "jobLabel": _JOB_LABEL,
            "selector": {"matchLabels": _selector()},
            endpoints: [endpoint],
        },
    }
