# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of gpu_host_maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import check_at_least
from .._core.errors import InputError
from .types import AUTO, NO_SCHEDULER, SLURM, STATES, STOP, WAIT, Request

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": list(STATES), "required": True},
    "run": {"type": "str", "required": True},
    "reason": {"type": "str", "default": ""},
    "pods": {"type": "str", "choices": ["gpu", "all"], "default": "gpu"},
    "containers": {"type": "str", "choices": [AUTO, STOP, WAIT], "default": AUTO},
    "unmanaged": {"type": "str", "choices": ["refuse", "delete"], "default": "refuse"},
    "scheduler": {"type": "str", "choices": [AUTO, SLURM, NO_SCHEDULER], "default": AUTO},
    "slurm_node": {"type": "str", "default": ""},
    "restart_slurmd": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 900},
    "poll": {"type": "int", "default": 5},
    "socket": {"type": "path", "default": "/run/docker.sock"},
    "unit": {"type": "str", "default": "docker"},
}


def read_request(params: Mapping[str, Any]) -> Request:
    """Return the request of the module's parameters.

    :raises InputError: a value is wrong.
    """
    if not params["run"].strip():
        raise InputError(
            "run is empty.", next_step="Give the maintenance a name, by which it is released again."
        )
    for name in ("timeout", "poll"):
        check_at_least(name, params[name], 0 if name == "timeout" else 1)
    values = {name: params[name] for name in ARGUMENTS}
    # A line of its own would end the reason in the output of scontrol.
    return Request(**{**values, "run": " ".join(params["run"].split())})
