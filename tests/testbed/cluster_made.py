# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Made nodes: Node objects in a real API server, without any machine behind them."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from tests.testbed.cluster_control import ControlPlane
from tests.testbed.shell import TestbedError

_WORKERS = 8


def machine_id(name: str) -> str:
    """The machine id that a made node of this name has."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def node(name: str, labels: dict[str, str] | None = None, *, ready: bool = True) -> dict[str, Any]:
    """A Node as a kubelet would have registered it."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "Unknown",
        "reason": "KubeletReady" if ready else "NodeStatusUnknown",
        "message": "made by the testbed",
    }
    ours = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **(labels or {})}
    versions = dict.fromkeys(("kernelVersion", "osImage", "containerRuntimeVersion"), "made")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": ours},
        "status": {
            "conditions": [condition],
            "nodeInfo": {
                **versions,
                "machineID": machine_id(name),
                "systemUUID": machine_id(name),
                "bootID": machine_id(name),
                "kubeletVersion": "v1.20.2",
                "kubeProxyVersion": "v1.20.2",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def create(plane: ControlPlane, nodes: Sequence[dict[str, Any]]) -> None:
    """Create these nodes; a few hundred a second."""
    shares = [nodes[index::_WORKERS] for index in range(_WORKERS)]
    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(lambda share: _requests(plane, "POST", [("", one) for one in share]), shares))


def create_many(plane: ControlPlane, count: int, prefix: str = "made") -> list[str]:
    """Create ``count`` nodes and return their names."""
    names = [f"{prefix}-{number:05d}" for number in range(count)]
    create(plane, [node(name) for name in names])
    return names


def delete(plane: ControlPlane, names: Sequence[str]) -> None:
    """Delete these nodes."""
    shares = [names[index::_WORKERS] for index in range(_WORKERS)]
    with ThreadPoolExecutor(_WORKERS) as pool:
        todo = [[(f"/{name}", None) for name in share] for share in shares]
        list(pool.map(lambda share: _requests(plane, "DELETE", share), todo))


def _requests(
    plane: ControlPlane, method: str, todo: Sequence[tuple[str, dict[str, Any] | None]]
) -> None:
    server = urlsplit(plane.server)
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    context.load_cert_chain(*plane.admin_certificate)
    connection = http.client.HTTPSConnection(
        str(server.hostname), server.port, context=context, timeout=60
    )
    for where, body in todo:
        connection.request(
            method,
            f"/api/v1/nodes{where}",
            json.dumps(body) if body is not None else None,
            {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise TestbedError(f"{method} of a node: {answer.status} {text.decode()}")
    connection.close()
