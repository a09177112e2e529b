# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory: the nodes as machines reached over ssh by an ordinary user with sudo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.testbed import driver_repository, network, repository, ssh
from tests.testbed.fleet import DRIVERS, Node
from tests.testbed.paths import INVENTORY

# Counts the starts of modules, then is the node's ordinary Python.
INTERPRETER = "/usr/local/bin/python3-counted"


def _driver_variables(node: Node, served: repository.Served) -> dict[str, object]:
    """Where a node of the drivers' fleet finds NVIDIA's repository, and who signed it."""
    if node.archive == "debian":
        # NVIDIA's own repository for Debian is not stood in for.
        return {"nvidia_driver_source": "distro"}
    if node.archive != "ubuntu":
        return {}
    top = Path(served.tree)
    found: dict[str, object] = {}
    for name, where in (
        ("nvidia_driver_repository", "cuda"),
        ("testbed_wrong_key_driver_repository", "wrong-key/cuda"),
    ):
        base = f"{served.url}/{where}".replace("/cuda", f"/{driver_repository.CUDA}")
        found[name] = {
            "url": base,
            "key_url": f"{base}/{driver_repository.KEY}",
            "key_fingerprints": [driver_repository.fingerprint(top, where)],
        }
    found["testbed_amd_repository"] = {
        "url": f"{served.url}/amdgpu",
        "key_url": f"{served.url}/amdgpu/gpgkey",
        "key_fingerprints": [driver_repository.fingerprint(top, "amdgpu")],
    }
    return {**found, "cuda_toolkit_repository": found["nvidia_driver_repository"]}


def write(
    nodes: Sequence[Node], served: repository.Served, more: Mapping[str, object] | None = None
) -> Path:
    """Write it for nodes that run, with more variables for all of them."""
    found = network.look()
    data = {
        "all": {
            "hosts": {
                node.name: {
                    "ansible_host": network.address(node, found),
                    **_driver_variables(node, served),
                }
                for node in nodes
            },
            "vars": {
                "ansible_connection": "ssh",
                "ansible_user": ssh.USER,
                "ansible_become": True,
                "ansible_ssh_private_key_file": str(ssh.private_key()),
                "ansible_ssh_common_args": " ".join(ssh.OPTIONS),
                "ansible_ssh_pipelining": True,
                "ansible_python_interpreter": INTERPRETER,
                "nvidia_container_toolkit_repository": {
                    "url": f"{served.url}/stable/deb",
                    "key_url": f"{served.url}/gpgkey",
                    "key_fingerprints": [served.fingerprint],
                },
                # The ordinary nodes' kernel is the machine's, without headers: a driver could
                # neither be built nor loaded there. Drivers have nodes of their own.
                "nvidia_driver_enabled": DRIVERS,
                # For tests: the same packages, signed by somebody else.
                "testbed_wrong_key_repository_url": f"{served.wrong_key_url}/stable/deb",
                "testbed_wrong_key_url": f"{served.wrong_key_url}/gpgkey",
                "testbed_wrong_key_fingerprint": served.wrong_key_fingerprint,
                **(more or {}),
            },
        }
    }
    INVENTORY.parent.mkdir(parents=True, exist_ok=True)
    INVENTORY.write_text("---\n" + yaml.safe_dump(data, sort_keys=False))
    return INVENTORY
