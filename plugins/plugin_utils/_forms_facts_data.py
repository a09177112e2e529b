# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of the fact ``gpu_node``, as gpu_node_facts documents it; its words are here, too.

- ``"text"``, ``"word"`` (a text of at most 4,000 characters), ``"whole"`` (number), ``"small"``
  (whole number from 0 to 1,000), ``"number"``, ``"flag"``, ``"list"``, ``"mapping"``: a value of
  that type; with ``?`` it may be null.
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
TEXTS = ["word"]
NAMED_TEXTS = {"*": "word"}
NAMED_TEXTS_OR_NULL = {"*": "word?"}
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HEXADECIMAL = re.compile(r"[0-9a-f]{4}")
_VENDOR = re.compile("nvidia|amd|intel")

#: The names in the texts of a finding, and its next step with these in braces.
NAMES = {"names?": NAMED_TEXTS, "template?": "text"}
PROBLEM = {
    "code": "word",
    "cause": "text",
    **dict.fromkeys(("evidence?", "next_step?", "severity?", "fix?", "confidence?"), "text"),
    "alternatives?": ["word"],
    **NAMES,
}
_DKMS = [{"kernel": "word?", "version": "word", "state": "word"}]
_GPU = {
    "address": _ADDRESS,
    "vendor": _VENDOR,
    "vendor_id": _HEXADECIMAL,
    "device_id": _HEXADECIMAL,
    "subsystem_vendor_id": "word?",
    "subsystem_device_id": "word?",
    "class": "word",
    "generation": "word?",
    "product": "word?",
    "kernel_driver": "word?",
    "virtual_function": "flag",
    "vgpu": {
        "guest": "flag?",
        "host_driver_version": "word?",
        "host_driver_branch": "word?",
        "licence": ({"product": "word?", "status": "word?", "state": "word", "expiry": "word?"},),
    },
}
_MIG_DEVICE = {
    "index?": "whole?",
    "uuid?": "word?",
    "name?": "word?",
    "gpu_instance_id?": "whole?",
    "compute_instance_id?": "whole?",
    "memory_total?": "whole?",
}
_NVML_DEVICE = {
    "address": "word?",
    "uuid?": "word?",
    "name?": "word?",
    "serial?": "word?",
    "minor_number?": "whole?",
    "memory_total?": "whole?",
    "persistence_mode?": "word?",
    "compute_mode?": "word?",
    "ecc_mode?": "word?",
    "mig_mode?": "word?",
    "mig_mode_pending?": "word?",
    "mig_devices?": [_MIG_DEVICE],
    "mig_profiles?": (
        [{"name": "word", "id": "small", "count": "small", "starts": ["small"], "size": "small"}],
    ),
    "gpu_instances?": (
        [
            {
                "id": "small",
                "profile": "word",
                "start": "small",
                "size": "small",
                "compute_instances": [{"id": "small", "profile": "word"}],
            }
        ],
    ),
    "fabric?": ({"state": "word", "status": "word?"},),
}
HANG = {
    "program": "word",
    "pid": "whole",
    "seconds": "number",
    "state": "word?",
    "wchan": "word?",
    "left": "flag",
}
_CONTAINERD = {
    "version": "word?",
    "distribution": "word",
    "config_path": "word",
    "config_version": "whole?",
    "unit": "word",
    "active": "flag?",
    "control_plane": "flag",
    "started": "word?",
    "converged": (NAMED_TEXTS,),
    # As in containerd's configuration, which is the user's.
    "handlers": ({"*": {"type": ANY, "path": ANY, "options": ANY}},),
    "default_handler": "word?",
    "cri_enabled": "flag?",
    "cdi_enabled": "flag?",
}
_DOCKER = {
    "version": "word?",
    "config_path": "word",
    "unit": "word",
    "active": "flag?",
    "started": "word?",
    "converged": (NAMED_TEXTS,),
    # As in daemon.json, or as the daemon shows.
    "runtimes": ({"*": "mapping"},),
    "default_runtime": ANY,
    "live_restore": "flag?",
    "containers_running": "whole?",
}
_CRIO = {
    "version": "word?",
    "config_path": "word",
    "drop_in_path": "word",
    "unit": "word",
    "active": "flag?",
    "started": "word?",
    "runtimes": (
        {"*": {"type": ANY, "path": ANY, "file": "word?", "outdated": "flag", "lacks?": TEXTS}},
    ),
    "default_runtime": "word?",
    "default_file": "word?",
    "own_runtime": ({"name": "word", "path": ANY},),
    "restart_required": "flag?",
}

#: The fact of ``gpu_node_facts``.
GPU_NODE: Mapping[str, Form] = {
    "os": {
        "family": "word?",
        "id": "word?",
        "version": "word?",
        "codename": "word?",
        "archive": (
            {
                "file": "word",
                "uri": "word",
                "suites": TEXTS,
                "components": TEXTS,
                "signed_by": "text?",
            },
        ),
        "arch": "word?",
        "kernel": "word?",
        "package_manager": "word?",
        "image?": "word?",
        "image_system?": "word?",
        "upstream?": ({"id": "word", "version": "word", "codename": "word"},),
        "product?": "word?",
        "libc?": ({"name": "word", "version": "word?"},),
        "hostname": "word?",
        "fqdn": "word?",
        "machine_id": "word?",
        "boot_id": "word?",
    },
    "as_root": "flag?",
    "python": {"version": "word?", "tomlkit": "word?", "pynvml": "word?"},
    "gpus": [_GPU],
    "nvswitches": "small",
    "nvswitch_bridges": "small?",
    "kernel_drivers": {"*": {"version": "word?"}},
    "device_nodes": [
        {
            "path": "word",
            "driver": "word",
            "address": "word?",
            "device_id": "word?",
            "partition": "word?",
            "character_device": "flag",
            "group": "word?",
            "mode": "word?",
        }
    ],
    "driver": {
        "loaded": "word?",
        "installed": "word?",
        "userland": "word?",
        "kernel_module": "word?",
        "coherent_memory": "word?",
        "source": "word?",
        "packages": NAMED_TEXTS,
        "dkms": _DKMS,
        "held": "flag?",
        "unheld": TEXTS,
        "streams?": (NAMED_TEXTS,),
        "pending_reboot": "flag",
        "services": NAMED_TEXTS_OR_NULL,
        "configuration": NAMED_TEXTS_OR_NULL,
        "managed": "flag?",
        "pending": "word?",
        "previous": (
            {"version": "word?", "branch": "word?", "source": "word?", "kernel_module": "word?"},
        ),
        "recorded_files": (TEXTS,),
        "uninstaller": "word?",
        "container?": "word?",
    },
    "secure_boot": "flag?",
    "gpudirect_modules": TEXTS,
    "nouveau": {"loaded": "flag", "blocked": "flag", "modules": TEXTS},
    "blocked_modules": ({"*": [{"place": "word", "setting": "word"}]},),
    "kernels": [
        {
            "version": "word",
            "running": "flag",
            "on_disk": "flag",
            "headers": "flag",
            "driver": "word?",
        }
    ],
    "cuda": {
        "toolkits": [
            {
                "version": "word?",
                "path": "word",
                "default": "flag",
                "source": "word?",
                "uninstaller": "word?",
            }
        ],
        "driver_supports": "word?",
        "packages": NAMED_TEXTS,
        "held": "flag?",
        "unheld": TEXTS,
        "configuration": NAMED_TEXTS_OR_NULL,
        "host_compilers?": ["small"],
        "compiler": "word?",
    },
    "container_toolkit": {
        "version": "word?",
        "packages": NAMED_TEXTS,
        "held": "flag?",
        "cdi_spec": ({"path": "word", "driver_version": "word?"},),
        # The user's file.
        "config": ({"*": ANY},),
        "driver_roots?": NAMED_TEXTS,
        "obsolete_packages": NAMED_TEXTS,
    },
    "cdi_specifications": [{"path": "word", "kind": "word?", "version": "word?"}],
    "podman": "word?",
    "selinux": {"mode": "word?", "configured": "word?"},
    "amd_container_toolkit": (
        {
            "version": "word?",
            "held": "flag?",
            "cdi_spec": ({"path": "word", "devices": TEXTS, "nodes": TEXTS, "made_for": TEXTS},),
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
            "file": "word",
            "uri": "word",
            "key_fingerprint": "word?",
            "key_fingerprints?": TEXTS,
            "signed_by": "text?",
            "enabled": "flag",
        }
    ],
    "runtimes": {"containerd": (_CONTAINERD,), "docker": (_DOCKER,), "crio": (_CRIO,)},
    "kubelet": ({"directory": "word", "plugin_folders": TEXTS, "cpu_manager_policy?": "word?"},),
    "nvml": ({"driver_version": "word?", "cuda_version": "word?", "devices": [_NVML_DEVICE]},),
    "mig": {
        "managed": "flag",
        "unfinished": TEXTS,
        "waiting": {"*": "text"},
        "at_boot": NAMED_TEXTS_OR_NULL,
        "enabled": "flag",
        "manager": "flag",
    },
    "exporter": {
        "systemd": "flag",
        "method": "word",
        "expected_gpus": TEXTS,
        "output": "word",
        "page": "word",
        "files": NAMED_TEXTS,
        "units": NAMED_TEXTS_OR_NULL,
        "enabled": TEXTS,
        "foreign_units": NAMED_TEXTS_OR_NULL,
        "packages": NAMED_TEXTS,
        "packages_managed": "flag",
        "textfile_directories": TEXTS,
        "python": "word",
        "listeners": NAMED_TEXTS,
    },
    "acceptance": (
        {
            "passed": "flag",
            "at": "word",
            "level": "word",
            "driver": "word",
            "gpus": TEXTS,
            "tests": TEXTS,
            "missing?": TEXTS,
            "causes": TEXTS,
        },
    ),
    "verification_due": "flag?",
    "driver_hang": (HANG,),
    "problems": [PROBLEM],
}
