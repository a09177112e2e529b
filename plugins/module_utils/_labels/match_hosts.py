# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Match hosts to the nodes of a cluster, for labels, verification and the device plugin. Pure.

A node's machine id is what its kubelet reported (``status.nodeInfo``); the API server lets a
kubelet write its own Node object only (admission plugin NodeRestriction,
https://kubernetes.io/docs/reference/access-authn-authz/node/). A host's machine id is what the host
reports, so that root on one machine can report the id of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._core.errors import InputError
from .types import Node, Request


@dataclass(frozen=True)
class Match:
    """The node of a request; None where the cluster has none, or the match is ambiguous."""

    request: Request
    node: Node | None
    found_by: str | None = None
    note: str | None = None
    #: Why the match is ambiguous. Such a host is skipped.
    refusal: InputError | None = None


def match(requests: Sequence[Request], nodes: Iterable[Node]) -> list[Match]:
    """Find the node of each request, by machine id or else by name.

    A host reports its own machine id, and root can forge it; the name comes from the operator. So a
    machine id never overrides a node that has the host's own name. Hosts that cannot be
    distinguished are refused, each with the reason; the others are matched as usual.
    """
    directory = _Directory(requests, nodes)
    return directory.resolve([directory.find(request) for request in requests])


class _Directory:
    """Index of a cluster's nodes by name and machine id, and of the hosts by machine id."""

    def __init__(self, requests: Sequence[Request], nodes: Iterable[Node]) -> None:
        self._by_name: dict[str, Node] = {}
        self._by_short_name: dict[str, list[Node]] = {}
        self._by_id: dict[str, list[Node]] = {}
        for node in nodes:
            self._by_name[node.name] = node
            self._by_short_name.setdefault(_short(node.name), []).append(node)
            if node.machine_id:
                self._by_id.setdefault(_normalized(node.machine_id), []).append(node)
        self._hosts: dict[str, list[Request]] = {}
        for request in requests:
            if request.machine_id:
                self._hosts.setdefault(_normalized(request.machine_id), []).append(request)

    def find(self, request: Request) -> Match:
        """Return the node of one request, regardless of the other requests."""
        named = self._named(request)
        if not request.machine_id:
            return Match(request, named, "name" if named else None)
        there = self._by_id.get(_normalized(request.machine_id), [])
        alike = [named] if named is not None else self._alike(request)
        own = [node for node in there if any(node is one for one in alike)]
        if len(own) == 1:
            return Match(request, own[0], "machine_id", _duplicate_id_note(request, there))
        if not there:
            return Match(
                request,
                named,
                "name" if named else None,
                _different_id_note(request, named) if named else None,
            )
        namesake = named or self._namesake(request)
        if namesake is not None:
            return _refuse_moved(request, there[0], namesake)
        hosts = [host.key for host in self._hosts[_normalized(request.machine_id)]]
        if len(hosts) > 1:
            return _refuse_same(request, f"The hosts {_joined(hosts)} have the same machine id")
        if len(there) > 1:
            names = _joined([node.name for node in there])
            return _refuse_same(
                request, f"The nodes {names} have the same machine id, that of {request.key}"
            )
        return Match(request, there[0], "machine_id")

    def resolve(self, found: Sequence[Match]) -> list[Match]:
        """Refuse hosts that match the same node, except the one that has the node's name."""
        hosts: dict[str, list[Request]] = {}
        for one in found:
            if one.node is not None:
                hosts.setdefault(one.node.name, []).append(one.request)
        resolved = []
        for one in found:
            sharing = hosts[one.node.name] if one.node is not None else [one.request]
            same_name = [request for request in sharing if self._named(request) is one.node]
            if len(sharing) > 1 and same_name != [one.request]:
                resolved.append(_refuse_shared(one, sharing))
            else:
                resolved.append(one)
        return resolved

    def _named(self, request: Request) -> Node | None:
        # Kubernetes writes node names in lower case.
        return self._by_name.get(request.name) or self._by_name.get(request.name.lower())

    def _alike(self, request: Request) -> Sequence[Node]:
        """Return the nodes whose name differs from the host's name only by the domain."""
        short = _short(request.name)
        # The first part of an IP address is not a name.
        return () if short.isdigit() else self._by_short_name.get(short, ())

    def _namesake(self, request: Request) -> Node | None:
        """Return a node with the host's short name that no host's machine id claims."""
        for node in self._alike(request):
            if not self._hosts.get(_normalized(node.machine_id)):
                return node
        return None


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _normalized(machine_id: str) -> str:
    """Return a machine id in lower case, without the dashes of a firmware UUID."""
    return machine_id.replace("-", "").strip().lower()


def _joined(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))


def _duplicate_id_note(request: Request, nodes: Sequence[Node]) -> str | None:
    if len(nodes) < 2:
        return None
    return (
        f"The nodes {_joined(node.name for node in nodes)} have the same machine id, "
        f"{request.machine_id}: {request.key} is found by its name"
    )


def _different_id_note(request: Request, node: Node) -> str | None:
    if not node.machine_id:
        return None
    return (
        f"{request.key} is taken for the node {node.name} by its name: the machine id of the host "
        f"is {request.machine_id}, that of the node {node.machine_id}"
    )


def _refuse_same(request: Request, cause: str) -> Match:
    refusal = InputError(
        f"{cause}; nothing is done for {request.key}",
        evidence=f"machine id {request.machine_id}",
        next_step="A machine that was cloned has it from the other one: on the clone, remove "
        "/etc/machine-id, run systemd-machine-id-setup and restart the kubelet. Until then, name "
        "the node of each host (gpu_node_labels_node_name in the role, name in the module).",
    )
    return Match(request, None, refusal=refusal)


def _refuse_moved(request: Request, node: Node, namesake: Node) -> Match:
    refusal = InputError(
        f"{request.key} has the machine id of the node {node.name}, but the cluster has a node "
        f"{namesake.name}, which is the host's name; nothing is done for {request.key}",
        evidence=f"machine id {request.machine_id}; that of {namesake.name} is "
        f"{namesake.machine_id or 'not known'}",
        next_step=f"See whether /etc/machine-id of {request.key} was changed: the labels and "
        f"taints of a host that has another host's id would go to {node.name}. If {request.key} "
        f"really is {node.name}, name that node for it (gpu_node_labels_node_name in the role, "
        "name in the module).",
    )
    return Match(request, None, refusal=refusal)


def _refuse_shared(one: Match, sharing: Sequence[Request]) -> Match:
    name = one.node.name if one.node else ""
    hosts = _joined(request.key for request in sharing)
    refusal = InputError(
        f"The hosts {hosts} are both the node {name}; nothing is done for {one.request.key}",
        evidence=f"{one.request.key} was found by {one.found_by}",
        next_step="Name each host's node (gpu_node_labels_node_name in the role, name in the "
        "module), and leave the other host out.",
    )
    return Match(one.request, None, refusal=refusal)
