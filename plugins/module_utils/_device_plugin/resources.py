# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPU resources that a node should offer, from its facts and the plugins' options. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .._core.errors import InputError
from .._hardware.vendors import container_gpus, gpu_vendor
from . import options, sharing, vendor_options, vendor_plan
from .config import no_config

# The options on which it depends what a node offers, or that a config may repeat.
COUNTED: Mapping[str, Collection[str]] = {
    "nvidia": (
        "configs",
        "default_config",
        "mig_strategy",
        "resource_renaming",
        "feature_discovery",
        "feature_discovery_api",
        "version",
        "mps_root",
        "driver_root",
        "container_driver_root",
        "nvidia_ctk_path",
    ),
    "amd": ("naming",),
    "intel": ("shared", "allow_ids"),
}


def expected_nvidia(
    node: Mapping[str, Any], given: Mapping[str, Any], config: str = ""
) -> dict[str, int] | None:
    """Return the resources of NVIDIA's plugin; None if the facts do not determine them.

    :param given: the options of the role, without its prefix.
    :param config: the node's config; empty for the default one.
    :raises InputError: an option is invalid, or there is no such config.
    """
    request = options.read_request({**given, "runtime_class": ""})
    chosen = request.config(config)
    if chosen is None:
        raise InputError(
            no_config(config, list(request.configs)),
            next_step="Add it there, or choose one of these, in nvidia_device_plugin_config.",
        )
    return sharing.expected(node, chosen)


def expected_resources(
    node: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]], config: str = ""
) -> dict[str, int] | None:
    """Return the resources of all vendors; None if the facts determine none of them.

    :param given: the options of each vendor's role.
    :param config: the node's config of NVIDIA's plugin.
    :raises InputError: an option is invalid.
    """
    found = _by_vendor(node, given, config).values()
    known = [resources for resources in found if resources is not None]
    if found and not known:
        return None
    return {name: count for resources in known for name, count in resources.items()}


def unknown_vendors(
    node: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]], config: str = ""
) -> list[str]:
    """Return the vendors whose number of resources the facts do not determine.

    The parameters are those of :func:`expected_resources`.
    """
    found = _by_vendor(node, given, config)
    return [vendor for vendor, resources in found.items() if resources is None]


def offered(node: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``resources``, and ``some_of``, the vendors without a number.

    :param variables: of the roles of the device plugins, by their full names. One that is missing
        or None has its default.
    :raises InputError: an option is invalid.
    """
    given = {
        vendor: {
            name: variables[f"{vendor}_device_plugin_{name}"]
            for name in names
            if variables.get(f"{vendor}_device_plugin_{name}") is not None
        }
        for vendor, names in COUNTED.items()
    }
    config = str(variables.get("nvidia_device_plugin_config") or "")
    return {
        "resources": expected_resources(node, given, config),
        "some_of": unknown_vendors(node, given, config),
    }


def _by_vendor(
    node: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]], config: str
) -> dict[str, dict[str, int] | None]:
    found = {}
    if gpu_vendor(node["gpus"]) == "nvidia":
        found["nvidia"] = expected_nvidia(node, given.get("nvidia", {}), config)
    for vendor in vendor_options.VENDORS:
        if container_gpus(node, vendor):
            request = vendor_options.read_request(vendor, given.get(vendor, {}))
            found[vendor] = vendor_plan.expected(node, request)[0]
    return found
