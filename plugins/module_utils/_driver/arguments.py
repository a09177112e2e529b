# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the driver's module as a request, without the tables of the decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._core.proxy_options import PROXY_ARGUMENTS
from .._core.redact import redact
from .._record.options import STATE_ARGUMENTS
from .types import Request

#: The prefix of the role's variables.
PREFIX = "nvidia_driver_"
# Seconds; the daemon asks for a licence as soon as it starts.
LICENCE_TIMEOUT = 120
_LONGEST = 1800
_AUTO = {"choices": ["auto", "true", "false"]}
#: Those of the request.
REQUEST_ARGUMENTS = argument_spec(
    Request,
    state={"choices": ["present", "absent"]},
    kernel_module={"choices": ["auto", "open", "proprietary"]},
    source={"choices": ["auto", "distro", "nvidia", "runfile"]},
    runfile={
        "type": "dict",
        "options": {
            "url": {"type": "str"},
            "path": {"type": "str"},
            "checksum": {"type": "str"},
            "version": {"type": "str"},
            "remote": {"type": "bool", "default": False},
        },
    },
    licence={
        "default": None,
        "options": {
            "server": {"type": "str"},
            "port": {"type": "int"},
            "feature_type": {"type": "int", "choices": [1, 2, 4]},
            "token_path": {"type": "str", "no_log": False},
            "token_sha256": {"type": "str", "no_log": False},
            "timeout": {"type": "int", "default": LICENCE_TIMEOUT},
        },
    },
    dkms=_AUTO,
    coherent_memory={"choices": ["auto", "driver", "numa"]},
    fabric=_AUTO,
    imex=_AUTO,
    repository_key_url={"no_log": False},
    key_fingerprints={"no_log": False},
)
#: The options with the tables of the decision.
TABLES = {name: {"type": "dict", "default": {}} for name in ("branches", "gpus", "repositories")}
#: The options of the module, which knows the date and the controller by itself. Its action knows
#: the alias, too.
MODULE_ARGUMENTS: dict[str, dict[str, Any]] = {
    **{
        name: rule
        for name, rule in {**REQUEST_ARGUMENTS, **TABLES}.items()
        if name not in ("today", "controller")
    },
    "licence": {**REQUEST_ARGUMENTS["licence"], "aliases": ["license"]},
}
#: All options of the module.
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    **MODULE_ARGUMENTS,
    "lock_timeout": {"type": "int", "default": 600},
    **PROXY_ARGUMENTS,
    "build_timeout": {"type": "int", "default": 3600},
    **STATE_ARGUMENTS,
}


def read_request(given: Mapping[str, Any]) -> Request:
    """Return the request. An option that is missing or None has its default.

    Only the types of the values are checked; :func:`options.read_options` checks the rest.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    if isinstance(given.get("licence"), Mapping):
        # Of a module, keys that are not set are None, which is none of the choices.
        set_keys = {key: one for key, one in given["licence"].items() if one is not None}
        _check_feature(set_keys.get("feature_type"))
        given = {**given, "licence": set_keys}
    values = read_arguments(REQUEST_ARGUMENTS, given, PREFIX)
    runfile, licence = (
        {name: one for name, one in (values.pop(option) or {}).items() if one is not None}
        for option in ("runfile", "licence")
    )
    # A role's empty mapping has the defaults of the keys.
    values["runfile"] = runfile if any(runfile.values()) else None
    return Request(**values, licence=licence)


def _check_feature(value: Any) -> None:
    """Refuse a type of licence that no guest has, with what the types mean."""
    if value is None or (not isinstance(value, bool) and str(value) in ("1", "2", "4")):
        return
    raise InputError(
        "nvidia_driver_licence.feature_type has to be one of 1, 2, 4.",
        evidence=f"nvidia_driver_licence.feature_type: {redact(repr(value))}",
        next_step="Write 1 for a vGPU guest, whose type decides which licence it needs. For a "
        "whole GPU that is passed through write 2 (NVIDIA RTX Virtual Workstation) or 4 (NVIDIA "
        "Virtual Compute Server).",
        names={"variable": "nvidia_driver_licence.feature_type"},
    )


def asks_licence(licence: Mapping[str, Any]) -> bool:
    """Return whether a licence is requested, and not only how long it is waited for."""
    return any(licence.get(key) for key in ("server", "port", "feature_type", "token_path"))


def licence_timeout(licence: Mapping[str, Any]) -> int:
    """Return how long a licence is waited for, in seconds; 0 does not wait.

    :raises InputError: it is no number of seconds.
    """
    value = licence.get("timeout")
    text = str(LICENCE_TIMEOUT if value is None or value == "" else value)
    if isinstance(value, bool) or not text.isdecimal() or int(text) > _LONGEST:
        raise InputError(
            "nvidia_driver_licence.timeout is not a number of seconds.",
            evidence=repr(value),
            next_step=f"Give a number from 0 (does not wait) to {_LONGEST}.",
        )
    return int(text)
