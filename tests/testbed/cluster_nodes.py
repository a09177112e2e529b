# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real kubelets in node containers, with the node's own containerd."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import yaml

from tests.testbed import cluster_images, network, nodes
from tests.testbed.cluster_control import SERVICE_ADDRESS, SERVICE_DNS, SERVICES, ControlPlane
from tests.testbed.fleet import APART, FLEET, Node
from tests.testbed.payload import tar
from tests.testbed.shell import TestbedError, run, say
from tests.testbed.tools import need

_PATIENCE = 900.0
_KUBERNETES = "etc/kubernetes"
# Without the last line it asks for a cloud's metadata, and waits.
_ENVIRONMENT = """\
NODE_NAME={name}
NODE_ADDRESS={address}
AWS_EC2_METADATA_DISABLED=true
"""


def join(plane: ControlPlane, fleet: Sequence[Node]) -> None:
    """Start the kubelets that do not run, and wait until the API server has all nodes Ready."""
    started = time.monotonic()
    need(["ip"])
    archives = cluster_images.archives(fleet)
    with ThreadPoolExecutor(max_workers=3) as pool:
        list(pool.map(lambda node: _join(plane, node, archives), fleet))
    wait_until_ready(plane, fleet)
    say(f"cluster: {len(fleet)} nodes are Ready after {time.monotonic() - started:.0f} s")


def wait_until_ready(plane: ControlPlane, fleet: Sequence[Node]) -> None:
    """Return when each kubelet says so; TestbedError tells what the others say."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        missing = [node for node in fleet if _state(plane, node) != "ready"]
        if not missing:
            return
        if time.monotonic() > deadline:
            node = missing[0]
            # Errors and what ended it, without Go's traces.
            lines = ("-g", "[EF][0-9]{4} ", "-n", "10", "--no-pager", "-o", "cat")
            journal = nodes.execute(node, "journalctl", "-u", "kubelet", *lines, check=False)
            raise TestbedError(f"{node.name} is not Ready: {_state(plane, node)}\n{journal}")
        time.sleep(0.5)


def remove_cgroups(fleet: Sequence[Node]) -> None:
    """Remove what the pods of nodes that are gone left in this machine's control groups."""
    nodes.remove_cgroups([node.container for node in fleet])


def _state(plane: ControlPlane, node: Node) -> str:
    text = plane.kubectl("get", "node", node.kubernetes, "-o", "json", check=False)
    if not text.startswith("{"):
        return text.strip()
    conditions = json.loads(text)["status"].get("conditions", [])
    ready = next((one for one in conditions if one["type"] == "Ready"), {})
    return "ready" if ready.get("status") == "True" else str(ready.get("message", "no condition"))


def _join(plane: ControlPlane, node: Node, archives: Mapping[cluster_images.Image, bytes]) -> None:
    if nodes.execute(node, "systemctl", "is-active", "kubelet", check=False).strip() == "active":
        return
    there = network.look()
    number = (*FLEET, *APART).index(node)
    address, pods = network.address(node, there), network.pods(number, there)
    # The API server reaches pods, as for the page of an exporter. The route ends with the network.
    run(["ip", "route", "replace", str(pods), "via", address], root=True)
    contents = {
        **_identity(plane, node, address),
        f"{_KUBERNETES}/kubelet.yaml": (yaml.safe_dump(_settings(node)).encode(), 0o644),
        f"{_KUBERNETES}/kubelet.env": (
            _ENVIRONMENT.format(name=node.kubernetes, address=address).encode(),
            0o644,
        ),
        "etc/cni/net.d/10-testbed.conflist": (json.dumps(_pod_network(pods)).encode(), 0o644),
    }
    for image, content in archives.items():
        if image.serves(node):
            contents[f"opt/testbed/images/{image.file}"] = (content, 0o644)
    nodes.copy_in(node, tar(contents, {}, ("etc/kubernetes/manifests",)))
    server, _colon, port = plane.server.removeprefix("https://").rpartition(":")
    nodes.execute(node, "/opt/testbed/join-cluster", server, port, SERVICE_ADDRESS, SERVICES)


def _identity(plane: ControlPlane, node: Node, address: str) -> dict[str, tuple[bytes, int]]:
    """Who the node is to the API server, and by what the API server knows it."""
    user, groups = f"system:node:{node.kubernetes}", ("system:nodes",)
    kubeconfig = plane.home / f"{node.name}.kubeconfig"
    plane.authority.kubeconfig(kubeconfig, plane.server, user, groups)
    certificate, key = plane.authority.sign(
        node.name, user, groups, (address, node.kubernetes, node.hostname)
    )

    def read(path: Path, mode: int) -> tuple[bytes, int]:
        return path.read_bytes(), mode

    return {
        f"{_KUBERNETES}/kubelet.conf": read(kubeconfig, 0o600),
        f"{_KUBERNETES}/pki/ca.crt": read(plane.ca_file, 0o644),
        f"{_KUBERNETES}/pki/kubelet.crt": read(certificate, 0o644),
        f"{_KUBERNETES}/pki/kubelet.key": read(key, 0o600),
    }


def _settings(node: Node) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"/{_KUBERNETES}/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"/{_KUBERNETES}/pki/kubelet.crt",
        "tlsPrivateKeyFile": f"/{_KUBERNETES}/pki/kubelet.key",
        "staticPodPath": f"/{_KUBERNETES}/manifests",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": nodes.cgroup_of(node),
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        # A container may not lower it without a capability that this machine lacks.
        "oomScoreAdj": 0,
        # The machine's disk is full of other things: neither pods nor images go for it.
        "evictionHard": {"memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100,
        # Nobody answers there: pods here need no names.
        "clusterDNS": [SERVICE_DNS],
        "clusterDomain": "cluster.local",
        "nodeStatusUpdateFrequency": "5s",
        "makeIPTablesUtilChains": False,
    }


def _pod_network(pods: IPv4Network) -> dict[str, Any]:
    return {
        "cniVersion": "0.4.0",
        "name": "testbed",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipMasq": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": str(pods)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
