# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which node of a cluster is which host. Labels, verification and the device plugin ask here.

Pure. A node's machine id in the cluster is what its kubelet reported (``status.nodeInfo``); the API
server lets a kubelet write its own Node object alone (admission plugin NodeRestriction,
https://kubernetes.io/docs/reference/access-authn-authz/node/). A host's machine id is what the host
says, so that root of one machine can say that of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._core.errors import InputError
from .types import Node, Wish


@dataclass(frozen=True)
class Match:
    """Which node a wish is for; None where the cluster does not have it, or it is not certain."""

    wish: Wish
    node: Node | None
    found_by: str | None = None
    note: str | None = None
    #: Why it is not certain which node the host is. Nothing is done for such a host.
    refusal: InputError | None = None


def match(wishes: Sequence[Wish], nodes: Iterable[Node]) -> list[Match]:
    """Find the node of each wish: by machine id, else by name.

    The machine id is what a host says of itself, and root of a host can say that of another one.
    The name is the operator's word. So a machine id never leads away from a node of the host's own
    name, and hosts that cannot be told apart are refused, each with the reason; the others are
    found all the same.
    """
    directory = _Directory(wishes, nodes)
    return directory.settle([directory.find(wish) for wish in wishes])


class _Directory:
    """The nodes of a cluster by name and by machine id, and who of the hosts has which id."""

    def __init__(self, wishes: Sequence[Wish], nodes: Iterable[Node]) -> None:
        self._by_name: dict[str, Node] = {}
        self._by_short_name: dict[str, list[Node]] = {}
        self._by_id: dict[str, list[Node]] = {}
        for node in nodes:
            self._by_name[node.name] = node
            self._by_short_name.setdefault(_short(node.name), []).append(node)
            if node.machine_id:
                self._by_id.setdefault(_plain(node.machine_id), []).append(node)
        self._hosts: dict[str, list[Wish]] = {}
        for wish in wishes:
            if wish.machine_id:
                self._hosts.setdefault(_plain(wish.machine_id), []).append(wish)

    def find(self, wish: Wish) -> Match:
        """Return the node of one wish, without a look at the nodes of the others."""
        named = self._named(wish)
        if not wish.machine_id:
            return Match(wish, named, "name" if named else None)
        there = self._by_id.get(_plain(wish.machine_id), [])
        alike = [named] if named is not None else self._alike(wish)
        own = [node for node in there if any(node is one for one in alike)]
        if len(own) == 1:
            return Match(wish, own[0], "machine_id", _told_apart(wish, there))
        if not there:
            return Match(
                wish, named, "name" if named else None, _other_id(wish, named) if named else None
            )
        namesake = named or self._namesake(wish)
        if namesake is not None:
            return _moved(wish, there[0], namesake)
        hosts = [host.key for host in self._hosts[_plain(wish.machine_id)]]
        if len(hosts) > 1:
            return _same(wish, f"The hosts {_listed(hosts)} have the same machine id")
        if len(there) > 1:
            names = _listed([node.name for node in there])
            return _same(wish, f"The nodes {names} have the same machine id, that of {wish.key}")
        return Match(wish, there[0], "machine_id")

    def settle(self, found: Sequence[Match]) -> list[Match]:
        """Refuse the hosts that are one node, but for the one that has the node's name."""
        hosts: dict[str, list[Wish]] = {}
        for one in found:
            if one.node is not None:
                hosts.setdefault(one.node.name, []).append(one.wish)
        settled = []
        for one in found:
            sharing = hosts[one.node.name] if one.node is not None else [one.wish]
            same_name = [wish for wish in sharing if self._named(wish) is one.node]
            if len(sharing) > 1 and same_name != [one.wish]:
                settled.append(_shared(one, sharing))
            else:
                settled.append(one)
        return settled

    def _named(self, wish: Wish) -> Node | None:
        # Kubernetes writes node names in lower case.
        return self._by_name.get(wish.name) or self._by_name.get(wish.name.lower())

    def _alike(self, wish: Wish) -> Sequence[Node]:
        """Return the nodes whose name differs from the host's by the domain alone."""
        short = _short(wish.name)
        # The first part of an address is no name.
        return () if short.isdigit() else self._by_short_name.get(short, ())

    def _namesake(self, wish: Wish) -> Node | None:
        """Return a node of the host's name without the domain, if it is no other host's."""
        for node in self._alike(wish):
            if not self._hosts.get(_plain(node.machine_id)):
                return node
        return None


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _plain(machine_id: str) -> str:
    """Return a machine id without the dashes that a firmware's id has."""
    return machine_id.replace("-", "").strip().lower()


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))


def _told_apart(wish: Wish, nodes: Sequence[Node]) -> str | None:
    if len(nodes) < 2:
        return None
    return (
        f"The nodes {_listed(node.name for node in nodes)} have the same machine id, "
        f"{wish.machine_id}: {wish.key} is found by its name"
    )


def _other_id(wish: Wish, node: Node) -> str | None:
    if not node.machine_id:
        return None
    return (
        f"{wish.key} is taken for the node {node.name} by its name: the machine id of the host "
        f"is {wish.machine_id}, that of the node {node.machine_id}"
    )


def _same(wish: Wish, cause: str) -> Match:
    refusal = InputError(
        f"{cause}; nothing is done for {wish.key}",
        evidence=f"machine id {wish.machine_id}",
        next_step="A machine that was cloned has it from the other one: on the clone, remove "
        "/etc/machine-id, run systemd-machine-id-setup and restart the kubelet. Until then, name "
        "the node of each host (gpu_node_labels_node_name in the role, name in the module).",
    )
    return Match(wish, None, refusal=refusal)


def _moved(wish: Wish, node: Node, namesake: Node) -> Match:
    refusal = InputError(
        f"{wish.key} has the machine id of the node {node.name}, but the cluster has a node "
        f"{namesake.name}, which is the host's name; nothing is done for {wish.key}",
        evidence=f"machine id {wish.machine_id}; that of {namesake.name} is "
        f"{namesake.machine_id or 'not known'}",
        next_step=f"See whether somebody changed /etc/machine-id of {wish.key}: the labels and "
        f"taints of a host that has another one's id would go to {node.name}. If {wish.key} really "
        f"is {node.name}, name that node for it (gpu_node_labels_node_name in the role, name in "
        "the module).",
    )
    return Match(wish, None, refusal=refusal)


def _shared(one: Match, sharing: Sequence[Wish]) -> Match:
    name = one.node.name if one.node else ""
    hosts = _listed(wish.key for wish in sharing)
    refusal = InputError(
        f"The hosts {hosts} are both the node {name}; nothing is done for {one.wish.key}",
        evidence=f"{one.wish.key} was found by {one.found_by}",
        next_step="Name each host's node (gpu_node_labels_node_name in the role, name in the "
        "module), and leave the other host out.",
    )
    return Match(one.wish, None, refusal=refusal)
