# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a guest's licence that cannot work, before anything is changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .decision import DecisionInput

# vGPU 15, which does not know the legacy licence server any more.
_NO_LEGACY = 525
_TOKEN = (
    "set nvidia_driver_licence.token_path to a client configuration token of NVIDIA's License "
    "System (CLS or DLS)"
)


# FeatureType of gridd.conf for whole GPUs. In a guest the type of the vGPU decides.
_OF_WHOLE_GPUS = {2: "RTX Virtual Workstation", 4: "Virtual Compute Server"}


def check_licence(inputs: DecisionInput, branch: str | None) -> tuple[str, ...]:
    """Return the warnings about the licence of a guest.

    :param branch: of the driver that the guest has or gets.
    """
    if not inputs.guest:
        return ()
    licence = inputs.request.licence
    found = (_feature_type(licence), _place(licence, branch))
    return tuple(one for one in found if one)


def _feature_type(licence: Mapping[str, Any]) -> str:
    number = licence.get("feature_type")
    if number not in _OF_WHOLE_GPUS:
        return ""
    return (
        f"nvidia_driver_licence.feature_type is {number} ({_OF_WHOLE_GPUS[number]}), which is for "
        "whole GPUs; this node is a vGPU guest, and the type of its vGPU decides which licence it "
        "needs. Next step: feature_type: 1."
    )


def _place(licence: Mapping[str, Any], branch: str | None) -> str:
    """Return what may be wrong with where the licence comes from."""
    server, token = licence.get("server"), licence.get("token_path")
    if server and not token and branch and branch.isdecimal() and int(branch) >= _NO_LEGACY:
        return (
            "nvidia_driver_licence.server names a legacy licence server, which drivers from branch "
            f"{_NO_LEGACY} (vGPU 15) on do not use, and this guest's driver is of branch {branch}. "
            f"Next step: {_TOKEN}, and remove server and port."
        )
    if server and token:
        return (
            "nvidia_driver_licence has both token_path and server: the token names its server, and "
            "server and port are those of a legacy licence server. Next step: keep token_path, or "
            f"before branch {_NO_LEGACY} (vGPU 15) server and port."
        )
    if not server and not token and (licence.get("feature_type") or licence.get("port")):
        return (
            "nvidia_driver_licence has neither token_path nor server: the guest gets a licence "
            "only if a client configuration token is in /etc/nvidia/ClientConfigToken already. "
            f"Next step: {_TOKEN}, unless the image has one."
        )
    return ""
