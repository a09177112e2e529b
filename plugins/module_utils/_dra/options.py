# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and check the options of NVIDIA's DRA driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._cluster.dra import VERSIONS
from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._kube.image import check_pinned
from .._kube.pod_parts import check_max_unavailable
from .data import (
    DRIVER_MANAGED,
    FEATURE_GATES,
    GATE_CONFLICTS,
    GATE_NEEDS,
    HOST_IMEX,
    HOST_MANAGED,
    SHARES,
    SHARES_CHOICES,
    SHARES_DISABLED,
    SHARES_VARIABLE,
    UNSUPPORTED_GATES,
    VARIABLES,
)
from .types import Request

#: The prefix of the role's variables.
PREFIX = "nvidia_dra_driver_"
AUTO = "auto"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
REFUSE, REMOVE = "refuse", "remove"
#: Every option that ``read_request`` takes.
OPTIONS = argument_spec(
    Request,
    compute_domains={"choices": [AUTO, "true", "false"]},
    api={"choices": [AUTO, *VERSIONS]},
    device_plugin={"choices": [REFUSE, REMOVE]},
    image_pull_policy={"choices": ["IfNotPresent", "Always", "Never"]},
    imex_mode={"choices": [DRIVER_MANAGED, HOST_MANAGED]},
    tolerations={"elements": "dict"},
)


def read_request(options: Mapping[str, Any]) -> Request:
    """Return the request.

    :param options: by the role's names without its prefix; missing ones have their default.
    :raises InputError: an option is unknown or invalid.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InputError(
            f"the DRA driver has no option {', '.join(unknown)}",
            next_step=f"It has {', '.join(sorted(OPTIONS))}.",
        )
    given = dict(options)
    if isinstance(given.get("compute_domains"), bool):
        given["compute_domains"] = str(given["compute_domains"]).lower()
    request = Request(**read_arguments(OPTIONS, given, PREFIX))
    for name in ("namespace", "image"):
        if not getattr(request, name):
            raise InputError(f"{PREFIX}{name} is empty")
    for name in ("driver_root", "kubelet_directory"):
        if not str(getattr(request, name)).startswith("/"):
            raise InputError(
                f"{PREFIX}{name} is {getattr(request, name)!r}, and has to be an absolute path"
            )
    if not request.gpus and request.compute_domains == "false":
        raise InputError(
            f"{PREFIX}gpus and {PREFIX}compute_domains are both false, so that the driver would "
            "serve nothing",
            next_step=f"Set {PREFIX}enabled: false, or one of them to true.",
        )
    check_pinned(PREFIX, request.image, request.version, request.digest, Request.version)
    check_max_unavailable(PREFIX, request.max_unavailable)
    request = _with_gates(request)
    _check_environment(request)
    return request


def _check_environment(request: Request) -> None:
    """Check the variables of the pods.

    :raises InputError: one follows from other options, or the gate of shares does nothing.
    """
    option = f"{PREFIX}environment"
    for name, value in request.environment.items():
        if not _VARIABLE.match(str(name)) or isinstance(value, (Mapping, list)) or value is None:
            raise InputError(
                f"{option} has {name!r}: {value!r}, which is no variable with a value",
                next_step="Write {MAX_NODES_PER_IMEX_DOMAIN: 18}.",
            )
        if name in VARIABLES:
            raise InputError(
                f"{option} has {name}, which this role sets",
                next_step="Leave it out; most of them follow from an option of the role.",
            )
    shares = str(request.environment.get(SHARES_VARIABLE, SHARES_DISABLED))
    if shares not in SHARES_CHOICES and not re.fullmatch(r"[1-9][0-9]{0,5}", shares):
        raise InputError(
            f"{option}.{SHARES_VARIABLE} is {shares!r}",
            next_step=f"Write {', '.join(SHARES_CHOICES)}, or the number of shares of each GPU.",
        )
    if request.gate(SHARES) != (shares != SHARES_DISABLED):
        raise InputError(
            f"{PREFIX}feature_gates.{SHARES} and {option}.{SHARES_VARIABLE} do nothing without "
            "each other",
            evidence=f"{SHARES} is {str(request.gate(SHARES)).lower()}, {SHARES_VARIABLE} is "
            f"{shares}",
            next_step=f"Set {SHARES}: true and {SHARES_VARIABLE} to memory, unlimited or a "
            "number, or leave both out.",
        )


def _with_gates(request: Request) -> Request:
    """Return the request with the feature gates that its other options need.

    :raises InputError: the driver would not start with the feature gates.
    """
    option, gates = f"{PREFIX}feature_gates", dict(request.feature_gates)
    wrong = sorted(name for name, value in gates.items() if not isinstance(value, bool))
    if wrong:
        raise InputError(f"{option}.{wrong[0]} is {gates[wrong[0]]!r}, and has to be true or false")
    unknown = sorted(set(gates) - set(FEATURE_GATES))
    if unknown:
        raise InputError(
            f"{option} has {', '.join(unknown)}, which the DRA driver does not know: it would not "
            "start",
            next_step=f"It knows {', '.join(sorted(FEATURE_GATES))}.",
        )
    refused = sorted(name for name in UNSUPPORTED_GATES if gates.get(name))
    if refused:
        raise InputError(
            f"{option} enables {refused[0]}, for GPUs of virtual machines, and the pods of this "
            "role do not get the folders of the host that it needs",
            next_step="Use NVIDIA's chart for it, or leave it out.",
        )
    if request.imex_mode == HOST_MANAGED:
        if gates.get(HOST_IMEX) is False:
            raise InputError(
                f"{PREFIX}imex_mode is {HOST_MANAGED}, which needs the feature gate {HOST_IMEX}, "
                f"and {option} has it as false"
            )
        gates[HOST_IMEX] = True
    request = replace(request, feature_gates=gates)
    for one, other in GATE_CONFLICTS:
        if request.gate(one) and request.gate(other):
            raise InputError(
                f"{option} enables {one} and {other}, with which the DRA driver does not start",
                next_step="Enable one of them.",
            )
    for one, needed in GATE_NEEDS:
        if request.gate(one) and not request.gate(needed):
            raise InputError(
                f"{option} has {one} enabled and {needed} disabled, and {one} needs {needed}",
                next_step=f"Set {one}: false too, or {needed}: true.",
            )
    return request
