# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many nodes of the control plane may reboot at once. Pure.

etcd answers as long as more than half of its members do. A drain leaves its pods, which are static,
and a restart of the container runtime leaves them running: a reboot takes one away. The servers
of k3s, RKE2 and k0s run etcd themselves, so that a restart of their containerd does, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.finding import Finding

# k3s and RKE2 label the nodes whose etcd they run. kubeadm runs etcd on all of its control plane,
# without such a label.
_ETCD = "node-role.kubernetes.io/etcd"
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

Batches = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Quorum:
    """The control plane of a cluster, by the names of its nodes.

    :param away: the members that are not ready.
    """

    members: frozenset[str] = frozenset()
    away: frozenset[str] = frozenset()

    @property
    def needed(self) -> int:
        return len(self.members) // 2 + 1

    @property
    def spare(self) -> int:
        """How many more members may be away."""
        return len(self.members) - len(self.away) - self.needed

    def has(self, node: str) -> bool:
        """Return whether a node is a member that is ready."""
        return node in self.members - self.away


def find_quorum(nodes: Mapping[str, Mapping[str, Any]]) -> Quorum:
    """Return the control plane among all nodes of a cluster, as ``gpu_cluster_info`` has them."""

    def labelled(*names: str) -> frozenset[str]:
        return frozenset(node for node, one in nodes.items() if {*names} & {*one["labels"]})

    members = labelled(_ETCD) or labelled(*_CONTROL_PLANE)
    return Quorum(members, frozenset(node for node in members if not nodes[node]["ready"]))


def quorum_lost(host: str, quorum: Quorum) -> Finding:
    """Return the finding for a host whose restart the control plane does not bear."""
    away = f"; not ready: {', '.join(sorted(quorum.away))}" if quorum.away else ""
    count, ready = len(quorum.members), len(quorum.members - quorum.away)
    return Finding(
        "quorum_lost",
        f"The control plane would lose its quorum while {host} restarts: {ready} of {count} "
        f"members are ready, and {quorum.needed} have to be.",
        f"members: {', '.join(sorted(quorum.members))}{away}",
        "Bring the other members back, or add one. If etcd does not run on these nodes, or the API "
        "server may be away meanwhile, set gpu_upgrade_keep_quorum: false.",
    )


def split_members(batches: Batches, members: Collection[str], spare: int) -> list[tuple[str, ...]]:
    """Split batches so that no more members restart at once than can be spared.

    :param members: the hosts of the batches that are members and restart.
    """
    found: list[tuple[str, ...]] = []
    for batch in batches:
        part: list[str] = []
        for name in batch:
            if name in members and len({*part} & {*members}) >= max(1, spare):
                found.append(tuple(part))
                part = []
            part.append(name)
        found.append(tuple(part))
    return found
