# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fleet's inventory, as a person would write it for machines reached over ssh."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.testbed import network, server, ssh
from tests.testbed.fleet import Node
from tests.testbed.paths import INVENTORY
from tests.testbed.repository import fingerprint


def write(nodes: Sequence[Node]) -> None:
    """Write the inventory (JSON, which is YAML too)."""
    net = network.look()
    base = server.url()
    data = {
        "all": {
            "hosts": {node.name: {"ansible_host": network.address(node, net)} for node in nodes},
            "vars": {
                "ansible_user": ssh.USER,
                "ansible_ssh_private_key_file": str(ssh.private_key()),
                "ansible_ssh_common_args": " ".join(ssh.OPTIONS),
                "ansible_ssh_pipelining": True,
                # Counts the modules that are started on the node, then is /usr/bin/python3.
                "ansible_python_interpreter": "/usr/local/bin/python3-counted",
                "nvidia_container_toolkit_repository_url": f"{base}/stable/deb",
                "nvidia_container_toolkit_key_url": f"{base}/gpgkey",
                "nvidia_container_toolkit_key_fingerprints": [fingerprint()],
            },
        }
    }
    INVENTORY.parent.mkdir(parents=True, exist_ok=True)
    INVENTORY.write_text(json.dumps(data, indent=2) + "\n")
