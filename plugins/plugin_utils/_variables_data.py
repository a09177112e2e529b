# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the playbooks, in the form of a role's argument specification.

The variables of the roles are in ``roles/*/meta/argument_specs.yml``. docs/playbooks.md and
docs/kubernetes.md describe the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PREFIX = "kubegpu_"
UNKNOWN = "kubegpu_unknown_variables"
SERIAL = "kubegpu_serial"
MAX_FAIL_PERCENTAGE = "kubegpu_max_fail_percentage"
FAIL_ON = "kubegpu_plan_fail_on"
#: The actions of a plan's row with which the host fails in the playbook plan.
PLAN_FAIL_ON: Mapping[str, tuple[str, ...]] = {
    "never": (),
    "refuse": ("refuse",),
    "change": ("refuse", "change"),
}

PLAYBOOK_VARIABLES: Mapping[str, Mapping[str, Any]] = {
    "kubegpu_hosts": {"type": "raw"},
    "kubegpu_become": {"type": "bool"},
    SERIAL: {"type": "raw"},
    MAX_FAIL_PERCENTAGE: {"type": "raw"},
    UNKNOWN: {"type": "str", "choices": ["warn", "fail", "ignore"]},
    # Of the playbook verify, in addition to the role's own.
    "gpu_verify_all": {"type": "bool"},
    FAIL_ON: {"type": "str", "choices": list(PLAN_FAIL_ON)},
    "kubegpu_plan_file": {"type": "path"},
    "kubegpu_verify_file": {"type": "path"},
    "kubegpu_report_dir": {"type": "path"},
    "kubegpu_root": {"type": "path"},
    "kubegpu_proxy": {
        "type": "dict",
        "options": {
            "http_proxy": {"type": "str", "no_log": True},
            "https_proxy": {"type": "str", "no_log": True},
            "no_proxy": {"type": "str"},
            "ca_file": {"type": "path"},
        },
    },
    "kubegpu_kube": {
        "type": "dict",
        "options": {
            "kubeconfig": {"type": "str"},
            "context": {"type": "str"},
            "host": {"type": "str"},
            "token": {"type": "str", "no_log": True},
            "ca_file": {"type": "str"},
            "client_cert": {"type": "str"},
            "client_key": {"type": "str"},
            "delegate": {"type": "str"},
        },
    },
    "kubegpu_kube_namespace": {"type": "str"},
}

# Roles in the order of the run: part in the plan's table, and whether it is for clusters only.
ROLES: Mapping[str, tuple[str, bool]] = {
    "nvidia_driver": ("driver", False),
    "nvidia_mig": ("mig", False),
    "cuda_toolkit": ("cuda", False),
    "nvidia_container_toolkit": ("toolkit", False),
    "amd_driver": ("AMD driver", False),
    "amd_container_toolkit": ("AMD toolkit", False),
    "gpu_node_labels": ("labels", True),
    "gpu_kubernetes_objects": ("objects", True),
    "nvidia_dra_driver": ("DRA driver", True),
    "nvidia_device_plugin": ("device plugin", True),
    "gpu_device_plugin": ("device plugin", True),
    "amd_device_plugin": ("AMD device plugin", True),
    "intel_device_plugin": ("Intel device plugin", True),
    "gpu_monitoring": ("monitoring", False),
    "gpu_verify": ("verify", False),
    "gpu_upgrade": ("upgrade", True),
    "gpu_acceptance": ("acceptance", False),
    "gpu_diagnose": ("diagnose", False),
    "gpu_report": ("report", False),
}

# Facts that the playbooks pass from play to play, and the public facts of the roles.
KEPT_FACTS = (
    "kubegpu_begun",
    "kubegpu_failure",
    "kubegpu_prometheus_failure",
    *(f"{role}_{fact}" for role in ROLES for fact in ("plan", "result")),
    # Of hosts; those without "host" are of the cluster.
    "gpu_monitoring_host_plan",
    "gpu_monitoring_host_result",
)


def with_keys(options: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the options, and the keys of mappings under names such as ``kubegpu_kube.host``."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, option in options.items():
        found[name] = option
        keys: Mapping[str, Mapping[str, Any]] = option.get("options", {})
        found.update({f"{name}.{key}": one for key, one in keys.items()})
    return found
