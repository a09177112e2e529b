# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease by which one run at a time changes the nodes of a cluster: take, renew, release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._cluster.workloads import namespace_manifest
from .._core.finding import Finding
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .._kube.timestamp import timestamp, unix_time
from .types import MANAGER, LeaseRequest

_ATTEMPTS = 5
#: Between the name of a run and the identity of its process.
_BY = ": "
# Seconds that a renewTime may be later than the server's clock: no run writes a later one.
_AHEAD = 60
# The last second of the year 9999, after which there is no timestamp.
_LATEST = 253402300799


class Lease:
    """One Lease object. Times are those of the API server.

    :param run: the name of this run.
    """

    def __init__(self, cluster: Cluster, request: LeaseRequest, run: str) -> None:
        self._cluster = cluster
        self._request = request
        self._run = run
        self._holder = f"{run}{_BY}{request.process}"
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{request.namespace}/leases"
        self._path = f"{self._folder}/{request.name}"
        #: What a person should know, such as that a dead run was replaced.
        self.notes: list[str] = []

    def take(self, *, dry_run: bool) -> Finding | None:
        """Take or renew the Lease; return why that is not possible.

        :param dry_run: whether the API server only tries it, so that a missing right is seen.
        """
        for attempt in range(_ATTEMPTS):
            found = self._cluster.get(self._path)
            holder = _holder(found)
            if found is not None and holder not in ("", self._holder):
                why = self._why_free(found)
                if not why:
                    return self._held(found)
                self.notes = [
                    f"The Lease {self._request.namespace}/{self._request.name} of the run "
                    f"{holder.rpartition(_BY)[0]} is taken over: {why}."
                ]
            try:
                self._write(found, dry_run)
            except KubeError as error:
                # Another run was faster: who has it now?
                if error.status != 409 or attempt == _ATTEMPTS - 1:
                    raise
            else:
                return None
        return None

    def release(self) -> None:
        """Remove the Lease, if this run has it."""
        found = self._cluster.get(self._path)
        if found is not None and _holder(found) == self._holder:
            self._cluster.delete(self._path, uid=found["metadata"]["uid"])

    def _write(self, found: Mapping[str, Any] | None, dry_run: bool) -> None:
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": self._request.duration,
            "renewTime": _micro(timestamp(self._now())),
        }
        if found is not None:
            meta = {"resourceVersion": found["metadata"]["resourceVersion"]}
            patch = {"metadata": meta, "spec": spec}
            self._cluster.patch(self._path, patch, field_manager=MANAGER, dry_run=dry_run)
            return
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._request.name, "namespace": self._request.namespace},
            "spec": spec,
        }
        try:
            self._cluster.create(self._folder, body, field_manager=MANAGER, dry_run=dry_run)
        except KubeError as error:
            if error.status != 404:
                raise
            # The namespace is not there yet.
            namespace = namespace_manifest(self._request.namespace)
            self._cluster.create("/api/v1/namespaces", namespace, dry_run=dry_run)
            if not dry_run:
                self._cluster.create(self._folder, body, field_manager=MANAGER)

    def _now(self) -> float:
        """Return the server's time, by the answer that was read before.

        :raises KubeError: the answer has none. The clock of this machine could be ahead: it would
            take over the Lease of a run that is at work.
        """
        if self._cluster.server_time is None:
            raise KubeError(
                f"The time of the Lease {self._request.namespace}/{self._request.name} cannot be "
                "judged: the answers of the API server do not say their time",
                evidence=f"the answer to GET {self._path} has no header Date that can be read",
                next_step="An API server sends the header Date with each answer; a proxy on the "
                "way may take it out. Let it pass, or reach the API server without the proxy.",
                reason="Configuration",
            )
        return self._cluster.server_time

    def _why_free(self, found: Mapping[str, Any]) -> str:
        """Return why the Lease of another run may be taken; empty if it may not."""
        process = _holder(found).rpartition(_BY)[2]
        if self._request.ended and process == self._request.ended:
            return "its process has ended"
        end = _end(found)
        if end is not None and self._now() > end:
            return f"it was not renewed since {_renewed(found)}"
        return ""

    def _held(self, found: Mapping[str, Any]) -> Finding:
        run, _by, process = _holder(found).rpartition(_BY)
        name = f"{self._request.namespace}/{self._request.name}"
        end = _end(found)
        renewed = unix_time((found.get("spec") or {}).get("renewTime"))
        until = f", or wait until {timestamp(end)}, when it expires" if end is not None else ""
        if renewed is not None and renewed > self._now() + _AHEAD:
            now = timestamp(self._now())
            until = f". Its time is wrong: for the API server it is {now} now"
        return Finding(
            "lease_held",
            f"The run {run or process} changes nodes of this cluster now: it holds the Lease "
            f"{name}, renewed {_renewed(found) or 'at an unknown time'}.",
            f"holderIdentity: {_holder(found)}",
            f"Wait until it ends. If its process has ended, remove the Lease (kubectl -n "
            f"{self._request.namespace} delete lease {self._request.name}){until}.",
            {"process": process},
        )


def _holder(found: Mapping[str, Any] | None) -> str:
    return str(((found or {}).get("spec") or {}).get("holderIdentity") or "")


def _renewed(found: Mapping[str, Any]) -> str:
    text = str((found.get("spec") or {}).get("renewTime") or "")
    return f"{text.partition('.')[0].rstrip('Z')}Z" if text else ""


def _end(found: Mapping[str, Any]) -> float | None:
    """Return when the Lease expires; None if it does not say."""
    renewed = unix_time((found.get("spec") or {}).get("renewTime"))
    duration = (found.get("spec") or {}).get("leaseDurationSeconds")
    if renewed is None or not isinstance(duration, int) or not 0 <= duration <= _LATEST - renewed:
        return None
    return renewed + duration


def _micro(text: str) -> str:
    """Return a time in the form of a Lease, which has microseconds."""
    return f"{text.rstrip('Z')}.000000Z"
