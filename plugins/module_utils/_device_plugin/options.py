# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and check the options of NVIDIA's device plugin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from .._core.errors import InputError
from .._core.options import truth
from .._kube.image import check_reference, is_digest, is_tag, split
from .config import (
    Flags,
    choice,
    read_configs,
    read_strategies,
)
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

_FLAG_NAMES = tuple(one.name for one in fields(Flags))
_REQUEST_NAMES = tuple(
    one.name for one in fields(Request) if one.name not in ("flags", "configs", "remarks")
)
_STRINGS = frozenset(
    one.name for one in (*fields(Flags), *fields(Request)) if isinstance(one.default, str)
)
_BOOLEANS = frozenset(
    {
        "resource_renaming",
        *(one.name for one in (*fields(Flags), *fields(Request)) if isinstance(one.default, bool)),
    }
)
#: Every option that ``read_request`` takes.
OPTIONS = frozenset({*_FLAG_NAMES, *_REQUEST_NAMES, "configs", "resource_renaming"})


def read_request(options: Mapping[str, Any]) -> Request:
    """Return the request.

    :param options: by the role's names without its prefix; missing ones have their default.
    :raises InputError: an option is unknown or invalid.
    """
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise InputError(
            f"the device plugin has no option {', '.join(unknown)}",
            next_step=f"It has {', '.join(sorted(OPTIONS))}.",
        )
    given = {name: _value(name, value) for name, value in options.items() if name != "configs"}
    reading = Reading(read_release(str(given.get("version", Request.version))))
    flags = _read_flags({name: given[name] for name in _FLAG_NAMES if name in given}, reading)
    request = Request(
        **{name: given[name] for name in _REQUEST_NAMES if name in given}, flags=flags
    )
    for name in ("namespace", "image", "kubelet_directory", "mps_root"):
        if not getattr(request, name):
            raise InputError(f"nvidia_device_plugin_{name} is empty")
    _check_image(request)
    _choice(request, "image_pull_policy", ("IfNotPresent", "Always", "Never"))
    if not re.match(r"\d+%?\Z", str(request.max_unavailable)) or str(request.max_unavailable) in (
        "0",
        "0%",
    ):
        raise InputError(
            f"nvidia_device_plugin_max_unavailable is {request.max_unavailable!r}, and has to be a "
            "number or a percentage above 0"
        )
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
        options.get("configs") or {},
        flags,
        default=request.default_config,
        renaming=bool(given.get("resource_renaming", False)),
        reading=reading,
        everywhere={
            "mps_root": request.mps_root,
            "feature_discovery_api": request.feature_discovery_api,
        },
    )
    return replace(
        request,
        max_unavailable=str(request.max_unavailable),
        environment=variables,
        configs=configs,
        remarks=(*remarks, *reading.notes),
    )


def _value(name: str, value: Any) -> Any:
    """Return an option's value; ``-e`` and INI inventories give booleans as text."""
    if name in _STRINGS and isinstance(value, (int, float)) and not isinstance(value, bool):
        # YAML reads the tag 0.20 as a number.
        return str(value)
    if name not in _BOOLEANS:
        return plain(value)
    found = truth(value)
    if found is None:
        raise InputError(
            f"nvidia_device_plugin_{name} is {value!r}, which is neither true nor false"
        )
    return found


def _read_flags(given: Mapping[str, Any], reading: Reading) -> Flags:
    values = dict(given)
    if "device_list_strategy" in values:
        values["device_list_strategy"] = read_strategies(
            "nvidia_device_plugin_device_list_strategy", values["device_list_strategy"], reading
        )
    flags = Flags(**values)
    prefix = "nvidia_device_plugin_"
    for name, path in (
        ("mig_strategy", "migStrategy"),
        ("device_id_strategy", "plugin.deviceIDStrategy"),
    ):
        reading.choice(f"{prefix}{name}", str(getattr(flags, name)), setting(path).values)
    for name in ("driver_root", "container_driver_root", "nvidia_ctk_path"):
        if not str(getattr(flags, name)).startswith("/"):
            raise InputError(f"{prefix}{name} is {getattr(flags, name)!r}, and has to be a path")
    return flags


def _check_image(request: Request) -> None:
    _name, tag, digest = split(request.image)
    if tag or digest:
        raise InputError(
            f"nvidia_device_plugin_image is {request.image!r}, with a version in it",
            next_step="Give that as nvidia_device_plugin_version or nvidia_device_plugin_digest.",
        )
    check_reference("nvidia_device_plugin_image", request.image)
    if request.digest:
        if not is_digest(request.digest):
            raise InputError(
                f"nvidia_device_plugin_digest is {request.digest!r}, and has to be sha256: with 64 "
                "small hex digits"
            )
        return
    if not is_tag(request.version) or request.version == "latest":
        raise InputError(
            f"nvidia_device_plugin_version is {request.version!r}, which pins no version",
            next_step="Give a release's tag, such as v0.20.1, or nvidia_device_plugin_digest.",
        )


def _choice(request: Request, name: str, known: Sequence[str]) -> None:
    choice(f"nvidia_device_plugin_{name}", getattr(request, name), known)


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, str) else value


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
