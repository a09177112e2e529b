# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the hosts of a cluster agree on the parts that are deployed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.differing_options import (
    differing_options,
)

from ._hosts import is_refused, select_hosts

# With the hosts that decide on them, as select_hosts has them. The other options of a part are
# compared where it is planned.
_ENABLED = {"gpu_monitoring_enabled": "gpu", "nvidia_dra_driver_enabled": "nvidia"}


def check_deployed(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse hosts with GPUs that differ: the cluster has one of each part.

    Those without GPUs are asked only if there are no others.

    :raises Refusal: two hosts differ.
    """
    hosts = [host for host in hosts if not is_refused(hostvars[host])]
    for name, select in _ENABLED.items():
        options = {
            host: {"options": {name: boolean(hostvars[host].get(name, False), strict=False)}}
            for host in select_hosts(hosts, hostvars, select) or hosts
        }
        for refusal in differing_options(options, "", "what it deploys", ""):
            raise refusal
