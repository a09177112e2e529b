# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and check the options of NVIDIA's device plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._kube.pod_parts import text
from .config import (
    Flags,
    plain,
    read_configs,
    read_strategies,
)
from .objects import check_request
from .settings import (
    DISCOVERY_SINCE,
    Reading,
    at_least,
    read_environment,
    read_release,
    release_text,
    setting,
)
from .types import Request

#: The prefix of the role's variables.
PREFIX = "nvidia_device_plugin_"
_FLAGS = argument_spec(Flags, device_list_strategy={"type": "raw"})
_REQUEST = argument_spec(
    Request,
    image_pull_policy={"choices": ["IfNotPresent", "Always", "Never"]},
    tolerations={"elements": "dict"},
)
for _name in ("flags", "remarks"):
    del _REQUEST[_name]
#: Every option that ``read_request`` takes.
OPTIONS = {**_FLAGS, **_REQUEST, "resource_renaming": {"type": "bool", "default": False}}


def read_request(options: Mapping[str, Any]) -> Request:
    """Return the request.

    :param options: by the role's names without its prefix; missing ones have their default.
    :raises InputError: an option is unknown or invalid.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InputError(
            f"the device plugin has no option {', '.join(unknown)}",
            next_step=f"It has {', '.join(sorted(OPTIONS))}.",
        )
    given = plain(read_arguments(OPTIONS, options, PREFIX))
    configs, renaming = given.pop("configs"), given.pop("resource_renaming")
    reading = Reading(read_release(given["version"]))
    flags = _read_flags({name: given.pop(name) for name in _FLAGS}, reading)
    request = Request(**given, flags=flags)
    check_request(request, PREFIX, "mps_root")
    if request.feature_discovery_api and not request.feature_discovery:
        request = replace(request, feature_discovery_api=False)
    if request.feature_discovery and not at_least(request.release, DISCOVERY_SINCE):
        raise InputError(
            f"nvidia_device_plugin_feature_discovery is true, and the image of {request.version} "
            f"has no GPU feature discovery: it came with {release_text(DISCOVERY_SINCE)}",
            next_step="Take a newer nvidia_device_plugin_version, or leave it out.",
        )
    variables = {key: text(value) for key, value in request.environment.items()}
    remarks = read_environment(variables, request.release)
    configs = read_configs(
        configs,
        flags,
        default=request.default_config,
        renaming=renaming,
        reading=reading,
        everywhere={
            "mps_root": request.mps_root,
            "feature_discovery_api": request.feature_discovery_api,
        },
    )
    return replace(
        request,
        environment=variables,
        configs=configs,
        remarks=(*remarks, *reading.notes),
    )


def _read_flags(given: Mapping[str, Any], reading: Reading) -> Flags:
    strategies = read_strategies(
        f"{PREFIX}device_list_strategy", given["device_list_strategy"], reading
    )
    flags = Flags(**{**given, "device_list_strategy": strategies})
    for name, path in (
        ("mig_strategy", "migStrategy"),
        ("device_id_strategy", "plugin.deviceIDStrategy"),
    ):
        reading.choice(f"{PREFIX}{name}", str(getattr(flags, name)), setting(path).values)
    for name in ("driver_root", "container_driver_root", "nvidia_ctk_path"):
        if not str(getattr(flags, name)).startswith("/"):
            raise InputError(f"{PREFIX}{name} is {getattr(flags, name)!r}, and has to be a path")
    return flags
