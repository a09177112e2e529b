# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for the monitoring of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._device_plugin.settings import is_true
from .._exporter.data import IMAGE, IMAGE_SUFFIX, VERSION
from .._known_faults.xids import Xid, xid_table
from .dashboard import dashboard_document
from .metrics import Metric, counters_file, metric_names, read_counters, with_profiling
from .names import POD_MONITOR, SERVICE_MONITOR
from .rules import Rule, alert_rules, rules_document

#: How Prometheus finds the pods.
AUTO, ANNOTATIONS, NONE = "auto", "annotations", "none"
SCRAPES = {"service_monitor": SERVICE_MONITOR, "pod_monitor": POD_MONITOR}

_TOLERATIONS: tuple[Mapping[str, Any], ...] = (
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
)
_RESOURCES: Mapping[str, Any] = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}


@dataclass(frozen=True)
class Request:
    """The desired monitoring. Fields are named as the role's options, without its prefix."""

    namespace: str = "kubegpu"
    image: str = IMAGE
    #: Versions of DCGM and of the exporter, which are released in pairs.
    version: str = VERSION
    digest: str = ""
    image_pull_policy: str = "IfNotPresent"
    pull_secret: str = ""
    runtime_class: str = "nvidia"
    priority_class: str = "system-node-critical"
    tolerations: Sequence[Mapping[str, Any]] = _TOLERATIONS
    node_selector: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=lambda: dict(_RESOURCES))
    max_unavailable: str = "10%"
    annotations: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    kubelet_directory: str = "/var/lib/kubelet"
    listen: str = ":9400"
    counters: Any = "default"
    profiling: bool = True
    #: Seconds between two readings of DCGM.
    interval: int = 15
    #: Regular expressions of the labels of pods that samples get.
    pod_labels: Sequence[str] = ()
    scrape: str = AUTO
    #: Labels by which Prometheus chooses its monitors and rules.
    labels: Mapping[str, str] = field(default_factory=dict)
    rules: bool = True
    dashboard: bool = True
    dashboard_labels: Mapping[str, str] = field(default_factory=lambda: {"grafana_dashboard": "1"})
    alert_labels: Mapping[str, str] = field(default_factory=dict)
    #: Celsius above which a GPU is too hot.
    temperature: int = 90
    xids: Mapping[Any, Any] = field(default_factory=dict)

    @property
    def with_dra(self) -> bool:
        """Whether the exporter reads the ResourceSlices of DRA drivers, to find a GPU's pods."""
        return is_true(self.environment.get("KUBERNETES_ENABLE_DRA"))

    @property
    def api_rules(self) -> list[dict[str, Any]]:
        """The rights of the pods in the cluster; empty if they need none."""
        verbs = ["get", "list", "watch"]
        found = []
        if self.pod_labels or self.with_dra:
            found.append({"apiGroups": [""], "resources": ["pods"], "verbs": verbs})
        if self.with_dra:
            found.append(
                {
                    "apiGroups": ["resource.k8s.io"],
                    "resources": ["resourceslices"],
                    "verbs": list(verbs),
                }
            )
        return found

    @property
    def reference(self) -> str:
        """The image with tag or digest."""
        tag = f":{self.version}{IMAGE_SUFFIX}"
        return f"{self.image}@{self.digest}" if self.digest else f"{self.image}{tag}"

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def collected(self) -> tuple[Metric, ...]:
        return read_counters(self.counters, self.profiling, "gpu_monitoring_counters")

    @property
    def counters_text(self) -> str:
        return counters_file(self.collected)

    @property
    def with_profiling(self) -> bool:
        return with_profiling(self.collected)

    @property
    def xid_table(self) -> Mapping[int, Xid]:
        return xid_table(self.xids, "gpu_monitoring_xids")

    @property
    def alert_rules(self) -> tuple[Rule, ...]:
        return alert_rules(self.temperature, self.xid_table)

    @property
    def rules_document(self) -> dict[str, Any]:
        return rules_document(self.alert_rules, self.alert_labels)

    @property
    def dashboard_document(self) -> dict[str, Any]:
        return dashboard_document(metric_names(self.collected))
