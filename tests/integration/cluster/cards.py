# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cards with MIG on a node of the cluster, by the stand-in of nvidia-smi."""

from __future__ import annotations

import json
from typing import Any

from tests.testbed.fleet import Node
from tests.testbed.nodes import execute
from tests.unit.fixtures.mig_node import SMI, card


def give_cards(machine: Node, **more: Any) -> None:
    """Have the node's nvidia-smi show its GPUs as H100."""
    cards = [
        {
            **card(index, "2330"),
            "address": device.address,
            # As the stand-in of the container runtime has it.
            "uuid": f"GPU-5ca1ab1e-0000-4000-8000-{index:012d}",
            **more,
        }
        for index, device in enumerate(machine.gpus)
    ]
    execute(machine, "cp", "-a", "/usr/bin/nvidia-smi", "/root/nvidia-smi")
    execute(machine, "tee", "/usr/bin/nvidia-smi", stdin=SMI.read_text(encoding="utf-8"))
    execute(machine, "tee", "/etc/standin-mig.json", stdin=json.dumps(cards))


def take_cards(machine: Node) -> None:
    """Undo it."""
    execute(
        machine, "sh", "-c", "mv /root/nvidia-smi /usr/bin/nvidia-smi; "
        "rm -f /etc/standin-mig.json /run/standin-* /var/lib/standin-mig-mode.json",
    )  # fmt: skip
