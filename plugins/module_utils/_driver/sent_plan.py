# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan on its way from the controller to the node, with what it was decided by. Pure.

A node applies a plan only while it is the node that the plan was made for. The sent values are
those facts in short: what a message can show as it is, and checksums of the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError, KubegpuError
from .._core.options import argument_spec, read_arguments
from .._core.printable import printable
from .._core.steps import Step
from .plan.config_files import PATHS
from .types import INSTALLS, Plan

#: The code of a node that is another one than the plan was made for.
CODE = "node_changed"
_OPTION = "_plan."
_TEXT = {"type": "str"}
_PLAN = argument_spec(
    Plan,
    action={"choices": ["none", *INSTALLS, "remove", "refuse"]},
    branch=_TEXT,
    version=_TEXT,
    kernel_module=_TEXT,
    source=_TEXT,
    lock={"options": {"patterns": {"type": "list", "elements": "str"}, "version": _TEXT}},
    repository={"type": "dict"},
    runfile={
        "type": "dict",
        "options": {
            "url": _TEXT,
            "path": _TEXT,
            "remote": {"type": "bool"},
            "checksum": _TEXT,
            "version": _TEXT,
            "arguments": {"type": "list", "elements": "str"},
        },
    },
    uninstall={"type": "str", "choices": ["runfile"]},
    licence_token={"type": "dict", "options": {"path": {**_TEXT, "no_log": False}}},
    reboot={
        "options": {
            "required": {"type": "bool", "default": False},
            "reason": {**_TEXT, "default": ""},
        }
    },
    steps={
        "elements": "dict",
        "options": {
            name: {**_TEXT, "required": True} for name in ("step", "action", "detail", "reason")
        },
    },
    refusals={"elements": "dict"},
)
# Mappings with free keys: the form of the keys, and whether a value may be null.
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._:*-]*\Z")
_UNIT = re.compile(r"[A-Za-z0-9@_.-]+\Z")
_PATH = re.compile(rf"(?:{'|'.join(map(re.escape, PATHS))})\Z")
_MAPPINGS: Mapping[str, tuple[re.Pattern[str], bool]] = {
    "packages": (_PACKAGE, True),
    "optional_packages": (_PACKAGE, True),
    "pinning": (_PACKAGE, True),
    "streams": (_PACKAGE, False),
    "files": (_PATH, False),
    "services": (_UNIT, False),
}

# What a plan is decided by, and what a message shows as it is. The states of services are left
# out, since a service may be restarted at any time, and so is what says only whether a driver
# answers: a layer of problems, the metrics of GPUs.
_SHOWN: Mapping[str, tuple[str, str]] = {
    "boot id": ("os", "boot_id"),
    "kernel": ("os", "kernel"),
    "loaded driver": ("driver", "loaded"),
    "installed driver": ("driver", "installed"),
}
_GPU = (
    "address", "vendor", "vendor_id", "device_id", "subsystem_vendor_id", "subsystem_device_id",
    "generation", "kernel_driver", "virtual_function", "vgpu",
)  # fmt: skip
_OS = (
    "family", "id", "version", "codename", "archive", "arch", "package_manager", "image",
    "upstream", "machine_id",
)  # fmt: skip
_DRIVER = {
    "packages of the driver": ("packages", "held", "unheld", "streams"),
    "modules of the driver": ("kernel_module", "userland", "dkms", "coherent_memory"),
    "source of the driver": ("source", "uninstaller", "container"),
    "files of the driver": ("configuration", "recorded_files"),
    "record of the driver": ("managed", "pending", "previous"),
}  # fmt: skip
_PARTS = {
    "kernels": ("kernels",),
    "kernel modules": ("nouveau", "blocked_modules", "secure_boot"),
    "NVSwitches": ("nvswitches", "nvswitch_bridges"),
    "repositories": ("repositories",),
    "rights of the reader": ("as_root",),
}
# What a package manager that an interrupted run has left at work still changes. The packages wait
# for its lock, and the plan is made again after them.
_MOVING = (
    *("installed driver", "loaded driver", "answers of the driver", "packages of the driver"),
    *("modules of the driver", "source of the driver", "kernels", "kernel modules"),
)
_LONGEST = 80


@dataclass(frozen=True)
class SentPlan:
    """A plan for one state of one node.

    :param node: what the plan was decided by, see :func:`planned_for`.
    :param streams: the streams of dnf's modules that the installed driver comes from, if the facts
        do not tell.
    """

    plan: Plan
    node: Mapping[str, str]
    streams: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        plan = self.plan.to_json()
        return {"plan": plan, "node": dict(self.node), "streams": dict(self.streams)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SentPlan:
        """Return what was sent.

        :raises InputError: it has another form.
        """
        rules: dict[str, dict[str, Any]] = {
            name: {"type": "dict", "required": True} for name in ("plan", "node", "streams")
        }
        values = read_arguments(rules, data, "_plan: ")
        for name in ("node", "streams"):
            _check_texts(name, values[name], _KEY, null=False)
        return cls(read_plan(values["plan"]), values["node"], values["streams"])

    def check(self, facts: Mapping[str, Any]) -> None:
        """See that the node is the one that the plan was made for.

        :raises KubegpuError: it has changed since.
        """
        now = planned_for(facts)
        moving = _MOVING if facts["driver"]["pending"] else ()
        differing = [
            name for name in now if name not in moving and self.node.get(name) != now[name]
        ]
        if not differing:
            return
        shown = [
            f"{name}: {printable(self.node.get(name) or '') or 'none'} then, "
            f"{printable(now[name]) or 'none'} now"
            if name in _SHOWN
            else f"{name}: different"
            for name in differing
        ]
        raise KubegpuError(
            "The node is not as it was when its driver was planned; nothing was changed.",
            evidence="; ".join(shown),
            next_step="Run again, which reads the node and plans again. If it happens again, find "
            "out what changes the node meanwhile, such as unattended upgrades or another run.",
            code=CODE,
        )


_KEY = re.compile(r"[A-Za-z][A-Za-z0-9 ._-]{0,63}\Z")


def read_plan(data: Mapping[str, Any]) -> Plan:
    """Return the plan of :meth:`types.Plan.to_json`.

    :raises InputError: it has another form.
    """
    values = read_arguments(_PLAN, data, _OPTION)
    for name, (keys, null) in _MAPPINGS.items():
        _check_texts(name, values[name], keys, null=null)
    values["steps"] = tuple(Step(**step) for step in values["steps"])
    return Plan(**values)


def _check_texts(name: str, found: Mapping[Any, Any], keys: re.Pattern[str], *, null: bool) -> None:
    for key, text in found.items():
        good = isinstance(text, str) or (null and text is None)
        if not good or not isinstance(key, str) or not keys.match(key):
            raise InputError(f"{_OPTION}{name} has another form.", evidence=repr(key)[:_LONGEST])


def planned_for(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what a plan was decided by, in short; equal for equal nodes.

    :param facts: the fact ``gpu_node``.
    """
    found = {
        name: str(facts[part].get(key) or "")[:_LONGEST] for name, (part, key) in _SHOWN.items()
    }
    found["operating system"] = _sum(_select(facts["os"], _OS))
    found["GPUs"] = _sum([_select(gpu, _GPU) for gpu in facts["gpus"]])
    found["answers of the driver"] = _sum(_answers(facts["nvml"]))
    for name, keys in _DRIVER.items():
        found[name] = _sum(_select(facts["driver"], keys))
    for name, keys in _PARTS.items():
        found[name] = _sum(_select(facts, keys))
    return found


def _select(values: Mapping[str, Any], keys: Sequence[str]) -> list[Any]:
    return [values.get(key) for key in keys]


def _answers(nvml: Mapping[str, Any] | None) -> Any:
    if nvml is None:
        return None
    return [nvml["driver_version"], sorted(str(one.get("address")) for one in nvml["devices"])]


def _sum(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
