# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Speak to a Kubernetes API server. Nothing else in this collection's Python does."""

from __future__ import annotations

import concurrent.futures
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from .client import KUBE_ARGUMENTS, Client, Connection, Response, read_connection
from .errors import FieldConflict, KubeError, Server, from_answer, server_time

__all__ = [
    "KUBE_ARGUMENTS",
    "Cluster",
    "Connection",
    "FieldConflict",
    "KubeError",
    "Response",
    "Server",
    "read_connection",
]  # fmt: skip

FIELD_MANAGER = "kubegpu.nodes"
PAGE = 500
AT_ONCE = 8
_ATTEMPTS = 6
#: A server that wants to be left alone for longer is given up: sooner would not be what it asked.
_LONGEST_PAUSE = 120.0
# What a load balancer answers for a server that is away for a moment, and a server amid its start.
_PASSING = (500, 502, 503, 504)
_LIST_RESTARTS = 3
_PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    # JSON is YAML, and every version of the API server takes it under this name.
    "apply": "application/apply-patch+yaml",
}

Item = TypeVar("Item")
Value = TypeVar("Value")
Objects = list[dict[str, Any]]


#: method, path with query, headers, body -> Response. Raises KubeError where no answer came.
Transport = Callable[[str, str, Mapping[str, str], "bytes | None"], Response]


class Cluster:
    """An API server, spoken to in paths and plain dictionaries. Safe to use from threads."""

    def __init__(
        self, send: Transport, server: Server, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._send = send
        self._sleep = sleep
        self._answered = False
        self._lock = threading.Lock()
        self.server = server
        #: When the last answer was made, by the server's clock (seconds since 1970).
        self.server_time: float | None = None
        #: Requests sent so far, by verb as in RBAC.
        self.requests: dict[str, int] = {}

    @classmethod
    def connect(cls, connection: Connection) -> Cluster:
        """Read the configuration. The first request is the first that reaches the server."""
        client = Client(connection)
        return cls(client.send, client.server)

    def version(self) -> dict[str, Any]:
        """Return the server's version: ``{gitVersion: v1.34.1, major, minor, ...}``."""
        return self._json("version", "GET", "/version")

    def get(self, path: str, **params: object) -> dict[str, Any] | None:
        """Return an object; None where it does not exist."""
        try:
            return self._json("get", "GET", path, params)
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def text(self, path: str, **params: object) -> str:
        """Return an answer that is no JSON, as a pod's log."""
        answer = self._request("get", "GET", path, params, accept="*/*")
        return answer.body.decode("utf-8", "replace")

    def list(self, path: str, **params: object) -> Iterator[dict[str, Any]]:
        """Return all objects below a path, fetched in pages (``limit``, 500 unless given)."""
        for _attempt in range(_LIST_RESTARTS):
            try:
                return iter(self._pages(path, {"limit": PAGE, **params}))
            except KubeError as error:
                # The token of a later page is too old: only a whole list is consistent.
                if error.status != 410:
                    raise
                last = error
        raise last

    def _pages(self, path: str, params: Mapping[str, object]) -> Objects:
        items: Objects = []
        token: object = None
        while True:
            page = self._json("list", "GET", path, {**params, "continue": token})
            items.extend(page.get("items") or [])
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return items

    def apply(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Server-side apply: removes what was applied before and is not in ``body``."""
        params = {"fieldManager": field_manager, "force": force}
        return self._write("patch", "PATCH", path, body, params, dry_run, _PATCHES["apply"])

    def patch(
        self,
        path: str,
        body: object,
        *,
        kind: str = "merge",
        field_manager: str = FIELD_MANAGER,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Patch an object; ``kind`` is merge, json or strategic."""
        params = {"fieldManager": field_manager}
        return self._write("patch", "PATCH", path, body, params, dry_run, _PATCHES[kind])

    def create(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        field_manager: str = FIELD_MANAGER,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Create an object below the path of its kind."""
        return self._write("create", "POST", path, body, {"fieldManager": field_manager}, dry_run)

    def delete(
        self, path: str, *, uid: str = "", grace: int | None = None, dry_run: bool = False
    ) -> bool:
        """Delete an object; False where it was not there.

        :param uid: of the object that is meant; one of the same name with another uid is a conflict
            (409).
        """
        # In the body only: with a body, the API server does not read the query, dryRun included.
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        if dry_run:
            options["dryRun"] = ["All"]
        try:
            self._json("delete", "DELETE", path, {}, options)
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        return True

    def eviction_version(self) -> str:
        """Return the version in which the server takes evictions: ``policy/v1``, or earlier ones.

        Servers before 1.22 know ``policy/v1beta1`` alone; newer ones take both bodies, also from
        1.25 on, where the budgets themselves are of ``policy/v1`` alone.
        """
        for one in self._json("get", "GET", "/api/v1").get("resources") or ():
            if one.get("name") == "pods/eviction":
                return f"{one.get('group') or 'policy'}/{one.get('version') or 'v1'}"
        raise KubeError(
            f"The API server {self.server.host} offers no evictions of pods",
            evidence="GET /api/v1 has no resource pods/eviction",
            next_step="Check that the address is the API server's, and not that of a part of it.",
        )

    def evict(
        self,
        path: str,
        uid: str,
        version: str,
        *,
        grace: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Evict a pod, which its budget may forbid (429).

        :param path: of the pod.
        :param uid: of the pod that is meant; another pod of the same name is a conflict (409).
        :param version: of :meth:`eviction_version`.
        :param grace: seconds that the pod gets to end, instead of its own.
        """
        namespace, _pods, name = path.rsplit("/", 3)[-3:]
        options: dict[str, Any] = {"preconditions": {"uid": uid}}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        body = {
            "apiVersion": version,
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        self._write("create", "POST", f"{path}/eviction", body, {}, dry_run)

    def each(
        self, function: Callable[[Item], Value], items: Sequence[Item], at_once: int = AT_ONCE
    ) -> Sequence[Value | KubeError]:
        """Return what ``function`` says of each item, or its error, in order; a few at a time.

        An item that another client changed in between (409) is tried again: ``function`` has to
        read it again. A conflict of field managers would stay one, and is not.

        A server that has gone in between is not waited for by every item: if all concurrent
        requests were lost and none was answered, the items that are left get that error.
        """
        workers = max(1, min(at_once, len(items)))
        lost: list[KubeError] = []

        def guarded(item: Item) -> Value | KubeError:
            gone = list(lost)
            if len(gone) >= max(2, workers):
                return gone[0]
            for attempt in range(_ATTEMPTS):
                try:
                    value = function(item)
                except KubeError as error:
                    last = error
                    if error.status != 409 or error.field_conflicts or attempt == _ATTEMPTS - 1:
                        break
                    self._sleep(_pause(error, attempt))
                else:
                    lost.clear()
                    return value
            if last.reason in ("Unreachable", "Timeout"):
                lost.append(last)
            else:
                lost.clear()
            return last

        if not items:
            return []
        pool = concurrent.futures.ThreadPoolExecutor(workers)
        try:
            return list(pool.map(guarded, items))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _write(
        self,
        verb: str,
        method: str,
        path: str,
        body: object,
        params: Mapping[str, object],
        dry_run: bool,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        query = {**params, "dryRun": "All" if dry_run else None}
        return self._json(verb, method, path, query, body, content_type)

    def _json(
        self,
        verb: str,
        method: str,
        path: str,
        params: Mapping[str, object] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        answer = self._request(verb, method, path, params or {}, body, content_type)
        try:
            data = json.loads(answer.body)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise KubeError(
                f"{self.server.host} answered {method} {path} with something that is not a "
                "Kubernetes object",
                evidence=answer.body[:200].decode("utf-8", "replace"),
                next_step="Check that the address is the API server's, and no proxy or web server.",
                status=answer.status,
            )
        return data

    def _request(
        self,
        verb: str,
        method: str,
        path: str,
        params: Mapping[str, object],
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Response:
        query = {name: _text(value) for name, value in params.items() if value is not None}
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {"Accept": accept}
        content = None
        if body is not None:
            content = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = content_type
        for attempt in range(_ATTEMPTS):
            with self._lock:
                self.requests[verb] = self.requests.get(verb, 0) + 1
            try:
                answer = self._send(method, target, headers, content)
            except KubeError as error:
                failure = error
                again = self._worth_another(method, error, attempt)
            else:
                self._answered = True
                self.server_time = server_time(answer.headers)
                if 200 <= answer.status <= 299:
                    return answer
                failure = from_answer(
                    self.server, method, path, answer.status, answer.body, answer.headers
                )
                # A pod that may not be evicted yet is 429 too, and is the caller's to wait for.
                again = not path.endswith("/eviction") and (
                    answer.status == 429
                    or (answer.status >= 500 and failure.retry_after is not None)
                    or (answer.status in _PASSING and _may_be_redone(method) and attempt < 2)
                )
            pause = _pause(failure, attempt)
            if not again or attempt == _ATTEMPTS - 1 or pause > _LONGEST_PAUSE:
                break
            self._sleep(pause)
        raise failure

    def _worth_another(self, method: str, error: KubeError, attempt: int) -> bool:
        """A server that answered before may be restarting; what may have been done, is not redone.

        A patch of ours can be: it says what is to be, not what is to be added.
        """
        if error.reason == "Unreachable":
            return self._answered and attempt < 4
        return error.reason == "Timeout" and _may_be_redone(method) and attempt < 2


def _may_be_redone(method: str) -> bool:
    return method in ("GET", "PATCH")


def _pause(error: KubeError, attempt: int) -> float:
    return 0.1 * 3.0**attempt if error.retry_after is None else error.retry_after


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
