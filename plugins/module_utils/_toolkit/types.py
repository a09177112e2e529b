# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for the container toolkit and the runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """What the user asks for. Empty strings and tuples: the default of this release."""

    version: str = ""
    manage_repository: bool = True
    repository_name: str = "kubegpu-nvidia-container-toolkit"
    repository_url: str = ""
    key_fingerprints: tuple[str, ...] = ()
    hold: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    cdi: bool = True
    runtime_name: str = "nvidia"
    containerd: str = "auto"
    containerd_set_default: bool = False
    containerd_enable_cri: bool = False
    containerd_complete_runc: bool = False
    containerd_options: Mapping[str, Any] = field(default_factory=dict)
    containerd_restart: bool = True
    runtime_cdi: bool = False
    docker: str = "auto"
    docker_set_default: bool = False
    docker_restart: str = "if_idle"
    crio: str = "auto"
    crio_set_default: bool = False
    crio_restart: bool = True
    # Version of the driver that an earlier step of the same run loads.
    driver_version: str = ""
    # Version of the ansible-core that would install the packages.
    controller: str = ""
