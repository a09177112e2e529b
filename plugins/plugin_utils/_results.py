# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is computed once from the variables of several hosts: for the action ``fleet_result``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _deployed
from ._hosts import one_cluster, select_hosts
from ._report.hosts import verification_rows

Object = Mapping[str, Any]
Hostvars = Mapping[str, Object]

_STOPPED = "the run stopped at this node; its failed task says why"
# Whose device plugins are deployed where the vendor has GPUs.
_OTHER_VENDORS = ("amd", "intel")


def _cluster(
    hosts: Sequence[str],
    hostvars: Hostvars,
    *,
    gpu: Sequence[str] = (),
    nvidia: Sequence[str] = (),
    deployed: bool = False,
) -> dict[str, Any]:
    """Return what the hosts of a cluster have in common, and which of them decide on its parts.

    :param gpu: the hosts with GPUs, and ``nvidia`` those with GPUs of NVIDIA. They decide on what
        is deployed for them; if there are none, all hosts do.
    :param deployed: whether the hosts also have to agree on the parts that are deployed.
    :raises KubegpuError: two hosts differ.
    """
    variables = one_cluster(hosts, hostvars)
    if deployed:
        _deployed.check_deployed(hosts, hostvars)
    return {
        "variables": variables,
        # By the facts of now: a driver that this run loaded can serve a second vendor's GPUs, and
        # those passed through to virtual machines need no device plugin.
        "vendors": [one for one in _OTHER_VENDORS if select_hosts(hosts, hostvars, one)],
        "gpu_hosts": [host for host in gpu if host in hosts] or list(hosts),
        "nvidia_hosts": [host for host in nvidia if host in hosts] or list(hosts),
    }


def _verification(
    hosts: Sequence[str], hostvars: Hostvars, *, key: str, layers: Sequence[Object] = ()
) -> list[dict[str, Any]]:
    """Return the rows of a verification.

    :param key: the variable in which each host has its layers.
    :param layers: those that were verified in the cluster.
    """
    verified = select_hosts(hosts, hostvars, "verified")
    return verification_rows(verified, hostvars, key, layers, missing=_STOPPED)


#: By the option ``of`` of the action, with the hosts, their variables and what is ``given``; the
#: others are in ``_stage_results.py``.
RESULTS: Mapping[str, Callable[..., Any]] = {"cluster": _cluster, "verification": _verification}
