# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in of an API server that can go away, for the real modules of an upgrade.

It has nodes, pods and Leases in memory, and speaks HTTP on loopback. While it is away, nothing
listens on its port, so that connections are refused as by a server that was killed.
"""

from __future__ import annotations

import copy
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.names import KEEP_NODE
from tests.unit.fixtures.cluster_objects import node, pod

_KINDS = ("nodes", "pods", "daemonsets", "deployments", "leases", "namespaces", "events")
_EVICTION = {"name": "pods/eviction", "group": "policy", "version": "v1"}
#: The machine on which the stand-ins of nodes run.
_BOOT = Path("/proc/sys/kernel/random/boot_id")

Object = dict[str, Any]


class ApiServer:
    """Objects by their paths; each node has a pod with a GPU, which goes when it is evicted."""

    def __init__(self, folder: Path, nodes: tuple[str, ...]) -> None:
        self.objects: dict[str, Object] = {}
        #: Called when an eviction was accepted, with the name of the pod.
        self.evicted: Callable[[str], None] = lambda _pod: None
        self._versions = 0
        self._lock = threading.Lock()
        self._server: _Server | None = None
        for name in nodes:
            one = node(name, gpus=1)
            one["status"]["nodeInfo"]["bootID"] = _BOOT.read_text(encoding="utf-8").strip()
            self._store(f"/api/v1/nodes/{name}", one)
            self._store(f"/api/v1/namespaces/ml/pods/web-{name}", _pod(name))
        self.up()
        self.kubeconfig = folder / "kubeconfig"
        data = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        self.kubeconfig.write_text(yaml.safe_dump(data), encoding="utf-8")

    _port = 0

    def up(self) -> None:
        """Serve, on the same port as before."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.api = self
        self._port = self._server.server_address[1]
        serve = {"poll_interval": 0.01}
        threading.Thread(target=self._server.serve_forever, kwargs=serve, daemon=True).start()

    def down(self) -> None:
        """Go away: no connection is left, and new ones are refused."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.cut()

    def held(self) -> dict[str, str]:
        """Return the nodes that are cordoned, with the run that holds them."""
        found = {}
        for path, one in self.objects.items():
            if path.startswith("/api/v1/nodes/") and one["spec"].get("unschedulable"):
                record = (one["metadata"].get("annotations") or {}).get("kubegpu.nodes/maintenance")
                found[one["metadata"]["name"]] = json.loads(record)["run"] if record else ""
        return found

    def kept(self) -> dict[str, str]:
        """Return the nodes with the annotation for cluster-autoscaler, and its value."""
        found = {}
        for path, one in self.objects.items():
            value = (one["metadata"].get("annotations") or {}).get(KEEP_NODE)
            if path.startswith("/api/v1/nodes/") and value is not None:
                found[one["metadata"]["name"]] = value
        return found

    def leases(self) -> list[str]:
        return [path for path in self.objects if "/leases/" in path]

    def answer(self, method: str, target: str, body: Object) -> tuple[int, Object]:
        """Return status and object of a request."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        with self._lock:
            return self._answer(method, url.path, query, body)

    def _answer(self, method: str, path: str, query: Object, body: Object) -> tuple[int, Object]:
        folder, _slash, last = path.rpartition("/")
        dry = "dryRun" in query or "dryRun" in body
        if path == "/api/v1":
            return 200, {"resources": [_EVICTION]}
        if method == "GET" and last in _KINDS:
            return 200, {"items": self._list(last, query.get("fieldSelector", "")), "metadata": {}}
        if method == "POST" and last == "eviction":
            return self._evict(folder, dry=dry)
        if method == "POST":
            place = f"{path}/{body['metadata']['name']}"
            return 201, body if dry else self._store(place, body)
        found = self.objects.get(path)
        if found is None:
            return 404, {"message": f"{path} is not there"}
        if method == "DELETE" and not dry:
            del self.objects[path]
        elif method == "PATCH":
            found = _merged(found, body)
            found = found if dry else self._store(path, found)
        return 200, found

    def _list(self, kind: str, selector: str) -> list[Object]:
        wanted = dict(one.split("=", 1) for one in selector.split(",") if "!=" not in one and one)
        found = [one for path, one in self.objects.items() if path.split("/")[-2] == kind]
        return [
            one
            for one in found
            if wanted.get("metadata.name") in (None, one["metadata"]["name"])
            and wanted.get("spec.nodeName") in (None, one["spec"].get("nodeName"))
        ]

    def _evict(self, path: str, *, dry: bool) -> tuple[int, Object]:
        if path not in self.objects:
            return 404, {"message": "no pod"}
        if not dry:
            del self.objects[path]
            self.evicted(path.rpartition("/")[2])
        return 201, {}

    def _store(self, path: str, one: Object) -> Object:
        self._versions += 1
        one = copy.deepcopy(one)
        uid = one["metadata"].get("uid") or path
        one["metadata"].update(uid=uid, resourceVersion=str(self._versions))
        self.objects[path] = one
        return one


def _pod(name: str) -> Object:
    one = pod(f"web-{name}", name, gpus=1, namespace="ml")
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    one["metadata"]["ownerReferences"] = [owner]
    return one


def _merged(one: Any, patch: Any) -> Any:
    """Return an object after a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(one) if isinstance(one, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    api: ApiServer

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        """End the connections that clients keep."""
        for one in list(self._open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that was cut."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or "{}")
        status, found = self.server.api.answer(self.command, self.path, body)
        data = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PATCH = do_POST = do_DELETE = answer

    def log_message(self, *_arguments: Any) -> None:
        pass


def later(seconds: float, action: Callable[[], None]) -> threading.Thread:
    """Do something after a while, in a thread of its own."""

    def wait() -> None:
        time.sleep(seconds)
        action()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread
