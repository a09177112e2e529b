# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the hosts of a cluster agree on the parts that are deployed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.plan import (
    differing_options,
)

# The other options of a part are compared where it is planned.
_ENABLED = ("gpu_monitoring_enabled", "nvidia_dra_driver_enabled")


def check_deployed(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse hosts that differ: a task that runs once would follow the first of them.

    :raises Refusal: two hosts differ.
    """
    options = {host: {"options": _enabled(hostvars[host])} for host in hosts}
    for refusal in differing_options(options, "", "what it deploys", ""):
        raise refusal


def _enabled(variables: Mapping[str, Any]) -> dict[str, bool]:
    return {name: boolean(variables.get(name, False), strict=False) for name in _ENABLED}
