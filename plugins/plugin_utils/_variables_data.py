# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the playbooks, in the form of a role's argument specification.

The variables of the roles are in ``roles/*/meta/argument_specs.yml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PREFIX = "kubegpu_"
HOSTS = "kubegpu_hosts"
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

# ``shown`` is the default as the reference names it: the playbooks have it.
PLAYBOOK_VARIABLES: Mapping[str, Mapping[str, Any]] = {
    HOSTS: {
        "type": "raw", "shown": "all",
        "description": "The hosts on which the playbooks run; an extra variable (C(-e)).",
    },
    "kubegpu_become": {
        "type": "bool", "shown": True,
        "description": "Whether to become root on the nodes; C(false) if you log in as root.",
    },
    SERIAL: {
        "type": "raw", "shown": "100%",
        "description": "Nodes per batch, as Ansible's C(serial): a number, a percentage, or a list "
        "of these.",
    },
    MAX_FAIL_PERCENTAGE: {
        "type": "raw", "shown": 0,
        "description": "Percentage of a batch that may fail before the run stops starting batches.",
    },
    UNKNOWN: {
        "type": "str", "choices": ["warn", "fail", "ignore"], "shown": "warn",
        "description": "Reaction to a variable that is not one of this collection.",
    },
    # Of the playbook verify, in addition to the role's own.
    "gpu_verify_all": {
        "type": "bool", "shown": False,
        "description": "Whether C(site) also verifies the nodes that did not change.",
    },
    FAIL_ON: {
        "type": "str", "choices": list(PLAN_FAIL_ON), "shown": "never",
        "description": "With which plan a host fails in C(plan). C(refuse) is a refusal, C(change) "
        "a refusal or a change.",
    },
    "kubegpu_plan_file": {
        "type": "path", "shown": "kubegpu-plan.json",
        "description": "File for the JSON of C(plan), on the controller.",
    },
    "kubegpu_verify_file": {
        "type": "path", "shown": "kubegpu-verify.json",
        "description": "File for the JSON of C(verify), on the controller.",
    },
    "kubegpu_report_dir": {
        "type": "path",
        "description": "Folder for the report, on the controller. Empty is C(kubegpu-report) with "
        "the playbook C(report); the other playbooks write no report then.",
    },
    "kubegpu_root": {
        "type": "path", "shown": "/",
        "description": "Root directory that is read; C(plan) only.",
    },
    "kubegpu_proxy": {
        "type": "dict",
        "description": "Proxies of the nodes, and certificate authorities for their downloads, for "
        "all roles.",
        "options": {
            "http_proxy": {"type": "str", "no_log": True, "description": "Proxy for HTTP."},
            "https_proxy": {"type": "str", "no_log": True, "description": "Proxy for HTTPS."},
            "no_proxy": {
                "type": "str",
                "description": "Hosts, separated by commas, that are reached without a proxy.",
            },
            "ca_file": {
                "type": "path",
                "description": "File with certificate authorities on the node.",
            },
        },
    },
    "kubegpu_reboot_timeout": {
        "type": "int", "shown": 900,
        "description": "Seconds to wait until a node has rebooted, and the same again until it "
        "answers.",
    },
    "kubegpu_apply": {
        "type": "dict",
        "description": "How objects and labels are applied in a cluster, for all roles.",
        "options": {
            "field_manager": {
                "type": "str", "shown": "kubegpu.nodes",
                "description": "The name under which the cluster records the fields that this "
                "collection sets.",
            },
            "wait_timeout": {
                "type": "int", "shown": 600,
                "description": "Seconds to wait until new pods run and the nodes offer their GPUs, "
                "and until removed objects are gone. C(0) waits for removed objects only.",
            },
        },
    },
    "kubegpu_pods": {
        "type": "dict",
        "description": "The pods of the device plugins, of the DRA driver and of the exporter, for "
        "all roles. The mapping C(<role>_pods) of a role has precedence, key by key.",
        "options": {
            "annotations": {"type": "dict", "description": "Annotations of the pods."},
            "image_pull_policy": {
                "type": "str", "choices": ["IfNotPresent", "Always", "Never"],
                "shown": "IfNotPresent", "description": "When the kubelet pulls the images.",
            },
            "max_unavailable": {
                "type": "str", "shown": "10%",
                "description": "On how many nodes at once the pods of a DaemonSet are replaced, a "
                "number or a percentage.",
            },
            "node_selector": {
                "type": "dict",
                "description": "Labels that a node needs in addition to that of its GPUs.",
            },
            "priority_class": {
                "type": "str", "shown": "system-node-critical",
                "description": "Priority class of the pods.",
            },
            "pull_secret": {
                "type": "str",
                "description": "Name of the secret with which the images are pulled, in the "
                "namespace of the pods.",
            },
            "resources": {
                "type": "dict", "description": "Requests and limits of each container.",
            },
            "tolerations": {
                "type": "list", "elements": "dict",
                "description": "Taints that the pods tolerate. Each role has its own default.",
            },
        },
    },
    "kubegpu_packages": {
        "type": "dict",
        "description": "Limits of the package managers of the nodes, for all roles.",
        "options": {
            "lock_timeout": {
                "type": "int", "shown": 600,
                "description": "Seconds to wait while another process holds the lock of the "
                "package manager.",
            },
            "install_timeout": {
                "type": "int", "shown": 3600,
                "description": "Seconds until an installation is stopped, apart from the wait for "
                "the lock. The driver has C(nvidia_driver_build_timeout).",
            },
        },
    },
    "kubegpu_kube": {
        "type": "dict",
        "description": "The connection to the Kubernetes cluster of the hosts.",
        "options": {
            "kubeconfig": {
                "type": "str",
                "description": "A kubeconfig file on the host that sends the requests.",
            },
            "context": {
                "type": "str",
                "description": "A context of the kubeconfig. Empty is its current context.",
            },
            "host": {
                "type": "str",
                "description": "Address of the API server, such as C(https://10.0.0.1:6443), "
                "instead of a kubeconfig.",
            },
            "token": {
                "type": "str", "no_log": True,
                "description": "Token for the API server, a secret.",
            },
            "ca_file": {
                "type": "str",
                "description": "File with the CA certificate of the API server.",
            },
            "client_cert": {"type": "str", "description": "File with a client certificate."},
            "client_key": {
                "type": "str",
                "description": "File with the key of the client certificate.",
            },
            "delegate": {
                "type": "str", "shown": "localhost",
                "description": "The host that sends the requests.",
            },
        },
    },
    "kubegpu_kube_namespace": {
        "type": "str", "shown": "kubegpu",
        "description": "Namespace of the device plugin and of test pods.",
    },
}  # fmt: skip

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
    "gpu_upgrade": ("upgrade", False),
    "gpu_acceptance": ("acceptance", False),
    "gpu_diagnose": ("diagnose", False),
    "gpu_report": ("report", False),
}

#: The roles that change a node, in the order in which they run.
NODE_ROLES = ("nvidia_driver", "nvidia_mig", "cuda_toolkit", "nvidia_container_toolkit")
AMD_ROLES = ("amd_driver", "amd_container_toolkit")

# What the tasks of a teardown register, for its table (_report/teardown.py).
REMOVED_FACTS = (
    *(
        f"{toolkit}_container_toolkit_removed_{step}"
        for toolkit in ("amd", "nvidia")
        for step in ("docker", "cdi", "packages", "repository")
    ),
    *(f"nvidia_container_toolkit_removed_{step}" for step in ("containerd", "crio", "config")),
    *(f"nvidia_driver_removed_{step}" for step in ("repositories", "reboot")),
    *(f"gpu_monitoring_removed_{step}" for step in ("exporter", "packages", "repository")),
    *(f"amd_driver_removed_{step}" for step in ("packages", "repository")),
    *("cuda_toolkit_removed", "cuda_toolkit_removed_repository"),
    *("nvidia_mig_removed", "gpu_acceptance_removed"),
)
# Facts that the playbooks pass from play to play, and the public facts of the roles.
KEPT_FACTS = (
    "kubegpu_begun",
    "kubegpu_due",
    "kubegpu_failure",
    "kubegpu_plans",
    "kubegpu_prometheus_failure",
    *(f"{role}_{fact}" for role in ROLES for fact in ("plan", "result")),
    # Of hosts; those without "host" are of the cluster.
    "gpu_monitoring_host_plan",
    "gpu_monitoring_host_result",
    *REMOVED_FACTS,
)


def with_keys(options: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the options, and the keys of mappings under names such as ``kubegpu_kube.host``."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, option in options.items():
        found[name] = option
        keys: Mapping[str, Mapping[str, Any]] = option.get("options", {})
        found.update({f"{name}.{key}": one for key, one in keys.items()})
    return found
