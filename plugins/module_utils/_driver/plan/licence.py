# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a guest's licence that cannot work, before anything is changed. Pure."""

from __future__ import annotations

from .decision import DecisionInput

# vGPU 15, which does not know the legacy licence server any more.
_NO_LEGACY = 525
_TOKEN = (
    "set nvidia_driver_licence.token_path to a client configuration token of NVIDIA's License "
    "System (CLS or DLS)"
)


def check_licence(inputs: DecisionInput, branch: str | None) -> tuple[str, ...]:
    """Return the warnings about the licence of a guest.

    :param branch: of the driver that the guest has or gets.
    """
    licence = inputs.request.licence
    server, token = licence.get("server"), licence.get("token_path")
    if not inputs.guest:
        return ()
    if server and not token and branch and branch.isdecimal() and int(branch) >= _NO_LEGACY:
        return (
            "nvidia_driver_licence.server names a legacy licence server, which drivers from branch "
            f"{_NO_LEGACY} (vGPU 15) on do not use, and this guest's driver is of branch {branch}. "
            f"Next step: {_TOKEN}, and remove server and port.",
        )
    if server and token:
        return (
            "nvidia_driver_licence has both token_path and server: the token names its server, and "
            "server and port are those of a legacy licence server. Next step: keep token_path, or "
            f"before branch {_NO_LEGACY} (vGPU 15) server and port.",
        )
    if not server and not token and (licence.get("feature_type") or licence.get("port")):
        return (
            "nvidia_driver_licence has neither token_path nor server: the guest gets a licence "
            "only if a client configuration token is in /etc/nvidia/ClientConfigToken already. "
            f"Next step: {_TOKEN}, unless the image has one.",
        )
    return ()
