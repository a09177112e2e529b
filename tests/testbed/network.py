# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet's own bridge network: without a way off the machine."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass

from tests.testbed.engine import docker
from tests.testbed.fleet import NAME, Node
from tests.testbed.paths import RUN_LABEL, RUN_NAME
from tests.testbed.shell import TestbedError, say

# For tests of networks (RFC 2544): nothing else has addresses of these.
_PODS = ipaddress.IPv4Network("198.18.0.0/15")


@dataclass(frozen=True)
class Network:
    """Its addresses, as the engine gave them out."""

    subnet: ipaddress.IPv4Network
    gateway: str


def up() -> Network:
    """Make the network if it is not there."""
    if docker("network", "inspect", NAME, check=False).returncode != 0:
        say("network: making a bridge without a way out")
        label = ["--label", f"{RUN_LABEL}={RUN_NAME}"] if RUN_NAME else []
        docker("network", "create", "--driver", "bridge", "--internal", *label, NAME)
    return look()


def look() -> Network:
    """Read the network."""
    answer = json.loads(docker("network", "inspect", NAME).stdout)[0]
    if not answer["Internal"]:
        raise TestbedError(f"the network {NAME} has a way out: it was not made by this testbed")
    config = answer["IPAM"]["Config"][0]
    subnet = ipaddress.IPv4Network(config["Subnet"])
    return Network(subnet, config.get("Gateway") or str(next(subnet.hosts())))


def address(node: Node, network: Network) -> str:
    """The node's address, checked to be on the fleet's network: nobody else is ever spoken to."""
    answer = docker(
        "inspect",
        "--format",
        f'{{{{(index .NetworkSettings.Networks "{NAME}").IPAddress}}}}',
        node.container,
    )
    text = answer.stdout.strip()
    if not text or ipaddress.IPv4Address(text) not in network.subnet:
        raise TestbedError(f"{node.container} has no address on {network.subnet}: {text or 'none'}")
    return text


def pods(number: int, network: Network) -> ipaddress.IPv4Network:
    """Return the addresses of a node's pods, other ones than those of other clusters here.

    :param number: of the node in its fleet.
    """
    octets = network.subnet.network_address.packed
    # The engine gives out 172.16 to 172.31, and then sixteenths of 192.168.
    index = octets[1] - 16 if octets[0] == 172 else 16 + octets[2] // 16
    cluster = list(_PODS.subnets(new_prefix=20))[index % 32]
    return list(cluster.subnets(new_prefix=24))[number]


def remove() -> None:
    """Remove the network."""
    docker("network", "rm", NAME, check=False)
