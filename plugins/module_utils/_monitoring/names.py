# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of the Kubernetes objects of the monitoring."""

from __future__ import annotations

#: The DaemonSet, its service account, rights, Service and monitors.
NAME = "kubegpu-dcgm-exporter"
COUNTERS_NAME = f"{NAME}-counters"
RULES_NAME = "kubegpu-gpus"
DASHBOARD_NAME = "kubegpu-gpus-dashboard"
#: The value of ``app.kubernetes.io/name``.
APPLICATION = "dcgm-exporter"
#: The API of the Prometheus operator, and what of it is used.
MONITORING_API = "monitoring.coreos.com/v1"
SERVICE_MONITOR = "ServiceMonitor"
POD_MONITOR = "PodMonitor"
PROMETHEUS_RULE = "PrometheusRule"
#: Kind, path of its API, plural, names; in the order of removal.
OBJECTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (SERVICE_MONITOR, f"apis/{MONITORING_API}", "servicemonitors", (NAME,)),
    (POD_MONITOR, f"apis/{MONITORING_API}", "podmonitors", (NAME,)),
    (PROMETHEUS_RULE, f"apis/{MONITORING_API}", "prometheusrules", (RULES_NAME,)),
    ("DaemonSet", "apis/apps/v1", "daemonsets", (NAME,)),
    ("Service", "api/v1", "services", (NAME,)),
    ("ConfigMap", "api/v1", "configmaps", (COUNTERS_NAME, DASHBOARD_NAME)),
    ("ClusterRoleBinding", "apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", (NAME,)),
    ("ClusterRole", "apis/rbac.authorization.k8s.io/v1", "clusterroles", (NAME,)),
    ("ServiceAccount", "api/v1", "serviceaccounts", (NAME,)),
)
