# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and check the options of the device plugins of AMD and Intel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.checks import check_at_least
from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._hardware.pci_data import INTEL_PRODUCTS
from .._kube.pod_parts import text
from .objects import check_request, check_version
from .vendor_types import AUTO, AmdRequest, IntelRequest

_POLICIES = {"image_pull_policy": {"choices": ["IfNotPresent", "Always", "Never"]}}
#: Every option that ``read_request`` takes, by the vendor.
OPTIONS = {
    "amd": argument_spec(
        AmdRequest,
        tolerations={"elements": "dict"},
        naming={"choices": ["single", "mixed"]},
        **_POLICIES,
    ),
    "intel": argument_spec(
        IntelRequest,
        tolerations={"elements": "dict"},
        allocation_policy={"choices": ["none", "balanced", "packed"]},
        **_POLICIES,
    ),
}
VENDORS = tuple(OPTIONS)
# What an option of the role, or the role itself, sets.
_ARGUMENTS = {
    "amd": ("logtostderr", "stderrthreshold", "v", "pulse", "resource_naming_strategy"),
    "intel": ("v", "shared-dev-num", "allocation-policy", "enable-monitoring", "allow-ids"),
}
_ARGUMENT = re.compile(r"--?(?P<name>[A-Za-z][\w-]*)(?:=[^\x00-\x1f]*)?\Z", re.ASCII)
_DEVICE_ID = re.compile(r"0x[0-9a-f]{4}\Z")


def read_request(vendor: str, options: Mapping[str, Any]) -> AmdRequest | IntelRequest:
    """Return the request.

    :param vendor: ``amd`` or ``intel``.
    :param options: by the role's names without its prefix; missing ones have their default.
    :raises InputError: the vendor or an option is unknown, or a value is invalid.
    """
    if vendor not in OPTIONS:
        raise InputError(f"The vendor is {vendor!r}, and has to be one of {', '.join(VENDORS)}.")
    spec, prefix = OPTIONS[vendor], role_prefix(vendor)
    unknown = sorted(set(options) - set(spec))
    if unknown:
        raise InputError(
            f"the device plugin has no option {', '.join(unknown)}",
            next_step=f"It has {', '.join(sorted(spec))}.",
        )
    given = read_arguments(spec, options, prefix)
    for name in ("node_selector", "annotations"):
        given[name] = {str(key): text(value) for key, value in given[name].items()}
    _check_arguments(f"{prefix}arguments", given["arguments"], _ARGUMENTS[vendor])
    if vendor == "amd":
        amd = AmdRequest(**given)
        check_request(amd, prefix)
        if amd.labeller:
            check_version(f"{prefix}labeller_version", amd.labeller_version,
                          AmdRequest.labeller_version)  # fmt: skip
        return amd
    intel = IntelRequest(**given)
    check_request(intel, prefix)
    check_at_least(f"{prefix}shared", intel.shared)
    return replace(intel, allow_ids=_read_ids(f"{prefix}allow_ids", intel.allow_ids))


def role_prefix(vendor: str) -> str:
    """Return the prefix of the role's variables."""
    return f"{vendor}_device_plugin_"


def _check_arguments(option: str, values: Sequence[str], taken: Sequence[str]) -> None:
    for one in values:
        match = _ARGUMENT.match(one)
        if match is None:
            raise InputError(
                f"{option} has {one!r}, which is no argument of the plugin",
                next_step="Write each one in one text, such as -deny-ids=0x4905.",
            )
        if match["name"] in taken:
            raise InputError(
                f"{option} has {one}, which this role sets",
                next_step="Leave it out, or use the option of the role for it.",
            )


def _read_ids(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return the device ids that the plugin offers, empty for all."""
    found: list[str] = []
    for one in values:
        if one == AUTO:
            # The same on every run: what is in the cluster does not depend on the hosts of a run.
            found += [f"0x{number}" for number in sorted(INTEL_PRODUCTS)]
        elif _DEVICE_ID.match(one.lower()):
            found.append(one.lower())
        else:
            raise InputError(
                f"{name} has {one!r}, which is not a device id",
                next_step="Give four hex digits after 0x, in quotes, such as '0x56c0', or auto.",
            )
    return tuple(dict.fromkeys(found))
