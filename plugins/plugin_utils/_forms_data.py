# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of the results of modules, in the words of ``_forms_facts_data.py``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ._forms_facts_data import (
    ANY,
    GPU_NODE,
    HANG,
    NAMED_TEXTS,
    NAMED_TEXTS_OR_NULL,
    NAMES,
    PROBLEM,
    Form,
)

# Messages may be long.
_TEXTS = ["text"]

_TEXTS_OF_LAYER = ("code", "cause", "evidence", "next_step", "proof", "subject")
_LAYERS = [
    {
        "node": "text",
        "layer": "text",
        "ok": "flag?",
        **dict.fromkeys(_TEXTS_OF_LAYER, "text"),
        **NAMES,
    }
]
_FINDINGS = [{**PROBLEM, "severity?": "text", "address?": "text", "xids?": ["whole"],
              "count?": "whole?", "last?": "text?"}]  # fmt: skip
_CLUSTER_LAYERS = [
    {
        "node": "text",
        "layer": "text",
        "ok": "flag?",
        **{f"{name}?": "text" for name in _TEXTS_OF_LAYER},
        **NAMES,
    }
]
_UNSEEN = [{"what": "text", "why": "text"}]
_RUNTIME: Mapping[str, Form] = {
    "file_changed?": "flag",
    "restart_required?": "flag",
    "restart_reason?": "text?",
    "restarted?": "flag",
    "default_runtime?": ANY,
    "backup_file?": "text?",
    "reasons?": _TEXTS,
}
_HANDLERS: Mapping[str, Form] = {**_RUNTIME, "handlers?": ({"*": ANY},)}
_COUNTS = {"*": "whole"}
_MAINTENANCE: Mapping[str, Form] = {
    "ok?": "flag",
    "nodes?": {
        "*": {
            "node?": "text?",
            "ok?": "flag",
            "changed?": "flag",
            "ready?": "flag?",
            "unschedulable?": "flag?",
            "was_unschedulable?": "flag?",
            "held_by?": "text?",
            "evicted?": ["mapping"],
            "waiting?": ["mapping"],
            "kept?": ["mapping"],
            "findings?": ["mapping"],
        }
    },
}

#: What the calls of package managers may be, which a node names for its own packages.
PACKAGE_MODULES = re.compile(r"ansible\.builtin\.(apt|dnf|dnf5)|community\.general\.zypper")
PACKAGE_ARGUMENTS = frozenset((
    "allow_change_held_packages", "allow_downgrade", "allowerasing", "autoremove",
    "disable_recommends", "fail_on_autoremove", "force_resolution", "install_weak_deps",
    "lock_timeout", "name", "oldpackage", "purge", "state", "update_cache",
))  # fmt: skip
_TASKS: Mapping[str, Form] = {"needed": "flag", "sets": ["mapping"]}
#: By module: what its phase ``plan`` returns for its action.
TASKS: Mapping[str, Mapping[str, Form]] = {
    "package_set": {
        "calls": [{"module": PACKAGE_MODULES, "arguments": {"name": _TEXTS, "state": "text"}}],
        "named": ANY,
        "streams": ANY,
        "temporary": "text",
    },
    "nvidia_driver": {"needed": "flag", "runfile": ("mapping",)},
    "cuda_toolkit": {**_TASKS, "runfiles": [{"version": "text"}]},
}

#: By module. What later steps read has to be there; the rest is returned in some calls only.
FORMS: Mapping[str, Mapping[str, Form]] = {
    "gpu_node": GPU_NODE,
    "gpu_node_facts": {"become?": "flag", "ansible_facts": {"gpu_node": GPU_NODE}},
    "gpu_node_verify": {
        "ok?": "flag",
        "failed_layers?": _TEXTS,
        "layers": _LAYERS,
        "ansible_facts?": {"gpu_node?": GPU_NODE},
    },
    "gpu_node_health": {
        "ok?": "flag",
        "gpus": [
            {
                "address": "text",
                "vendor?": "text",
                "product?": "text?",
                "kernel_driver?": "text?",
                "index?": "whole?",
                "uuid?": "text?",
                "serial?": "text?",
                "on_bus?": "flag",
            }
        ],
        "findings": _FINDINGS,
        "new?": (_FINDINGS,),
        "resolved?": ([{"code": "text", "severity?": "text", "address?": "text"}],),
        "events?": [
            {
                "boot": "whole",
                "kind": "text",
                "number": "whole?",
                "address": "text",
                "severity?": "text?",
                "count": "whole",
                "first?": "text?",
                "last?": "text?",
                "sample?": "text",
                "programs?": _TEXTS,
                "mig_instances?": _TEXTS,
                "versions?": _TEXTS,
            }
        ],
        "hangs?": [HANG],
        "unseen?": _UNSEEN,
        "logs?": [
            {
                "boot": "whole",
                "source": "text",
                "size": "whole",
                "seconds": "number",
                "incomplete": "text",
            }
        ],
        "driver_version?": "text?",
        "boot_id?": "text?",
        "seconds?": "number",
    },
    "gpu_node_texts": {
        "texts": [{"name": "text", "source": "text", "text": "text", "cut": "flag"}],
        "unseen": _UNSEEN,
    },
    "nvidia_driver": {
        "plan?": "mapping",
        "loaded?": "text?",
        "reboot_required?": "flag",
        "reboot_reason?": "text?",
        "previous?": ("mapping",),
        "rolled_back?": "flag",
    },
    "nvidia_mig": {"plan?": "mapping", "reboot_required?": "flag", "reboot_reason?": "text?"},
    "cuda_toolkit": {
        "plan?": "mapping",
        "default?": "text?",
        "compilers?": {"*": "text?"},
        "left?": _TEXTS,
    },
    "container_toolkit_config": {"path?": "text", "reasons?": _TEXTS},
    "cdi_specification": {"path?": "text?", "method?": "text?", "reasons?": _TEXTS},
    "amd_cdi_specification": {"path?": "text", "devices?": _TEXTS, "reasons?": _TEXTS},
    "containerd_runtime": _HANDLERS,
    "docker_runtime": {
        **_RUNTIME,
        "reload_required?": "flag",
        "reload_reason?": "text?",
        "reloaded?": "flag",
        "waiting_containers?": "whole?",
        "runtimes?": ({"*": ANY},),
    },
    "crio_runtime": _HANDLERS,
    "gpu_exporter": {"plan?": "mapping"},
    "gpu_node_acceptance": {
        "programs?": {"*": "text?"},
        "users?": _TEXTS,
        "ran?": "flag",
        "argv?": _TEXTS,
        "findings?": [
            {
                **PROBLEM,
                "severity?": "text",
                "subject?": "text",
                "error_id?": "whole?",
                "error?": "text?",
                "action?": "text?",
            },
        ],
        "measured?": {"*": "mapping"},
        "not_tested?": _TEXTS,
        "version?": "text?",
        "seconds?": "number",
    },
    "package_repository": {
        "files?": {"*": "text?"},
        "disabled?": ["mapping"],
        "key_fingerprints?": _TEXTS,
        "reasons?": _TEXTS,
    },
    "package_set": {
        "packages?": {"*": ANY},
        "previous?": {"*": ANY},
        "module_streams?": NAMED_TEXTS_OR_NULL,
        "not_available?": _TEXTS,
        "broken?": NAMED_TEXTS,
        "reasons?": _TEXTS,
        "services_to_restart?": _TEXTS,
    },
    "runtime_configuration": {
        "restored?": _TEXTS,
        "left?": ["mapping"],
        "restarted?": _TEXTS,
        "restart_required?": _TEXTS,
    },
    "prometheus_gpu_files": {"hosts?": _TEXTS, "reasons?": _TEXTS},
    "runfile_download": {"content?": "text", "found_sha256?": "text"},
    "node_builtin": {
        "stat?": {"exists": "flag"},
        "content?": "text",
        "rc?": "whole",
        "stdout?": "text",
        "stderr?": "text",
    },
    "cluster_objects": {"result?": "mapping", "kinds?": _TEXTS, "reason?": "text"},
    "node_reboot": {"rebooted?": "flag", "elapsed?": "whole"},
    "gpu_host_maintenance": _MAINTENANCE,
    "gpu_node_maintenance": {**_MAINTENANCE, "requests?": _COUNTS, "lease_process?": "text"},
    "node_pause": {
        "nodes?": {
            "*": {
                "node?": "text?",
                "changed?": "flag",
                "paused?": "text?",
                "cordoned?": "flag?",
                "pods?": _TEXTS,
                "left?": _TEXTS,
                "containers?": _TEXTS,
            }
        },
        "requests?": _COUNTS,
    },
    "node_gpu_label": {
        "nodes?": {"*": "mapping"},
        "unknown?": _TEXTS,
        "not_ready?": _TEXTS,
        "conflicts?": ["mapping"],
        "errors?": {"*": ANY},
        "refused?": {"*": ANY},
        "refusals?": {"*": ["mapping"]},
        "feature_discovery?": "flag",
        "left_to_feature_discovery?": _TEXTS,
        "requests?": _COUNTS,
    },
    "gpu_cluster_info": {
        "nodes?": {"*": "mapping"},
        "node_of?": NAMED_TEXTS_OR_NULL,
        "plugin_pods?": ["mapping"],
        "discovery_pods?": ["mapping"],
        "exporter_pods?": ["mapping"],
        "parts?": ["mapping"],
        "foreign?": ["mapping"],
        "dra?": ("mapping",),
        "missing?": ["mapping"],
        "layers?": _CLUSTER_LAYERS,
        "metric_layers?": _CLUSTER_LAYERS,
        "pods?": ["mapping"],
        "plugin_objects?": ["mapping"],
        "monitoring?": ("mapping",),
        "kubernetes?": "text?",
        "dra_objects?": ["mapping"],
        "waited?": "number",
        "requests?": _COUNTS,
    },
    "gpu_test_pods": {
        "nodes?": {"*": "mapping"},
        "layers?": _CLUSTER_LAYERS,
        "changes?": _TEXTS,
        "requests?": _COUNTS,
    },
}

#: Their answers are as large as the cluster.
CLUSTER_MODULES = (
    "cluster_objects",
    "gpu_cluster_info",
    "gpu_node_maintenance",
    "gpu_test_pods",
    "node_gpu_label",
    "node_pause",
)
