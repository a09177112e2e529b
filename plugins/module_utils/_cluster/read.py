# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read nodes, pods, workloads, logs and events of a cluster from its API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._kube.api import Cluster
from .._kube.errors import KubeError
from .allocation import NodeState, node_states
from .dra import (
    GROUP,
    Dra,
    add_dra_offers,
    count_slices,
    drivers,
    newest_version,
    read_claims,
    read_classes,
    read_devices,
    served_versions,
)
from .pods import PodView, add_events
from .workloads import (
    Workload,
    recognize,
)

_TAIL = 60
#: Bytes of a log. The API server counts them from the first requested line, so that fewer lines of
#: a longer log are requested: the end of a log explains the failure.
_LIMIT = 256 * 1024
_FEWER = 10
#: Finished pods use no GPU, and a cluster may have thousands of them.
ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass
class Reader:
    """Reads the objects of a cluster that decide which GPUs its nodes offer."""

    cluster: Cluster
    #: Notes about unreadable objects, without duplicates.
    notes: list[str] = field(default_factory=list)
    #: The DRA objects of the last call of :meth:`states`.
    dra: Dra = field(default_factory=Dra)
    _served: tuple[str, ...] | None = None

    def states(
        self, extra: Sequence[str] = ()
    ) -> tuple[dict[str, NodeState], list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the nodes' states, the Node objects and the active Pod objects."""
        nodes = list(self.cluster.list("/api/v1/nodes"))
        pods = list(self.cluster.list("/api/v1/pods", fieldSelector=ACTIVE))
        self.dra = self._read_dra()
        return add_dra_offers(node_states(nodes, pods, extra), self.dra), nodes, pods

    def _read_dra(self) -> Dra:
        """Return the objects of Dynamic Resource Allocation.

        A missing API group, or a missing permission to read it, is not an error.
        """
        if self._served is None:
            self._served = self._served_versions()
        version = newest_version(self._served)
        if not version:
            return Dra(served=self._served)
        base = f"/apis/{GROUP}/{version}"
        classes = read_classes(self._list_dra(base, "deviceclasses"))
        slices = [
            one
            for driver in drivers(classes)
            for one in self._list_dra(base, "resourceslices", fieldSelector=f"spec.driver={driver}")
        ]
        devices = read_devices(slices)
        claims = read_claims(self._list_dra(base, "resourceclaims")) if devices else ()
        return Dra(version, classes, devices, claims, self._served, count_slices(slices))

    def _served_versions(self) -> tuple[str, ...]:
        try:
            return served_versions(self.cluster.get(f"/apis/{GROUP}"))
        except KubeError as error:
            if error.status != 403:
                raise
            self._note(f"Whether a DRA driver offers GPUs cannot be seen: {error.cause}", error)
            return ()

    def _list_dra(self, base: str, kind: str, **params: object) -> list[dict[str, Any]]:
        try:
            return list(self.cluster.list(f"{base}/{kind}", **params))
        except KubeError as error:
            if error.status not in (403, 404):
                raise
            if error.status == 403:
                self._note(f"What a DRA driver offers cannot be seen in full: {error.cause}", error)
            return []

    def parts(self) -> list[Workload]:
        """Return the operators, plugins and DRA drivers of the cluster."""
        found = []
        for kind in ("DaemonSet", "Deployment"):
            items = self.cluster.list(f"/apis/apps/v1/{kind.lower()}s")
            found += recognize(items, kind)
        return found

    def log(self, view: PodView, container: str, tail: int = _TAIL) -> str:
        """Return the last lines of a container's log, or of its previous instance's log."""
        path = f"/api/v1/namespaces/{view.namespace}/pods/{view.name}/log"
        wanted: dict[str, object] = {"container": container} if container else {}
        try:
            text = self._tail(path, tail, wanted)
            if not text.strip() and view.restarts:
                text = self._tail(path, tail, {**wanted, "previous": True})
        except KubeError as error:
            # 400: the container has not started yet; its state explains why.
            if error.status != 400:
                self._note(f"The log of {view.full_name} cannot be read: {error.cause}", error)
            return ""
        return text

    def _tail(self, path: str, lines: int, wanted: Mapping[str, object]) -> str:
        """Return the last lines of a log, within the limit in bytes."""
        while True:
            text = self.cluster.text(path, tailLines=lines, limitBytes=_LIMIT, **wanted)
            if lines <= 1 or len(text.encode()) < _LIMIT:
                return text
            lines = max(1, lines // _FEWER)

    def events(self, namespace: str, kind: str, name: str) -> list[dict[str, Any]]:
        """Return the events of an object."""
        chosen = f"involvedObject.kind={kind},involvedObject.name={name}"
        try:
            return list(
                self.cluster.list(f"/api/v1/namespaces/{namespace}/events", fieldSelector=chosen)
            )
        except KubeError as error:
            self._note(f"The events of {namespace} cannot be read: {error.cause}", error)
            return []

    def detailed(self, view: PodView, container: str = "", tail: int = _TAIL) -> PodView:
        """Return a pod's view with its log and events."""
        complete = add_events(view, self.events(view.namespace, "Pod", view.name))
        return replace(complete, log=self.log(view, container, tail))

    def _note(self, text: str, error: KubeError) -> None:
        note = f"{text} {error.next_step}".strip()
        if note not in self.notes:
            self.notes.append(note)
