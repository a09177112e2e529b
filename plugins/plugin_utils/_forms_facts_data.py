# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of the fact ``gpu_node``, as gpu_node_facts documents it; its words are here, too.

- ``"text"``, ``"whole"`` (number), ``"number"``, ``"flag"``, ``"list"``, ``"mapping"``: a value of
  that type; with ``?`` at its end it may be null.
- a regular expression: a text that it matches as a whole.
- ``[form]``: a list of values of this form. ``{"*": form}``: a mapping with such values.
- ``{"key": form, "other?": form}``: a mapping with these keys; ``?`` marks one that may be missing.
- ``(form,)``: a value of this form, or null.
- ``ANY``: anything, such as what the configuration of another program has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Form = Any

ANY = "any"
TEXTS = ["text"]
NAMED_TEXTS = {"*": "text"}
NAMED_TEXTS_OR_NULL = {"*": "text?"}
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HEXADECIMAL = re.compile(r"[0-9a-f]{4}")
_VENDOR = re.compile("nvidia|amd|intel")

PROBLEM = {"code": "text", "cause": "text", "evidence?": "text", "next_step?": "text"}
_DKMS = [{"kernel": "text?", "version": "text", "state": "text"}]
_GPU = {
    "address": _ADDRESS,
    "vendor": _VENDOR,
    "vendor_id": _HEXADECIMAL,
    "device_id": _HEXADECIMAL,
    "subsystem_vendor_id": "text?",
    "subsystem_device_id": "text?",
    "class": "text",
    "generation": "text?",
    "product": "text?",
    "kernel_driver": "text?",
    "virtual_function": "flag",
    "vgpu": {"guest": "flag?", "host_driver_version": "text?", "host_driver_branch": "text?"},
}
_MIG_DEVICE = {
    "index?": "whole?",
    "uuid?": "text?",
    "name?": "text?",
    "gpu_instance_id?": "whole?",
    "compute_instance_id?": "whole?",
    "memory_total?": "whole?",
}
_NVML_DEVICE = {
    "address": "text?",
    "uuid?": "text?",
    "name?": "text?",
    "serial?": "text?",
    "minor_number?": "whole?",
    "memory_total?": "whole?",
    "persistence_mode?": "text?",
    "compute_mode?": "text?",
    "ecc_mode?": "text?",
    "mig_mode?": "text?",
    "mig_mode_pending?": "text?",
    "mig_devices?": [_MIG_DEVICE],
    "mig_profiles?": (
        [{"name": "text", "id": "whole", "count": "whole", "starts": ["whole"], "size": "whole"}],
    ),
    "gpu_instances?": (
        [
            {
                "id": "whole",
                "profile": "text",
                "start": "whole",
                "size": "whole",
                "compute_instances": [{"id": "whole", "profile": "text"}],
            }
        ],
    ),
    "fabric?": ({"state": "text", "status": "text?"},),
}
HANG = {
    "program": "text",
    "pid": "whole",
    "seconds": "number",
    "state": "text?",
    "wchan": "text?",
    "left": "flag",
}
_CONTAINERD = {
    "version": "text?",
    "distribution": "text",
    "config_path": "text",
    "config_version": "whole?",
    "unit": "text",
    "active": "flag?",
    "control_plane": "flag",
    "started": "text?",
    "converged": (NAMED_TEXTS,),
    # As in containerd's configuration, which is the user's.
    "handlers": ({"*": {"type": ANY, "path": ANY, "options": ANY}},),
    "default_handler": "text?",
    "cri_enabled": "flag?",
    "cdi_enabled": "flag?",
}
_DOCKER = {
    "version": "text?",
    "config_path": "text",
    "unit": "text",
    "active": "flag?",
    "started": "text?",
    "converged": (NAMED_TEXTS,),
    # As in daemon.json, or as the daemon tells.
    "runtimes": ({"*": "mapping"},),
    "default_runtime": ANY,
    "live_restore": "flag?",
    "containers_running": "whole?",
}
_CRIO = {
    "version": "text?",
    "config_path": "text",
    "drop_in_path": "text",
    "unit": "text",
    "active": "flag?",
    "started": "text?",
    "runtimes": ({"*": {"type": ANY, "path": ANY, "file": "text?", "outdated": "flag"}},),
    "default_runtime": "text?",
    "default_file": "text?",
    "own_runtime": ({"name": "text", "path": ANY},),
    "restart_required": "flag?",
}

#: The fact of ``gpu_node_facts``.
GPU_NODE: Mapping[str, Form] = {
    "os": {
        "family": "text?",
        "id": "text?",
        "version": "text?",
        "codename": "text?",
        "archive": (
            {
                "file": "text",
                "uri": "text",
                "suites": TEXTS,
                "components": TEXTS,
                "signed_by": "text?",
            },
        ),
        "arch": "text?",
        "kernel": "text?",
        "package_manager": "text?",
        "hostname": "text?",
        "fqdn": "text?",
        "machine_id": "text?",
    },
    "python": {"version": "text?", "tomlkit": "text?", "pynvml": "text?"},
    "gpus": [_GPU],
    "nvswitches": "whole",
    "nvswitch_bridges": "whole?",
    "kernel_drivers": {"*": {"version": "text?"}},
    "device_nodes": [
        {
            "path": "text",
            "driver": "text",
            "address": "text?",
            "device_id": "text?",
            "partition": "text?",
            "character_device": "flag",
            "group": "text?",
            "mode": "text?",
        }
    ],
    "driver": {
        "loaded": "text?",
        "installed": "text?",
        "userland": "text?",
        "kernel_module": "text?",
        "coherent_memory": "text?",
        "source": "text?",
        "packages": NAMED_TEXTS,
        "dkms": _DKMS,
        "held": "flag?",
        "unheld": TEXTS,
        "streams?": (NAMED_TEXTS,),
        "pending_reboot": "flag",
        "services": NAMED_TEXTS_OR_NULL,
        "configuration": NAMED_TEXTS_OR_NULL,
        "managed": "flag?",
        "pending": "text?",
        "previous": (
            {"version": "text?", "branch": "text?", "source": "text?", "kernel_module": "text?"},
        ),
        "recorded_files": (TEXTS,),
        "uninstaller": "text?",
    },
    "secure_boot": "flag?",
    "nouveau": {"loaded": "flag", "blocked": "flag", "modules": TEXTS},
    "kernels": [
        {
            "version": "text",
            "running": "flag",
            "on_disk": "flag",
            "headers": "flag",
            "driver": "text?",
        }
    ],
    "cuda": {
        "toolkits": [
            {
                "version": "text?",
                "path?": "text",
                "default": "flag",
                "source?": "text?",
                "uninstaller?": "text?",
            }
        ],
        "driver_supports": "text?",
        "packages": NAMED_TEXTS,
        "held": "flag?",
        "unheld": TEXTS,
        "configuration": NAMED_TEXTS_OR_NULL,
        "compiler": "text?",
    },
    "container_toolkit": {
        "version": "text?",
        "packages": NAMED_TEXTS,
        "held": "flag?",
        "cdi_spec": ({"path": "text", "driver_version": "text?"},),
        # The user's file.
        "config": ({"*": ANY},),
        "obsolete_packages": NAMED_TEXTS,
    },
    "amd_container_toolkit": (
        {
            "version": "text?",
            "held": "flag?",
            "cdi_spec": ({"path": "text", "devices": TEXTS, "nodes": TEXTS, "made_for": TEXTS},),
            "render_nodes": TEXTS,
            "interrupted": TEXTS,
        },
    ),
    "amd_driver": (
        {
            "packages": NAMED_TEXTS,
            "held": "flag?",
            "dkms": _DKMS,
            "pending_reboot": "flag",
            "managed": "flag",
        },
    ),
    "repositories": [
        {
            "file": "text",
            "uri": "text",
            "key_fingerprint": "text?",
            "key_fingerprints?": TEXTS,
            "signed_by": "text?",
            "enabled": "flag",
        }
    ],
    "runtimes": {"containerd": (_CONTAINERD,), "docker": (_DOCKER,), "crio": (_CRIO,)},
    "kubelet": ({"directory": "text", "plugin_folders": TEXTS},),
    "nvml": ({"driver_version": "text?", "cuda_version": "text?", "devices": [_NVML_DEVICE]},),
    "mig": {
        "managed": "flag",
        "unfinished": TEXTS,
        "waiting": NAMED_TEXTS,
        "at_boot": NAMED_TEXTS_OR_NULL,
        "enabled": "flag",
        "manager": "flag",
    },
    "exporter": {
        "systemd": "flag",
        "method": "text",
        "expected_gpus": TEXTS,
        "output": "text",
        "page": "text",
        "files": NAMED_TEXTS,
        "units": NAMED_TEXTS_OR_NULL,
        "enabled": TEXTS,
        "foreign_units": NAMED_TEXTS_OR_NULL,
        "packages": NAMED_TEXTS,
        "packages_managed": "flag",
        "textfile_directories": TEXTS,
        "python": "text",
        "listeners": NAMED_TEXTS,
    },
    "acceptance": (
        {
            "passed": "flag",
            "at": "text",
            "level": "text",
            "driver": "text",
            "gpus": TEXTS,
            "tests": TEXTS,
            "missing?": TEXTS,
            "causes": TEXTS,
        },
    ),
    "driver_hang": (HANG,),
    "problems": [PROBLEM],
}
